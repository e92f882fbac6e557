"""Any stream on any wire: cut anywhere it says the same; whatever it holds, it ends in a turn or an error of ours."""

import json
import os
import random
import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from openagent import AgentError, AgentOptions, Message, StreamInterruptedError, ToolUseBlock
from openagent.client import ADAPTERS
from openagent.decoding import BodyDecoder
from openagent.events import CallAnnounced, ReasoningDelta, TextDelta, TurnFinished, spread
from openagent.history import answered, sendable
from openagent.testing import answer, anthropic, call, chat, responses
from openagent.testing.script import Headers, Request
from openagent.testing.strict import check_request
from openagent.testing.wire import Memory

TIMES = int(os.environ.get("OPENAGENT_TEST_TIMES", "1"))  # so many times as many examples: for a long run by hand
WIRES = {"openai-chat": chat, "openai-responses": responses, "anthropic": anthropic}
# Each line with what is hard about it: line ends, half characters, tags, blanks, brackets, BOM, other line ends.
WORDS = st.sampled_from(
    [
        "hello ",
        " ",
        "\n\n",
        "é😀",
        "\u2028\x85",
        "\ufeff",
        "<think>",
        "</think>",
        "data: [DONE]",
        '"}\\',
        "\x00\x7f",
        "\ud83d",
    ]
)
TEXTS = st.lists(WORDS, max_size=5).map(lambda words: tuple(words))
CALLS = st.builds(
    call,
    st.sampled_from(["look", "add", "b d"]),
    st.sampled_from(["", "{}", '{"at": "', "[1]", '{"a": {"b": [1, "\\ud83d"]}}', "null", '{"a": 1}{"a": 1}'])
    | st.dictionaries(st.text(max_size=3), st.text(max_size=20), max_size=3),
    id=st.sampled_from([None, "c1", "c1", "c2"]),
)
ANSWERS = st.builds(
    lambda cut, **rest: answer(chunk_text=cut, **rest),
    TEXTS,
    calls=st.lists(CALLS, max_size=3),
    reasoning=st.none() | st.text(max_size=20),
    finish=st.sampled_from([None, None, "stop", "length", "content_filter", "odd", "unspecified"]),
    usage=st.sampled_from([None, (7, 5)]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    done=st.booleans(),
)
EXAMPLES = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}


def frames_of(protocol, item):
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    return WIRES[protocol].frames(item, body, Memory())


def adapter_of(protocol, messages=()):
    options = AgentOptions(model="m", base_url="http://localhost/v1", protocol=protocol, api_key="k")
    return ADAPTERS[protocol](options, list(messages), [], None)


def heard_of(protocol, pieces, *, accepted=False, quickly=True):
    """The events of a body that comes in these pieces, and the error if there is one; the quick way or the general."""
    turn = adapter_of(protocol).decoder(CaseInsensitiveDict())
    decoder = BodyDecoder(turn, accept_unfinished=accepted)
    decoder._is_quick = quickly
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return list(spread([*events, *decoder.end()])), decoder.failure


def said(events, error):
    """All that a caller learns, however it was cut."""
    turn = next((event for event in events if isinstance(event, TurnFinished)), None)
    made = {event.id for event in events if isinstance(event, CallAnnounced) and event.id.startswith("call_")}
    named = {id: f"made up {place}" for place, id in enumerate(sorted(made))}
    return (
        "".join(event.text for event in events if isinstance(event, TextDelta)),
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        [event.name for event in events if isinstance(event, CallAnnounced)],
        turn
        and [block if block.id not in named else (block.name, block.raw_arguments) for block in turn.message.calls],
        turn and (turn.message.text, turn.finish_reason, turn.finish_reason.raw, turn.usage, turn.response),
        type(error),
        str(error),
        error and error.blocks,
    )


