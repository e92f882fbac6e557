import contextlib
import doctest
import http.client
import json
import socket
import ssl
import sys
import threading
import time

import pytest
import requests
import trustme

import openagent.testing
from openagent.testing import Headers, Request, ScriptedServer, answer, call, failure, raw

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
STREAMED = BODY | {"stream": True}
JSON = {"Content-Type": "application/json"}


def ask(server, body=BODY, path="/chat/completions", **more):
    with requests.Session() as session:
        session.trust_env = False
        return session.post(server.url + path, json=body, timeout=5, **more)


def content(response):
    return response.json()["choices"][0]["message"]["content"]


@contextlib.contextmanager
def opened(server, body=STREAMED):
    """A bare connection on which the request has been sent."""
    sent = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(sent)}"
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as sock:
        sock.sendall(head.encode() + b"\r\n\r\n" + sent)
        yield sock


def heard(sock):
    """All bytes until the end of the connection."""
    return b"".join(iter(lambda: sock.recv(65536), b""))


def until(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


def test_a_script_is_played_in_order():
    with ScriptedServer("one", answer("two")) as server:
        server.add("three")
        assert [content(ask(server)) for _ in range(3)] == ["one", "two", "three"]
        assert server.complaints == []


def test_a_request_is_recorded_whole():
    with ScriptedServer("Hello") as server:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
            connection.request("POST", "/v1/chat/completions?a=1", json.dumps(BODY), JSON | {"X-Mine": "yes"})
            connection.getresponse().read()
        (request,) = server.requests
    raw_body = json.dumps(BODY).encode()
    assert request == Request("POST", "/v1/chat/completions?a=1", request.headers, BODY, raw_body)
    assert (request.headers["X-MINE"], request.headers.get("x-none"), "x-Mine" in request.headers) == (
        "yes",
        None,
        True,
    )


def test_a_chunked_request_is_understood():
    with ScriptedServer("Hello") as server:
        sent = json.dumps(BODY).encode()
        response = requests.post(server.url + "/chat/completions", data=iter([sent[:9], sent[9:]]), headers=JSON)
        assert (content(response), server.requests[0].body) == ("Hello", BODY)


def test_a_client_that_waits_for_continue_may_go_on():
    sent = json.dumps(BODY).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    with ScriptedServer("Hello") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as sock:
            sock.sendall(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode())
            assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(sent)
            assert sock.recv(15) == b"HTTP/1.1 200 OK"


def test_a_function_answers_as_the_request_wants():
    def echo(request):
        return answer(request.body["messages"][-1]["content"].upper())

    with ScriptedServer(echo, lambda request: echo) as server:
        assert [content(ask(server)), content(ask(server))] == ["HI", "HI"]


def test_a_function_that_fails_is_a_complaint():
    with ScriptedServer(lambda request: 1 / 0) as server:
        assert ask(server).status_code == 500
        assert server.complaints == ["the script's function failed: ZeroDivisionError('division by zero')"]


def test_what_is_no_answer_is_a_complaint():
    with ScriptedServer(42, answer(calls=[call("add", {"a": object})])) as server:
        assert [ask(server).status_code, ask(server).status_code] == [500, 500]
        assert server.complaints[0] == "the script holds 42, which is no answer"
        assert "cannot be written as JSON" in server.complaints[1]


def test_the_end_of_the_script_is_told():
    with ScriptedServer("one") as server:
        ask(server)
        response = ask(server)
        message = "the script has ended: 1 answers were given"
        error = {"message": message, "type": "server_error", "param": None, "code": None}
        assert (response.status_code, response.json()) == (500, {"error": error})
        assert server.complaints == [message]


def test_a_repeated_script_starts_over():
    with ScriptedServer("one", "two", repeat=True) as server:
        assert [content(ask(server)) for _ in range(5)] == ["one", "two", "one", "two", "one"]


def test_a_failure_has_its_status_headers_and_body():
    script = [
        failure(429, "slow down", type="requests", code="rate_limit_exceeded", headers={"Retry-After": "3"}),
        failure(502, body="<html>Bad Gateway</html>", headers={"content-type": "text/html"}),
    ]
    with ScriptedServer(*script) as server:
        first, second = ask(server), ask(server)
    error = {"message": "slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    assert (first.status_code, first.headers["retry-after"], first.json()) == (429, "3", {"error": error})
    assert (second.status_code, second.headers["Content-Type"], second.text) == (
        502,
        "text/html",
        "<html>Bad Gateway</html>",
    )


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_every_framing_carries_the_same_body(framing):
    with ScriptedServer(answer("Hello there", framing=framing), answer("Hello there", framing=framing)) as server:
        with requests.Session() as session:
            first = session.post(server.url + "/chat/completions", json=STREAMED)
            second = session.post(server.url + "/chat/completions", json=STREAMED)
        kind = {
            "chunked": first.headers.get("Transfer-Encoding") == "chunked",
            "length": first.headers.get("Content-Length") == str(len(first.content)),
            "close": first.headers.get("Connection") == "close",
        }
        assert kind == {name: name == framing for name in kind}
        assert first.text.replace("_1", "_2") == second.text
        assert first.text.endswith("data: [DONE]\n\n")
        assert server.connections == (2 if framing == "close" else 1)


def test_a_connection_serves_many_requests():
    with ScriptedServer("Hello", repeat=True) as server:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
            for _ in range(50):
                connection.request("POST", "/v1/chat/completions", json.dumps(BODY), JSON)
                assert connection.getresponse().read()
            assert (server.connections, server.open_connections, len(server.requests)) == (1, 1, 50)
        until(lambda: server.open_connections == 0)


def test_a_client_that_wants_to_close_gets_its_way():
    with ScriptedServer("Hello") as server, opened(server) as sock:
        sock.close()
        response = requests.post(server.url + "/chat/completions", json=BODY, headers={"Connection": "close"})
        assert response.headers["Connection"] == "close"


def test_frames_can_share_a_chunk():
    chunks = {}
    for count in (1, 3, 100):
        with ScriptedServer(answer("a b c d", frames_per_chunk=count)) as server, opened(server) as sock:
            reply = b""
            while not reply.endswith(b"0\r\n\r\n"):
                reply += sock.recv(65536)
        body = reply.split(b"\r\n\r\n", 1)[1]
        chunks[count] = sum(line.isalnum() for line in body.split(b"\r\n")) - 1
    assert chunks == {1: 7, 3: 3, 100: 1}  # role, four words, finish, [DONE]


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_cut_breaks_the_body_off_after_so_many_bytes(framing):
    whole = answer("Hello there", framing=framing)
    with ScriptedServer(whole, answer("Hello there", framing=framing, cut=40)) as server:
        with opened(server, STREAMED) as sock:
            sock.shutdown(socket.SHUT_WR)
            full = heard(sock).split(b"\r\n\r\n", 1)[1]
        with opened(server, STREAMED) as sock:
            head, body = heard(sock).split(b"\r\n\r\n", 1)
    if framing == "chunked":
        assert body == b"28\r\n" + full.split(b"\r\n")[1][:40].replace(b"_1", b"_2") + b"\r\n"
    else:
        assert body == full[:40].replace(b"_1", b"_2")
    assert (f"Content-Length: {len(full)}".encode() in head) == (framing == "length")


def test_a_cut_of_a_chunked_or_counted_body_is_an_error_for_requests():
    script = [answer("Hello there", framing=framing, cut=60) for framing in ("chunked", "length")]
    with ScriptedServer(*script) as server:
        for _ in script:
            with pytest.raises(requests.exceptions.ChunkedEncodingError):
                ask(server, STREAMED)


def test_a_reset_is_a_tcp_reset():
    with ScriptedServer(answer("Hello there", cut=60, reset=True)) as server, opened(server) as sock:
        with pytest.raises(ConnectionResetError):
            heard(sock)


def test_the_connection_is_held_until_the_client_leaves():
    with ScriptedServer(answer("Hello", hold=60)) as server:
        with opened(server) as sock:
            reply = b""
            while b"[DONE]" not in reply:
                reply += sock.recv(65536)
            assert server.open_connections == 1
        until(lambda: server.open_connections == 0)


def test_a_hold_that_passes_ends_the_body_well():
    with ScriptedServer(answer("Hello", hold=0.01), "again") as server, requests.Session() as session:
        assert session.post(server.url + "/chat/completions", json=STREAMED).text.endswith("[DONE]\n\n")
        assert content(session.post(server.url + "/chat/completions", json=BODY)) == "again"
        assert server.connections == 1


def test_a_delay_lies_between_the_frames_and_ends_when_the_client_leaves():
    with ScriptedServer(answer("a b c", delay=60), answer("a b c", delay=0.001)) as server:
        with opened(server) as sock:
            reply = b""
            while b"assistant" not in reply:
                reply += sock.recv(65536)
            assert b'"content":"a ' not in reply
        until(lambda: server.open_connections == 0)
        assert ask(server, STREAMED).text.endswith("[DONE]\n\n")


def test_close_ends_what_is_held_or_delayed_or_idle_at_once():
    started = time.monotonic()
    with ScriptedServer(answer("a", hold=60), answer("a b", delay=60), raw("x", hold=60), raw("x", hold=60)) as server:
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(opened(server)) for _ in range(4)]
            socks.append(stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=5)))
            server.wait_for_requests(4)
            until(lambda: server.open_connections == 5)
            server.close()
            assert server.open_connections == 0
            for sock in socks:
                heard(sock)
    assert time.monotonic() - started < 4
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_close_ends_a_write_that_nobody_reads():
    with ScriptedServer(raw(*[b"x" * 1_000_000] * 50)) as server, opened(server):
        server.wait_for_requests(1)
        server.close()
        assert server.open_connections == 0


