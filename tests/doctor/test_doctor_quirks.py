"""Each oddity of a stream has a name: bytes in, quirks out, over the wire."""

import json
import time

import pytest

from openagent.testing import answer, raw

DONE = "data: [DONE]\n\n"


def chunk(delta=None, finish=None, id="c1", **members):
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return f"data: {json.dumps(({'id': id} if id else {}) | {'choices': [choice]} | members)}\n\n"


def piece(**members):
    return chunk({"tool_calls": [members]})


TEXT = chunk({"content": "1, 2"})
STOP = chunk(finish="stop")
USAGE = chunk(usage={"prompt_tokens": 1, "completion_tokens": 2})
HEAD = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": '{"city":'}}
TAIL = {"index": 0, "function": {"arguments": '"Oslo"}'}}
CALLED = chunk(finish="tool_calls")

SPOKEN = {
    "no-done": [TEXT, STOP, USAGE],
    "no-space": [TEXT.replace("data: ", "data:"), STOP, USAGE, DONE],
    "comments": [": keep-alive\n\n", TEXT, STOP, USAGE, DONE],
    "no-id": [chunk({"content": "1"}, id=""), chunk(finish="stop", id=""), DONE],
    "nulls": [chunk({"content": "1", "tool_calls": None}), STOP, USAGE, DONE],
    "empty-choices": ['data: {"id":"c","choices":[]}\n\n', TEXT, STOP, USAGE, DONE],
    "message-for-delta": ['data: {"id":"c","choices":[{"message":{"content":"1"},"finish_reason":"stop"}]}\n\n', DONE],
    "usage-everywhere": [USAGE, TEXT, USAGE, USAGE, STOP, DONE],
    "usage-in-choice": [
        'data: {"id":"c","choices":[{"delta":{"content":"1"},"finish_reason":"stop","usage":{"prompt_tokens":1}}]}\n\n',
        DONE,
    ],
    "no-finish-reason": [TEXT, USAGE, DONE],
    "several-finish-reasons": [TEXT, STOP, STOP, USAGE, DONE],
    "early-finish-reason": [STOP, TEXT, USAGE, DONE],
}
CALLS = {
    "no-index": [piece(**{**HEAD, "index": None}), piece(function=TAIL["function"]), CALLED, DONE],
    "no-call-id": [piece(index=0, function=HEAD["function"]), piece(**TAIL), CALLED, DONE],
    "repeated-id": [
        piece(**HEAD),
        piece(**HEAD | {"function": {"name": "weather", "arguments": '"Oslo"'}}),
        piece(index=0, function={"arguments": "}"}),
        CALLED,
        DONE,
    ],
    "empty-names": [piece(**HEAD), piece(**TAIL, id=""), CALLED, DONE],
    "arguments-object": [
        piece(index=0, id="a", function={"name": "weather", "arguments": {"city": "Oslo"}}),
        CALLED,
        DONE,
    ],
    "stop-with-calls": [piece(**HEAD), piece(**TAIL), STOP, DONE],
}
ONE_INDEX = [
    piece(index=0, id=name, function={"name": "weather", "arguments": '{"city": "Oslo"}'}) for name in ("a", "b")
] + [CALLED, DONE]


def names(report):
    return [quirk.name for quirk in report.quirks]


@pytest.mark.parametrize("name", SPOKEN)
def test_an_oddity_of_a_spoken_answer_has_its_name(diagnose, name):
    report = diagnose({"chat": raw(*SPOKEN[name])})
    assert name in names(report)
    assert report.finding("chat").verdict == "yes"


@pytest.mark.parametrize("name", CALLS)
def test_an_oddity_of_a_call_has_its_name(diagnose, name):
    report = diagnose({"tool": raw(*CALLS[name])})
    assert names(report) == [name]
    assert report.finding("tools").verdict == "yes"


def test_calls_that_share_an_index_are_told(diagnose):
    report = diagnose({"two": raw(*ONE_INDEX)})
    assert (names(report), report.finding("parallel calls").details) == (["one-index"], {"calls": 2})


def test_a_plain_stream_has_no_quirks(diagnose):
    report = diagnose({"chat": raw(TEXT, STOP, USAGE, DONE)})
    assert names(report) == []


def test_a_document_for_a_stream_is_told(diagnose):
    report = diagnose({"chat": answer("1, 2", stream=False)})
    assert (names(report), report.finding("streaming").verdict) == (["not-streamed"], "no")


def test_a_stream_in_one_piece_is_told(diagnose):
    def held_back(_):
        time.sleep(0.1)
        return answer("1 2 3 4 5 6 7 8 9", frames_per_chunk=100)

    report = diagnose({"chat": held_back})
    assert (names(report), report.finding("streaming").details["tokens_per_second"]) == (["buffered"], None)


def test_a_body_without_framing_is_told(diagnose):
    assert names(diagnose({"chat": answer("1, 2", framing="close")})) == ["not-chunked", "no-keep-alive"]


def test_a_stream_by_another_name_is_told(diagnose):
    assert names(diagnose({"chat": answer("1, 2", headers={"Content-Type": "text/plain"})})) == ["content-type"]


def test_an_error_line_is_told_with_what_it_says(diagnose):
    report = diagnose({"chat": raw('error: {"code":500,"message":"out of memory"}\n\n')})
    assert names(report)[:1] == ["error-line"]
    assert "out of memory" in report.finding("chat").text
