"""One turn of Chat Completions, heard chunk by chunk.

Lenient where servers differ: nothing but ``choices[0]`` is needed, null is absent, content may be a
list of parts, calls may lack or reuse ``index`` and ``id``.

Owns: the JSON of ``chat.completion.chunk`` and ``chat.completion``. Does not know: requests, bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from .. import codec, faults
from ..assembly import Place
from ..decoding import TurnDecoder
from ..messages import FinishReason, Message, Usage
from . import sealed
from .openai_chat_plain import plain_decoder

_FINISH = {"function_call": "tool_calls"}
_KNOWN_FINISH = ("stop", "length", "tool_calls", "content_filter")
_CALL_MEMBERS = ("index", "id", "type", "function")
_FUNCTION_MEMBERS = ("name", "arguments")
_TEXT: Place = (0,)
MAX_MISSES = 20


class ChatTurn(TurnDecoder):
    """The decoder of one turn."""

    def __init__(self, headers: Mapping[str, str], *, provider: str, think_tags: bool = True) -> None:
        super().__init__(headers)
        self._provider = provider
        self._think: ThinkTag | None = ThinkTag() if think_tags else None
        self._calls = _CallPlaces()
        self._reasoning: dict[str, list[str]] = {}  # by the name it came under
        self._details: list[dict[str, Any]] = []
        self._thinking: list[str] = []
        self._has_refused = False
        self._misses = 0  # chunks that were not as plain as expected: a server of another dialect

    @cached_property
    def _plain(self) -> Any:
        return plain_decoder()

    def quick(self, text: bytes) -> bool:
        """Hear a chunk that is plain."""
        answer = self.answer
        if self._misses > MAX_MISSES or answer.id is None:
            return False
        try:
            delta = self._plain(text).choices[0].delta
        except (ValueError, RecursionError):
            self._misses += 1
            return False
        if content := delta.content:
            if self._think is None:
                answer.burst.append(content)
            else:
                before = len(answer.events)
                self._hear_text(content)
                answer.ended = answer.ended and len(answer.events) == before
        if delta.tool_calls:
            fragment = delta.tool_calls[0]
            answer.call(self._calls.place(fragment.index, "", ""), arguments=fragment.function.arguments)
            answer.ended = False
        return True

    def payload(self, payload: dict[str, Any]) -> None:
        """Hear one chunk."""
        answer = self.answer
        choices = payload.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        # All choices of a request for several are in one stream; the first is the answer.
        if not isinstance(choice, dict) or (choice.get("index") or 0) != 0:
            choice = {}
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = _whole(choice.get("message"))  # a document, or a gateway that answers a stream like one
        error = payload.get("error") or choice.get("error")
        if error and not _says_something(delta):
            raise faults.from_payload(error, self.headers, whole=payload, mask=self.mask)
        if answer.id is None and payload.get("id"):
            answer.id, answer.model = str(payload["id"]), _text(payload.get("model")) or None
        if delta:
            self._hear(delta)
        if finish := choice.get("finish_reason"):
            self._finish(str(finish))
        if usage := payload.get("usage") or choice.get("usage"):  # Moonshot sends it inside the choice
            answer.usage = _usage(usage) or answer.usage

    def document(self, payload: dict[str, Any]) -> bool:
        """Hear a whole ``chat.completion``."""
        if not isinstance(payload.get("choices"), list) or not payload["choices"]:
            return False
        self.payload(payload)
        return True

    def message(self) -> Message:
        """The message, with reasoning and opaque members for the same provider."""
        if self._think is not None:
            self._tell(*self._think.end())
        message = self.answer.message()
        state = self._state()
        if not state or not message.content:
            return message
        return Message(message.role, message.content, sealed(self._provider, state, message.content))

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: "".join(pieces) for name, pieces in self._reasoning.items()}
        if self._details:
            state["reasoning_details"] = merged_details(self._details)
        if self._thinking:
            state["thinking"] = "".join(self._thinking)
        return state

    def _hear(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        before = len(self.answer.events)
        if len(delta) == 1 and isinstance(content, str):  # nearly every chunk: the looks below cost more than it
            self._hear_text(content)
            self.answer.ended = self.answer.ended and len(self.answer.events) == before
            return
        self._hear_reasoning(delta)
        if content:
            if isinstance(content, str):
                self._hear_text(content)
            else:
                self._hear_parts(content)
        if refusal := delta.get("refusal"):
            self._has_refused = True
            self.answer.text(str(refusal), at=_TEXT)
        if calls := delta.get("tool_calls"):
            for fragment in calls if isinstance(calls, list) else [calls]:
                if isinstance(fragment, dict):
                    self._hear_call(fragment)
        if isinstance(function := delta.get("function_call"), dict):  # the form before tool_calls
            self._hear_call({"index": 0, "function": function})
        if self.answer.ended and (calls or len(self.answer.events) > before):
            self.answer.ended = False  # content after a finish reason re-opens the turn

    def _hear_text(self, piece: str) -> None:
        if self._think is None:
            self.answer.text(piece, at=_TEXT)
        else:
            self._tell(*self._think.feed(piece))
            if self._think.is_over:
                self._think = None

    def _tell(self, reasoning: str, text: str) -> None:
        self.answer.reasoning(reasoning)
        self.answer.text(text, at=_TEXT)

    def _hear_parts(self, parts: Any) -> None:
        """Mistral's reasoning models send a list of text and thinking parts, and want it back."""
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, str):
                self._hear_text(part)
            elif isinstance(part, dict) and part.get("type") == "thinking":
                thought = _joined(part.get("thinking"))
                self._thinking.append(thought)
                self.answer.reasoning(thought)
            elif isinstance(part, dict):
                self._hear_text(str(part.get("text") or part.get("refusal") or ""))

    def _hear_reasoning(self, delta: dict[str, Any]) -> None:
        """The same trace comes under up to three names (OpenRouter mirrors it); it is told once."""
        told = False
        for name in ("reasoning_content", "reasoning"):
            piece = delta.get(name)
            if isinstance(piece, str) and piece:
                self._reasoning.setdefault(name, []).append(piece)
                if not told:
                    self.answer.reasoning(piece)
                told = True
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            details = [detail for detail in details if isinstance(detail, dict)]
            self._details += details
            if not told:
                self.answer.reasoning("".join(str(item.get("text") or item.get("summary") or "") for item in details))

    def _hear_call(self, fragment: dict[str, Any]) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        id, name = fragment.get("id"), _text(function.get("name"))
        id = "" if id is None else str(id)
        place = self._calls.place(fragment.get("index"), id, name)
        call = self.answer.call(place, id=id, name=name, arguments=_arguments(function.get("arguments")))
        extras = _unknown(fragment, _CALL_MEMBERS)
        if inner := _unknown(function, _FUNCTION_MEMBERS):
            extras["function"] = call.state.get("function", {}) | inner
        if extras:
            call.state |= {"provider": self._provider} | extras

    def _finish(self, raw: str) -> None:
        answer = self.answer
        if answer.finish is not None and answer.ended:
            return  # a later reason counts only if content came in between
        word = raw.lower()
        word = _FINISH.get(word, word if word in _KNOWN_FINISH else raw)
        answer.finish = FinishReason("content_filter" if self._has_refused and word == "stop" else word, raw)
        answer.ended = True


