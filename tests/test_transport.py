"""The way out over real sockets: connections, retries, timeouts, interrupts, foreign errors."""

import contextlib
import gc
import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
import traceback

import pytest
import requests
import trustme

from openagent import (
    AgentError,
    AgentOptions,
    APIError,
    Client,
    ConfigError,
    InvalidResponseError,
    Message,
    RetryConfig,
    StreamInterruptedError,
    TextBlock,
    Timeout,
    TransportError,
)
from openagent.presets import is_loopback
from openagent.testing import ScriptedServer, answer, failure, raw
from openagent.translation import of_connecting

KEY = "k-secret-key"
AT_ONCE = 1.0  # seconds; what is waited for in vain would take 10 to 600
AGAIN = RetryConfig(max_attempts=3, initial_delay=0)

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CLOSED = STREAM + b"Connection: close\r\n\r\n"
CHUNKED = STREAM + b"Transfer-Encoding: chunked\r\n\r\n"


def said(text, finish=None):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\n\n".encode()


DONE = b"data: [DONE]\n\n"
HI = said("hi", "stop") + DONE


def in_chunk(content):
    return b"%x\r\n%b\r\n" % (len(content), content)


def whole(content):
    return STREAM + b"Content-Length: %d\r\n\r\n%b" % (len(content), content)


