import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from openagent.adapters.openai_chat_turn import ChatTurn
from openagent.decoding import BodyDecoder
from openagent.errors import (
    AgentError,
    APIError,
    ContextOverflowError,
    InvalidResponseError,
    StreamInterruptedError,
    Timeout,
)
from openagent.events import CallAnnounced, ReasoningDelta, Response, ResponseStarted, TextDelta, TurnFinished, spread
from openagent.messages import Message, TextBlock, ToolUseBlock, Usage

DONE = "data: [DONE]\n\n"


def chunk(delta=None, finish=None, **more):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]} | more


def said(text, finish=None, **more):
    return chunk({"content": text}, finish, **more)


def fragment(index=0, id=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"index": index, "function": function} | ({} if id is None else {"id": id})


def calls(*fragments, finish=None):
    return chunk({"tool_calls": list(fragments)}, finish)


def stream(*items):
    """The items as a stream: payloads as frames, texts as they are."""
    return "".join(item if isinstance(item, str) else f"data: {json.dumps(item)}\n\n" for item in items).encode()


def document(message, finish="stop", **more):
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return json.dumps({"id": "d", "object": "chat.completion", "model": "m", "choices": choices} | more).encode()


class Heard:
    """What came out of a body that was fed in these chunks."""

    def __init__(self, *chunks, failure=None, headers=None, status=200, accept_unfinished=False):
        turn = ChatTurn(CaseInsensitiveDict(headers or {}), provider="p")
        self.body = BodyDecoder(turn, status=status, accept_unfinished=accept_unfinished)
        self.events, self.read = [], 0
        for piece in chunks:
            self.events += spread(self.body.feed(piece))
            self.read += 1
            if self.body.done:
                break
        else:
            self.events += self.body.end(failure)
        assert self.body.done
        self.error = self.body.failure
        self.turn = None
        if self.error is None:
            self.turn = self.events.pop()
            assert isinstance(self.turn, TurnFinished)

    @property
    def texts(self):
        return [event.text for event in self.events if isinstance(event, TextDelta)]

    @property
    def outcome(self):
        """The pieces of text, the calls, the finish reason."""
        assert self.error is None, self.error
        return self.texts, self.turn.message.calls, str(self.turn.finish_reason)


ADD = {"id": "c1", "name": "add"}

FIXTURES = {
    "S-1": (
        [chunk({"role": "assistant", "content": ""}), said("Hel"), said("lo", "stop"), DONE],
        ["Hel", "lo"],
        "stop",
    ),
    "S-2": ([said("x"), DONE], ["x"], "unspecified"),
    "S-4": ([DONE], [], "unspecified"),
    "S-8": ([said("a", "stop"), said("b"), chunk({}, "length"), DONE], ["a", "b"], "length"),
    "S-9": ([said("x", "LENGTH"), DONE], ["x"], "length"),
    "S-10": ([said("x", "insufficient_system_resource"), DONE], ["x"], "insufficient_system_resource"),
    "S-11": ([chunk({"reasoning_content": "hm"}), chunk({}, "length"), DONE], [], "length"),
    "S-13": ([chunk({"content": "x", "audio": {"id": [1]}}, "stop"), DONE], ["x"], "stop"),
    "S-19": ([": ping\n\n", said("a"), ": ping\n: ping\n\n", said("b", "stop"), DONE], ["a", "b"], "stop"),
    "S-20": (["data:\n\n", said("a"), "data: \n\n", said("b", "stop"), "data\n\n", DONE], ["a", "b"], "stop"),
    "S-21": ([said("a"), "data: " + json.dumps(said("b", "stop"))], ["a", "b"], "stop"),
    "S-26, null": ([said("x", None, error={"code": 500}), chunk({}, "stop"), DONE], ["x"], "stop"),
    "S-26, stop": ([said("x", "stop", error={"code": 500}), DONE], ["x"], "stop"),
    "S-26, length": ([said("x", "length", error={"code": 500}), DONE], ["x"], "length"),
    "R-201, error is null": ([said("x", "stop", error=None), DONE], ["x"], "stop"),
    "R-201, no object": ([said("x"), chunk({}, "error"), DONE], ["x"], "error"),
    "7.1, no [DONE]": ([said("x", "stop")], ["x"], "stop"),
    "7.1, reason null again": ([said("x", "stop"), chunk({}), DONE], ["x"], "stop"),
    "7.2, no content between": ([said("x", "tool_calls"), chunk({}, "stop"), DONE], ["x"], "tool_calls"),
    "7.2, content between": ([chunk({"content": ""}, "stop"), said("x"), chunk({}, "length"), DONE], ["x"], "length"),
    "R-86, never said": ([said("x"), said("y"), DONE], ["x", "y"], "unspecified"),
    "1.7, function_call": ([said("x", "function_call"), DONE], ["x"], "tool_calls"),
    "1.7, max_tool_iterations": ([said("x", "max_tool_iterations"), DONE], ["x"], "max_tool_iterations"),
    "B-34": (["", said("Héllo"), said("!"), said("?", "stop"), DONE], ["Héllo", "!", "?"], "stop"),
    "sse-03": ([said("x"), "data:[DONE] \n\n"], ["x"], "unspecified"),
    "quoted": ([said('{"error": {"code": 500}}', "stop"), DONE], ['{"error": {"code": 500}}'], "stop"),
}