def cut_at(body, places):
    ends = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *ends], [*ends, len(body)], strict=True)]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_any_valid_stream_cut_anywhere_gives_the_same_blocks(protocol):
    """Issue 4.2, sse-04, sse-16: byte by byte, in any pieces, and whole."""

    @settings(max_examples=50 * TIMES, **EXAMPLES)
    @given(ANSWERS, st.lists(st.integers(0, 100_000), max_size=9))
    def check(item, places):
        body = b"".join(frames_of(protocol, item))
        whole = said(*heard_of(protocol, [body]))
        assert said(*heard_of(protocol, [body[i : i + 1] for i in range(len(body))])) == whole
        assert said(*heard_of(protocol, cut_at(body, places))) == whole
        assert said(*heard_of(protocol, cut_at(body, places), quickly=False)) == whole

    check()


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_pieces_in_one_read_are_told_one_by_one_also_with_a_character_cut_in_halves(protocol):
    """sse-04: JSON can hold half a character; no piece that is told does."""
    item = answer(chunk_text=["Hel", "lo ", "\ud83d", "\ude00", "a", "b"])
    for quickly in (True, False):
        events, error = heard_of(protocol, [b"".join(frames_of(protocol, item))], quickly=quickly)
        assert error is None
        assert events[:-1] == [TextDelta(text) for text in ("Hel", "lo ", "😀", "a", "b")]
        assert events[-1].message == Message.assistant("Hello 😀ab")


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_stream_that_ends_at_any_byte_is_a_turn_or_broken_off_and_never_a_wrong_turn(protocol):
    """Promise 2, design.md 7.1: every prefix of a stream; a call is whole or not there."""
    item = answer("hm é ", calls=[call("look", {"at": "here"}, id="c1")], reasoning="so")
    body = b"".join(frames_of(protocol, item))
    events, error = heard_of(protocol, [body])
    assert error is None
    whole = events[-1].message
    ends = []
    for end in range(len(body)):
        events, error = heard_of(protocol, [body[:end]])
        if error is None:
            assert (events[-1].message.content, events[-1].message.calls) == (whole.content, whole.calls)
            ends.append(end)
        else:
            assert isinstance(error, StreamInterruptedError), (end, error)
            assert not any(isinstance(event, TurnFinished) for event in events)
            told = "".join(event.text for event in events if isinstance(event, TextDelta))
            assert "".join(block.text for block in error.blocks) == told
            assert error.retryable == (not events)
    assert ends == list(range(min(ends), len(body)))


JUNK = st.sampled_from(
    [
        b"",
        b"\n",
        b"\n\n",
        b"\r",
        b"{",
        b"}",
        b"]",
        b'"',
        b"\\",
        b"\xff",
        b"\x00",
        b"data: ",
        b"event: error\n",
        b"null",
        b"1e999",
    ]
) | st.binary(max_size=6)
EDITS = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 20), JUNK), min_size=1, max_size=5)


def edited(body, edits):
    for place, length, junk in edits:
        place %= len(body) + 1
        body = body[:place] + junk + body[place + length :]
    return body


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_spoilt_stream_is_a_turn_that_can_be_sent_back_or_an_error_of_ours(protocol):
    """Issue 4.2, design.md 6: and the same however it is cut."""

    @settings(max_examples=150 * TIMES, **EXAMPLES)
    @given(ANSWERS, EDITS, st.lists(st.integers(0, 100_000), max_size=3), st.booleans())
    def check(item, edits, places, accepted):
        body = edited(b"".join(frames_of(protocol, item)), edits)
        heard = heard_of(protocol, cut_at(body, places), accepted=accepted)
        check_outcome(protocol, *heard)
        assert said(*heard) == said(*heard_of(protocol, [body], accepted=accepted))

    check()