@contextlib.contextmanager
def bare(*handlers):
    """The URL of a server whose n-th connection is handled by the n-th function, which gets the socket."""
    opened = []

    def run(handler, sock):
        with sock, contextlib.suppress(OSError):
            handler(sock)

    def accept():
        for handler in handlers:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            opened.append((sock, threading.Thread(target=run, args=(handler, sock), daemon=True)))
            opened[-1][1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            accepting.join(5)
            for sock, thread in opened:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                thread.join(5)


def hear(sock):
    """The next request on this socket: its head, its body parsed; None if the client has left."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = sock.recv(1)
        if not piece:
            return None
        head += piece
    lines = head.decode("latin-1").lower().split("\r\n")
    size = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length")), 0)
    body = b""
    while len(body) < size:
        body += sock.recv(size - len(body))
    return head, body


def reset(sock):
    """Close the connection so that the client is told at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def left(sock):
    """Wait until the client has left."""
    while sock.recv(4096):
        pass


def client_of(url, **settings):
    return Client(**{"model": "m", "base_url": url, "api_key": KEY, "retry": None} | settings)


def until(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def took(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


def failed(url, kind, **settings):
    """The error of asking there, in which the key must nowhere be."""
    with client_of(url, **settings) as client, pytest.raises(AgentError) as caught:
        client.ask("hello")
    error = caught.value
    assert type(error) is kind, error
    told = [str(error), repr(error), error.body or "", *traceback.format_exception(error), repr(client)]
    assert KEY not in "".join(told)
    assert client.history == [Message.user("hello")]
    return error


# What goes out


def test_a_request_has_the_headers_it_needs_and_no_others(serve):
    """R-101, R-109, H-1: no User-Agent of requests or urllib3; sse-23: nobody gathers blocks to compress."""
    server = serve("Hello")
    with client_of(server.url) as client:
        assert client.ask("hi") == "Hello"
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers == {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "authorization": f"Bearer {KEY}",
        "content-length": str(len(request.raw)),
    }


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_key_there_is_no_header_for_it(key):
    """R-102, H-3, design.md 3."""
    with ScriptedServer("Hello", strict=False) as server, client_of(server.url, api_key=key) as client:
        client.ask("hi")
        assert "authorization" not in server.requests[0].headers
        assert "x-api-key" not in server.requests[0].headers


def test_the_users_headers_win_whatever_their_case(serve):
    """R-103, H-2, H-5, B-80: one value each, the others stay."""
    headers = {"authorization": "Bearer mine", "x-route": "1", "X-Route": "2", "User-Agent": "me", "X-Title": "é"}
    server = serve("Hello")
    with client_of(server.url, headers=headers) as client:
        client.ask("hi")
    heard = server.requests[0].headers
    names = ("authorization", "x-route", "user-agent", "x-title", "content-type")
    assert [heard[name] for name in names] == ["Bearer mine", "2", "me", "é", "application/json"]


@pytest.mark.parametrize("headers", [{"Bad Header": "x"}, {"X-Bad": "a\r\nb"}, {"": "x"}, {"X-Bad": "\n"}])
def test_a_header_that_cannot_be_sent_is_named_before_any_request(headers):
    """H-7, B-80."""
    with pytest.raises(ConfigError, match=repr(next(iter(headers)))):
        client_of("http://localhost:1", headers=headers)


def test_a_key_that_cannot_be_sent_is_a_clear_error():
    """R-102: and is not shown."""
    with pytest.raises(ConfigError, match="api_key") as caught:
        client_of("http://localhost:1", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_netrc_never_replaces_the_key(serve, tmp_path, monkeypatch):
    """http-01, R-109, promise 5."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login u password p\ndefault login u password p\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = serve("Hello")
    assert requests.utils.get_netrc_auth(server.url) == ("u", "p")
    with client_of(server.url) as client:
        client.ask("hi")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    with ScriptedServer("Hello", strict=False) as open_server, client_of(open_server.url, api_key="") as client:
        client.ask("hi")
        assert "authorization" not in open_server.requests[0].headers


@pytest.mark.parametrize(
    ("end", "path"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/openai/deployments/d?api-version=1", "/openai/deployments/d/chat/completions?api-version=1"),
    ],
)
def test_however_an_address_is_written_the_request_arrives(serve, end, path):
    """http-04, R-100."""
    server = serve("Hello")
    with client_of(server.url.removesuffix("/v1") + end) as client:
        assert client.ask("hi") == "Hello"
    assert server.requests[0].path == path


def test_cookies_are_not_kept():
    """What one answer sets must not change the next request."""
    reply = raw(HI, headers={"Content-Type": "text/event-stream", "Set-Cookie": "a=1; Path=/"})
    with ScriptedServer(reply, reply) as server, client_of(server.url) as client:
        client.ask("hi")
        client.ask("hi")
        assert "cookie" not in server.requests[1].headers


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("is_same_host", [True, False])
def test_a_redirect_is_not_followed(status, is_same_host):
    """http-03, R-104, H-8, B-81, design.md 7.12: one request; the key goes nowhere else."""
    with ScriptedServer(strict=False) as other, ScriptedServer(strict=False) as server:
        target = f"{(server if is_same_host else other).url}/elsewhere"
        server.add(failure(status, headers={"Location": f"{target}?key=x"}, body="moved"))
        error = failed(server.url, APIError)
        assert (error.status, error.body, error.retryable) == (status, "moved", False)
        assert f"redirects to {target};" in str(error)
        assert (len(server.requests), other.connections) == (1, 0)


# Connections


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_one_connection_serves_all_turns(serve, framing):
    """design.md 7.3."""
    server = serve(*[answer(f"{number}", framing=framing) for number in range(5)])
    with client_of(server.url) as client:
        assert [client.ask("hi") for _ in range(5)] == ["0", "1", "2", "3", "4"]
        assert (server.connections, server.open_connections) == (1, 1)
    until(lambda: server.open_connections == 0)


def test_an_error_does_not_cost_the_connection(serve):
    server = serve(failure(429), failure(500, body="x" * 10_000), "Hello")
    with client_of(server.url) as client:
        for _ in range(2):
            with pytest.raises(APIError):
                client.ask("hi")
        assert (client.ask("hi"), server.connections) == ("Hello", 1)


def test_a_connection_held_after_done_is_closed_and_not_waited_for(serve):
    """sse-25, S-22, design.md 7.3."""
    server = serve(answer("one", hold=60), "two")
    with client_of(server.url) as client:
        assert took(lambda: client.ask("hi")) < AT_ONCE
        until(lambda: server.open_connections == 0)
        assert (client.ask("hi"), server.connections) == ("two", 2)


def test_an_abandoned_answer_costs_only_its_own_connection(serve):
    """life-03: the next send closes it, and so does close()."""
    server = serve(answer("one two", hold=60, done=False), answer("three four", hold=60, done=False), "five")
    with client_of(server.url) as client:
        for _ in range(2):
            client.send("hi")
            assert next(client.receive()) in (TextBlock("one "), TextBlock("three "))
        until(lambda: server.open_connections == 1)
        client.close()
        until(lambda: server.open_connections == 0)
        assert client.ask("hi") == "five"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts /proc/self/fd")
def test_no_path_leaks_a_socket():
    """http-09: errors with bodies, abandoned and broken answers; ResourceWarnings are errors here."""

    def sockets():
        gc.collect()
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return sum(os.readlink(link).startswith("socket:") for link in links if os.path.islink(link))

    with ScriptedServer(
        failure(429, body="x" * 5000), answer("a b c", hold=60, done=False), raw(said("x"), end="abrupt"), repeat=True
    ) as server:
        with client_of(server.url) as client:

            def provoke():
                with pytest.raises(APIError):
                    client.send("hi")
                client.send("hi")
                next(client.receive())
                with pytest.raises(StreamInterruptedError):
                    client.ask("hi")

            provoke()
            until(lambda: server.open_connections <= 1)
            before = sockets()
            for _ in range(50):
                provoke()
            until(lambda: server.open_connections <= 1)
            assert sockets() <= before + 1


def answering(*replies, then=left):
    """A handler that answers so many requests on its connection, then does something else."""

    def handler(sock):
        for reply in replies:
            if hear(sock) is None:
                return
            sock.sendall(reply)
        then(sock)

    return handler


def hears_and(then):
    def handler(sock):
        if hear(sock) is not None:
            then(sock)

    return handler


def test_a_connection_that_the_server_closed_meanwhile_is_replaced():
    """http-06."""
    closed = threading.Event()

    def close(sock):
        sock.close()
        closed.set()

    with bare(answering(whole(HI), then=close), answering(whole(HI))) as url, client_of(url) as client:
        assert client.ask("one") == "hi"
        assert closed.wait(5)
        assert client.ask("two") == "hi"


@pytest.mark.parametrize("drop", [hears_and(socket.socket.close), hears_and(reset), reset])
def test_a_request_on_a_dead_connection_is_sent_once_more(drop):
    """http-06, design.md 7.10: retries or not, if not a single byte came back."""
    first = answering(whole(HI), then=drop)
    with bare(first, answering(whole(said("again", "stop")))) as url, client_of(url) as client:
        assert client.ask("one") == "hi"
        assert client.ask("two") == "again"


def test_it_is_sent_once_more_only_once():
    """http-06."""
    heard = []

    def count(sock):
        heard.append(hear(sock))

    with bare(answering(whole(HI), then=count), count, count) as url, client_of(url) as client:
        client.ask("one")
        with pytest.raises(TransportError, match=r"the connection to http://127\.0\.0\.1:.* failed") as caught:
            client.ask("two")
        assert caught.value.retryable
        assert len(heard) == 2


def test_a_request_on_a_fresh_connection_is_not_sent_again():
    """http-06: the server may have heard it."""
    heard = []

    def count(sock):
        heard.append(hear(sock))

    with bare(count, count) as url:
        assert failed(url, TransportError).retryable
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("begun", "kind"),
    [
        (whole(HI)[:-30], StreamInterruptedError),
        (CHUNKED + in_chunk(said("x")), StreamInterruptedError),
        (CLOSED + said("x"), StreamInterruptedError),
        (CHUNKED, StreamInterruptedError),
    ],
)
@pytest.mark.parametrize("end", [reset, socket.socket.close])
def test_a_request_whose_answer_had_begun_is_not_sent_again(begun, kind, end):
    """http-06, sse-13, R-168."""
    heard = []

    def half(sock):
        heard.append(hear(sock))
        sock.sendall(begun)
        time.sleep(0.02)  # so that a reset does not overtake it
        end(sock)

    with bare(answering(whole(HI), then=half), half) as url, client_of(url) as client:
        client.ask("one")
        with pytest.raises(kind) as caught:
            client.ask("two")
        assert type(caught.value) is kind
        assert caught.value.blocks in ([], [TextBlock("x")], [TextBlock("hi")])
        assert len(heard) == 1


@pytest.mark.parametrize("framing", [lambda content: content, in_chunk], ids=["close", "chunked"])
def test_each_piece_is_told_while_the_server_holds_the_next(framing):
    """Promise 3, B-70."""
    told = [threading.Event() for _ in range(3)]

    def handler(sock):
        hear(sock)
        sock.sendall(CHUNKED if framing is in_chunk else CLOSED)
        for text, event in zip("abc", told, strict=True):
            sock.sendall(framing(said(text)))
            assert event.wait(5)
        sock.sendall(framing(DONE))

    with bare(handler) as url, client_of(url) as client:
        client.send("hi")
        heard = []
        for block, event in zip(client.receive(), told, strict=True):
            heard.append(block.text)
            event.set()
    assert heard == ["a", "b", "c"]


def test_send_returns_with_the_headers():
    """R-12: before any byte of the body."""
    sent = threading.Event()

    def handler(sock):
        hear(sock)
        sock.sendall(CHUNKED)
        assert sent.wait(5)
        sock.sendall(in_chunk(HI) + b"0\r\n\r\n")

    with bare(handler) as url, client_of(url) as client:
        client.send("hi")
        sent.set()
        assert list(client.receive()) == [TextBlock("hi")]


# Proxies


def test_loopback_goes_direct_whatever_the_environment_says(serve, monkeypatch):
    """http-08, design.md 7.13."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server = serve("Hello", "Hello")
    for host in ("127.0.0.1", "localhost"):
        with client_of(f"http://{host}:{server.port}") as client:
            assert client.ask("hi") == "Hello"


def test_other_hosts_go_through_the_proxy_of_the_environment(serve, monkeypatch):
    """http-08."""
    proxy = serve("Hello")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    with client_of("http://model.invalid/v1") as client:
        assert client.ask("hi") == "Hello"
    assert proxy.requests[0].path == "http://model.invalid/v1/chat/completions"


def test_no_proxy_is_honoured(monkeypatch):
    """http-08."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "model.invalid")
    assert "cannot be resolved" in str(failed("http://model.invalid/v1", TransportError))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://model.invalid/v1"])
@pytest.mark.parametrize("as_mapping", [True, False])
def test_a_proxy_that_was_named_is_used(serve, monkeypatch, url, as_mapping):
    """http-08: explicit proxies win, for loopback too."""
    proxy = serve("Hello")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    address = f"http://127.0.0.1:{proxy.port}"
    with client_of(url, proxies={"http": address} if as_mapping else address) as client:
        assert client.ask("hi") == "Hello"
    assert proxy.requests[0].path == f"{url}/chat/completions"


def test_no_proxies_means_none(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert "cannot be resolved" in str(failed("http://model.invalid/v1", TransportError, proxies={}))


def test_a_proxy_that_is_down_is_the_one_to_blame():
    error = failed("http://model.invalid/v1", TransportError, proxies="http://127.0.0.1:9")
    assert str(error).startswith("the proxy on the way to http://model.invalid/v1 failed: ConnectionRefusedError")


def test_a_proxy_that_refuses_a_tunnel_never_hears_the_key():
    """Promise 5."""
    heard = []

    def refuse(sock):
        heard.append(hear(sock)[0])
        sock.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with bare(refuse) as url:
        error = failed("https://model.invalid/v1", TransportError, proxies=url.removesuffix("/v1"))
    assert "the proxy on the way to https://model.invalid/v1 failed" in str(error)
    assert heard[0].startswith(b"CONNECT model.invalid:443 HTTP/1.")
    assert KEY.encode() not in heard[0]


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    authority = trustme.CA()
    path = str(tmp_path_factory.mktemp("tls") / "certificate.pem")
    authority.cert_pem.write_to_path(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return path, context


def test_a_certificate_of_ones_own_can_be_trusted(certificate, serve, monkeypatch):
    path, context = certificate
    server = serve("one", "two", answer("three", hold=60), ssl_context=context)
    with client_of(server.url, verify=path) as client:
        assert [client.ask("hi") for _ in range(2)] == ["one", "two"]
        assert server.connections == 1
        assert took(lambda: client.ask("hi")) < AT_ONCE
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", path)
    server.add("four")
    with client_of(server.url) as client:
        assert client.ask("hi") == "four"


def test_a_certificate_that_nobody_trusts_is_refused(certificate):
    with ScriptedServer("Hello", ssl_context=certificate[1]) as server:
        error = failed(server.url, TransportError, retry=AGAIN)
        assert str(error).startswith(f"TLS with {server.url} failed: SSLCertVerificationError")
        assert (error.retryable, server.connections, server.requests) == (False, 1, [])


def test_a_server_without_tls_is_named():
    def handler(sock):
        sock.recv(1)
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        left(sock)

    with bare(handler) as url:
        url = url.replace("http:", "https:")
        error = failed(url, TransportError)
        assert (str(error).startswith(f"TLS with {url} failed: SSLError"), error.retryable) == (True, False)


def test_a_bundle_that_does_not_exist_is_a_wrong_setting():
    assert "/no/such/file" in str(failed("https://127.0.0.1:9", ConfigError, verify="/no/such/file"))
    assert "/no/such/file" in str(failed("https://127.0.0.1:9", ConfigError, cert="/no/such/file"))


# Foreign errors as ours


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_refused_connection_asks_whether_the_server_is_running():
    """design.md 6, 7.10: on this machine it is not tried again."""
    url = f"http://127.0.0.1:{closed_port()}/v1"
    error = failed(url, TransportError, retry=RetryConfig(initial_delay=30))
    assert str(error) == f"no server at {url}: is it running, and is the port right?"
    assert error.retryable is False


def refusal():
    with pytest.raises(requests.ConnectionError) as caught:
        requests.post(f"http://127.0.0.1:{closed_port()}")
    return caught.value


def test_a_refused_connection_names_the_server_that_usually_is_there():
    """design.md 6."""

    def told(url):
        error = of_connecting(refusal(), url, connect_timeout=1, read_timeout=1)
        return type(error), str(error), error.retryable

    local = "http://localhost:1234/v1"
    assert told(local) == (TransportError, f"no server at {local}: is LM Studio running?", False)
    far = "http://far.example/v1"
    assert told(far) == (TransportError, f"no server at {far}: the connection was refused", True)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 64 + ".invalid"])
def test_a_name_that_cannot_be_resolved_is_not_tried_again(host):
    """design.md 7.10."""
    error = failed(f"http://{host}/v1", TransportError, retry=RetryConfig(initial_delay=30))
    assert (host in str(error), error.retryable) == (True, False)


@pytest.mark.parametrize("host", ["*.example", ".example", "ex\u200bample"])
def test_a_host_that_is_none_is_a_wrong_setting(host):
    """design.md 6: no raw exception of requests."""
    assert f"http://{host}/v1" in str(failed(f"http://{host}/v1", ConfigError))


@pytest.mark.parametrize(
    ("url", "is_this_machine"),
    [
        ("http://localhost:1234/v1", True),
        ("http://LOCALHOST", True),
        ("http://a.localhost", True),
        ("http://127.0.0.1", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:80", True),
        ("http://localhost.example", False),
        ("http://10.0.0.1", False),
        ("http://[2001:db8::1]", False),
        ("http://0.0.0.0", False),
        ("nonsense", False),
    ],
)
def test_this_machine_is_known_by_its_names(url, is_this_machine):
    assert is_loopback(url) is is_this_machine


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0\xff\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken" + b"x" * 99_999,
    ],
)
def test_what_is_no_http_is_an_error_of_ours(reply):
    def handler(sock):
        hear(sock)
        sock.sendall(reply)

    with bare(handler) as url:
        error = failed(url, TransportError)
        assert str(error).startswith(f"the connection to {url} failed: ")


def test_a_body_that_cannot_be_decompressed_makes_no_sense():
    reply = raw(b"this is no gzip", headers={"Content-Type": "text/event-stream", "Content-Encoding": "gzip"})
    with ScriptedServer(reply, strict=False) as server:
        error = failed(server.url, InvalidResponseError)
        assert (str(error).startswith(f"the body from {server.url} cannot be decompressed"), error.retryable) == (
            True,
            False,
        )


def test_an_error_says_what_the_server_said_and_carries_its_facts():
    """R-106, design.md 6."""
    headers = {"Retry-After": "3", "X-Request-Id": "req_1"}
    with ScriptedServer(failure(429, "slow down", headers=headers)) as server:
        error = failed(server.url, APIError)
    assert str(error) == "API error 429: slow down (the server asks to wait 3 s)"
    assert (error.status, error.request_id, error.retry_after, error.retryable) == (429, "req_1", 3.0, True)


def test_a_huge_error_is_cut_and_not_read_to_its_end():
    """R-106."""
    endless = raw(*[b"x" * 65536] * 100, status=500, headers={"Content-Type": "text/plain"}, framing="close")
    with ScriptedServer(endless, strict=False) as server:
        error = failed(server.url, APIError)
    assert (error.status, len(error.body), len(str(error)) < 300) == (500, 2000, True)


def test_an_error_whose_body_breaks_off_keeps_its_status():
    """R-106, B-5."""
    broken = raw(b'{"error": "half', status=503, headers={"Content-Length": "1000"}, end="abrupt")
    with ScriptedServer(broken, strict=False) as server:
        error = failed(server.url, APIError)
    assert (error.status, error.retryable, str(error)) == (503, True, 'API error 503: {"error": "half')


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"api_key": "", "headers": {"Authorization": f"Bearer {KEY}"}},
        {"api_key": "", "headers": {"x-api-key": KEY}},
    ],
)
def test_a_key_that_the_server_quotes_is_not_passed_on(settings):
    """Promise 5."""
    words = f"Incorrect API key provided: {KEY}"
    for reply in (failure(401, words), failure(401, body=words), raw(f'data: {{"error":"{words}"}}\n\n')):
        with ScriptedServer(reply, strict=False) as server:
            error = failed(server.url, APIError, **settings)
        assert "Incorrect API key provided: ***" in str(error)


def test_a_key_in_the_query_is_not_shown():
    """Promise 5."""
    for url in (f"http://127.0.0.1:{closed_port()}/v1", "http://no-such-host.invalid/v1"):
        error = failed(f"{url}?key={KEY}", TransportError)
        assert url in str(error)


# Timeouts


def test_a_connect_has_its_time():
    """design.md 7.9."""
    with ScriptedServer(accept=False) as server:
        error = failed(server.url, Timeout, timeout=(0.05, 60))
        assert (str(error), error.retryable) == (f"no connection to {server.url} within 0.05 s", True)
    with bare(left) as url:  # which waits for a handshake that never comes
        url = url.replace("http:", "https:")
        assert str(failed(url, Timeout, timeout=(0.05, 60))) == f"no connection to {url} within 0.05 s"


def test_a_silent_server_has_its_time_before_the_headers():
    """design.md 7.9."""
    with bare(hears_and(left)) as url:
        error = failed(url, Timeout, timeout=(60, 0.3))
        assert (str(error), error.retryable, error.blocks) == (f"{url} sent no answer for 0.3 s", True, [])


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_silence_in_the_midst_of_an_answer_ends_it(framing):
    """design.md 7.9: with what was heard."""
    with ScriptedServer(raw(said("x"), framing=framing, hold=60)) as server:
        error = failed(server.url, Timeout, timeout=(60, 0.3))
        assert (str(error), error.blocks) == (f"{server.url} sent nothing more for 0.3 s", [TextBlock("x")])


def test_one_number_is_both_timeouts():
    with bare(hears_and(left)) as url:
        assert "for 0.3 s" in str(failed(url, Timeout, timeout=0.3))


def test_a_silence_after_a_finish_reason_is_a_good_end(serve):
    """design.md 7.1."""
    server = serve(raw(said("x", "stop"), hold=60), raw(said("y", "stop"), end="reset"), raw(said("z", "stop")))
    with client_of(server.url, timeout=(60, 0.4)) as client:
        assert [client.ask("hi") for _ in range(3)] == ["x", "y", "z"]
        assert client.finish_reason == "stop"


def test_a_slow_server_that_goes_on_talking_is_not_cut(serve):
    """design.md 7.9, R-105: the seed's timeout is total."""
    server = serve(answer("a b c d e f g h", delay=0.06))
    with client_of(server.url, timeout=(1, 0.4)) as client:
        assert took(lambda: client.ask("hi")) > 0.4


@pytest.mark.parametrize(
    "item",
    [
        raw(*[said("x")] * 1000, delay=0.01),
        raw(*[said("x")] * 1000, delay=0.01, framing="close"),
        raw(*[b": ping\n\n"] * 1000, delay=0.01),
        raw(said("x"), hold=60),
        failure(503, headers={"Retry-After": "60"}),
        raw(*[b"x"] * 1000, delay=0.01, status=500, headers={"Content-Type": "text/plain"}, framing="close"),
    ],
    ids=["talking", "talking, close", "heartbeats", "silence", "retry", "endless error"],
)
def test_a_deadline_is_kept_whatever_the_server_does(item):
    """design.md 7.9."""
    start = time.monotonic()
    with (
        ScriptedServer(item, strict=False) as server,
        client_of(server.url, deadline=0.4, retry=RetryConfig()) as client,
    ):
        with pytest.raises(AgentError) as caught:
            client.ask("hi")
        assert len(server.requests) == 1
    assert time.monotonic() - start < 0.4 + AT_ONCE
    if isinstance(caught.value, APIError):
        assert caught.value.status in (500, 503)
    else:
        assert (type(caught.value), str(caught.value)) == (Timeout, "the deadline of 0.4 s has passed")
        assert caught.value.retryable is False


def test_a_deadline_also_ends_a_connect_and_a_wait():
    """design.md 7.9."""
    with ScriptedServer(accept=False) as server:
        assert took(lambda: failed(server.url, Timeout, deadline=0.05, retry=RetryConfig())) < AT_ONCE
    with bare(hears_and(left)) as url:
        assert str(failed(url, Timeout, deadline=0.05)) == "the deadline of 0.05 s has passed"


def test_a_deadline_that_is_not_reached_changes_nothing(serve):
    server = serve("one", "two")
    with client_of(server.url, deadline=60) as client:
        assert [client.ask("hi") for _ in range(2)] == ["one", "two"]
    until(lambda: not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)])


# Retries


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_status_that_may_pass_is_tried_again(serve, status):
    """design.md 7.10, B-44."""
    server = serve(failure(status), failure(status, body="<html>"), "Hello")
    with client_of(server.url, retry=AGAIN) as client:
        assert (client.ask("hi"), len(server.requests)) == ("Hello", 3)
        assert [message.role for message in client.history] == ["user", "assistant"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501, 505])
def test_a_status_that_will_not_pass_is_not(status):
    """R-213."""
    with ScriptedServer(failure(status), "Hello") as server:
        assert failed(server.url, APIError, retry=AGAIN).status == status
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "item",
    [
        raw(),
        raw(framing="close"),
        raw(b": ping\n\n"),
        raw(b"data: {}\n\n", end="abrupt"),
        raw(b"data: {", end="reset"),
        raw(b'{"choices":[', headers={"Content-Type": "application/json"}, framing="close"),
        raw(b'data: {"error":{"code":503,"message":"busy"}}\n\n', DONE),
        raw(b'data: {"error":{"type":"overloaded_error","message":"busy"}}\n\n'),
    ],
    ids=["empty", "empty, close", "heartbeats", "nothing said", "half an event", "half a document", "error", "type"],
)
def test_an_answer_that_failed_before_its_first_word_is_tried_again(serve, item):
    """design.md 7.10, sse-24, ant-03: within receive(), too."""
    server = serve(item, "Hello")
    with client_of(server.url, retry=AGAIN) as client:
        client.send("hi")
        assert list(client.receive()) == [TextBlock("Hello")]
        assert len(server.requests) == 2