def test_close_can_be_called_twice():
    server = ScriptedServer("Hello")
    server.close()
    server.close()
    assert repr(server) == f"ScriptedServer({server.url}, 0 requests, 0 complaints)"


def test_waiting_for_requests_gives_them_or_times_out():
    with ScriptedServer("Hello") as server:
        thread = threading.Thread(target=ask, args=(server,))
        thread.start()
        assert server.wait_for_requests(1) == server.requests
        thread.join()
        with pytest.raises(TimeoutError, match=r"1 of 2 requests came within 0\.01 s"):
            server.wait_for_requests(2, timeout=0.01)


def test_raw_chunks_are_sent_as_they_are():
    with ScriptedServer(raw("data: 1\n\n", b"\xff\n"), raw("", "x", status=201, headers={"X-A": "b"})) as server:
        first, second = ask(server, STREAMED), ask(server, STREAMED)
    assert first.content == b"data: 1\n\n\xff\n"
    assert first.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert (second.status_code, dict(second.headers)) == (201, {"X-A": "b", "Transfer-Encoding": "chunked"})


def test_raw_headers_decide_the_framing():
    counted, chunked = raw("abc", headers={"content-length": "5"}), raw("abc", headers={"Transfer-Encoding": "chunked"})
    with ScriptedServer(counted, chunked) as server:
        with opened(server) as sock:
            assert heard(sock) == b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc"
        assert ask(server).text == "abc"