class _CallPlaces:
    """Which call a fragment belongs to, when servers omit or reuse ``index`` and ``id``.

    An explicit index is honoured. A new id opens a call only if a name comes with it; an id without a
    name fills an open call that has none, else is ignored. Neither index nor id: the call opened last
    goes on, unless another name comes.
    """

    def __init__(self) -> None:
        self._open: dict[int, Place] = {}  # the place that an index stands for now
        self._ids: dict[Place, str] = {}
        self._names: dict[Place, str] = {}
        self._last: Place | None = None
        self._count = 0

    def place(self, index: Any, id: str, name: str) -> Place:
        """The place of the call that this fragment continues or opens."""
        if type(index) is not int:
            index = None
        current = self._last if index is None else self._open.get(index)
        if current is None or self._is_another(current, index, id, name):
            known = [place for place, known_id in self._ids.items() if id and known_id == id] if index is None else []
            current = known[0] if known else self._opened(index)
        self._ids[current] = self._ids[current] or id
        self._names[current] = self._names[current] or name
        self._last = current
        return current

    def _is_another(self, place: Place, index: int | None, id: str, name: str) -> bool:
        if id and self._ids[place]:
            return name != "" and id != self._ids[place]
        return index is None and "" not in (name, self._names[place]) and name != self._names[place]

    def _opened(self, index: int | None) -> Place:
        self._count += 1
        place: Place = (1, self._count if index is None else index, self._count)
        self._ids[place] = self._names[place] = ""
        if index is not None:
            self._open[index] = place
        return place