def test_a_connection_that_was_dropped_is_tried_again():
    """design.md 7.10."""
    with bare(hears_and(reset), socket.socket.close, answering(whole(HI))) as url:
        with client_of(url, retry=AGAIN) as client:
            assert client.ask("hi") == "hi"


def test_a_timeout_before_the_first_word_is_tried_again():
    with bare(hears_and(left), answering(whole(HI))) as url:
        with client_of(url, retry=AGAIN, timeout=(1, 0.4)) as client:
            assert client.ask("hi") == "hi"


@pytest.mark.parametrize(
    "end",
    [
        {"chunks": [b'data: {"error":{"code":503,"message":"busy"}}\n\n']},
        {"chunks": [], "end": "abrupt"},
        {"chunks": [], "end": "reset"},
        {"chunks": []},
        {"chunks": [], "framing": "close"},
    ],
)
def test_nothing_is_tried_again_once_a_word_was_delivered(end):
    """design.md 7.10, R-203: what was heard is with the error."""
    chunks = end.pop("chunks")
    with ScriptedServer(raw(said("x"), *chunks, **end), "Hello") as server:
        with client_of(server.url, retry=AGAIN) as client:
            client.send("hi")
            received = client.receive()
            assert next(received) == TextBlock("x")
            with pytest.raises(AgentError) as caught:
                next(received)
            assert (caught.value.blocks, len(server.requests)) == ([TextBlock("x")], 1)
            assert list(client.receive()) == []


