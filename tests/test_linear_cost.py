"""Promise 6: cost grows linearly, with an answer's pieces and size and with the history.

Only ratios of two sizes within one run: so many times as much must not cost more than twice so many times.
"""

import time

import pytest

from openagent import Message, Tool, ToolUseBlock
from openagent.adapters.openai_chat_turn import ChatTurn
from openagent.decoding import BodyDecoder
from openagent.testing import raw

LOOK = Tool("look", "", {}, len)


def ratio(work, size, *, times=16, tries=4):
    """How much more CPU time so many times the size takes, in this thread: others may be at work beside it."""

    def cost(size):
        started = time.thread_time()
        work(size)
        return time.thread_time() - started

    cost(size)  # what is imported and cached on first use
    # Of each size the best try, taken in turn: what else the machine does only ever adds.
    pairs = [(cost(size), cost(times * size)) for _ in range(tries)]
    small, large = (min(costs) for costs in zip(*pairs, strict=True))
    return large / max(small, 0.001)


def decoded(frames, step=16384):
    decoder = BodyDecoder(ChatTurn({}, provider="p"))
    events = [event for start in range(0, len(frames), step) for event in decoder.feed(frames[start : start + step])]
    return [*events, *decoder.end()]


PIECE = b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}}]}\n\n'
HEAD = PIECE.replace(b'"function":{', b'"id":"c1","function":{"name":"look",') % b'{\\"at\\":\\"'
END = PIECE % b'\\"}' + b"data: [DONE]\n\n"
SIXTEEN = PIECE % (b"x" * 16)


def arguments_in_fragments(count):
    turn = decoded(HEAD + SIXTEEN * count + END)[-1]
    assert turn.message.calls[0].input == {"at": "x" * 16 * count}


def text_in_deltas(count):
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
    assert decoded(piece * count + b"data: [DONE]\n\n")[-1].message.text == "word " * count


def blanks_before_an_answer(count):
    assert decoded(b"\n" * 64 * count + b"data: [DONE]\n\n", step=256)


def one_large_event(count):
    text = b"x" * 64 * count
    assert decoded(b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\ndata: [DONE]\n\n' % text)


@pytest.mark.parametrize(
    ("work", "size", "times"),
    [
        (arguments_in_fragments, 10_000, 16),
        (text_in_deltas, 2_500, 16),
        (one_large_event, 300_000, 3),
        (blanks_before_an_answer, 5_000, 16),
    ],
)
def test_the_cost_of_decoding_grows_linearly(work, size, times):
    """Promise 6: 2.5 MB of arguments in pieces of 16 bytes, many deltas of one text, one event in pieces, blanks."""
    assert ratio(work, size, times=times) < 2 * times


def test_the_cost_of_a_request_grows_linearly_with_the_history(serve, connect):
    """Promise 6: also where turns have calls."""
    client = connect(serve("a", repeat=True), tools=[LOOK])
    turn = Message.assistant("a " * 50, ToolUseBlock("c1", "look", {"at": "x" * 50}))
    part = [Message.user("q " * 50), turn, Message.tool_result("c1", "seen"), Message.assistant("done")]

    def work(size):
        client.history = part * size
        client.ask("r")

    assert ratio(work, 100) < 32


def test_a_megabyte_of_arguments_in_small_pieces_goes_through_a_client(serve, connect):
    """Promise 6: the whole way, from the socket to the tool."""
    body = raw(HEAD, *[SIXTEEN * 256] * 256, END)
    client = connect(serve(body, "done"), auto_execute_tools=True)
    heard = []
    client.tools["look"] = Tool("look", "", {}, lambda arguments: heard.append(len(arguments["at"])))
    assert (client.ask("q"), heard) == ("done", [1 << 20])
