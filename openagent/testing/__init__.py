"""A scripted model server for tests, lessons and experiments without a model.

A real HTTP server on the loopback interface that plays a script of answers in any of the three
wire formats (OpenAI Chat Completions, OpenAI Responses, Anthropic Messages), records what it was
asked, and refuses what a strict vendor would refuse::

    from openagent import Client
    from openagent.testing import ScriptedServer, answer, call, failure

    with ScriptedServer(
        answer(calls=[call("add", {"a": 25, "b": 17})]),
        failure(429, headers={"Retry-After": "0"}),
        "It is 42.",
    ) as server:
        client = Client(model="any", base_url=server.url, tools=[add], auto_execute_tools=True)
        assert client.ask("What is 25 + 17?") == "It is 42."
    assert len(server.requests) == 3
    assert server.complaints == []

Any HTTP client can talk to it:

>>> import json, urllib.request
>>> with ScriptedServer("Hello!") as server:
...     body = {"model": "any", "messages": [{"role": "user", "content": "Hi"}]}
...     asked = urllib.request.Request(
...         server.url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
...     )
...     with urllib.request.urlopen(asked) as heard:
...         json.load(heard)["choices"][0]["message"]["content"]
'Hello!'
>>> server.requests[0].body["messages"][0]["content"]
'Hi'

Owns: the public names. Does not know: the client.
"""

from .script import Answer, Call, Failure, Headers, Item, Raw, Request, answer, call, failure, raw
from .server import ScriptedServer

__all__ = [
    "Answer",
    "Call",
    "Failure",
    "Headers",
    "Item",
    "Raw",
    "Request",
    "ScriptedServer",
    "answer",
    "call",
    "failure",
    "raw",
]