@pytest.mark.parametrize(("items", "texts", "finish"), FIXTURES.values(), ids=FIXTURES)
def test_each_stream_of_text_gives_its_pieces_and_its_reason(items, texts, finish):
    """5.1, as design.md 7 reads it; wherever the stream is cut."""
    sent = stream(*items)
    assert Heard(sent).outcome == (texts, [], finish)
    assert Heard(*(sent[place : place + 1] for place in range(len(sent)))).outcome == (texts, [], finish)
    assert Heard(sent).turn.message == Message.assistant(*["".join(texts)] if texts else [])


CALLS = {
    "S-5": (
        [
            calls(fragment(0, "c1", "add", "")),
            calls(fragment(0, arguments='{"a"')),
            calls(fragment(0, arguments=":1}")),
        ],
        [ToolUseBlock("c1", "add", {"a": 1})],
    ),
    "S-6": (
        [
            calls(fragment(1, "c2", "sub", '{"b"')),
            calls(fragment(0, "c1", "add", '{"a"')),
            calls(fragment(1, arguments=":2}")),
            calls(fragment(0, arguments=":1}")),
        ],
        [ToolUseBlock("c1", "add", {"a": 1}), ToolUseBlock("c2", "sub", {"b": 2})],
    ),
    "S-14": ([calls(fragment(0, "c1", "add", ""))], [ToolUseBlock("c1", "add", {})]),
    "S-16": (
        [calls(fragment(0, "c1", "add", "{}")), calls(fragment(0, "c2", "sub", '{"b":2}'))],
        [ToolUseBlock("c1", "add", {}), ToolUseBlock("c2", "sub", {"b": 2})],
    ),
    "S-17": (
        [calls(fragment(None, "c1", "add", '{"a":')), calls(fragment(None, arguments="1}"))],
        [ToolUseBlock("c1", "add", {"a": 1})],
    ),
    "S-18": (
        [calls(fragment(0, "c1", "add", '{"a":')), calls(fragment(0, "", "", "1}"))],
        [ToolUseBlock("c1", "add", {"a": 1})],
    ),
}


