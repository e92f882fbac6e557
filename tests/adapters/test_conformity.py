"""What we send, over all histories and settings, is what the vendors' own SDKs describe."""

import itertools
import json
from urllib.parse import urlsplit

import pytest
from vendor_types import unread

from openagent import Client, ConfigError, ImageBlock, Message, TextBlock, Tool, ToolUseBlock, truncate_messages
from openagent.adapters import sealed
from openagent.client import ADAPTERS
from openagent.history import sendable
from openagent.testing import Request, ScriptedServer, answer, call
from openagent.testing.reply import complaint, wire_of
from openagent.testing.script import Headers
from openagent.testing.wire import Memory

# What a vendor's own SDK does not know, or no longer does.
VENDORS = {
    "openai-chat": {
        "messages.reasoning_content",  # DeepSeek, LM Studio, vLLM
        "messages.tool_calls.extra_content",  # Gemini
    },
    "openai-responses": set(),
    "anthropic": {"temperature", "top_p"},  # gone in version 2; older models and other servers take them
}

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}}, lambda _: "seen")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
HI, BYE = Message.user("Hi"), Message.user("And now?")


def made(id, **input):
    return ToolUseBlock(id, "look", input)


def result(id, content, **how):
    return Message.tool_result(id, content, **how)


LONG = [HI, Message.assistant("One.", made("a", at="x"), made("b")), result("a", "1"), result("b", "2")]
LONG += [Message.assistant("Two.", made("c")), result("c", "3"), Message.assistant("Three."), BYE]
BROKEN = ToolUseBlock("a", "look", {}, '{"at": "he', "the answer was cut by the output limit")
VALUES = [{"n": [1, "é"]}, None, 4.5, ""]
HISTORIES = {
    "plain": [HI],
    "several turns": [HI, Message.assistant("Hello."), BYE],
    "images": [Message.user("See:", ImageBlock("https://x.y/a.png", "low"), ImageBlock.from_base64(PNG), "?")],
    "an image alone": [Message.user(ImageBlock.from_base64(PNG, detail="high"))],
    "one call": [HI, Message.assistant(made("a", at="home")), result("a", "seen")],
    "calls at once": [HI, Message.assistant("So:", made("a"), made("b")), result("b", "2"), result("a", "1"), BYE],
    "results that are errors": [HI, Message.assistant(made("a")), result("a", {"error": "no"}, is_error=True)],
    "results that are no text": [HI, Message.assistant(*map(made, "abcd")), *map(result, "abcd", VALUES)],
    "a truncated turn": [HI, Message.assistant("So:", BROKEN), result("a", "not run", is_error=True), BYE],
    "an open call": [HI, Message.assistant(made("a")), BYE],
    "interrupted": [HI, BYE],
    "what the system says": [
        Message.system("Be kind."),
        HI,
        Message.system("In French."),
        Message.assistant("Oui."),
        BYE,
    ],
    "blank texts": [
        HI,
        Message.assistant("", made("a")),
        result("a", "1"),
        Message.user(""),
        Message.assistant(" \n"),
        BYE,
    ],
    "ids used again": [HI, *[Message.assistant(made("a")), result("a", "1")] * 2, BYE],
    "foreign ids": [HI, Message.assistant(made("functions.look:0")), result("functions.look:0", "1")],
    "cut at the front": truncate_messages(LONG, 6),
    "cut within results": truncate_messages(LONG, 5),
}

VENDOR_TOOL = {
    "openai-chat": {"reasoning_content": "It may rain."},
    "openai-responses": {
        "items": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbA=="},
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "rain", "queries": ["rain"]},
            },
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It rains.", "annotations": [], "logprobs": []}],
            },
        ]
    },
    "anthropic": {
        "content": [
            {"type": "thinking", "thinking": "It may rain.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "c2Vl"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "Rain",
                        "url": "https://x.y",
                        "encrypted_content": "c2Vl",
                        "page_age": None,
                    }
                ],
            },
            {"type": "text", "text": "It rains."},
        ]
    },
}