def test_raw_can_end_abruptly_or_with_a_reset():
    with ScriptedServer(raw("abc", end="abrupt", headers={}), raw("abc", end="reset", framing="close")) as server:
        with opened(server) as sock:
            assert heard(sock) == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
        with opened(server) as sock, pytest.raises(ConnectionResetError):
            heard(sock)


def test_a_status_without_a_name_can_be_played():
    with ScriptedServer(failure(529)) as server, opened(server) as sock:
        sock.shutdown(socket.SHUT_WR)
        assert heard(sock).startswith(b"HTTP/1.1 529 Unassigned\r\n")


def test_an_unknown_endpoint_is_refused_only_when_strict():
    with ScriptedServer("Hello") as server:
        assert ask(server, path="/other").status_code == 404
        assert server.complaints == ["Invalid URL (POST /v1/other)"]
    with ScriptedServer("Hello", strict=False) as server:
        assert content(ask(server, path="/other")) == "Hello"


def test_a_lenient_server_answers_anything():
    with ScriptedServer("Hello", "Hello", strict=False) as server:
        assert content(requests.post(server.url + "/chat/completions", data="no JSON")) == "Hello"
        assert content(requests.get(server.url + "/chat/completions")) == "Hello"
        assert [request.body for request in server.requests] == [None, None]


def test_what_is_no_http_is_a_complaint():
    with ScriptedServer("Hello") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as sock:
            sock.sendall(b"nonsense\r\n\r\n")
            assert heard(sock) == b""
        (complaint,) = server.complaints
        assert complaint.startswith("this is no HTTP request: ")


@pytest.mark.skipif(sys.platform != "linux", reason="how long a backlog of 0 is differs")
def test_a_server_that_does_not_accept_lets_a_connect_hang():
    with ScriptedServer(accept=False) as server:
        with pytest.raises(TimeoutError):
            socket.create_connection(("127.0.0.1", server.port), timeout=0.1)
        assert server.connections == 0