VALUES = st.recursive(
    st.sampled_from(
        [None, True, False, 0, -1, 7, 10**30, 1.5, "", " ", "x", "text", "tool_use", "{}", "\ud83d", "é", "c1"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "id", "text", "name", "index", "error", "content", "message", "arguments", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


def places_in(value, path=()):
    """Where something stands in a JSON value, as a path."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places_in(item, (*path, key))


def with_value(whole, path, value):
    if not path:
        return value
    if isinstance(whole, dict):
        return {**whole, path[0]: with_value(whole[path[0]], path[1:], value)}
    return [with_value(item, path[1:], value) if place == path[0] else item for place, item in enumerate(whole)]


def spoilt(frames, changes):
    """The frames as JSON, some values in them replaced, some frames repeated, dropped or elsewhere."""
    heads, payloads = [], []
    for frame in frames:
        head, _, text = frame.decode("utf-8", "surrogatepass").partition("data: ")
        if text.startswith("{"):
            heads.append(head)
            payloads.append(json.loads(text))
    for which, seed, value, how in changes:
        if not payloads:
            break
        which %= len(payloads)
        if how == "value":
            paths = list(places_in(payloads[which]))
            payloads[which] = with_value(payloads[which], random.Random(seed).choice(paths), value)
        elif how == "drop":
            del heads[which], payloads[which]
        else:
            place = seed % len(payloads)
            heads.insert(place, heads[which])
            payloads.insert(place, payloads[which])
    return [f"{head}data: {json.dumps(payload)}\n\n".encode() for head, payload in zip(heads, payloads, strict=True)]


CHANGES = st.lists(
    st.tuples(
        st.integers(0, 99),
        st.integers(0, 10_000),
        VALUES,
        st.sampled_from(["value", "value", "value", "drop", "repeat"]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_values_of_any_kind_anywhere_are_a_turn_that_can_be_sent_back_or_an_error_of_ours(protocol):
    """Issue 4.2: wrong types, events missing, repeated, out of order."""

    @settings(max_examples=200 * TIMES, **EXAMPLES)
    @given(ANSWERS, CHANGES)
    def check(item, changes):
        frames = spoilt(frames_of(protocol, item), changes)
        check_outcome(protocol, *heard_of(protocol, [*frames, b"data: [DONE]\n\n"]))

    check()


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_a_document_with_values_of_any_kind_is_a_turn_or_an_error_of_ours(protocol):
    """design.md 7.11."""

    @settings(max_examples=150 * TIMES, **EXAMPLES)
    @given(ANSWERS, CHANGES)
    def check(item, changes):
        whole = WIRES[protocol].document(item, {"model": "m"}, Memory())
        for _, seed, value, _ in changes:
            whole = with_value(whole, random.Random(seed).choice(list(places_in(whole))), value)
        check_outcome(protocol, *heard_of(protocol, [json.dumps(whole).encode()]))

    check()


def check_outcome(protocol, events, error):
    """An error of ours; or a whole turn, which can be saved and which a strict server takes back."""
    if error is not None:
        assert isinstance(error, AgentError)
        assert not any(isinstance(event, TurnFinished) for event in events)
        str(error).encode(), repr(error).encode(), (error.body or "").encode()
        return
    turn = events[-1]
    assert isinstance(turn, TurnFinished)
    for event in events:
        assert not isinstance(event, (TextDelta, ReasoningDelta)) or event.text.encode()
    ids = [made.id for made in turn.message.calls]
    "".join(ids).encode()
    assert (len(set(ids)), all(ids)) == (len(ids), True)
    assert all(isinstance(made.input, dict) and made.name for made in turn.message.calls)
    values = (turn.finish_reason, turn.finish_reason.raw, turn.response.id, turn.response.model)
    assert all(isinstance(value, (str, type(None))) for value in values)
    assert turn.usage is None or all(
        type(count) in (int, type(None)) for name, count in vars(turn.usage).items() if name != "raw"
    )
    saved = json.loads(json.dumps(turn.message.to_dict()))
    assert Message.from_dict(saved) == turn.message
    bare = [
        replace(block, provider_state=None) if isinstance(block, ToolUseBlock) else block
        for block in turn.message.content
    ]
    # State goes back as it came, so a server gets its own nonsense; what the blocks say is ours to get right.
    for message in (turn.message, Message("assistant", bare)):
        history = sendable(answered([Message.user("q"), message, Message.user("go on")]))
        request = adapter_of(protocol, history).encode(None, include_tools=False)
        json.loads(request.body)
    check_accepted(protocol, request)


def check_accepted(protocol, request):
    asked = Request("POST", request.url, Headers(request.headers), None, request.body)
    WIRES[protocol].check(check_request(asked), asked.headers, Memory())


MEGABYTE = 1 << 20
DELTA = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
LARGE = {
    "one event": b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * MEGABYTE + b'"}}]}\n\n',
    "an event without an end": b"data: {" + b"x" * MEGABYTE,
    "many lines of one event": b"data: 1\n" * (MEGABYTE // 8) + b"\n",
    "heartbeats": b": ping\n\n" * (MEGABYTE // 8),
    "line ends": b"\r\n" * (MEGABYTE // 2),
    "blanks": b" " * MEGABYTE,
    "text in pieces": DELTA * (MEGABYTE // len(DELTA)),
    "a document": b'{"choices":[{"message":{"content":"' + b"x" * MEGABYTE + b'"}}]}',
    "brackets": b"[" * MEGABYTE,
    "nesting": b'data: {"a":' + b"[" * MEGABYTE + b"\n\n",
}


@pytest.mark.parametrize("what", LARGE)
def test_no_body_takes_more_memory_than_a_small_multiple_of_its_size(what):
    """Issue 4.2: at the peak, with all that was heard of it."""
    body = LARGE[what]
    heard_of("openai-chat", [DELTA])  # what is imported and cached on first use
    tracemalloc.start()
    try:
        heard_of("openai-chat", [body[start : start + 65536] for start in range(0, len(body), 65536)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * len(body)
