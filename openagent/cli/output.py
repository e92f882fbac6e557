"""An answer on stdout: as text while it comes or at once, its first code block, one JSON object, or JSON lines.

Owns: the forms of an answer for programs and for people. Does not know: arguments, how an answer comes about.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from .. import codec
from ..client import Client
from ..events import CallFinished, Event, RoundFinished, TextDelta
from ..messages import Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage, block_to_dict
from ..waiting import hidden

_FENCE = re.compile(r"^(?P<mark>`{3,}|~{3,})[^\n]*\n(?P<code>.*?)^(?P=mark)[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def tell(line: str) -> None:
    """A line for the user, on stderr, which is no part of an answer."""
    with hidden():
        print(line, file=sys.stderr, flush=True)


def write_text(texts: Iterable[str]) -> None:
    """The texts as they come; a line end if the last has none."""
    be_lenient()
    is_terminal = sys.stdout.isatty()
    last = "\n"
    for text in texts:
        last = text or last
        sys.stdout.write(harmless(text) if is_terminal else text)
        sys.stdout.flush()
    if not last.endswith("\n"):
        sys.stdout.write("\n")
    sys.stdout.flush()


def be_lenient() -> None:
    """An old terminal must not stop an answer at an emoji."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")


def harmless(text: str) -> str:
    """The text without what would move the cursor of a terminal, or more.

    >>> harmless("a\\x1b[2Jb\\tc\\n")
    'a\\ufffd[2Jb\\tc\\n'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def code_of(text: str) -> str:
    """The first fenced block of code; the whole text if there is none.

    >>> code_of("Here:\\n```python\\nx = 1\\n```\\nDone.")
    'x = 1\\n'
    """
    found = _FENCE.search(text)
    return found["code"] if found else text


def write_events(events: Iterable[Event]) -> None:
    """The events as JSON lines, as they come."""
    for event in events:
        sys.stdout.write(_json(event_to_dict(event)))
        sys.stdout.flush()


def event_to_dict(event: Event) -> dict[str, Any]:
    """The event as a plain dict, its ``type`` in small letters: ``text_delta``."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(event).__name__).lower()
    return {"type": name} | {item.name: _plain(getattr(event, item.name)) for item in dataclasses.fields(event)}


def _plain(value: Any) -> Any:
    if isinstance(value, Message):
        return value.to_dict()
    if isinstance(value, (ToolUseBlock, ToolResultBlock, TextBlock)):
        return block_to_dict(value)
    if isinstance(value, Usage):
        return usage_to_dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    return value


def write_json(client: Client, events: Iterator[Event]) -> None:
    """One JSON object at the end: text, calls with their results, finish reason, usage, the model that served."""
    text: list[str] = []
    calls: dict[str, dict[str, Any]] = {}
    served, last = None, ""
    for event in events:
        if isinstance(event, TextDelta):
            text.append(event.text)
        elif isinstance(event, RoundFinished):
            calls |= {call.id: block_to_dict(call) for call in event.message.calls if call.id not in calls}
            served = event.response.model or served
            last, text = "".join(text), []
        elif isinstance(event, CallFinished):
            result = {"result": event.result.content, "is_error": event.result.is_error, "seconds": event.seconds}
            calls[event.call.id] = block_to_dict(event.call) | result
    whole = {
        "text": "".join(text) or last,
        "calls": [{name: value for name, value in call.items() if name != "type"} for call in calls.values()],
        "finish_reason": client.finish_reason,
        "usage": usage_to_dict(client.usage),
        "model": served,
    }
    sys.stdout.write(_json(whole))
    sys.stdout.flush()


def _json(plain: Any) -> str:
    """A line of JSON that this stdout can say."""
    line = codec.dump(plain)
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        line = json.dumps(json.loads(line))
    return line + "\n"


def usage_to_dict(usage: Usage | None) -> dict[str, int] | None:
    """The numbers that the server sent, by name."""
    if usage is None:
        return None
    numbers = {item.name: getattr(usage, item.name) for item in dataclasses.fields(usage) if item.name != "raw"}
    return {name: number for name, number in numbers.items() if number is not None}


def usage_line(usage: Usage | None) -> str:
    """The usage in words.

    >>> usage_line(Usage(7, 5, cache_read_tokens=3))
    '7 input tokens, 5 output tokens, 3 cache read tokens'
    """
    numbers = usage_to_dict(usage) or {}
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in numbers.items()) or "no usage was told"