@pytest.mark.parametrize("item", [raw(b"<html>"), raw(b"data: {oops}\n\n"), raw(b'data: {"error":"no"}\n\n')])
def test_garbage_and_refusals_are_not_tried_again(item):
    """sse-29, err-09, R-167."""
    with ScriptedServer(item, "Hello") as server:
        with client_of(server.url, retry=AGAIN) as client, pytest.raises(AgentError):
            client.ask("hi")
        assert len(server.requests) == 1


def test_the_tries_are_counted(serve):
    """R-210."""
    with ScriptedServer(*[failure(503)] * 5) as server:
        assert failed(server.url, APIError, retry=AGAIN).status == 503
        assert len(server.requests) == 3
        failed(server.url, APIError, retry=None)
        assert len(server.requests) == 4


def test_the_wait_that_the_server_asks_for_is_honoured(serve):
    """design.md 7.10: in seconds, in milliseconds; neither shorter nor longer."""
    patient = RetryConfig(initial_delay=60, max_delay=60)
    server = serve(
        failure(429, headers={"Retry-After": "0.05"}),
        failure(503, headers={"retry-after-ms": "50", "Retry-After": "60"}),
        failure(503, headers={"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
        "Hello",
    )
    with client_of(server.url, retry=patient) as client:
        assert 0.1 <= took(lambda: client.ask("hi")) < 0.1 + AT_ONCE


def test_a_wait_of_more_than_two_minutes_is_not_waited():
    """design.md 7.10."""
    with ScriptedServer(failure(429, headers={"Retry-After": "121"}), "Hello") as server:
        assert failed(server.url, APIError, retry=AGAIN).retry_after == 121.0
        assert len(server.requests) == 1


def test_the_server_may_forbid_and_ask_for_another_try(serve):
    """design.md 7.10: x-should-retry."""
    with ScriptedServer(failure(503, headers={"x-should-retry": "false"}), "Hello") as server:
        failed(server.url, APIError, retry=AGAIN)
        assert len(server.requests) == 1
    server = serve(failure(400, headers={"x-should-retry": "true"}), "Hello")
    with client_of(server.url, retry=AGAIN) as client:
        assert client.ask("hi") == "Hello"


# Interrupts


def silent_listener():
    """Takes connections and says nothing: a TLS handshake, too, waits for ever."""
    return bare(left, left)


@contextlib.contextmanager
def scripted(*script, **how):
    with ScriptedServer(*script, **how) as server:
        yield server.url


HANGING = {
    "connect": lambda: scripted(accept=False),
    "handshake": silent_listener,
    "headers": silent_listener,
    "chunked": lambda: scripted(raw(said("x"), hold=60)),
    "close-delimited": lambda: scripted(raw(said("x"), framing="close", hold=60)),
    "heartbeats": lambda: scripted(raw(*[b": ping\n\n"] * 3000, delay=0.02)),
    "error body": lambda: scripted(raw(b"x", status=500, headers={}, hold=60)),
    "document": lambda: scripted(raw(b'{"choices":[', headers={"Content-Type": "application/json"}, hold=60)),
    "retry": lambda: scripted(failure(503, headers={"Retry-After": "60"})),
    "proxy": silent_listener,
}


@pytest.fixture(params=HANGING)
def hanging(request):
    """A client whose next request will hang in one phase."""
    with HANGING[request.param]() as url:
        settings = {"proxies": url.removesuffix("/v1")} if request.param == "proxy" else {}
        url = "https://model.invalid/v1" if request.param == "proxy" else url
        url = url.replace("http:", "https:") if request.param == "handshake" else url
        with client_of(url, retry=RetryConfig(), **settings) as client:
            yield client


def check_usable(client):
    with ScriptedServer("fine", "again") as server:
        client.options = client.options.replace(base_url=server.url, api_key=KEY, proxies=None)
        assert [client.ask("and now?"), client.ask("and then?")] == ["fine", "again"]
        assert (server.complaints, server.connections) == ([], 1)


def test_an_interrupt_from_another_thread_ends_every_wait_at_once(hanging):
    """Promise 4, R-70 to R-73, design.md 7.6: no error, nothing half-heard in the history."""
    since = []

    def interrupt():
        since.append(time.monotonic())
        hanging.interrupt()

    timer = threading.Timer(0.1, interrupt)
    timer.start()
    hanging.send("hi")
    blocks = list(hanging.receive())
    assert time.monotonic() - since[0] < AT_ONCE
    timer.join()
    assert blocks in ([], [TextBlock("x")])
    assert (hanging.finish_reason, hanging.partial, hanging.history) == (None, blocks, [Message.user("hi")])
    check_usable(hanging)


# The socket that Python's ssl was shaking hands on when Ctrl-C came, nobody else can close.
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.parametrize("is_interrupt", [True, False], ids=["interrupt", "ctrl-c"])
def test_a_signal_ends_every_wait_at_once(hanging, is_interrupt):
    """Promise 4, err-01: Ctrl-C, and interrupt() from a signal handler."""
    since = []

    def handler(*_):
        since.append(time.monotonic())
        if not is_interrupt:
            raise KeyboardInterrupt
        hanging.interrupt()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with contextlib.nullcontext() if is_interrupt else pytest.raises(KeyboardInterrupt):
            hanging.send("hi")
            list(hanging.receive())
        assert time.monotonic() - since[0] < AT_ONCE
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert hanging.history == [Message.user("hi")]
    check_usable(hanging)
    gc.collect()


def test_an_interrupted_connection_is_not_used_again():
    """What is left of the old answer must not be read as the next."""
    with ScriptedServer(raw(said("old"), hold=60), "new") as server, client_of(server.url) as client:
        client.send("hi")
        assert next(client.receive()) == TextBlock("old")
        client.interrupt()
        assert list(client.receive()) == []
        assert (client.ask("hello"), server.connections) == ("new", 2)


def test_an_answer_that_had_ended_is_kept_when_it_is_interrupted():
    """design.md 7.6, 4.2 item 25: only the end of the body was still waited for."""
    with ScriptedServer(raw(said("whole", "stop"), hold=60)) as server, client_of(server.url) as client:
        client.send("hi")
        assert next(client.receive()) == TextBlock("whole")
        timer = threading.Timer(0.05, client.interrupt)
        timer.start()
        assert took(lambda: list(client.receive())) < AT_ONCE
        timer.join()
        assert client.history == [Message.user("hi"), Message.assistant("whole")]


def test_an_interrupt_while_idle_leaves_nothing_behind(serve):
    """R-70."""
    server = serve("one", "two")
    with client_of(server.url) as client:
        client.interrupt()
        assert client.ask("hi") == "one"
        client.interrupt()
        assert client.ask("hi") == "two"
        assert server.connections == 1


def test_many_interrupts_at_random_moments_never_break_the_client():
    """Promise 4: whatever the moment, the next request works."""
    with ScriptedServer(lambda request: answer("a b c d", delay=0.002), repeat=True) as server:
        with client_of(server.url) as client:
            for number in range(40):
                timer = threading.Timer(number * 0.0005, client.interrupt)
                timer.start()
                client.send(f"{number}")
                list(client.receive())
                timer.join()
                assert client.ask("and now?") == "a b c d"
        assert server.complaints == []


# Size


def test_a_huge_event_in_small_writes_is_heard_in_linear_time():
    """Promise 6, sse-21: generous, against minutes if each piece cost the whole."""
    text = "x" * 4_000_000
    content = said(text, "stop") + DONE
    pieces = [content[place : place + 1024] for place in range(0, len(content), 1024)]
    with ScriptedServer(raw(*pieces), raw(*pieces, framing="close")) as server, client_of(server.url) as client:
        assert took(lambda: client.ask("hi")) < 10
        assert client.history[-1] == Message.assistant(text)
        client.clear_history()
        assert took(lambda: client.ask("hi")) < 10
        assert client.history[-1] == Message.assistant(text)


def test_an_event_that_never_ends_is_an_error():
    """sse-21: no exhaustion of memory; 64 MB are read, and no more."""
    endless = raw(b"data: {", *[b"x" * 1_000_000] * 100)
    with ScriptedServer(endless, strict=False) as server:
        assert "an event of more than 67108864 bytes" in str(failed(server.url, InvalidResponseError))


# Shape


def test_one_line_of_options_reaches_the_wire():
    """The whole way, with the options as an object."""
    with ScriptedServer("Hello") as server:
        options = AgentOptions(model="m", base_url=server.url, temperature=0.5, max_tokens=7)
        with Client(options) as client:
            assert client.ask("hi") == "Hello"
        assert server.requests[0].body == {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.5,
            "max_tokens": 7,
        }
