"""A key goes to one host, in a header: it is looked for in everything that can be printed, saved or sent elsewhere."""

import contextlib
import copy
import json
import pickle
import ssl
import traceback

import pytest
import trustme

from openagent import AgentError, Client, ConfigError, Request, Tool, TransportError
from openagent.client import ADAPTERS
from openagent.testing import ScriptedServer, answer, call, failure, raw

KEY = "sk-s3cr3t-1234567890"
TOKEN = "token-s3cr3t-1234567890"
SETTINGS = {"api_key": KEY, "headers": {"X-Token": TOKEN}}
QUOTED = f"the key {KEY} and {TOKEN} will not do"
ERROR_EVENT = f'event: error\ndata: {{"error": {{"type": "server_error", "message": "{QUOTED}"}}}}\n\n'
DEAD_PROXY = "http://me:proxy-s3cr3t@127.0.0.1:9"


def everything_printable(error):
    """All that a traceback, a log or a debugger's first look shows of an error and of what it came from."""
    seen, waiting, texts = set(), [error], []
    while waiting:
        exc = waiting.pop()
        if exc is None or id(exc) in seen:
            continue
        seen.add(id(exc))
        texts += [str(exc), repr(exc), *traceback.format_exception(exc)]
        texts += [repr(value) for value in vars(exc).values() if isinstance(value, (str, list, tuple, dict))]
        if isinstance(exc, AgentError):
            waiting += [exc.__cause__]
    return "\n".join(texts)


@pytest.fixture(autouse=True)
def _log_of_everything(caplog):
    """Nothing secret is logged, by anybody, at any level."""
    caplog.set_level("DEBUG")
    yield
    assert "s3cr3t" not in caplog.text