def test_a_server_with_a_certificate_speaks_https(tmp_path):
    authority, certificate = trustme.CA(), str(tmp_path / "certificate.pem")
    authority.cert_pem.write_to_path(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with ScriptedServer("Hello", "Hello", answer("a", hold=60), ssl_context=context) as server:
        with pytest.raises(requests.exceptions.SSLError):
            ask(server)
        assert [content(ask(server, verify=certificate)) for _ in range(2)] == ["Hello", "Hello"]
        with ask(server, STREAMED, verify=certificate, stream=True):
            server.close()
        assert server.open_connections == 0


def test_two_servers_number_alike():
    replies = []
    for _ in range(2):
        with ScriptedServer(answer(calls=[call("add"), call("add")]), "Hello", strict=False) as server:
            replies.append([ask(server).json(), ask(server).json()])
    assert replies[0] == replies[1]
    assert [made["id"] for made in replies[0][0]["choices"][0]["message"]["tool_calls"]] == ["call_1", "call_2"]


def test_the_pieces_of_a_text_must_join_to_it():
    assert answer(chunk_text=["a", "b"]).text == "ab"
    with pytest.raises(ValueError, match="does not join"):
        answer("ab", chunk_text=["a", "c"])
    with pytest.raises(ValueError, match="must be 1 or more"):
        answer("ab", frames_per_chunk=0)


def test_the_examples_are_true():
    for module in (openagent.testing, openagent.testing.script, openagent.testing.wire):
        assert doctest.testmod(module).failed == 0


def test_every_public_name_is_there():
    assert all(hasattr(openagent.testing, name) for name in openagent.testing.__all__)
    assert Headers({"A": "b"}) == {"a": "b"}


RULES = [
    pytest.param({"data": json.dumps(BODY), "headers": {"Content-Type": "text/plain"}}, "content type", id="type"),
    pytest.param({"data": "{", "headers": JSON}, "could not parse", id="json"),
    pytest.param({"data": "[]", "headers": JSON}, "must be a JSON object", id="object"),
    pytest.param({"data": '{"model": NaN}', "headers": JSON}, "NaN is not JSON", id="nan"),
    pytest.param({"data": '{"model": "\\ud83d"}', "headers": JSON}, "could not parse", id="surrogate"),
    pytest.param({"data": b"\xff", "headers": JSON}, "could not parse", id="utf-8"),
    pytest.param({"json": BODY | {"model": ""}}, "must provide a model", id="empty model"),
    pytest.param({"json": {"messages": BODY["messages"]}}, "must provide a model", id="no model"),
    pytest.param({"json": BODY | {"tools": None}}, "Invalid type for 'tools'", id="tools null"),
    pytest.param({"json": BODY | {"max_tokens": None}}, "Invalid type for 'max_tokens'", id="max_tokens null"),
    pytest.param({"json": BODY | {"tool_choice": None}}, "Invalid type for 'tool_choice'", id="tool_choice null"),
    pytest.param({"json": BODY | {"stream": "yes"}}, "Invalid type for 'stream'", id="stream"),
]


@pytest.mark.parametrize(("sent", "reason"), RULES)
@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages"])
def test_what_no_vendor_takes_is_refused_and_uses_nothing_up(sent, reason, path):
    with ScriptedServer("Hello") as server:
        response = requests.post(server.url + path, **sent)
        message = response.json()["error"]["message"]
        assert (response.status_code, server.complaints) == (400, [message])
        assert reason in message
        assert content(ask(server)) == "Hello"


def test_another_method_is_refused():
    with ScriptedServer("Hello") as server:
        assert requests.get(server.url + "/chat/completions").status_code == 400
        assert requests.head(server.url + "/chat/completions").status_code == 400
        assert server.complaints[0] == "Invalid method for URL (GET /v1/chat/completions). Use POST."


@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
def test_another_authorization_than_a_bearer_is_refused(path):
    body = BODY if path == "/chat/completions" else {"model": "m", "input": "Hi"}
    with ScriptedServer("Hello") as server:
        refused = ask(server, body, path, headers={"Authorization": "Basic abc"})
        assert (refused.status_code, len(server.complaints)) == (400, 1)
        assert ask(server, body, path, headers={"Authorization": "Bearer abc"}).status_code == 200
