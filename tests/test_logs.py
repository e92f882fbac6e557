"""What is told to ``logging``: each request, response, new attempt and call, and never a secret."""

import json
import logging
import os
import subprocess
import sys

import pytest

from openagent import APIError, Client, ConfigError, tool
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call, failure

KEY = "sk-s3cr3t-1234567890"


@tool(sensitive=["pin"])
def pay(amount: int, pin: str) -> str:
    """Pay."""
    return "paid"


SCRIPT = [
    failure(429, f"the key {KEY} is busy", headers={"Retry-After": "0", "X-Echo": KEY}),
    answer("Paying.", calls=[call("pay", {"amount": 5, "pin": "pin-s3cr3t-42"})]),
    "Paid.",
    failure(401, f"the key {KEY} is wrong"),
]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_whole_exchange_is_told_without_a_secret(protocol, caplog):
    caplog.set_level(logging.DEBUG, "openagent")
    headers = {"X-Token": "token-s3cr3t-1"}
    with ScriptedServer(*SCRIPT) as server:
        client = Client(
            model="m",
            base_url=server.url,
            protocol=protocol,
            api_key=KEY,
            headers=headers,
            tools=[pay],
            auto_execute_tools=True,
        )
        assert client.ask("Pay 5.") == "Paid."
        with pytest.raises(APIError):
            client.ask("And again.")
        shown = repr((client.last_request, client.last_response)) + client.last_request.as_curl()
    told = [record.getMessage() for record in caplog.records]
    kinds = [line.split()[0] for line in told if line[0] not in "<>"]
    assert kinds == ["POST", "429", "APIError:", "POST", "200", "pay", "POST", "200", "POST", "401"]
    assert "s3cr3t" not in "\n".join(told) + shown
    assert '"amount' in shown.replace("\\", "")


def test_nothing_is_told_of_bodies_at_info(caplog):
    caplog.set_level(logging.INFO, "openagent")
    with ScriptedServer("Hi") as server:
        Client(model="m", base_url=server.url).ask("a private matter")
        assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
            f"POST {server.url}/chat/completions",
            "200",
        ]


def run(code, level):
    environment = os.environ | {"OPENAGENT_LOG": level}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)


def test_a_variable_has_it_written_to_stderr():
    with ScriptedServer("Hi", "Hi") as server:
        code = (
            "from openagent import Client\n"
            f"for _ in 'ab': print(Client(model='m', base_url={server.url!r}, api_key={KEY!r}).ask('q'))"
        )
        done = run(code, "DEBUG")
    assert done.stdout == "Hi\nHi\n"
    lines = done.stderr.splitlines()
    assert sum("DEBUG openagent.wire: >" in line for line in lines) == 2  # once for each request, not for each client
    assert json.loads(lines[1].partition("> ")[2])["messages"] == [{"role": "user", "content": "q"}]
    assert KEY not in done.stderr


def test_a_word_that_is_no_level_is_refused(monkeypatch):
    monkeypatch.setenv("OPENAGENT_LOG", "loud")
    with pytest.raises(ConfigError) as caught:
        Client(model="m", base_url="http://localhost:1")
    assert str(caught.value) == "OPENAGENT_LOG 'loud' must be one of debug, info, warning, error"
