"""The output items of Responses: which of them an event is about, and how they go back.

An item belongs to its ``output_index``. Where servers leave that out, it is found by its id, else by
the order of events; ids alone are not relied on, for Copilot changes them from event to event.

Owns: finding items, and the items that a later request repeats. Does not know: events, requests.
Source: https://platform.openai.com/docs/guides/reasoning, on items under ``store: false``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .. import codec
from ..assembly import Call, Pieces, Place
from ..messages import ToolUseBlock

Item = dict[str, Any]

_SPOKEN = ("message", "function_call")
_SPEAKING = ("output_text", "refusal")
_PLAIN = ("type", "id", "role", "status", "content")
# What the caller's side would have to do and to answer; a request without the answer is refused.
_TO_ANSWER = ("computer_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call")


@dataclass(slots=True)
class Heard:
    """One output item as far as it has been heard."""

    kind: str
    place: Place
    id: str
    call_id: str = ""
    call: Call | None = None
    item: Item | None = None
    is_added: bool = False
    is_done: bool = False
    is_cut: bool = False
    pieces: Pieces = field(default_factory=Pieces)  # of its text or its thoughts
    parts: set[int | None] = field(default_factory=set)  # the parts of its content that pieces came for
    part: int | None = None  # the part of its summary that the last piece came for
    source: str | None = None  # whether its thoughts are told from the summary or from the text

    def text(self) -> str:
        """The text or the thoughts so far."""
        return codec.mend(self.pieces.joined())

    def rest(self, whole: str) -> str:
        """What of the whole has not been heard; nothing if something else was."""
        heard = self.text()
        return whole[len(heard) :] if whole.startswith(heard) else ""


class Places:
    """Which item an event is about."""

    def __init__(self) -> None:
        self._all: list[Heard] = []
        self._by_index: dict[int, Heard] = {}
        self._by_id: dict[str, Heard] = {}
        self._next = 0

    def in_order(self) -> list[Heard]:
        """The items as they follow each other in the answer."""
        return sorted(self._all, key=lambda heard: heard.place)

    def of_delta(self, event: Mapping[str, Any], kind: str) -> Heard:
        """The item that a piece belongs to; pieces may come without any word of their item before."""
        index, id = number(event.get("output_index")), word(event.get("item_id"))
        found = self._found(index, id, kind)
        if found is None and index is None and self._all:
            last = self._all[-1]
            if last.kind == kind and not last.is_done and not (id and kind == "function_call"):
                return last
        return found or self._opened(index, id, kind)

    def of_added(self, event: Mapping[str, Any], item: Item) -> Heard:
        """The item that is announced: a new one, unless pieces of it came before."""
        index, id, kind = number(event.get("output_index")), word(item.get("id")), word(item.get("type"))
        found = self._found(index, id, kind)
        if found is None or (found.is_added and (found.id != id or (index is None and not id))):
            found = self._opened(index, id, kind)
        found.is_added = True
        return found

    def of_done(self, event: Mapping[str, Any], item: Item) -> Heard:
        """The item that is complete."""
        index, id, kind = number(event.get("output_index")), word(item.get("id")), word(item.get("type"))
        found = self._found(index, id, kind)
        if found is not None and found.is_done and (found.id != id or not id):
            found = None
        if found is None and index is None:
            found = next((heard for heard in self._all if heard.kind == kind and not heard.is_done), None)
        return found or self._opened(index, id, kind)

    def of_output(self, output: Sequence[Any]) -> Iterator[tuple[Heard, Item]]:
        """The items of a whole response, each with what was heard of it: by id, else the next of its kind."""
        items = [item for item in output if isinstance(item, dict)]
        matches = self._by_name(items)
        taken = {heard.place for heard in matches if heard}
        waiting: dict[str, list[Heard]] = {}
        for heard in reversed(self.in_order()):
            if heard.place not in taken:
                waiting.setdefault(heard.kind, []).append(heard)
        before: Place = (-1,)
        for count, (item, match) in enumerate(zip(items, matches, strict=True)):
            kind = word(item.get("type"))
            if match is None and waiting.get(kind):
                match = waiting[kind].pop()
            if match is None:
                match = self._kept(Heard(kind, (*before, 0, count), word(item.get("id"))))
            else:
                before = match.place
            yield match, item

    def _by_name(self, items: Sequence[Item]) -> list[Heard | None]:
        """For each of the items the one that was heard under its id or its call id."""
        known: dict[tuple[str, str], Heard] = {}
        for heard in reversed(self.in_order()):
            known |= {(heard.kind, name): heard for name in (heard.call_id, heard.id) if name}
        taken: set[Place] = set()
        matches: list[Heard | None] = []
        for item in items:
            names = [(word(item.get("type")), word(item.get(member))) for member in ("id", "call_id")]
            match = next((known[name] for name in names if name in known and known[name].place not in taken), None)
            taken |= {match.place} if match else set()
            matches.append(match)
        return matches

    def _found(self, index: int | None, id: str, kind: str) -> Heard | None:
        at_index = None if index is None else self._by_index.get(index)
        of_id = self._by_id.get(id)
        if at_index is not None and at_index.kind != kind:
            at_index = None
        if of_id is None or of_id.kind != kind or (at_index is not None and at_index.id == id):
            return at_index
        return of_id

    def _opened(self, index: int | None, id: str, kind: str) -> Heard:
        if index is None:
            index = self._next
        self._next = max(self._next, index + 1)
        # An index that stands for something else already is given to the next item, after the first.
        place: Place = (index, len(self._all)) if index in self._by_index else (index,)
        heard = self._by_index[index] = Heard(kind, place, id)
        return self._kept(heard)

    def _kept(self, heard: Heard) -> Heard:
        self._all.append(heard)
        if heard.id:
            self._by_id[heard.id] = heard
        return heard


def word(value: Any) -> str:
    """The value if it is a text, else nothing."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int | None:
    """The value if it is a whole number."""
    return value if type(value) is int else None


