import time

import pytest
import sseclient
from hypothesis import given, settings
from hypothesis import strategies as st

from openagent.errors import InvalidResponseError
from openagent.limits import Limits
from openagent.sse import Framer, read_frame


def Frame(event, data):
    return event, data


ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
# What may stand in a line: fields known and unknown, comments, blanks, JSON, characters of several bytes.
VALUES = st.sampled_from(
    ["", "x", " x", "  two ", '{"a": "b: c"}', "[DONE]", "é€😀", "\u2028\u2029\x85\x0b\x0c", ":", "data: x", "message"]
)
NAMES = st.sampled_from(["data", "event", "id", "retry", "unknown", "", "Data", "dataset", " data"])
LINES = st.builds(lambda name, colon, value: f"{name}{colon}{value}", NAMES, st.sampled_from([":", ": "]), VALUES)
LINES = (LINES | st.sampled_from(["data", "event", "id", ":", ": ping", "nonsense"])).map(str.encode)
FRAMES = st.lists(LINES, min_size=1, max_size=5)


def frames(*chunks):
    framer = Framer()
    found = [frame for chunk in chunks for frame in framer.feed(chunk)]
    rest = framer.rest()
    return found + ([rest] if rest else [])


def by_sseclient(raw):
    """The frame as sseclient-py alone reads it."""
    events = [(event.event, event.data) for event in sseclient.SSEClient(iter([raw])).events()]
    assert len(events) < 2
    return next((Frame(None if name == "message" else name, text.encode()) for name, text in events), None)


@given(FRAMES)
def test_a_whole_frame_is_read_as_sseclient_reads_it(lines):
    """The fast path and the joining of data lines change nothing."""
    assert read_frame(b"\n".join(lines)) == by_sseclient(b"\n".join(lines))


@given(
    st.sampled_from([b"data: ", b"data:", b"event: a\ndata: ", b"event:a\ndata:", b"event: message\ndata: "]), VALUES
)
def test_the_usual_frames_are_read_as_sseclient_reads_them(head, value):
    raw = head + value.encode()
    assert read_frame(raw) == by_sseclient(raw)


STREAMS = st.builds(
    lambda bom, blocks, tail: bom + b"".join(b"".join(line + end for line, end in block) for block in blocks) + tail,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(
        st.lists(st.tuples(LINES | st.just(b""), ENDS), min_size=1, max_size=6),
        max_size=4,
    ),
    st.sampled_from([b"", b"data: rest", b"data: rest\n", b": ping", b"\r"]),
)


@given(STREAMS)
@settings(max_examples=200)
def test_a_stream_gives_the_same_frames_wherever_it_is_cut(stream):
    """R-160, R-161, sse-04, sse-06, sse-07: any line ends, any cut, byte by byte."""
    whole = frames(stream)
    assert frames(*(stream[place : place + 1] for place in range(len(stream)))) == whole
    for place in range(len(stream) + 1):
        assert frames(stream[:place], stream[place:]) == whole
        assert frames(stream[:place], b"", stream[place:]) == whole


@given(st.lists(st.tuples(st.none() | st.just("a"), st.lists(VALUES, min_size=1, max_size=3)), max_size=4), ENDS)
def test_what_was_written_is_what_is_read(events, end):
    """R-160, sse-18: data lines are joined by LF."""
    written, expected = b"", []
    for name, lines in events:
        written += b"event: a" + end if name else b""
        written += b"".join(b"data: " + line.encode() + end for line in lines) + end
        expected.append(Frame(name, "\n".join(lines).encode()))
    assert frames(written) == expected


@given(st.lists(ENDS, min_size=2, max_size=2), st.lists(ENDS, min_size=2, max_size=2))
def test_line_ends_may_be_mixed(first, second):
    stream = b"data: a" + first[0] + b"data: b" + first[1] * 2 + b"data: c" + second[0] + second[1] + b"data: d"
    if b"\r\n" in (first[1] + first[1]) and first[1] != b"\r\n":
        return
    if second[0] + second[1] == b"\r\n":  # CR LF is one line end
        assert frames(stream) == [Frame(None, b"a\nb"), Frame(None, b"c\nd")]
    else:
        assert frames(stream) == [Frame(None, b"a\nb"), Frame(None, b"c"), Frame(None, b"d")]


def test_a_frame_is_handed_out_with_the_byte_that_ends_it():
    """design.md, promise 3; also where an LF may still follow a CR."""
    for stream in (b"data: a\n\n", b"data: a\r\r", b"data: a\r\n\r", b"data: a\n\r"):
        framer = Framer()
        assert [framer.feed(stream[place : place + 1]) for place in range(len(stream) - 1)] == [[]] * (len(stream) - 1)
        assert framer.feed(stream[-1:]) == [Frame(None, b"a")]


def test_an_lf_after_the_cr_that_ended_a_frame_belongs_to_it():
    """sse-04."""
    framer = Framer()
    assert framer.feed(b"data: a\r\n\r") == [Frame(None, b"a")]
    assert framer.feed(b"\ndata: b\r\n\r") == [Frame(None, b"b")]
    assert framer.feed(b"\n") == []
    assert framer.rest() is None


