"""One answer of the model, put together piece by piece.

A decoder calls ``text``, ``reasoning``, ``call`` and sets ``finish``, ``usage`` and the like as it
hears them; what the caller should be told at once is collected in ``events``. Pieces may belong to
places (``at``): places are sorted in the message, whatever order they came in.

Owns: joining pieces: text, reasoning, calls and their arguments. Does not know: JSON of a provider.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import codec
from .events import CallAnnounced, ReasoningDelta, RoundEvent, TextBurst, TextDelta
from .history import coalesce_text_blocks
from .limits import Limits
from .messages import ContentBlock, FinishReason, Message, TextBlock, ToolUseBlock, Usage

Place = tuple[int, ...]

CUT_BY_LIMIT = "the answer was cut by the output limit"
REFUSED = "the answer was refused"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Pieces:
    """A text that comes in pieces.

    They are joined now and then: a piece of its own takes 60 bytes more than its text (12 MB in 200,000).
    """

    __slots__ = ("_joined", "_loose")

    def __init__(self) -> None:
        self._joined: list[str] = []
        self._loose: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._joined or self._loose)

    def add(self, piece: str) -> None:
        """One more piece, not empty."""
        self._loose.append(piece)
        if len(self._loose) == 1000:
            self._joined.append("".join(self._loose))
            self._loose.clear()

    def joined(self) -> str:
        """All of the text so far."""
        return "".join((*self._joined, *self._loose))


class Call:
    """A call as far as it has been heard."""

    __slots__ = ("announced", "arguments", "id", "name", "state")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.state: dict[str, Any] = {}
        self.announced = False


class Answer:
    """One answer as far as it has been heard."""

    def __init__(self) -> None:
        self.events: list[RoundEvent] = []
        self.burst: list[str] = []  # pieces of text with no half characters, still to be added,
        self.burst_at: Place = (0,)  # at this place
        self.finish: FinishReason | None = None
        self.ended = False  # the turn has ended well
        self.usage: Usage | None = None
        self.id: str | None = None
        self.model: str | None = None
        self._texts: dict[Place, Pieces] = {}
        self._calls: dict[Place, Call] = {}
        self._text_seam = _Seam()
        self._reasoning_seam = _Seam()
        self._reasoned = False
        self.bound(Limits())

    def bound(self, limits: Limits) -> None:
        """How much may be heard; to be said before anything is."""
        self._limits = limits
        self._chars_left = limits.answer_chars
        self._argument_chars_left = limits.argument_chars

    def text(self, piece: str, *, at: Place = (0,)) -> None:
        """A piece of text was heard."""
        if self.burst:
            self.add_burst()
        if not piece.isascii() or self._text_seam.half:
            piece = self._text_seam.joined(piece)
        if not piece:
            return
        self._chars_left -= len(piece)
        if self._chars_left < 0:
            raise self._limits.exceeded("answer_chars")
        self._text(at).add(piece)
        self.events.append(TextDelta(piece))

    def add_burst(self) -> None:
        """What is in ``burst`` was heard: the same as ``text`` for each piece, at a third of the cost."""
        burst, at = self.burst, self.burst_at
        if not burst:
            return
        self.burst = []
        self.ended = False
        joined = "".join(burst)
        if len(burst) == 1 or self._text_seam.half or len(joined) > self._chars_left:
            for piece in burst:
                self.text(piece, at=at)
            return
        self._chars_left -= len(joined)
        self._text(at).add(joined)
        self.events.append(TextBurst(burst))

    def _text(self, at: Place) -> Pieces:
        text = self._texts.get(at)
        if text is None:
            text = self._texts[at] = Pieces()
        return text

    def reasoning(self, piece: str) -> None:
        """A piece of reasoning was heard; it is told, never kept."""
        if self.burst:
            self.add_burst()
        if not piece.isascii() or self._reasoning_seam.half:
            piece = self._reasoning_seam.joined(piece)
        if piece:
            self._chars_left -= len(piece)
            if self._chars_left < 0:
                raise self._limits.exceeded("answer_chars")
            self._reasoned = True
            self.events.append(ReasoningDelta(piece))

    def call(self, at: Place, *, id: str | None = None, name: str | None = None, arguments: str = "") -> Call:
        """A piece of the call at this place was heard. The first id and the first name count."""
        if self.burst:
            self.add_burst()
        call = self._calls.get(at)
        if call is None:
            if len(self._calls) >= self._limits.calls:
                raise self._limits.exceeded("calls")
            call = self._calls[at] = Call()
        if id and not call.id:
            call.id = self._unique(codec.mend(id))
        if name and not call.name:
            call.name = name.strip()
        if arguments:
            self._argument_chars_left -= len(arguments)
            if self._argument_chars_left < 0:
                raise self._limits.exceeded("argument_chars")
            call.arguments.append(arguments)
        if not call.announced and call.id and call.name:
            call.announced = True
            self.events.append(CallAnnounced(call.id, call.name))
        return call

    def replace_arguments(self, call: Call, arguments: str) -> None:
        """The arguments of a call came once more, and whole."""
        self._argument_chars_left += sum(map(len, call.arguments)) - len(arguments)
        if self._argument_chars_left < 0:
            raise self._limits.exceeded("argument_chars")
        call.arguments[:] = [arguments]

    def _settle(self) -> None:
        """Half characters are replaced, calls without an id get one, calls without anything go."""
        self._flush(self._text_seam, self.text)
        self._flush(self._reasoning_seam, self.reasoning)
        for place, call in list(self._calls.items()):
            if not (call.id or call.name or call.arguments):
                del self._calls[place]
            elif not call.announced:
                call.id = call.id or _made_up_id()
                call.announced = True
                self.events.append(CallAnnounced(call.id, call.name))

    def message(self) -> Message:
        """The assistant's message, now that nothing more comes; blank text is left out beside calls."""
        self._settle()
        return Message("assistant", coalesce_text_blocks(block for _, block in self._blocks()))

    def heard(self) -> list[ContentBlock]:
        """The text so far. Calls are no part of it: half a call must never be run."""
        text = "".join(self._texts[place].joined() for place in sorted(self._texts))
        return [TextBlock(text)] if text else []

    def text_at(self, place: Place) -> str:
        """The text of one place, as far as it has come."""
        text = self._texts.get(place)
        return text.joined() if text else ""

    def is_empty(self) -> bool:
        """Whether neither text nor reasoning nor a call was heard."""
        return not (self._texts or self._calls or self._reasoned)

    def has_calls(self) -> bool:
        """Whether a call was heard."""
        return bool(self._calls)

    def has_text(self) -> bool:
        """Whether more than blanks was heard."""
        return any(text.joined().strip() for text in self._texts.values())

    def _blocks(self) -> list[tuple[Place, ContentBlock]]:
        texts = [(place, TextBlock(text.joined())) for place, text in self._texts.items()]
        if self._calls:
            texts = [(place, block) for place, block in texts if block.text.strip()]
        depth = self._limits.json_depth
        calls = [(place, _block(call, self._why_not_run(), depth)) for place, call in self._calls.items()]
        return sorted([*texts, *calls], key=lambda pair: pair[0])

    def _why_not_run(self) -> str | None:
        """Why the calls of this turn must not be run, however whole they look."""
        if self.finish is None:
            return None
        return CUT_BY_LIMIT if self.finish.is_truncated else REFUSED if self.finish == "content_filter" else None

    def _unique(self, id: str) -> str:
        taken = any(call.id == id for call in self._calls.values())
        return _made_up_id() if taken else id

    @staticmethod
    def _flush(seam: _Seam, add: Callable[[str], None]) -> None:
        if seam.half:
            seam.half = ""
            add("\ufffd")