TOOLS = {"tools": [LOOK]}
SETTINGS = {
    "nothing": {},
    "a system prompt": {"system_prompt": "Be brief."},
    "a limit": {"max_tokens": 9},
    "temperature": {"temperature": 0},
    "top_p": {"top_p": 0.5},
    "stop": {"stop": ["END", "\n\n"]},
    "a seed": {"seed": 7},
    "tools": TOOLS,
    "tools without words": {"tools": [Tool("look"), Tool("see", "", {"at": "string"})]},
    "the choice auto": TOOLS | {"tool_choice": "auto"},
    "the choice none": TOOLS | {"tool_choice": "none"},
    "the choice required": TOOLS | {"tool_choice": "required"},
    "the choice of one tool": TOOLS | {"tool_choice": "look"},
    "one call at a time": TOOLS | {"parallel_tool_calls": False},
    "one call at a time, by force": TOOLS | {"parallel_tool_calls": False, "tool_choice": "look"},
    "calls at once": TOOLS | {"parallel_tool_calls": True},
    "JSON": {"response_format": "json"},
    "a schema": {"response_format": SCHEMA},
    "effort in a word": {"reasoning_effort": "low", "include_reasoning": True},
    "effort as a number": {"reasoning_effort": 2048},
    "no effort": {"reasoning_effort": "none"},
    "effort and tools": TOOLS | {"reasoning_effort": "high"},
    "tokens to think with, and tools": TOOLS | {"reasoning_effort": 2048, "parallel_tool_calls": False},
    "a cached prompt": TOOLS | {"cache_prompt": True, "system_prompt": "Be brief."},
    "no usage": {"include_usage": False},
    "no reasoning sent back": TOOLS | {"replay_reasoning": False},
    "no content beside calls": TOOLS | {"empty_content": None},
    "the last round": TOOLS | {"instruction": "Answer now.", "include_tools": False, "tool_choice": "required"},
    "all at once": TOOLS
    | {"system_prompt": "Be brief.", "max_tokens": 9, "temperature": 0.5, "top_p": 0.5, "tool_choice": "look"}
    | {"parallel_tool_calls": False, "response_format": SCHEMA, "reasoning_effort": "low", "cache_prompt": True},
}
# What a wire cannot say is a clear error, never left out in silence.
CANNOT_SAY = {
    "openai-chat": {"effort as a number", "tokens to think with, and tools"},
    "openai-responses": {"stop", "a seed", "effort as a number", "tokens to think with, and tools"},
    "anthropic": {"a seed", "JSON"},
}


@pytest.fixture(scope="module")
def heard():
    """The address of a server, and what was heard of it on each wire: thoughts, calls, an answer."""
    thought = call("look", {"at": "home"}, extra={"extra_content": {"google": {"thought_signature": "c2ln"}}})
    histories = {}
    with ScriptedServer(
        answer("Let me see.", reasoning="Look first.", calls=[thought, call("look")]),
        answer("Seen.", reasoning="That is all."),
        repeat=True,
    ) as server:
        for protocol in ADAPTERS:
            with Client(model="m", base_url=server.url, protocol=protocol, auto_execute_tools=True, **TOOLS) as client:
                client.ask("Hi")
                histories[protocol] = [*client.history, BYE]
    assert server.complaints == []
    return server.url, histories


def histories_of(protocol, heard):
    """Every history by name, with what this provider and the others said."""
    url, said = heard
    rains = [TextBlock("It rains.")]
    state = sealed(f"{protocol} {urlsplit(url).netloc}", VENDOR_TOOL[protocol], rains)
    more = {
        "heard of this provider": said[protocol],
        "heard of this provider, a round ago": said[protocol][:4],
        "a vendor's own tool": [HI, Message("assistant", rains, state), BYE],
    }
    more |= {f"heard on {other}": said[other] for other in ADAPTERS if other != protocol}
    more |= {f"a round ago, on {other}": said[other][:4] for other in ADAPTERS if other != protocol}
    return HISTORIES | more


def encoded(protocol, url, history, instruction=None, include_tools=True, **settings):
    options = Client(model="m", base_url=url, protocol=protocol, **settings).options
    tools = list(options.tools)
    adapter = ADAPTERS[protocol](options, sendable(history), tools, lambda *_: iter(()))
    return adapter.encode(instruction, include_tools and bool(tools))


def refused(request):
    """What our strict server has against a request."""
    path = urlsplit(request.url).path
    asked = Request("POST", path, Headers(request.headers), json.loads(request.body), request.body)
    return complaint(asked, wire_of(asked), Memory())


@pytest.mark.parametrize(("protocol", "setting"), list(itertools.product(ADAPTERS, SETTINGS)))
def test_the_vendors_types_and_a_strict_server_read_every_request(protocol, setting, heard):
    url, settings = heard[0], SETTINGS[setting]
    if setting in CANNOT_SAY[protocol]:
        with pytest.raises(ConfigError, match="protocol"):
            Client(model="m", base_url=url, protocol=protocol, **settings)
        return
    wrong = {}
    for name, history in histories_of(protocol, heard).items():
        request = encoded(protocol, url, history, **settings)
        wrong[name] = (unread(protocol, json.loads(request.body)) - VENDORS[protocol], refused(request))
    assert {name: found for name, found in wrong.items() if found != (set(), None)} == {}
