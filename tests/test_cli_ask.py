"""The options of ``openagent ask``: what is sent for them, and the forms of the answer."""

import io
import json
import sys

import pytest

from openagent.cli import main
from openagent.testing import answer, call, failure

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Typed(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def ask(monkeypatch, capsys):
    """Runs ``openagent ask`` in this process: (exit code, stdout, stderr)."""

    def run(server, *arguments, stdin=None):
        typed = Typed() if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", typed)
        code = main(["ask", "--base-url", server.url, *(() if "-m" in arguments else ("-m", "m")), *arguments])
        return (code, *capsys.readouterr())

    return run


def asked(server, at=-1):
    return server.requests[at].body["messages"]


def test_a_model_can_be_named_with_its_provider(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", Typed())
    monkeypatch.setenv("OPENAGENT_BASE_URL", "http://127.0.0.1:9/v1")
    assert main(["ask", "-m", "nobody:3b", "q"]) == 1
    assert "http://127.0.0.1:9/v1" in capsys.readouterr().err
    assert main(["ask", "-m", "m", "-o", "protocol=smtp", "q"]) == 2
    assert "protocol 'smtp'" in capsys.readouterr().err
    assert main(["ask", "-m", "sglang:qwen3:8b", "-o", "temperature=9", "q"]) == 2
    assert "temperature 9 must be from 0 to 2" in capsys.readouterr().err
    assert main(["ask", "-m", "sglang:qwen3:8b", "q"]) == 1
    assert "no server at http://localhost:30000/v1: is SGLang running?" in capsys.readouterr().err


def test_options_are_settings_of_the_client(ask, serve):
    server = serve("a")
    assert ask(server, "q", "-o", "temperature=0", "-o", "max-tokens=9", "-o", "stop=END", "--timeout", "5")[0] == 0
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0, 9, ["END"])


@pytest.mark.parametrize(
    ("option", "told"),
    [("temperature", "must be KEY=VALUE"), ("temprature=0", "did you mean 'temperature'?"), ("seed=x", "seed 'x'")],
)
def test_an_option_that_is_none_is_exit_code_2(ask, serve, option, told):
    code, out, err = ask(serve(), "q", "-o", option)
    assert (code, out) == (2, "")
    assert told in err


def test_texts_and_images_can_be_attached(ask, serve, tmp_path):
    note, picture = tmp_path / "note.txt", tmp_path / "pixel"
    note.write_text("Grüße", encoding="utf-8")
    picture.write_bytes(__import__("base64").b64decode(PIXEL))
    server = serve("a")
    more = ["-a", str(picture), "-a", "-", "-a", "https://example.org/x.png"]
    assert ask(server, "q", "-a", str(note), *more, stdin=b"piped") == (0, "a\n", "")
    assert asked(server)[0]["content"] == [
        {"type": "text", "text": "q"},
        {"type": "text", "text": "note.txt:\n\nGrüße"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}},
        {"type": "text", "text": "stdin:\n\npiped"},
        {"type": "image_url", "image_url": {"url": "https://example.org/x.png", "detail": "auto"}},
    ]


@pytest.mark.parametrize(("content", "told"), [(None, "cannot read attachment"), (b"\0\1\2", "is no PNG, JPEG")])
def test_an_attachment_that_cannot_be_sent_is_exit_code_2(ask, serve, tmp_path, content, told):
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    code, out, err = ask(serve(), "q", "-a", str(path))
    assert (code, out) == (2, "")
    assert told in err


def test_json_is_one_object(ask, serve):
    server = serve(answer("It is 42.", calls=[call("add", {"a": 1}, id="c1")], model="m-1"))
    code, out, err = ask(server, "q", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "text": "It is 42.",
        "calls": [{"id": "c1", "name": "add", "input": {"a": 1}}],
        "finish_reason": "tool_calls",
        "usage": {"input_tokens": 7, "output_tokens": 5},
        "model": "m-1",
    }


