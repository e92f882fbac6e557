"""The latest request and response: there after errors too, without a secret, and as a command that a shell runs."""

import copy
import json
import os
import pickle
import subprocess
import sys
from collections import namedtuple

import pytest

from openagent import APIError, Client, StreamInterruptedError, TransportError
from openagent.client import ADAPTERS
from openagent.record import Record
from openagent.testing import ScriptedServer, answer, failure

KEY = "sk-s3cr3t-1234567890"
Prepared = namedtuple("Prepared", "method url headers body")
FAKE_CURL = "#!{python}\nimport json, sys\nprint(json.dumps([sys.argv[1:], sys.stdin.read()]))\n"


def client_of(server, protocol="openai-chat", **settings):
    settings = {"api_key": KEY, "headers": {"X-Token": "token-s3cr3t-1"}, "model": "m", **settings}
    return Client(base_url=server.url, protocol=protocol, **settings)


def run_by_sh(command, folder):
    curl = folder / "curl"
    curl.write_text(FAKE_CURL.format(python=sys.executable))
    curl.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "OPENAGENT_API_KEY": "the key", "OPENAGENT_X_TOKEN": "a token"}
    done = subprocess.run(["sh"], input=command.encode(), capture_output=True, env=env, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_what_was_sent_and_heard_is_there_without_a_secret(protocol):
    with ScriptedServer(answer("Hi")) as server, client_of(server, protocol) as client:
        assert (client.last_request, client.last_response) == (None, None)
        client.ask(f"my key is {KEY}")
        request, response = client.last_request, client.last_response
    assert (request.method, request.body["model"], response.status) == ("POST", "m", 200)
    assert request.headers["X-Token"] == "***"
    assert "my key is ***" in json.dumps(request.body)
    assert "s3cr3t" not in repr((request, response)) + request.as_curl()


def test_a_refused_request_leaves_its_request_and_response():
    with ScriptedServer(failure(401, f"the key {KEY} is wrong")) as server, client_of(server) as client:
        with pytest.raises(APIError):
            client.ask("Hi")
        assert (client.last_request.method, client.last_response.status) == ("POST", 401)


def test_a_refused_connection_leaves_the_request_only():
    with Client(base_url="http://127.0.0.1:9/v1?token=s3cr3t&api-version=1", model="m", api_key=KEY) as client:
        with pytest.raises(TransportError):
            client.ask("Hi")
        assert client.last_request.url == "http://127.0.0.1:9/v1/chat/completions?token=***&api-version=1"
        assert client.last_response is None


@pytest.mark.parametrize("prompt", ['it\'s $HOME `x` \\ "ü"\n@', "it's $HOME\nEOF\n" * 10_000])
def test_a_shell_hands_curl_the_very_request(prompt, tmp_path):
    with ScriptedServer(answer("Hi")) as server, client_of(server) as client:
        client.ask(prompt)
        request = client.last_request
    arguments, text = run_by_sh(request.as_curl(), tmp_path)
    assert {"Authorization: Bearer the key", "X-Token: a token", request.url} <= set(arguments)
    body = text if arguments[-2:] == ["--data", "@-"] else arguments[-1]
    assert json.loads(body) == request.body


def test_a_stream_that_was_cut_leaves_both():
    with ScriptedServer(answer("Hello there", done=False, finish="unspecified")) as server, client_of(server) as client:
        with pytest.raises(StreamInterruptedError):
            client.ask("Hi", retry=None)
        assert (client.last_request.body["model"], client.last_response.status) == ("m", 200)


def test_copies_have_no_record():
    with ScriptedServer("Hi") as server, client_of(server) as client:
        client.ask("Hi")
        others = [copy.copy(client), pickle.loads(pickle.dumps(client)), client.fork()]
        assert [(other.last_request, other.last_response) for other in others] == [(None, None)] * 3


def test_the_variable_in_the_command_is_that_of_the_vendor():
    client = Client(provider="openai", model="m", api_key=KEY)
    record = Record()
    record.sent(
        Prepared("POST", "https://api.openai.com/v1/x", {"Authorization": f"Bearer {KEY}"}, b""), client.options
    )
    assert record.request.as_curl() == (
        """curl -X POST https://api.openai.com/v1/x -H 'Authorization: Bearer '"$OPENAI_API_KEY\""""
    )


def test_what_an_address_holds_is_masked():
    record = Record()
    options = Client(model="m", base_url="http://localhost:1").options
    record.sent(Prepared("GET", "http://me:pass@host/v1?api-version=1&sig=abc", {}, b""), options)
    assert record.request.url == "http://***@host/v1?api-version=1&sig=***"
