"""Questions about what server and model can do beyond talking: tools, several at once, shapes, pictures.

Owns: the requests of these questions and the reading of what came. Does not know: how an answer is read from bytes.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from .. import codec
from ..errors import ConfigError
from ..events import TurnFinished
from ..messages import ImageBlock, Message, TextBlock
from ..rescue import found_calls
from ..schema import check
from ..tools import Tool
from .bench import Bench, Heard
from .quirks import quirks
from .report import Finding
from .speaking import reason, unclear

CITY = {"type": "object", "properties": {"city": {"type": "string", "description": "the city's name"}}}
WEATHER = Tool("weather", "The weather in a city now", CITY | {"required": ["city"]}, lambda arguments: "12 °C")
ONE = "What is the weather in Oslo? Use the tool."
TWO = "What is the weather in Oslo, and what in Rome? Call the tool for both cities at once."
SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}},
    "required": ["city", "inhabitants"],
    "additionalProperties": False,
}
_LEFT = re.compile(r"<tool_call>|<function|\[TOOL_CALLS\]|<\|python_tag\|>|\"name\"\s*:\s*\"weather\"")


def tools(bench: Bench) -> Iterator[Finding]:
    """How the model calls a tool, whether its result is taken, and whether it calls two at once."""
    options = bench.asking(tools=(WEATHER,), tool_mode="native", max_tokens=bench.budget(64))
    adapter, heard = bench.adapter(options, [Message.user(ONE)])
    bench.listen(adapter, heard)
    for name, text in quirks(heard) if heard.chunks else ():
        bench.note(name, text)
    turn = heard.turn
    if turn is not None and turn.message.calls:
        yield Finding("tools", "yes", "native calls")
        yield _result(bench, turn)
        yield _parallel(bench)
    elif turn is None and not heard.is_refusal:
        yield unclear("tools", heard)
    elif turn is not None and found_calls(turn.message.text, [WEATHER]):
        text, settings = "left in the text, where rescue_tool_calls finds them", {"rescue_tool_calls": True}
        yield Finding("tools", "partly", text, settings=settings)
    elif turn is not None and _LEFT.search(turn.message.text):
        yield _emulated(bench, "tools", "left in the text, in a form of the model's own")
    elif turn is not None:
        yield _emulated(bench, "tools", "the model did not call" + (" within the output limit" if heard.is_cut else ""))
    else:
        yield _emulated(bench, "tools", f"refused ({reason(heard)})")


def _emulated(bench: Bench, name: str, why: str) -> Finding:
    """What to do on a server that has none, or with a model that did not call."""
    options = bench.asking(tools=(WEATHER,), tool_mode="emulated", max_tokens=bench.budget(64))
    again = bench.ask(options, [Message.user(ONE)])
    if again.turn is not None and again.turn.message.calls:
        return Finding(name, "partly", f"{why}; emulated tools work", {"emulated": True}, {"tool_mode": "emulated"})
    if again.error is not None:
        return Finding(name, "no", f"{why}; nor can they be emulated: {reason(again)}", {"emulated": False})
    return Finding(name, "no", f"{why}; nor did it call emulated ones", {"emulated": False})


def _result(bench: Bench, turn: TurnFinished) -> Finding:
    """Whether the result of a call is taken, in one of the ways to write a turn that has no text."""
    call = turn.message.calls[0]
    history = [Message.user(ONE), turn.message]
    history += [Message.tool_result(each.id, "12 °C and rain") for each in turn.message.calls]
    ways: tuple[str | None, ...] = ("", None, "omit") if not turn.message.text else ("",)
    heard = Heard()
    for way in ways:
        options = bench.asking(tools=(WEATHER,), tool_mode="native", max_tokens=bench.budget(64), empty_content=way)
        heard = bench.ask(options, history)
        if heard.turn is not None:
            settings = {"empty_content": way} if way != "" else {}
            if settings:
                bench.note("empty-content", f"refuses content '' beside calls: empty_content={way!r} is taken")
            used = "12" in heard.text
            text = "taken, and used in the answer" if used else "taken; the answer does not show it"
            return Finding("tool results", "yes", text, {"used": used, "call": call.name}, settings)
        if not heard.is_refusal:
            break
    if not heard.is_refusal:
        return unclear("tool results", heard)
    return _emulated(bench, "tool results", f"refused ({reason(heard)})")


def _parallel(bench: Bench) -> Finding:
    heard = bench.ask(
        bench.asking(tools=(WEATHER,), tool_mode="native", max_tokens=bench.budget(96)), [Message.user(TWO)]
    )
    if heard.turn is None:
        return unclear("parallel calls", heard)
    for name, text in quirks(heard):
        bench.note(name, text)
    count = len(heard.turn.message.calls)
    text = "several in one turn" if count > 1 else "one at a time" if count else "the model did not call"
    return Finding("parallel calls", "yes" if count > 1 else "no", text, {"calls": count})


def shapes(bench: Bench) -> Iterator[Finding]:
    """Whether an answer keeps to a JSON Schema that the prompt does not mention."""
    heard = bench.ask(bench.asking(response_format=SHAPE, max_tokens=bench.budget(64)), [Message.user("Name a city.")])
    name = "structured output"
    if isinstance(heard.error, ConfigError):
        yield Finding(name, "no", reason(heard))
    elif heard.is_refusal:
        yield _json_mode(bench, heard)
    elif heard.turn is None:
        yield unclear(name, heard)
    elif _keeps(heard.text):
        yield Finding(name, "yes", "a JSON Schema is honoured", {"json_schema": True})
    elif heard.is_cut and heard.text.lstrip()[:1] in ("{", ""):
        yield Finding(name, "unclear", "the output limit cut the answer", {"sample": heard.text[:60]})
    else:
        yield Finding(name, "no", "a JSON Schema is ignored", {"json_schema": False, "sample": heard.text[:60]})


def _json_mode(bench: Bench, refused: Heard) -> Finding:
    name, why = "structured output", f"a JSON Schema is refused ({reason(refused)})"
    try:
        options = bench.asking(response_format="json", max_tokens=bench.budget(64))
        heard = bench.ask(options, [Message.user("Name a city, as a JSON object with the member city.")])
    except ConfigError:
        return Finding(name, "no", why)
    try:
        is_object = isinstance(codec.parse(heard.text), dict)
    except ValueError:
        is_object = False
    if heard.turn is not None and is_object:
        return Finding(name, "partly", f"response_format='json' only; {why}", {"json_schema": False})
    return Finding(name, "no", why, {"json_schema": False})


def _keeps(text: str) -> bool:
    try:
        return check(SHAPE, codec.parse(text)) is None
    except ValueError:
        return False


def images(bench: Bench) -> Iterator[Finding]:
    """Whether the model sees a picture: it is all yellow, and nothing else says so."""
    picture = ImageBlock(f"data:image/png;base64,{base64.b64encode(png((255, 230, 0))).decode()}", detail="low")
    asked = Message("user", [TextBlock("What colour is this picture? Answer with one word."), picture])
    heard = bench.ask(bench.asking(max_tokens=bench.budget(24)), [asked])
    if heard.turn is not None:
        sees = "yellow" in heard.text.lower()
        said = " ".join(heard.text.split())[:40]
        text = "sees a yellow picture" if sees else f"accepted, but not seen: it says {said!r}"
        yield Finding("images", "yes" if sees else "no", text, {"said": said})
    elif heard.is_refusal:
        yield Finding("images", "no", f"refused: {reason(heard)}", {"status": heard.error and heard.error.status})
    else:
        yield unclear("images", heard)


def png(colour: tuple[int, int, int], size: int = 64) -> bytes:
    """A square PNG of one colour.

    >>> png((255, 0, 0))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = (b"\0" + bytes(colour) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