@pytest.mark.parametrize(
    ("raw", "frame"),
    [
        (b"", None),
        (b":", None),
        (b": ping", None),
        (b"retry: 3000", None),
        (b"id: 7", None),
        (b"event: a", None),
        (b"unknown", None),
        (b"\n\n", None),
        (b"data", Frame(None, b"")),
        (b"data:", Frame(None, b"")),
        (b"data: ", Frame(None, b"")),
        (b"data:x", Frame(None, b"x")),
        (b"data:  x ", Frame(None, b" x ")),
        (b"data: a\ndata\ndata: b", Frame(None, b"a\n\nb")),
        (b": glued\ndata: [DONE]", Frame(None, b"[DONE]")),
        (b"event: a\nevent: b\ndata: x", Frame("b", b"x")),
        (b"event: a\nevent\ndata: x", Frame(None, b"x")),
        (b"data: x\nevent: a", Frame("a", b"x")),
        (b"event:message\ndata:x", Frame(None, b"x")),
        (b'error: {"code":400}', Frame("error", b'{"code":400}')),
        (b'data: x\nerror:{"code":400}', Frame("error", b'{"code":400}')),
    ],
)
def test_the_fields_of_a_frame(raw, frame):
    """R-160, sse-01, sse-03, sse-18, S-19, S-20, S-23; the error line is llama.cpp's (R-166)."""
    assert read_frame(raw) == frame


def test_only_cr_and_lf_end_a_line():
    """sse-15: not U+2028, U+2029, U+0085, VT, FF; split bytes, not text."""
    for text in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\u2705\u5165"):
        for lines in (f"data: a{text}b\n\n", f"data: 1\ndata: a{text}b\n\n"):
            assert frames(lines.encode())[0][1].endswith(f"a{text}b".encode())


def test_exactly_one_bom_is_dropped():
    """sse-07: a later one is text."""
    bom = b"\xef\xbb\xbf"
    assert frames(bom[:2], bom[2:] + b"data: " + bom + b"\n\n") == [Frame(None, bom)]
    assert frames(bom + bom + b"data: a\n\n") == []
    assert frames(bom) == frames(bom[:1]) == frames(b"") == []


def test_the_last_frame_needs_no_empty_line():
    """R-164, sse-08, S-21."""
    for end in (b"", b"\n", b"\r", b"\r\n"):
        framer = Framer()
        assert framer.feed(b"data: a\n\nevent: e\ndata: b" + end) == [Frame(None, b"a")]
        assert [framer.rest(), framer.rest()] == [Frame("e", b"b"), None]


def test_bytes_that_are_not_utf_8_are_passed_on():
    """What they mean is for the reader of the JSON to say; both ways of reading agree."""
    assert frames(b"data: \xff\n\ndata: 1\ndata: \xff\n\n") == [Frame(None, b"\xff"), Frame(None, b"1\n\xff")]
    assert frames(b"event: \xff\ndata: 1\n\nid: 1\nevent: \xff\ndata: 1\n\n") == [Frame("\ufffd", b"1")] * 2


def test_an_event_that_never_ends_is_an_error():
    """sse-21: bounded by a limit, an error and no exhaustion of memory."""
    framer = Framer(Limits(event_bytes=100))
    assert framer.feed(b"data: " + b"x" * 90 + b"\n\n") == [Frame(None, b"x" * 90)]
    with pytest.raises(InvalidResponseError, match="an event of more than 100 bytes"):
        for _ in range(100):
            framer.feed(b"x" * 10)


def seconds(stream, size):
    """The least CPU time of three tries to read a stream in pieces of this size."""
    pieces = [stream[place : place + size] for place in range(0, len(stream), size)]
    tries = []
    for _ in range(3):
        start = time.process_time()
        assert len(frames(*pieces)) >= 1
        tries.append(time.process_time() - start)
    return min(tries)


@pytest.mark.parametrize(
    ("event", "size"),
    [
        (lambda bytes: b"data: " + b"x" * bytes + b"\n\n", 16),
        (lambda bytes: b"data: " + b"x" * bytes * 16 + b"\n\n", 1024),
        (lambda bytes: b"data: an event\r\n\r\n" * (bytes // 20), 16),
        (lambda bytes: b"data: a pretty line\n" * (bytes // 20) + b"\n", 1024),
        (lambda bytes: b": ping\n" * (bytes // 20) + b"data: x\n\n", 1024),
        (lambda bytes: b"id: 7\n" * (bytes // 20) + b"data: x\n\n", 1024),
    ],
    ids=["small pieces", "usual pieces", "many events", "many data lines", "many comments", "many fields"],
)
def test_the_cost_is_linear_in_the_size_of_an_event(event, size):
    """design.md, promise 6; sse-21: four times the size costs less than eight times as much, not sixteen."""
    usual = 100_000
    assert seconds(event(4 * usual), size) / seconds(event(usual), size) < 8


def test_an_event_of_five_megabytes_takes_no_time_to_speak_of():
    """sse-21: generous, against minutes if the cost were quadratic."""
    stream = b"data: " + b"x" * 5_000_000 + b"\n\n"
    start = time.process_time()
    assert frames(*(stream[place : place + 1024] for place in range(0, len(stream), 1024)))[0][1] == stream[6:-2]
    assert time.process_time() - start < 2