FAULTS = {
    "a key that is refused": failure(401, QUOTED),
    "a body that quotes": failure(400, body=QUOTED),
    "a header that quotes": failure(400, headers={"X-Request-Id": KEY}),
    "an error that may pass": failure(503, QUOTED),
    "a redirect": raw("", status=307, headers={"Location": f"http://localhost:1/{KEY}?key={KEY}"}, framing="length"),
    "an error in the stream": raw(ERROR_EVENT),
    "an error after text": answer("Hello", cut=300),
    "an error in a document": raw(json.dumps({"error": QUOTED}), headers={"Content-Type": "application/json"}),
    "a web page": raw(f"<html>{QUOTED}", framing="length"),
    "garbage": raw(f"data: {QUOTED}\n\n"),
    "no HTTP": raw(f"zz{QUOTED}", headers={"Transfer-Encoding": "chunked"}, framing="close"),
    "a size that is none": raw(f"{KEY}\r\n", headers={"Transfer-Encoding": "chunked"}),
    "no gzip": raw(QUOTED, headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("name", FAULTS)
def test_no_error_tells_a_secret_that_the_server_quotes(connect, name, protocol):
    """Promise 5."""
    with ScriptedServer(FAULTS[name], strict=False) as server:
        client = connect(server, protocol=protocol, **SETTINGS)
        with pytest.raises(AgentError) as caught:
            client.ask("q")
    assert "s3cr3t" not in everything_printable(caught.value)
    assert KEY in repr(server.requests[0].headers)


LONG_KEY = "".join(f"_{n:02}_" for n in range(16))
TOLD_WHOLE = len(LONG_KEY) // 2  # so much of a key stands before the place where its text is cut


def padded(size):
    return "x" * (size - TOLD_WHOLE) + LONG_KEY + "x" * 300


CUT = {
    "a sample of an event": raw(f"data: {padded(200)}\n\n"),
    "a sample of a page": raw(f"<html>{padded(194)}", framing="length"),
    "the body of a page": raw(f"<html>{padded(1994)}", framing="length"),
    "the words of a refusal": failure(400, padded(2000)),
    "the words of a page": failure(400, body=padded(200)),
    "the body of a refusal": failure(400, body=padded(2000)),
    "an error in the stream": raw(ERROR_EVENT.replace(QUOTED, padded(2000))),
    "a document of an error": raw(json.dumps({"error": padded(2000)}), headers={"Content-Type": "application/json"}),
    "the end of half a document": raw(
        '{"a": "' + LONG_KEY + "x" * (100 - TOLD_WHOLE), headers={"Content-Type": "application/json"}
    ),
    "a size that is none": raw(padded(40) + "\r\n", headers={"Transfer-Encoding": "chunked"}, framing="close"),
}


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize("name", CUT)
def test_a_secret_across_the_place_where_a_text_is_cut_is_masked(connect, name, protocol):
    """Promise 5: half a key is a secret too."""
    with ScriptedServer(CUT[name], strict=False) as server:
        client = connect(server, protocol=protocol, api_key=LONG_KEY)
        with pytest.raises(AgentError) as caught:
            client.ask("q")
    told = everything_printable(caught.value)
    assert [
        part for part in (LONG_KEY[start : start + 4] for start in range(0, len(LONG_KEY), 4)) if part in told
    ] == []


UNREACHED = {
    "refused": {"base_url": "http://127.0.0.1:9/v1"},
    "refused, a key in the query": {"base_url": "http://127.0.0.1:9/v1?key=query-s3cr3t"},
    "no such host": {"base_url": "http://no-such-host.invalid/v1?key=query-s3cr3t"},
    "no TLS": {"base_url": "https://127.0.0.1:9/v1?key=query-s3cr3t"},
    "a proxy that is down": {"base_url": "http://model.invalid/v1?key=query-s3cr3t", "proxies": DEAD_PROXY},
    "a proxy that is down, TLS": {"base_url": "https://model.invalid/v1?key=query-s3cr3t", "proxies": DEAD_PROXY},
    "a proxy that is none": {"base_url": "http://model.invalid/v1", "proxies": "nothing://me:proxy-s3cr3t@h"},
    "a certificate that is not there": {"base_url": "https://127.0.0.1:9/v1?key=query-s3cr3t", "verify": "/no/such"},
}


@pytest.mark.parametrize("name", UNREACHED)
def test_no_error_of_the_network_tells_a_secret(name):
    """Promise 5: nor the query of an address, nor the password of a proxy."""
    with Client(model="m", retry=None, **SETTINGS, **UNREACHED[name]) as client, pytest.raises(AgentError) as caught:
        client.ask("q")
    assert "s3cr3t" not in everything_printable(caught.value)
    assert "s3cr3t" not in f"{client!r} {client.options!r}"


def test_a_proxy_that_refuses_is_named_without_its_password():
    with ScriptedServer(failure(407, "who are you?"), strict=False) as proxy:
        settings = {"base_url": "http://model.invalid/v1", "proxies": f"http://me:proxy-s3cr3t@127.0.0.1:{proxy.port}"}
        with Client(model="m", retry=None, **settings) as client, pytest.raises(AgentError) as caught:
            client.ask("q")
    assert "s3cr3t" not in everything_printable(caught.value)
    assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


def test_nothing_that_can_be_shown_or_saved_holds_a_secret(serve, connect):
    """Promise 5: representations, events, the conversation."""
    look = Tool("look", "", {}, lambda _: "seen")
    server = serve(answer("hm", calls=[call("look")], reasoning="so"), "done")
    client = connect(server, tools=[look], auto_execute_tools=True, include_reasoning=True, **SETTINGS)
    client.send("q")
    events = list(client.events())
    saved = json.dumps([message.to_dict() for message in client.history])
    request = Request("http://h/v1/chat?key=query-s3cr3t", {"Authorization": KEY}, b'{"x": "body-s3cr3t"}')
    shown = [client, client.options, events, client.history, saved, request, client.usage, client.finish_reason]
    assert "s3cr3t" not in repr([*shown, copy.copy(client), client.interrupt_handle])
    assert "s3cr3t" not in repr([request.body for request in server.requests])


def test_a_pickle_holds_the_key_because_it_must_and_shows_it_to_no_one(connect, serve):
    """life-05: as the docs say."""
    client = pickle.loads(pickle.dumps(connect(serve(), **SETTINGS)))
    assert client.options.api_key == KEY
    assert "s3cr3t" not in repr(client)


@pytest.mark.parametrize("change", ["base_url", "provider"])
def test_another_host_hears_no_secret(serve, connect, change):
    """Promise 5: neither by replace() nor by the settings of one request."""
    first, second = serve("a"), serve("b", "c")
    client = connect(first, **SETTINGS)
    client.ask("q")
    settings = {"base_url": second.url} if change == "base_url" else {"provider": "ollama", "base_url": second.url}
    client.ask("r", **settings)
    client.options = client.options.replace(**settings)
    client.ask("s")
    assert "s3cr3t" not in repr([(request.headers, request.body) for request in second.requests])


@pytest.mark.parametrize("bad", ["x\r\nX-Evil: 1", "x\ny", "x\0", "x\x7f"])
def test_a_header_cannot_be_smuggled_in(bad):
    """B-80: by a key, a header's name, a header's value or the address."""
    for settings in ({"api_key": bad}, {"headers": {bad: "1"}}, {"headers": {"X-A": bad}}):
        with pytest.raises(ConfigError) as caught:
            Client(model="m", base_url="http://localhost:1/v1", **settings)
        assert "Evil" not in str(caught.value) or "headers" in settings


def test_an_address_cannot_smuggle_a_header_in(connect):
    """The request line is one line, whatever the address holds."""
    with ScriptedServer("a", strict=False, repeat=True) as server:
        for end in ("/v1?a=b\r\nX-Evil: 1", "/v1\r\nX-Evil: 1", "/v1?a=b HTTP/1.1\r\nX-Evil: 1"):
            with (
                contextlib.suppress(AgentError),
                Client(model="m", base_url=server.url.removesuffix("/v1") + end, retry=None) as client,
            ):
                client.ask("q")
        assert [request.headers.get("x-evil") for request in server.requests] == [None] * len(server.requests)


# TLS, as users of requests know it


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def secure(authority, serve):
    """A server with TLS and a name; with ``client``, one that asks for the client's certificate."""

    def start(*script, name="127.0.0.1", client=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        if client:
            context.verify_mode = ssl.CERT_REQUIRED
            authority.configure_trust(context)
        return serve(*script, ssl_context=context)

    return start


@pytest.fixture
def bundle(authority, tmp_path):
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def test_a_server_is_trusted_by_the_bundle_that_is_named(secure, connect, bundle, monkeypatch):
    assert connect(secure("a"), verify=bundle).ask("q") == "a"
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, bundle)
        assert connect(secure("b")).ask("q") == "b"
        monkeypatch.delenv(name)


@pytest.mark.parametrize("how", ["unknown authority", "another name"])
def test_a_server_that_is_not_the_one_meant_hears_nothing(secure, connect, bundle, how):
    server = secure("a", name="other.example" if how == "another name" else "127.0.0.1")
    client = connect(server, verify=bundle if how == "another name" else None, **SETTINGS)
    with pytest.raises(TransportError, match=r"TLS with .* failed: SSLCertVerificationError"):
        client.ask("q")
    assert server.requests == []


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
def test_verification_can_be_switched_off(secure, connect):
    assert connect(secure("a"), verify=False).ask("q") == "a"


@pytest.mark.parametrize("as_pair", [False, True])
def test_a_client_shows_its_certificate(secure, connect, authority, bundle, tmp_path, as_pair):
    mine = authority.issue_cert("me@example.com")
    both, key, chain = (tmp_path / name for name in ("both.pem", "key.pem", "chain.pem"))
    mine.private_key_and_cert_chain_pem.write_to_path(str(both))
    mine.private_key_pem.write_to_path(str(key))
    mine.cert_chain_pems[0].write_to_path(str(chain))
    cert = (str(chain), str(key)) if as_pair else str(both)
    assert connect(secure("a", client=True), verify=bundle, cert=cert).ask("q") == "a"


def test_a_client_without_the_certificate_that_is_asked_for_is_refused(secure, connect, bundle):
    with pytest.raises(AgentError):
        connect(secure("a", client=True), verify=bundle).ask("q")


def test_a_certificate_stays_with_its_host(connect, serve):
    client = connect(serve(), cert="mine.pem")
    assert client.options.replace(base_url="https://other.example/v1").cert is None