def parts(content: Any) -> list[Item]:
    """The parts of a content or a summary; a text is one part."""
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def said(part: Mapping[str, Any]) -> str:
    """The text of a part, be it an answer or a refusal."""
    return word(part.get("text")) or word(part.get("refusal"))


def is_sealed(item: Item | None) -> bool:
    """Whether this is reasoning that the server can read again, though it stored nothing."""
    return bool(item and item.get("encrypted_content"))


def is_plain(item: Item) -> bool:
    """Whether this is a message that says no more than its text; its id and its status say nothing."""
    if item.get("type", "message") != "message" or any(value for name, value in item.items() if name not in _PLAIN):
        return False
    return not any(
        value
        for part in parts(item.get("content"))
        for name, value in part.items()
        if name != "text" and value != "output_text"
    )


def echo(heard: Heard, calls: Mapping[str, ToolUseBlock]) -> Item | None:
    """The item as it is to go back, in agreement with the message's calls (by id); None if it must not."""
    if heard.kind == "message":
        return _message(heard)
    if heard.kind == "reasoning" and heard.item is not None:
        # The summary must be there, and thoughts in plain text must not.
        return {"summary": []} | {name: value for name, value in heard.item.items() if name != "content" or not value}
    if heard.kind != "function_call":
        return heard.item if heard.kind else None
    call = calls.get(heard.call.id) if heard.call else None
    if heard.call is None or call is None:
        return None
    text = codec.mend("".join(heard.call.arguments))
    arguments = text if _is_object(text) else codec.dump(call.input)
    known = heard.item or {"type": "function_call"}
    return known | {"call_id": call.id, "name": call.name, "arguments": arguments}


def _message(heard: Heard) -> Item | None:
    """The message without empty parts, which no server accepts."""
    item = {"type": "message"} | (heard.item or {}) | {"role": "assistant"}
    content = [part for part in parts(item.get("content")) if said(part) or part.get("type") not in _SPEAKING]
    if not any(map(said, content)) and heard.pieces:
        content = [*content, {"type": "output_text", "text": heard.text()}]
    if not heard.is_done:
        item = {name: value for name, value in item.items() if name != "status"}  # it is not "in_progress"
    return item | {"content": content} if content else None


def replayed(items: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """The items of a turn as a server that stored nothing accepts them; what was so already stays as it is.

    Reasoning goes back only with its encrypted content, and only before the item that it led to. Ids are
    sent beside such reasoning, which they refer to; else the server would look for them and find nothing.
    """
    items = list(items)
    answered = {word(item.get("call_id")) for item in items if word(item.get("type")).endswith("_output")}
    items = [item for item in items if item.get("type") not in _TO_ANSWER or word(item.get("call_id")) in answered]
    thoughts = [item for item in items if _is_thought(item)]
    if with_reasoning:
        kept = [item for item in items if not _is_thought(item) or is_sealed(item)]
    else:  # what a vendor's tool did is refused without the reasoning that led to it
        is_bound = any(map(is_sealed, thoughts))
        kept = [item for item in items if _is_spoken(item) or not (is_bound or _is_thought(item))]
    while kept and _is_thought(kept[-1]):
        kept.pop()
    if all(map(is_sealed, thoughts)) and any(map(_is_thought, kept)):
        return kept
    return [_without_id(item) if _is_spoken(item) else item for item in kept]


def distinct(items: Iterable[Item]) -> list[Item]:
    """The items with no call id twice: some servers count the calls of each turn anew (Bedrock)."""
    kept: list[Item] = []
    taken: set[str] = set()
    uses: dict[str, int] = {}
    now: dict[str, str] = {}  # what stands for an id from here on
    for item in items:
        if item.get("type") not in ("function_call", "function_call_output"):
            kept.append(item)
            continue
        id = word(item.get("call_id"))
        if item["type"] == "function_call":
            name = id
            while name in taken:
                uses[id] = uses.get(id, 1) + 1
                name = f"{id}_{uses[id]}"
            taken.add(name)
            now[id] = name
        kept.append(item | {"call_id": now[id]} if now.get(id, id) != id else item)
    return kept


def plain(text: str) -> Item:
    """The message that says this text.

    Servers that check types want an id beside the form with parts (vLLM), and llama.cpp wants the type.
    """
    return {"type": "message", "role": "assistant", "content": text}


def _without_id(item: Item) -> Item:
    if is_plain(item):
        return plain("".join(map(said, parts(item.get("content")))))
    return {name: value for name, value in item.items() if name != "id"}


def _is_spoken(item: Item) -> bool:
    return item.get("type", "message") in _SPOKEN


def _is_thought(item: Item) -> bool:
    return item.get("type") == "reasoning"


def _is_object(text: str) -> bool:
    """Whether any server reads the text as a JSON object."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "\\ud" not in text.lower()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