@pytest.mark.parametrize(("items", "blocks"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
def test_each_stream_of_calls_gives_whole_calls(items, blocks, finish):
    """5.1; design.md 7.2: decided by their presence, never by the reason (tc-16, sse-11)."""
    end = [chunk({}, finish)] if finish else []
    heard = Heard(stream(*items, *end, DONE))
    assert heard.outcome == ([], blocks, finish or "unspecified")
    assert [event for event in heard.events if isinstance(event, CallAnnounced)] == [
        CallAnnounced(item["id"], item["function"]["name"])
        for payload in items
        for item in payload["choices"][0]["delta"]["tool_calls"]
        if item.get("id")
    ]


def test_bad_arguments_are_kept_with_the_call():
    """S-15, design.md 7.5."""
    (call,) = Heard(stream(calls(fragment(0, "c1", "add", "{bad"), finish="tool_calls"), DONE)).turn.message.calls
    assert (call.id, call.name, call.input, call.raw_arguments) == ("c1", "add", {}, "{bad")
    assert "not valid JSON" in call.error


def test_the_raw_reason_is_what_the_wire_said():
    """design.md 3."""
    raws = [Heard(stream(said("x", word), DONE)).turn.finish_reason.raw for word in ("STOP", "function_call", None)]
    assert raws == ["STOP", "function_call", None]


def test_reasoning_under_two_names_is_told_once():
    """S-12, B-56."""
    heard = Heard(stream(chunk({"reasoning_content": "hm", "reasoning": "hm"}), said("x", "stop"), DONE))
    assert heard.events == [ReasoningDelta("hm"), TextDelta("x")]


def test_bytes_that_are_not_utf_8_become_the_replacement_character():
    """sse-16; S-27 and R-162 lose to the cases, which count U+FFFD as text."""
    sent = stream(said("a?b", "stop"), DONE).replace(b"?", b"\xff")
    assert Heard(sent).outcome == (["a\ufffdb"], [], "stop")


def test_the_first_event_is_the_response():
    """design.md 3: request id and rate limits are there before the first word."""
    headers = {"X-Request-Id": "r", "X-RateLimit-Remaining-Tokens": "5", "anthropic-ratelimit-x": "1", "Server": "s"}
    body = BodyDecoder(ChatTurn(CaseInsensitiveDict(headers), provider="p"))
    limits = {"x-ratelimit-remaining-tokens": "5", "anthropic-ratelimit-x": "1"}
    assert body.start() == ResponseStarted(Response(None, None, "r", limits))
    assert Heard(stream(said("x", "stop"), DONE), headers=headers).turn.response == Response("c", "m", "r", limits)


# How a turn ends (design.md 7.1)


def test_a_clean_end_without_a_signal_is_a_broken_answer():
    """S-3, S-7, sse-12: with what was heard, and no call."""
    heard = Heard(stream(said("Hel"), said("lo"), calls(fragment(0, "c1", "add", "{}"))))
    assert (type(heard.error), heard.error.blocks, heard.texts) == (
        StreamInterruptedError,
        [TextBlock("Hello")],
        ["Hel", "lo"],
    )
    assert (str(heard.error), heard.error.retryable) == ("the answer broke off before its end", False)


def test_a_clean_end_without_a_signal_can_be_accepted():
    """design.md 7.1: the seed's reading (S-3, S-7)."""
    sent = stream(said("x"), calls(fragment(0, "c1", "add", "{}")))
    assert Heard(sent, accept_unfinished=True).outcome == (["x"], [ToolUseBlock("c1", "add", {})], "unspecified")


@pytest.mark.parametrize("sent", [b"", stream(": ping\n\n"), stream(chunk({"role": "assistant"}))])
def test_nothing_at_all_is_never_accepted(sent):
    assert isinstance(Heard(sent, accept_unfinished=True).error, StreamInterruptedError)


@pytest.mark.parametrize("sent", [b"", b"\n", b"\xef\xbb\xbf", b": ping\n\n", b": ping", b"retry: 3\n\n", b"data:\n\n"])
def test_an_empty_stream_is_an_error_worth_another_try(sent):
    """S-4, sse-24, design.md 7.10."""
    error = Heard(sent).error
    assert (type(error), error.retryable, error.blocks) == (StreamInterruptedError, True, [])
    assert "empty stream" in str(error)


def test_a_broken_answer_is_worth_another_try_only_if_nothing_of_it_was_delivered():
    """design.md 7.10."""
    nothing = Heard(stream(chunk({"role": "assistant", "content": ""}))).error
    thought = Heard(stream(chunk({"reasoning_content": "hm"}))).error
    assert (nothing.retryable, thought.retryable) == (True, False)


FAILURES = [StreamInterruptedError("reset"), Timeout("silence", retryable=True)]


@pytest.mark.parametrize("failure", FAILURES)
def test_once_ended_well_a_reset_or_a_timeout_is_a_good_end(failure):
    """design.md 7.1."""
    assert Heard(stream(said("x", "stop")), failure=failure).outcome == (["x"], [], "stop")
    assert Heard(stream(said("x", "stop"), 'data: {"id":"half'), failure=failure).outcome == (["x"], [], "stop")


@pytest.mark.parametrize("failure", FAILURES)
def test_before_that_it_is_the_error(failure):
    """sse-13: with what was heard; half an event is ignored."""
    heard = Heard(stream(said("x"), 'data: {"id":"half'), failure=failure)
    assert (heard.error, heard.error.blocks, heard.texts) == (failure, [TextBlock("x")], ["x"])


def test_half_an_event_at_a_clean_end_is_a_broken_answer():
    """sse-08, sse-13."""
    heard = Heard(stream(said("x"), 'data: {"id":"half'))
    assert (type(heard.error), heard.texts) == (StreamInterruptedError, ["x"])


def test_content_after_a_finish_reason_opens_the_turn_again():
    """design.md 7.1, chat-05."""
    for more in (said("y"), calls(fragment(0, "c1", "add", "{}")), chunk({"reasoning_content": "hm"})):
        assert isinstance(Heard(stream(said("x", "stop"), more)).error, StreamInterruptedError)
        assert Heard(stream(said("x", "stop"), more, chunk({}, "length"))).outcome[2] == "length"
        assert Heard(stream(said("x", "stop"), more, DONE)).turn.finish_reason == "stop"


@pytest.mark.parametrize("delta", [{}, {"content": ""}, {"content": None}, {"role": "assistant", "tool_calls": []}])
def test_a_chunk_that_says_nothing_opens_nothing(delta):
    """chat-01, chat-02."""
    assert Heard(stream(said("x", "stop"), chunk(delta))).outcome == (["x"], [], "stop")


def test_usage_and_an_error_after_the_reason_are_heard():
    """design.md 7.1: a late error object wins."""
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    assert Heard(stream(said("x", "stop"), usage)).turn.usage == Usage(3, 2, raw=usage["usage"])
    for end in (DONE, ""):
        heard = Heard(stream(said("x", "stop"), {"error": {"message": "late", "code": 500}}, end))
        assert (type(heard.error), heard.error.status, heard.error.blocks) == (APIError, 500, [TextBlock("x")])


def test_done_ends_the_turn_at_once_and_nothing_after_it_is_read():
    """S-22, R-163, design.md 7.3."""
    heard = Heard(stream(said("x", "stop"), DONE, said("ignored"), {"error": "ignored"}), stream(said("never fed")))
    assert (heard.outcome, heard.read) == ((["x"], [], "stop"), 1)
    assert heard.body.end() == []


@pytest.mark.parametrize(
    "text", ["data: [DONE]", "data:[DONE]\n\n", "data: [DONE] \n\n", "event: done\ndata: [DONE]\n\n"]
)
def test_the_sentinel_is_recognised_however_it_is_written(text):
    """sse-01, sse-03."""
    assert Heard(stream(said("x"), text)).outcome == (["x"], [], "unspecified")


def test_has_ended_and_heard_say_how_far_it_has_come():
    body = BodyDecoder(ChatTurn(CaseInsensitiveDict(), provider="p"))
    seen = []
    for piece in (stream(said("x")), stream(said("y", "stop")), stream(said("z"))):
        body.feed(piece)
        seen.append((body.has_ended, body.heard, body.done))
    assert seen == [
        (False, [TextBlock("x")], False),
        (True, [TextBlock("xy")], False),
        (False, [TextBlock("xyz")], False),
    ]


# Errors inside a stream (design.md 7.11, 2.22)

ERRORS = {
    "S-23": ('error: {"code":400,"message":"bad"}\n\n' + DONE, "API error 400: bad", 400, False),
    "S-24": (
        {"error": {"code": 503, "type": "unavailable_error", "message": "no slot available"}},
        "API error 503: unavailable_error: no slot available",
        503,
        True,
    ),
    "B-93": ({"error": {"message": "no", "type": "t", "param": None, "code": 400}}, "API error 400: t: no", 400, False),
    "B-94": (chunk({}, "error", error={"code": 429, "message": "slow"}), "API error 429: slow", 429, True),
    "R-201, a text": ({"error": "no"}, "API error: no", None, False),
    "err-10": ('data:{"error":"bad","error_type":"validation"}\n\n', "API error: bad", None, False),
    "blank content": (said(" \n", None, error={"code": 500, "message": "no"}), "API error 500: no", 500, True),
    "in a list": ([{"error": {"code": 400, "message": "no"}}], "API error 400: no", 400, False),
    "in the choice": (
        {"choices": [{"index": 0, "delta": {}, "error": {"code": 502, "message": "no"}}]},
        "API error 502: no",
        502,
        True,
    ),
    "event: error": ('event: error\ndata: {"message":"no","code":500}\n\n', "API error 500: no", 500, True),
    "event: error, text": ('event: error\ndata: "no"\n\n', "API error: no", None, False),
    "event: error, whole": ('event: error\ndata: {"error":{"message":"no"}}\n\n', "API error: no", None, False),
    "sse-20": (
        'data: {"choices":[{"del\ndata: {"error":{"message":"no","code":500}}\n\n',
        "API error 500: no",
        500,
        True,
    ),
}


@pytest.mark.parametrize(("item", "words", "status", "retryable"), ERRORS.values(), ids=ERRORS)
def test_an_error_in_the_stream_is_raised(item, words, status, retryable):
    """2.22, err-07: [DONE] after it makes it no success."""
    heard = Heard(stream(item, DONE))
    assert (type(heard.error), str(heard.error)) == (APIError, words)
    assert (heard.error.status, heard.error.retryable, heard.events) == (status, retryable, [])
    late = Heard(stream(said("x"), item, DONE))
    assert (str(late.error), late.error.blocks, late.texts) == (words, [TextBlock("x")], ["x"])


def test_an_error_beside_a_call_is_none():
    """design.md 7.11."""
    payload = calls(fragment(0, "c1", "add", "{}"), finish="tool_calls") | {"error": {"code": 500}}
    assert Heard(stream(payload, DONE)).outcome == ([], [ToolUseBlock("c1", "add", {})], "tool_calls")


def test_text_before_an_error_in_the_same_bytes_is_told():
    """S-25, R-203."""
    heard = Heard(stream(said("Hel"), said("lo"), {"error": {"code": 429, "message": "slow"}}))
    assert (heard.events, heard.error.status) == ([TextDelta("Hel"), TextDelta("lo")], 429)


def test_an_overflow_in_the_stream_is_recognised():
    """err-09."""
    heard = Heard(stream({"error": {"code": 400, "message": "prompt is too long: 9 > 8"}, "choices": []}))
    assert (type(heard.error), heard.error.retryable) == (ContextOverflowError, False)


def test_an_event_that_is_no_json_is_shown():
    """R-167: what makes no sense is not tried again; a sample of 200 bytes."""
    heard = Heard(stream(said("x"), "data: {oops" + "x" * 1000 + "\n\n"))
    assert (type(heard.error), heard.error.retryable, heard.error.blocks) == (
        InvalidResponseError,
        False,
        [TextBlock("x")],
    )
    assert (len(heard.error.body), str(heard.error).count("x") < 250) == (200, True)


@pytest.mark.parametrize("text", ["data: 5\n\n", "data: null\n\n", 'data: "x"\n\n', "data: []\n\n", "data: [1]\n\n"])
def test_json_that_is_no_object_says_nothing(text):
    assert Heard(stream(text, said("x", "stop"), DONE)).outcome == (["x"], [], "stop")


# What kind of body it is (design.md 7.11)

ANSWER = {"role": "assistant", "content": "It is 42."}
ASKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
}


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n ", b"\xef\xbb\xbf\r\n"])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_json_completion_is_read_as_the_answer(before, size):
    """S-35, sse-26: whatever its label, however it is cut."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    for message, outcome in (
        (ANSWER, (["It is 42."], [], "stop")),
        (ASKED, ([], [ToolUseBlock("c1", "add", {"a": 1})], "stop")),
    ):
        body = before + document(message, usage=usage)
        heard = Heard(*(body[place : place + size] for place in range(0, len(body), size)))
        assert (heard.outcome, heard.turn.usage) == (outcome, Usage(3, 2, raw=usage))
        assert heard.turn.response == Response("d", "m", None, {})


def test_a_completion_without_a_reason_is_unspecified():
    assert Heard(document(ANSWER, finish=None)).outcome == (["It is 42."], [], "unspecified")


def test_an_event_stream_under_any_label_is_read():
    """The label does not count: it is not even asked for."""
    for kind in ("application/json", "text/html", "text/plain"):
        heard = Heard(b"\n", stream(said("x", "stop"), DONE), headers={"Content-Type": kind})
        assert heard.outcome == (["x"], [], "stop")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "Unexpected endpoint or method."}, "API error: Unexpected endpoint or method."),
        ({"error": {"message": "no", "code": 400}}, "API error 400: no"),
        ([{"error": {"message": "no", "code": 400}}], "API error 400: no"),
    ],
)
def test_a_json_error_is_raised(body, words):
    """sse-30, err-04."""
    error = Heard(json.dumps(body).encode()).error
    assert (type(error), str(error)) == (APIError, words)


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html>Welcome</html>",
        b"  <html></html>",
        b"<?xml version='1.0'?><x/>",
        b"Internal Server Error",
        b"ok",
        b"{}",
        b"[]",
        b"[1]",
        b'{"hello":"world"}',
        b'{"choices":[]}',
        b'{"choices":null}',
        b'{"a":1}\n{"b":2}\n',
        b"{this is not json}",
    ],
)
def test_what_is_no_answer_is_refused_and_not_tried_again(body):
    """sse-29, R-107, design.md 7.11: HTML or anything else."""
    error = Heard(body, headers={"Content-Type": "text/html"}).error
    assert (type(error), error.retryable, error.status) == (InvalidResponseError, False, 200)
    assert "text/html" in str(error)
    assert "base_url" in str(error)


@pytest.mark.parametrize("body", [b"dogs are not served here\n\n", b"ata: {}\n\n", b"error 17: " + 300 * "é".encode()])
def test_what_is_no_answer_is_shown_alike_however_it_is_cut(body):
    """A first packet may be a byte; a user must see what the server said."""
    whole = Heard(body).error
    assert isinstance(whole, InvalidResponseError)
    for at in range(1, len(body)):
        failure = Heard(body[:at], body[at:]).error
        assert (type(failure), str(failure), failure.body) == (InvalidResponseError, str(whole), whole.body)
    assert str(Heard(*(body[at : at + 1] for at in range(len(body)))).error) == str(whole)


@pytest.mark.parametrize(
    "body", [document(ANSWER)[:-20], b"{", b'[{"error":', b'{"choices":[{"message":{"content":"x"}']
)
def test_a_json_document_that_is_cut_off_is_a_broken_answer(body):
    error = Heard(body).error
    assert (type(error), error.retryable) == (StreamInterruptedError, True)
    assert isinstance(Heard(body, failure=Timeout("silence")).error, Timeout)


def test_a_document_has_a_limit():
    """R-169."""
    piece = b" " * (8 << 20)
    error = Heard(b"{", *[piece] * 9).error
    assert (type(error), "a document of more than" in str(error)) == (InvalidResponseError, True)


def test_depth_cannot_make_it_fail_otherwise_than_by_an_error_of_ours():
    """design.md 6: a raw RecursionError never reaches the caller."""
    for depth in (*range(850, 1000), 100_000):
        deep = '{"a":' * depth + "1" + "}" * depth
        arguments = '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"n","arguments":' + deep + "}}]}}]}"
        for text in (deep, arguments, '{"error":' + deep + "}", '{"error":{"message":"m","x":' + deep + "}}"):
            for sent in (text, f"data: {text}\n\n", f"event: error\ndata: {text}\n\n"):
                error = Heard(sent.encode()).error
                assert error is None or isinstance(error, AgentError)


@given(st.lists(st.binary(max_size=30), max_size=5), st.booleans())
def test_no_bytes_can_make_it_fail_otherwise_than_by_an_error_of_ours(pieces, accepted):
    heard = Heard(*pieces, accept_unfinished=accepted)
    assert heard.error is None or isinstance(heard.error, AgentError)


PIECES = st.sampled_from(
    [
        stream(said("x")),
        stream(said("", "stop")),
        b"data: ",
        b"{",
        b"}",
        b"\n",
        b"\r\n\r\n",
        b'"',
        b"[DONE]",
        b"<",
        b":",
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_no_mixture_of_right_and_wrong_can_make_it_fail_otherwise(pieces):
    heard = Heard(*pieces)
    whole = Heard(b"".join(pieces))
    assert (type(heard.error), heard.texts) == (type(whole.error), whole.texts)
