"""``openagent models``: what the server offers, and whom the key is told."""

import json

import pytest

from openagent.cli import main
from openagent.testing import failure, raw

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def models(capsys):
    """Runs ``openagent models`` in this process: (exit code, stdout, stderr)."""

    def run(server, *arguments):
        return (main(["models", "--base-url", server.url, *arguments]), *capsys.readouterr())

    return run


@pytest.fixture
def listing():
    """Starts servers that answer anything, without strictness: a list of models is no turn."""
    from openagent.testing import ScriptedServer

    servers = []

    def start(item):
        servers.append(ScriptedServer(item, strict=False))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def told(*names):
    return raw(json.dumps({"object": "list", "data": [{"id": name} for name in names]}), headers=JSON)


def test_models_are_listed_one_a_line(models, listing):
    server = listing(told("qwen3:8b", "llama3"))
    assert models(server, "-o", "api_key=sk-1") == (0, "qwen3:8b\nllama3\n", "")
    asked = server.requests[0]
    assert (asked.method, asked.path, asked.raw, asked.headers["authorization"]) == (
        "GET",
        "/v1/models",
        b"",
        "Bearer sk-1",
    )


def test_models_are_listed_as_json(models, listing):
    assert models(listing(told("a", "b")), "--json") == (0, '["a","b"]\n', "")


def test_each_protocol_shows_its_key_in_its_way(models, listing):
    server = listing(told("claude"))
    assert models(server, "--protocol", "anthropic", "-o", "api_key=sk-1") == (0, "claude\n", "")
    assert (server.requests[0].headers["x-api-key"], server.requests[0].headers.get("authorization")) == ("sk-1", None)


def test_a_key_that_the_server_quotes_is_not_shown(models, listing):
    code, out, err = models(listing(failure(401, "bad key sk-secret-1")), "-o", "api_key=sk-secret-1")
    assert (code, out, err) == (1, "", "openagent: error: API error 401: bad key *** (check api_key)\n")


@pytest.mark.parametrize("body", ["<html>", "{}", '{"data": 3}', "[", ""])
def test_what_is_no_list_is_told(models, listing, body):
    code, out, err = models(listing(raw(body, headers=JSON)))
    assert (code, out) == (1, "")
    assert err.startswith("openagent: error: the server sent no list of models: '")


def test_a_body_that_breaks_off_is_an_error_of_ours(models, listing):
    code, _, err = models(listing(raw(b'{"data": [', headers=JSON, end="abrupt")))
    assert (code, "broke off" in err) == (1, True)


def test_a_redirect_is_not_followed(models, listing):
    code, _, err = models(listing(raw(b"", status=302, headers={"Location": "http://127.0.0.1:9/"})))
    assert (code, "302" in err) == (1, True)


def test_the_embedded_model_is_the_one_there_is(capsys):
    assert (main(["models", "--local"]), capsys.readouterr().out) == (0, "SmolLM2-135M-Instruct\n")


def test_a_deadline_ends_the_waiting_for_a_list(models, listing):
    server = listing(raw(b'{"data": [', headers=JSON, hold=30))
    assert models(server, "-o", "deadline=0.1") == (1, "", "openagent: error: the deadline of 0.1 s has passed\n")
