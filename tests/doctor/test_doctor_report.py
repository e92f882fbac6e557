"""What the doctor finds on servers of all kinds, and what follows from it."""

import http.server
import json
import socket
import threading

import pytest
from patients import EMULATED, WEATHER, page

from openagent import AgentOptions, Client, ConfigError
from openagent.doctor import Examination, examine, find, usual_places
from openagent.testing import ScriptedServer, answer, failure, raw


def verdicts(report):
    return {finding.name: finding.verdict for finding in report.findings}


def test_a_server_that_can_everything_is_told_so(diagnose):
    report = diagnose()
    assert verdicts(report) == {
        "reachable": "yes",
        "server": "yes",
        "models": "yes",
        "context": "yes",
        "chat": "yes",
        "streaming": "yes",
        "reasoning": "note",
        "usage": "yes",
        "responses": "yes",
        "anthropic": "yes",
        "system": "yes",
        "tools": "yes",
        "tool results": "yes",
        "parallel calls": "yes",
        "structured output": "yes",
        "images": "yes",
    }
    assert (report.server, report.quirks, report.ending) == ("vLLM 0.9.1", (), "complete")
    assert report.finding("context").details == {"tokens": 4096}
    assert report.line == f"Client(model='tiny', base_url='{report.base_url}')"


def test_it_counts_every_request_it_made(patient):
    server = patient()
    report = examine(AgentOptions(model="tiny", base_url=server.url))
    assert report.requests == len(server.requests)
    limits = [request.body.get("max_tokens", 0) for request in server.requests if request.body]
    assert max(limits) <= 128