def test_events_are_lines_of_json(ask, serve):
    code, out, err = ask(serve(answer("Hi there", model="m-1")), "q", "--events")
    assert (code, err) == (0, "")
    first, *_, finished, last = [json.loads(line) for line in out.splitlines()]
    assert first == {"type": "text_delta", "text": "Hi "}
    assert (finished["type"], finished["message"]["role"], finished["response"]["model"]) == (
        "round_finished",
        "assistant",
        "m-1",
    )
    assert last == {
        "type": "run_finished",
        "cause": "completed",
        "finish_reason": "stop",
        "usage": {"input_tokens": 7, "output_tokens": 5},
    }


CODE = "Here:\n```python\nx = 1\n```\nor\n```\ny\n```\n"


@pytest.mark.parametrize(
    ("text", "option", "out"),
    [(CODE, "-x", "x = 1\n"), ("no code", "-x", "no code\n"), (CODE, "--no-stream", CODE)],
)
def test_the_whole_answer_or_its_first_code_can_be_asked_for(ask, serve, text, option, out):
    assert ask(serve(text), "q", option) == (0, out, "")


def test_usage_goes_to_stderr(ask, serve):
    assert ask(serve("a"), "q", "-u") == (0, "a\n", "openagent: 7 input tokens, 5 output tokens\n")
    assert ask(serve(answer("a", usage=None)), "q", "-u") == (0, "a\n", "openagent: no usage was told\n")


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "anthropic"])
def test_verbose_shows_both_ways_and_no_secret(ask, serve, protocol):
    secrets = ["-o", "api_key=sk-secret-1", "-o", 'headers={"X-Token": "secret-2"}']
    url = f"data:image/png;base64,{PIXEL}"
    server = serve("Hello.")
    code, out, err = ask(server, "my key is sk-secret-1", "-v", *secrets, "--protocol", protocol, "--image", url)
    assert (code, out) == (0, "Hello.\n")
    assert err.startswith(f"> POST {server.url}/")
    assert "> X-Token: ***\n" in err
    assert '"my key is ***"' in err
    assert "< Content-Type: text/event-stream" in err
    assert '<       "text": "Hello."\n' in err
    assert [secret for secret in ("sk-secret-1", "secret-2", PIXEL) if secret in err] == []


def test_a_conversation_goes_on(ask, serve):
    server = serve("one", "two", "three")
    assert [ask(server, "1", "-s", "Be brief.")[0], ask(server, "2", "-c", "-v")[0], ask(server, "3", "-c")[0]] == [
        0
    ] * 3
    assert [message["content"] for message in asked(server)] == ["Be brief.", "1", "one", "2", "two", "3"]


def test_a_conversation_has_a_name(ask, serve, tmp_path):
    server = serve("one", "two", "other")
    assert ask(server, "1", "--conversation", "trip")[0] == 0
    assert ask(server, "2", "--conversation", "trip")[0] == 0
    assert ask(server, "x", "--conversation", "work")[0] == 0
    assert [message["content"] for message in asked(server, 1)] == ["1", "one", "2"]
    assert [message["content"] for message in asked(server, 2)] == ["x"]
    folder = tmp_path / "data" / "openagent" / "conversations"
    assert sorted(path.name for path in folder.iterdir()) == ["trip.json", "work.json"]


def test_a_failed_question_leaves_the_conversation_as_it_was(ask, serve):
    server = serve("one", failure(401, "no"), "two")
    assert ask(server, "1", "--conversation", "trip")[0] == 0
    assert ask(server, "2", "--conversation", "trip")[0] == 1
    assert ask(server, "3", "--conversation", "trip")[0] == 0
    assert [message["content"] for message in asked(server)] == ["1", "one", "3"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-c"], "there is no conversation to continue"),
        (["--conversation", "../x"], "conversation name '../x' may hold"),
    ],
)
def test_a_conversation_that_cannot_be_is_exit_code_2(ask, serve, arguments, told):
    code, _, err = ask(serve(), "q", *arguments)
    assert code == 2
    assert told in err


def test_an_answer_is_printed_though_it_cannot_be_kept(ask, serve, tmp_path):
    (tmp_path / "data").write_text("no folder")
    assert ask(serve("a"), "q") == (0, "a\n", "")
    code, out, err = ask(serve("a"), "q", "--conversation", "trip")
    assert (code, out) == (2, "a\n")
    assert "cannot write conversation" in err
