"""The beginning of a conversation that is plain talk, remembered with its JSON from one request to the next.

Nearly all that a long conversation sends was sent before. Looking at it, encoding and joining it anew was two thirds of
what 370 messages more cost a turn. The history is the caller's to change, so each message is compared before its JSON
is used again: the same message with the same block, which is frozen. That costs 40 ns; what it spares, 500.

Owns: which messages are as they were when their JSON was made. Does not know: a provider's JSON, the client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from operator import is_
from typing import Any

from . import codec
from .messages import ContentBlock, Message, Role

Bare = Callable[[Role, str], "dict[str, Any] | None"]
"""What a wire sends for a message that is one text; None if that needs a look at more than the message."""


class Talk:
    """What a client remembers of the conversation that it sent last.

    Each of its values is replaced as a whole, so that Ctrl-C between two steps leaves none half made.
    """

    def __init__(self) -> None:
        self._seen: tuple[list[Message], list[list[ContentBlock]], list[list[ContentBlock]]] = ([], [], [])
        self._written: tuple[Bare | None, int, bytes] = (None, 0, b"")

    def length(self, messages: Sequence[Message]) -> int:
        """How many messages at the beginning are one text and nothing else."""
        said, contents, copies = self._seen
        if len(said) > len(messages) or not all(map(is_, said, messages)) or contents != copies:
            self._written = (None, 0, b"")
            self._seen = said, contents, copies = [], [], []
        new = list(takewhile(_is_talk, islice(messages, len(said), None)))
        if new:
            contents = contents + [message.content for message in new]
            self._seen = said + new, contents, copies + [list(message.content) for message in new]
        return len(said) + len(new)

    def written(self, messages: Sequence[Message], bare: Bare) -> tuple[bytes, int]:
        """The JSON of the beginning, without brackets, and of how many messages it is.

        The last prompt is never among them, nor what follows it: there a wire may have more to say than ``bare``.
        """
        end = max(0, self.length(messages) - 1)
        while end and not (messages[end].role == "user" and row_of(messages[end], bare)):
            end -= 1
        known, count, text = self._written
        if known is not bare:
            count, text = 0, b""
        rows: list[dict[str, Any]] = []
        for message in islice(messages, count, end):
            row = row_of(message, bare)
            if row is None:
                break
            rows.append(row)
        if rows:
            count += len(rows)
            text = b",".join((text, codec.dump_rows(rows)) if text else (codec.dump_rows(rows),))
            self._written = bare, count, text
        return text, count


def row_of(message: Message, bare: Bare) -> dict[str, Any] | None:
    """What ``bare`` makes of a message that is one text and nothing else; None of any other."""
    return bare(message.role, message.only_text) if _is_talk(message) else None


def _is_talk(message: Message) -> bool:
    return message.only_text != "" and message.provider_state is None