REFUSALS = {
    "tools are refused": (
        {"tool": failure(400, "tiny does not support tools"), "emulated": EMULATED},
        "tools",
        "partly",
        {"tool_mode": "emulated"},
    ),
    "tools are ignored": (
        {"tool": "It rains.", "emulated": EMULATED},
        "tools",
        "partly",
        {"tool_mode": "emulated"},
    ),
    "a call is left in the text": (
        {"tool": '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'},
        "tools",
        "partly",
        {"rescue_tool_calls": True},
    ),
    "a call is left in the text in an odd form": (
        {"tool": "<function=weather>Oslo</function>", "emulated": EMULATED},
        "tools",
        "partly",
        {"tool_mode": "emulated"},
    ),
    "tools are refused, and a schema is ignored": (
        {"tool": failure(400, "tiny does not support tools"), "emulated": "It rains."},
        "tools",
        "no",
        {},
    ),
    "there are no tools at all": ({"tool": "No.", "emulated": "No."}, "tools", "no", {}),
    "tool results are refused": (
        {"result": failure(400, "unknown role 'tool'"), "emulated": EMULATED},
        "tool results",
        "partly",
        {"tool_mode": "emulated"},
    ),
    "a null beside calls is wanted": (
        {"result": lambda r: failure(400, "empty content") if r.body["messages"][-2]["content"] == "" else "12"},
        "tool results",
        "yes",
        {"empty_content": None},
    ),
    "calls come one at a time": ({"two": answer(calls=[WEATHER])}, "parallel calls", "no", {}),
    "a schema is ignored": ({"shape": "Oslo"}, "structured output", "no", {}),
    "a schema is refused": ({"shape": failure(400, "no"), "json": "no"}, "structured output", "no", {}),
    "only JSON is known": ({"shape": failure(400, "no"), "json": '{"city": 1}'}, "structured output", "partly", {}),
    "a picture is refused": ({"image": failure(500, "image input is not supported")}, "images", "no", {}),
    "a picture is not seen": ({"image": "I see nothing."}, "images", "no", {}),
    "a system prompt is refused": ({"system": failure(400, "System role not supported")}, "system", "no", {}),
    "too many requests are no answer": ({"tool": failure(429, "slow down")}, "tools", "unclear", {}),
    "usage is told nowhere": ({"chat": answer("1, 2", usage=None)}, "usage", "no", {}),
    "there are no Responses": ({"/responses": failure(404, "no")}, "responses", "no", {}),
    "reasoning is told": (
        {"chat": answer("1", reasoning="Let me see.")},
        "reasoning",
        "yes",
        {"include_reasoning": True},
    ),
    "reasoning is in the text": (
        {"chat": "<think>Well.</think>1, 2"},
        "reasoning",
        "yes",
        {"include_reasoning": True},
    ),
    "stream_options is refused": (
        {"chat": lambda r: failure(400, "unknown field") if "stream_options" in r.body else "1, 2"},
        "usage",
        "no",
        {"include_usage": False},
    ),
    "the usage comes unasked only": (
        {
            "chat": lambda r: raw(
                'data: {"id":"1","choices":[{"delta":{"content":"1"},"finish_reason":"stop"}]'
                + (',"usage":{"prompt_tokens":1,"completion_tokens":1}' if "stream_options" not in r.body else "")
                + "}\n\ndata: [DONE]\n\n"
            )
        },
        "usage",
        "partly",
        {"include_usage": False},
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_server_cannot_do_is_found_by_trying(patient, name):
    """And the line to copy makes a client that works; it holds no key."""
    answers, finding, verdict, settings = REFUSALS[name]
    server = patient(answers=answers)
    report = examine(AgentOptions(model="tiny", base_url=server.url, api_key="sk-secret-key"), timeout=20)
    known = {"model": "tiny", "base_url": server.url}
    assert (report.finding(finding).verdict, report.settings) == (verdict, known | settings)
    assert "sk-secret-key" not in json.dumps(report.to_dict())
    with eval(report.line, {"Client": Client}) as client:
        assert client.ask("Count!")


def test_max_completion_tokens_is_found_out(diagnose):
    def chat(request):
        return failure(400, "Use 'max_completion_tokens' instead.") if "max_tokens" in request.body else "1, 2"

    report = diagnose({"chat": chat})
    assert [quirk.name for quirk in report.quirks] == ["max-completion-tokens"]
    assert report.finding("chat").verdict == "yes"


def test_a_server_of_another_protocol_is_examined_on_it(diagnose):
    report = diagnose({"chat": failure(404, "no")})
    assert (report.finding("chat").verdict, report.settings["protocol"]) == ("no", "openai-responses")
    assert report.answers


def test_a_dead_port_is_one_finding():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    report = examine(AgentOptions(model="any", base_url=f"http://127.0.0.1:{port}/v1"))
    assert verdicts(report) == {"reachable": "no"}
    assert (report.answers, report.requests) == (False, 1)


def test_a_web_server_is_none_for_models():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        report = examine(AgentOptions(model="m", base_url=url))
        assert (report.finding("reachable").verdict, report.finding("chat").verdict) == ("yes", "no")
        assert not report.answers
        assert find([url]) == []
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("accept", [True, False])
def test_a_server_that_hangs_costs_no_more_than_the_time_given(accept):
    with ScriptedServer(raw("", hold=30), repeat=True, strict=False, accept=accept) as server:
        report = examine(AgentOptions(model="m", base_url=server.url), timeout=0.3)
    assert (verdicts(report), report.seconds < 10) == ({"reachable": "no"}, True)
    assert report.finding("reachable").text.startswith(f"{server.url} does not answer")


def test_a_model_that_hangs_costs_no_more_than_the_time_given(diagnose):
    hangs = raw("", hold=30)
    report = diagnose({"chat": hangs, "/responses": hangs, "/messages": hangs}, timeout=0.5)
    assert (report.answers, report.seconds < 10) == (False, True)
    assert report.finding("chat").text.startswith("Chat Completions: no answer within ")


def test_a_path_that_is_never_answered_does_not_use_up_the_time(diagnose):
    plain = page({"data": [{"id": "tiny"}]})
    report = diagnose({"/v1/models": plain, "/api/v0/models": raw("", hold=30)}, timeout=1)
    assert (report.finding("server").verdict, report.finding("chat").verdict) == ("unclear", "yes")


def test_a_model_that_reasons_gets_room_to_come_to_the_point(patient):
    server = patient(answers={"chat": answer("1", reasoning="Let me see.")})
    examine(AgentOptions(model="tiny", base_url=server.url))
    limits = [request.body["max_tokens"] for request in server.requests if request.body and "tools" in request.body]
    assert min(limits) > 1000


def test_what_was_found_before_an_interrupt_is_kept(patient):
    examination = Examination(AgentOptions(model="tiny", base_url=patient().url))
    for finding in examination:
        if finding.name == "chat":
            break
    report = examination.report()
    assert (report.ending, report.answers, [f.name for f in report.findings][-1]) == ("interrupted", True, "chat")


def test_a_wrong_key_is_told(diagnose):
    refused = failure(401, "bad key sk-secret-key")
    report = diagnose(
        dict.fromkeys(("/v1/models", "chat", "/responses", "/messages"), refused), api_key="sk-secret-key"
    )
    assert report.finding("chat").text == "Chat Completions: 401: bad key *** (check api_key)"


SAID = {
    "LM Studio": (
        {"/api/v0/models": page({"data": [{"id": "tiny", "state": "loaded", "loaded_context_length": 99}]})},
        99,
    ),
    "llama.cpp b7": ({"/props": page({"build_info": "b7", "default_generation_settings": {"n_ctx": 512}})}, 512),
    "KoboldCpp 1.9": ({"/api/extra/version": page({"result": "KoboldCpp", "version": "1.9"})}, None),
    "SGLang": ({"/get_model_info": page({"model_path": "x"})}, None),
    "TGI 3": ({"/info": page({"model_id": "x", "version": "3", "max_total_tokens": 77})}, 77),
    "Ollama 0.12": (
        {
            "/api/ps": page({"models": []}),
            "/api/version": page({"version": "0.12"}),
            "/api/show": page({"model_info": {"llama.context_length": 131072}}),
        },
        131072,
    ),
    "LiteLLM API": ({"/openapi.json": page({"info": {"title": "LiteLLM API"}})}, None),
    "": ({"/version": page({"version": "7"})}, None),
}


@pytest.mark.parametrize("title", SAID)
def test_a_server_is_known_by_its_own_documents(diagnose, title):
    pages, tokens = SAID[title]
    plain = page({"data": [{"id": "tiny", "owned_by": "me"}]})
    report = diagnose({"/v1/models": plain, "/version": failure(404, "no"), "chat": failure(404, "no")} | pages)
    assert (report.server, report.finding("context").details.get("tokens")) == (title, tokens)


def test_of_several_models_the_one_that_is_loaded_is_tried(diagnose):
    models = page({"data": [{"id": "embed-x"}, {"id": "big"}, {"id": "small"}]})
    native = page({"data": [{"id": "big", "state": "not-loaded"}, {"id": "small", "state": "loaded"}]})
    report = diagnose({"/v1/models": models, "/api/v0/models": native}, model="any")
    assert report.model == "small"


def test_local_servers_are_found_at_the_addresses_asked(patient):
    server = patient()
    places = find([server.url, "http://127.0.0.1:1/v1"])
    assert [(place.base_url, place.identity.title) for place in places] == [(server.url, "vLLM")]


def test_no_key_is_told_to_servers_that_nobody_named(patient, monkeypatch):
    monkeypatch.setenv("OPENAGENT_API_KEY", "sk-secret-key")
    server = patient()
    find([server.url])
    assert [request for request in server.requests if "authorization" in request.headers] == []


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("0.0.0.0", "http://localhost:11434/v1"),
        ("0.0.0.0:11500", "http://localhost:11500/v1"),
        (":11500", "http://localhost:11500/v1"),
        ("https://box", "https://box:443/v1"),
        ("http://box:80/", "http://box:80/v1"),
    ],
)
def test_ollama_is_looked_for_where_its_variable_says(monkeypatch, said, url):
    monkeypatch.setenv("OLLAMA_HOST", said)
    assert usual_places()[0] == url


def test_a_secret_of_the_address_or_of_a_header_is_not_told(patient):
    server = patient()
    url = f"{server.url}?api-version=7&key=sk-secret-key"
    report = examine(AgentOptions(model="tiny", base_url=url, headers={"api-key": "sk-secret-key"}))
    assert report.settings == {
        "model": "tiny",
        "base_url": f"{server.url}?api-version=7",
        "headers": {"api-key": "..."},
    }
    assert "sk-secret-key" not in json.dumps(report.to_dict())


def test_an_adapter_of_ones_own_cannot_be_examined():
    with pytest.raises(ConfigError, match="adapter of your own"):
        Examination(AgentOptions(model="m", protocol=lambda *_: None))
