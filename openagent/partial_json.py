"""A JSON value while it is being written: fed piece by piece, it grows, and nothing is read twice.

Containers appear when they are opened and texts grow as they come; numbers and words appear when they are
whole, since ``1`` may become ``12``. The same object grows all the time: a copy for each piece would make
the cost quadratic.

Owns: the grammar of JSON, piece by piece. Does not know: what the value is for.
Source: RFC 8259
"""

from __future__ import annotations

import json
import re
from typing import Any

from .codec import MAX_DEPTH, mend

ABSENT: Any = object()  # nothing has come yet

# Of a JSON text, what can be read though more may come: plain characters, pairs of surrogates, other escapes,
# and the first half of a pair when it is plain that the second does not follow.
_READY = re.compile(
    r'(?:[^"\\]+|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4}'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}(?=[^\\]|\\[^u]|\\u[^dD]|\\u[dD][^c-fC-F])|\\["\\/bfnrt])*'
)
_ESCAPE = re.compile(  # the beginning of an escape, or of a pair of them, at the end of what has come
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u(?:[0-9a-fA-F]{0,4}))?\Z"
)
_BLANK = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r"[-+.0-9A-Za-z]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST_SCALAR = 1000  # longer ones are no numbers that anyone means
# A growing text is put in its place anew when it has grown by this part of itself: at each piece, if it is
# short; and all copies together are at most so many times its length.
_LAG = 256


class PartialText:
    """What a JSON text says so far, between its quotes, whatever pieces it comes in."""

    __slots__ = ("_fresh", "_fresh_chars", "_text", "_waiting", "is_broken", "is_closed")

    def __init__(self) -> None:
        self.is_closed = False
        self.is_broken = False
        self._waiting = ""
        self._text = ""
        self._fresh: list[str] = []
        self._fresh_chars = 0

    def feed(self, piece: str, start: int = 0) -> tuple[str, int]:
        """What the piece, from ``start`` on, adds to the text; and where in the piece the text ended, if it did."""
        moved = 0
        if self._waiting:
            moved = start - len(self._waiting)
            piece, start = self._waiting + piece[start:], 0
        end = _READY.match(piece, start).end()  # type: ignore[union-attr]  # it matches nothing, too
        written = piece[start:end]
        self.is_closed = piece[end : end + 1] == '"'
        self.is_broken = not self.is_closed and end < len(piece) and not _ESCAPE.match(piece, end)
        self._waiting = "" if self.is_closed or self.is_broken else piece[end:]
        said = mend(json.loads(f'"{written}"', strict=False)) if "\\" in written else written
        if said:
            self._fresh.append(said)
            self._fresh_chars += len(said)
        return said, end + 1 + moved

    @property
    def is_fresh(self) -> bool:
        """Whether something has come since ``text`` was asked for."""
        return bool(self._fresh)

    def text(self, *, whole: bool = True) -> str | None:
        """All of it so far; unless ``whole``, None while it has hardly grown."""
        if not whole and (not self._fresh or self._fresh_chars * _LAG < len(self._text)):
            return None
        self._text = "".join((self._text, *self._fresh))
        self._fresh.clear()
        self._fresh_chars = 0
        return self._text


