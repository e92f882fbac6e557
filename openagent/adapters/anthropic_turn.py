"""One turn of Anthropic Messages, heard event by event.

Lenient where gateways differ: an event's type is read from its JSON, ``message_start`` may hold the whole
content, blocks may be opened by their first delta, either ``stop_reason`` or ``message_stop`` will do.

Owns: the JSON of the stream's events and of ``message``. Does not know: requests, bytes.
Source: https://docs.anthropic.com/en/api/messages-streaming
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Literal

from .. import codec, faults
from ..assembly import Call, Pieces, Place, read_arguments
from ..decoding import TurnDecoder
from ..messages import FinishReason, Message, ToolUseBlock, Usage
from . import sealed

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_THOUGHTS = ("thinking", "redacted_thinking")
_PLAIN = {"text": ("type", "text"), "tool_use": ("type", "id", "name", "input")}  # what our own blocks can say


class AnthropicTurn(TurnDecoder):
    """The decoder of one turn."""

    head = b"event: content_block_delta\ndata: "

    def __init__(self, headers: Mapping[str, str], *, provider: str) -> None:
        super().__init__(headers)
        self._provider = provider
        self._blocks: list[_Block] = []
        self._at: dict[int, _Block] = {}  # the block that an index stands for now
        self._index = -1  # of the block opened last
        self._usage: dict[str, Any] = {}
        self._container: str | None = None

    @cached_property
    def _delta(self) -> Any:
        return _delta_decoder()

    def quick(self, text: bytes) -> bool:
        """Hear a piece of a block that is open: text, thinking or input. Typed it costs half (2.1 against 4.3 µs)."""
        try:
            event = self._delta(text)
        except (ValueError, RecursionError):
            return False
        block, delta = self._at.get(event.index), event.delta
        if block is None:
            return False
        if block.kind == "text" and delta.type == "text_delta":
            answer, piece = self.answer, delta.text
            if answer.burst_at is not block.place:
                answer.add_burst()
                answer.burst_at = block.place
            if piece:
                answer.burst.append(piece)
        elif block.kind == "thinking" and delta.type == "thinking_delta":
            self._hear_thinking(block, delta.thinking)
        elif block.kind == "tool_use" and delta.type == "input_json_delta":
            self._hear_input(block, delta.partial_json)
        else:
            return False
        return True

    def payload(self, payload: dict[str, Any]) -> None:
        """Hear one event; those that are unknown, and pings, say nothing."""
        kind = payload.get("type")
        if kind == "content_block_delta":
            self._hear_delta(payload)
        elif kind == "content_block_start":
            if isinstance(start := payload.get("content_block"), dict):
                self._open(_index(payload, self._index + 1), start)
        elif kind == "message_delta":
            self._hear_usage(payload.get("usage"))
            self._hear_end(payload.get("delta"))
        elif kind == "message_start":
            self._hear_message(payload.get("message"))
        elif kind == "message_stop":
            self.answer.ended = self.done = True
        elif kind == "message":  # a gateway that answers a stream with the whole message
            self.document(payload)
        elif kind == "error" or payload.get("error"):
            raise faults.from_payload(payload.get("error") or payload, self.headers, whole=payload, mask=self.mask)

    def document(self, payload: dict[str, Any]) -> bool:
        """Hear a whole ``message``."""
        is_message = payload.get("type") == "message" or payload.get("role") == "assistant"
        if not is_message or not isinstance(payload.get("content"), (list, str)):
            return False
        self._hear_message(payload)
        return True

    def message(self) -> Message:
        """The message; with all its blocks for the same provider, if ours cannot say all of them."""
        for block in self._blocks:
            if block.call is not None and not "".join(block.call.arguments).strip():
                self.answer.call(block.place, arguments=_arguments(block.start.get("input")))
        message = self.answer.message()
        echo = self._echo(message)
        if all(map(_is_plain, echo)):
            return message
        state: dict[str, Any] = {"content": echo}
        if self._container is not None and self._needs_container(echo):
            state["container"] = self._container
        return Message(message.role, message.content, sealed(self._provider, state, message.content))

    def _echo(self, message: Message) -> list[dict[str, Any]]:
        """The blocks as the provider wants them back: all that can go back, in order of their index."""
        calls = {call.id: call for call in message.calls}
        blocks = [
            block.echo(calls, self.answer.text_at(block.place))
            for block in sorted(self._blocks, key=lambda block: block.place)
        ]
        return without_last_thoughts([block for block in blocks if block is not None])

    def _needs_container(self, echo: list[dict[str, Any]]) -> bool:
        """Whether the turn goes on inside its container: it was paused, or code that runs there made a call."""
        callers = [block.get("caller") for block in echo if block["type"] == "tool_use"]
        is_inside = any(isinstance(caller, dict) and caller.get("type") != "direct" for caller in callers)
        return is_inside or self.answer.finish == "pause_turn"

    def _hear_message(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        if self.answer.id is None and message.get("id"):
            self.answer.id, self.answer.model = str(message["id"]), _word(message.get("model"))
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for index, start in enumerate(content if isinstance(content, list) else []):
            if isinstance(start, dict):
                self._open(index, start)
        self._hear_usage(message.get("usage"))
        self._hear_end(message)

    def _open(self, index: int, start: dict[str, Any]) -> _Block:
        """The block that begins here. An index used twice stands for the later block; both are kept."""
        block = _Block((index, len(self._blocks)), start)
        self._blocks.append(block)
        self._at[index] = block
        self._index = index
        if block.kind == "text":
            self._hear_text(block, start.get("text"))
        elif block.kind == "thinking":
            self._hear_thinking(block, start.get("thinking"))
            block.sign(start.get("signature"))
        else:
            self.answer.ended = False
            if block.kind == "tool_use":
                block.call = self.answer.call(block.place, id=_word(start.get("id")), name=_word(start.get("name")))
        return block

    def _hear_delta(self, payload: dict[str, Any]) -> None:
        """Text and thinking are known by the delta's own tag: their block may be missing, or of another kind."""
        delta = payload.get("delta")
        if not isinstance(delta, dict):
            return
        index, kind = _index(payload, max(self._index, 0)), delta.get("type")
        if kind == "text_delta":
            self._hear_text(self._block(index, "text"), delta.get("text"))
        elif kind == "thinking_delta":
            self._hear_thinking(self._block(index, "thinking"), delta.get("thinking"))
        elif (block := self._at.get(index)) is not None:
            if kind == "input_json_delta":
                self._hear_input(block, delta.get("partial_json"))
            elif kind == "signature_delta":
                block.sign(delta.get("signature"))
            elif kind == "citations_delta":
                block.cite(delta.get("citation"))
            elif kind == "compaction_delta":  # comes whole, in one delta
                block.start |= {name: value for name, value in delta.items() if name != "type"}

    def _block(self, index: int, kind: str) -> _Block:
        block = self._at.get(index)
        return block if block is not None and block.kind == kind else self._open(index, {"type": kind})

    def _hear_text(self, block: _Block, piece: Any) -> None:
        if isinstance(piece, str) and piece:
            self.answer.ended = False  # content after a stop reason re-opens the turn
            self.answer.text(piece, at=block.place)

    def _hear_thinking(self, block: _Block, piece: Any) -> None:
        if isinstance(piece, str) and piece:
            self.answer.ended = False
            block.pieces.add(piece)
            self.answer.reasoning(piece)

    def _hear_input(self, block: _Block, piece: Any) -> None:
        text = _arguments(piece)
        if not text or block.kind in ("text", "thinking"):
            return
        self.answer.ended = False
        if block.call is not None:
            self.answer.call(block.place, arguments=text)
        else:
            block.pieces.add(text)  # a call that the server runs itself

    def _hear_end(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        if isinstance(container := delta.get("container"), dict) and container.get("id"):
            self._container = str(container["id"])
        raw = delta.get("stop_reason")
        # A later reason counts only if content came in between.
        if raw and not (self.answer.finish is not None and self.answer.ended):
            self.answer.finish = FinishReason(_FINISH.get(str(raw), str(raw)), str(raw))
            self.answer.ended = True

    def _hear_usage(self, usage: Any) -> None:
        """Counts are totals so far: they replace earlier ones, and what is not sent again stays."""
        if isinstance(usage, dict) and usage:
            self._usage |= {name: value for name, value in usage.items() if value is not None}
            self.answer.usage = _usage(dict(self._usage))


@cache
def _delta_decoder() -> Any:
    """msgspec's decoder for the deltas that come by the hundred; any other is an error to it."""
    from msgspec import defstruct, json

    pieces = [(name, str, "") for name in ("text", "thinking", "partial_json")]
    kind = ("type", Literal["text_delta", "thinking_delta", "input_json_delta"])
    delta = defstruct("Delta", [kind, *pieces], gc=False)
    members = [("type", Literal["content_block_delta"]), ("index", int), ("delta", delta)]
    return json.Decoder(defstruct("Event", members, gc=False)).decode


class _Block:
    """A content block as far as it has been heard."""

    __slots__ = ("call", "kind", "pieces", "place", "signature", "start")

    def __init__(self, place: Place, start: dict[str, Any]) -> None:
        self.place = place
        self.start = dict(start)
        self.kind = start.get("type")
        self.pieces = Pieces()  # of the thinking, or the input of a call that is not ours
        self.signature: list[str] = []
        self.call: Call | None = None

    def sign(self, piece: Any) -> None:
        """A piece of the signature was heard; or the whole again, longer than before."""
        if self.kind != "thinking" or not isinstance(piece, str) or not piece:
            return
        if len(self.signature) == 1 and piece.startswith(self.signature[0]):
            self.signature.clear()
        self.signature.append(piece)

    def cite(self, citation: Any) -> None:
        """A source of the text was heard."""
        if self.kind == "text" and citation:
            if not isinstance(self.start.get("citations"), list):
                self.start["citations"] = []
            self.start["citations"].append(citation)

    def echo(self, calls: Mapping[str, ToolUseBlock], text: str) -> dict[str, Any] | None:
        """The block as it goes back; None if it cannot: blank text and unsigned thinking are refused.

        ``text`` is what the answer has of it: to keep it here as well took 1.3 MB more in 200,000 deltas.
        """
        if self.kind == "text":
            return {**self.start, "text": text} if text.strip() else None
        heard = codec.mend(self.pieces.joined())
        if self.kind == "thinking":
            signed = {"thinking": heard, "signature": "".join(self.signature)}
            return {**self.start, **signed} if self.signature else None
        if self.call is not None:
            call = calls.get(self.call.id)
            return {**self.start, "id": call.id, "name": call.name, "input": call.input} if call else None
        if not isinstance(self.kind, str):
            return None
        return {**self.start, "input": read_arguments(heard)[0]} if heard else self.start


def without_last_thoughts(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks up to the last that is no thinking: a turn that ends with thinking is refused."""
    end = len(blocks)
    while end and is_thought(blocks[end - 1]):
        end -= 1
    return blocks[:end]


def is_thought(block: Mapping[str, Any]) -> bool:
    """Whether a block holds thinking, legible or not."""
    return block.get("type") in _THOUGHTS


def _is_plain(block: Mapping[str, Any]) -> bool:
    members = _PLAIN.get(block["type"])
    return members is not None and all(name in members or not value for name, value in block.items())


def _index(payload: Mapping[str, Any], otherwise: int) -> int:
    index = payload.get("index")
    return index if type(index) is int else otherwise


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


def _arguments(value: Any) -> str:
    """Arguments as text; gateways send the object itself."""
    if isinstance(value, str):
        return value
    return codec.dump(value) if value else ""


def _usage(raw: dict[str, Any]) -> Usage:
    """On this wire ``input_tokens`` leaves cached tokens out; ours counts the whole prompt."""
    uncached = _count(raw, "input_tokens")
    written, read = _count(raw, "cache_creation_input_tokens"), _count(raw, "cache_read_input_tokens")
    return Usage(
        input_tokens=None if uncached is None else uncached + (written or 0) + (read or 0),
        output_tokens=_count(raw, "output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=_count(raw.get("output_tokens_details"), "thinking_tokens"),
        raw=raw,
    )


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int else None