class _Seam:
    """Joins halves of a surrogate pair that came in two pieces."""

    __slots__ = ("half",)

    def __init__(self) -> None:
        self.half = ""

    def joined(self, piece: str) -> str:
        piece = self.half + piece
        self.half = piece[-1] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        return codec.mend(piece[:-1] if self.half else piece)


def _block(call: Call, why_not: str | None, depth: int) -> ToolUseBlock:
    input, raw, error = read_arguments("".join(call.arguments), depth=depth)
    name = call.name
    if not _NAME.fullmatch(name):
        name, error = "invalid_tool_call", f"the name of the call, {name[:80]!r}, is not the name of a tool"
    error = error or why_not
    return ToolUseBlock(call.id, name, input, raw, error, call.state or None)


def read_arguments(text: str, *, depth: int = codec.MAX_DEPTH) -> tuple[dict[str, Any], str | None, str | None]:
    """The input of a call, and if there is none the raw text and the reason.

    Nothing and ``null`` are an empty object; an object that was encoded twice is unpacked. Nothing
    else is repaired: a closing bracket by guess would be something that the model did not say.
    """
    text = codec.mend(text)
    if not text.strip():
        return {}, None, None
    try:
        value = codec.parse(text, depth=depth)
        for _ in range(3):
            if isinstance(value, str):
                value = codec.parse(value, depth=depth)
        if "\\ud" in text.lower():  # half a character, written as an escape
            value = codec.parse(codec.dump(value))
    except ValueError as exc:
        return {}, text, f"the arguments are not valid JSON: {exc}"
    if value is None:
        return {}, None, None
    if not isinstance(value, dict):
        return {}, text, f"the arguments are not a JSON object but {type(value).__name__}"
    return value, None, None


def _made_up_id() -> str:
    """An id for a call that came without one; the library is loaded for the few who need it."""
    import uuid

    return f"call_{uuid.uuid4().hex}"