class PartialJSON:
    """One JSON value as far as it has come: ``value``, and whether it ``is_done`` or ``is_broken``.

    >>> growing = PartialJSON()
    >>> for piece in ('{"a": [1, 2', '3], "b": "x', 'y"'):
    ...     _ = growing.feed(piece)
    ...     print(growing.value)
    {'a': [1]}
    {'a': [1, 23], 'b': 'x'}
    {'a': [1, 23], 'b': 'xy'}
    """

    def __init__(self) -> None:
        self.value: Any = ABSENT
        self.is_done = False
        self.is_broken = False
        self._open: list[Any] = []  # the containers that are being filled, the innermost last
        self._keys: list[Any] = []  # the key, in each of them, of the value that is being read
        self._wanted = "value"  # value, item (a value or the end of a list), key, name (a key or the end), colon, more
        self._text: PartialText | None = None
        self._scalar = ""

    def feed(self, piece: str) -> bool:
        """Whether a further piece has changed the value. What comes after the value's end is ignored."""
        changed, place = False, 0
        while place < len(piece) and not self.is_done and not self.is_broken:
            if self._text is not None:
                grew, place = self._read_text(piece, place)
            elif self._scalar or _SCALAR.match(piece, place):
                grew, place = self._read_scalar(piece, place)
            elif piece[place] in " \t\n\r":
                grew, place = False, _BLANK.match(piece, place).end()  # type: ignore[union-attr]
            else:
                grew, place = self._read_mark(piece[place]), place + 1
            changed = grew or changed
        return changed

    def finish(self) -> bool:
        """Whether the end of the input has changed the value: a number alone has no other end."""
        return bool(self._scalar) and not self.is_broken and self._end_scalar()

    def _read_text(self, piece: str, place: int) -> tuple[bool, int]:
        text: PartialText = self._text  # type: ignore[assignment]
        _, end = text.feed(piece, place)
        self.is_broken = text.is_broken
        if not text.is_closed:
            is_key = self._wanted in ("key", "name")
            shown = None if is_key else text.text(whole=False)
            return shown is not None and self._put(shown), len(piece)
        self._text = None
        if self._wanted in ("key", "name"):
            self._keys[-1], self._wanted = text.text(), "colon"
            return False, end
        has_changed = text.is_fresh and self._put(text.text())
        self._end_value()
        return has_changed, end

    def _read_scalar(self, piece: str, place: int) -> tuple[bool, int]:
        found = _SCALAR.match(piece, place)
        end = found.end() if found else place
        self._scalar += piece[place:end]
        self.is_broken = self._wanted not in ("value", "item") or len(self._scalar) > _LONGEST_SCALAR
        return end < len(piece) and not self.is_broken and self._end_scalar(), end

    def _end_scalar(self) -> bool:
        word, self._scalar = self._scalar, ""
        if word not in _WORDS and not _NUMBER.fullmatch(word):
            self.is_broken = True
            return False
        self._put(_WORDS[word] if word in _WORDS else json.loads(word))
        self._end_value()
        return True

    def _read_mark(self, mark: str) -> bool:
        """Whether one of ``{}[],:"`` has changed the value."""
        wanted = self._wanted
        if mark == '"' and wanted in ("value", "item", "key", "name"):
            self._text = PartialText()
            return wanted in ("value", "item") and self._put("")
        if mark in "{[" and wanted in ("value", "item") and len(self._open) < MAX_DEPTH:
            container: Any = {} if mark == "{" else []
            self._put(container)
            self._open.append(container)
            self._keys.append(ABSENT)
            self._wanted = "name" if mark == "{" else "item"
            return True
        if self._open and (
            (mark == "}" and isinstance(self._open[-1], dict) and wanted in ("name", "more"))
            or (mark == "]" and isinstance(self._open[-1], list) and wanted in ("item", "more"))
        ):
            self._open.pop()
            self._keys.pop()
            self._end_value()
        elif mark == "," and wanted == "more":
            self._wanted, self._keys[-1] = ("key" if isinstance(self._open[-1], dict) else "value"), ABSENT
        elif mark == ":" and wanted == "colon":
            self._wanted = "value"
        else:
            self.is_broken = True
        return False

    def _put(self, value: Any) -> bool:
        """Puts the value, or more of it, in its place."""
        if not self._open:
            self.value = value
        elif isinstance(self._open[-1], dict):
            self._open[-1][self._keys[-1]] = value
        elif self._keys[-1] is ABSENT:
            self._open[-1].append(value)
            self._keys[-1] = None  # the item has begun
        else:
            self._open[-1][-1] = value
        return True

    def _end_value(self) -> None:
        self._wanted = "more"
        self.is_done = not self._open