class ThinkTag:
    """Splits off a ``<think>`` block at the very start of an answer, its tags cut anywhere."""

    _OPEN, _CLOSE = "<think>", "</think>"

    def __init__(self) -> None:
        self._held = ""
        self._place = "before"
        self.is_over = False

    def feed(self, piece: str) -> tuple[str, str]:
        """The reasoning and the text that are certain now."""
        held, self._held = self._held + piece, ""
        if self._place == "before":
            start = held.lstrip()
            if self._OPEN.startswith(start):
                self._held = held
                return "", ""
            if not start.startswith(self._OPEN):
                self.is_over = True
                return "", held
            self._place = "inside"
            held = start[len(self._OPEN) :]
        if self._place == "inside":
            return self._inside(held)
        return "", self._after(held)

    def _inside(self, held: str) -> tuple[str, str]:
        reasoning, found, text = held.partition(self._CLOSE)
        if found:
            self._place = "after"
            return reasoning, self._after(text)
        kept = next((n for n in range(min(len(held), 7), 0, -1) if self._CLOSE.startswith(held[-n:])), 0)
        self._held = held[len(held) - kept :]
        return held[: len(held) - kept], ""

    def _after(self, text: str) -> str:
        """The blanks between the block and the answer are no part of it."""
        text = text.lstrip()
        self.is_over = text != ""
        return text

    def end(self) -> tuple[str, str]:
        """What was held back when the answer ended."""
        held, self._held = self._held, ""
        return (held, "") if self._place == "inside" else ("", held)


def _whole(message: Any) -> dict[str, Any]:
    """A whole message as a delta: its calls, which have no index, are told apart by their order."""
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls"), list):
        return message if isinstance(message, dict) else {}
    calls = [call for call in message["tool_calls"] if isinstance(call, dict)]
    return message | {"tool_calls": [call | {"index": place} for place, call in enumerate(calls)]}


def _unknown(members: Mapping[str, Any], known: tuple[str, ...]) -> dict[str, Any]:
    """What a server adds to a call; Gemini's endpoint refuses a call that comes back without it."""
    return {name: value for name, value in members.items() if name not in known and value is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _says_something(delta: Mapping[str, Any]) -> bool:
    content = delta.get("content")
    return bool(delta.get("tool_calls")) or (content.strip() != "" if isinstance(content, str) else bool(content))


def _arguments(value: Any) -> str:
    """Arguments are text; a few servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return codec.dump(value)


def _joined(thinking: Any) -> str:
    if isinstance(thinking, str):
        return thinking
    parts = thinking if isinstance(thinking, list) else []
    return "".join(_text(part.get("text") if isinstance(part, dict) else part) for part in parts)


def merged_details(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """OpenRouter's reasoning details whole: they come in pieces, and are wanted back as items."""
    texts = ("text", "summary", "data")
    merged: list[tuple[dict[str, Any], dict[str, list[str]]]] = []
    for detail in details:
        if not merged or any(merged[-1][0].get(key) != detail.get(key) for key in ("type", "index")):
            merged.append(({}, {}))
        item, pieces = merged[-1]
        for key, value in detail.items():
            if key in texts and isinstance(value, str):
                pieces.setdefault(key, []).append(value)
                item[key] = ""  # keeps the order of the members
            elif value is not None or key not in item:
                item[key] = value
    return [item | {key: "".join(texts) for key, texts in pieces.items()} for item, pieces in merged]


def _usage(usage: Any) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    cached = _count(prompt, "cached_tokens")
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cache_read_tokens=_count(usage, "prompt_cache_hit_tokens") if cached is None else cached,  # DeepSeek
        cache_write_tokens=_count(prompt, "cache_write_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        raw=usage,
    )


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if type(value) is int else None
