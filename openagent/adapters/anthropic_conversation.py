"""The conversation as Anthropic Messages wants it: turns of user and assistant, made of blocks.

Owns: how our messages become turns, and what a strict server refuses in them. Does not know: the rest of
a request, answers.
Source: https://docs.anthropic.com/en/api/messages, and the 400 answers of its server
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..images import split_data_uri
from ..messages import ContentBlock, ImageBlock, Message, Role, TextBlock, ToolResultBlock, ToolUseBlock
from ..talk import row_of
from . import result_blocks, result_text, unsealed
from .anthropic_turn import is_thought, without_last_thoughts

CUT_OFF = {"role": "user", "content": "(earlier messages are not shown)"}

_TEXT = {"type", "text"}
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")

Block = dict[str, Any]
Turn = dict[str, Any]  # its content is a bare string if it is one text and nothing else, else a list of blocks


def bare_turn(role: Role, text: str) -> Turn | None:
    """The turn of a message that is one text; None if it is none, or not only that."""
    if role == "system" or text.isspace():
        return None
    return {"role": "assistant" if role == "assistant" else "user", "content": text}


def turns_of(
    messages: Sequence[Message], *, provider: str, replay_reasoning: bool = True, is_beginning: bool = True
) -> list[Turn]:
    """The turns of these messages, but for what the system says; empty if they say nothing.

    Results of one turn stand in one user message, blank texts nowhere. The user begins: a conversation
    whose beginning was cut off gets a first message that says so.
    """
    turns: list[Turn] = []
    names = _CallNames()
    has_state = False
    for message in messages:
        if message.provider_state:
            has_state = True
        elif (turn := row_of(message, bare_turn)) is not None:  # the same as below in a tenth of the time
            turns.append(turn)
            continue
        for role, blocks in _encoded(message, names, provider, replay_reasoning):
            if blocks and turns and _holds_results(turns[-1]) and blocks[0]["type"] == "tool_result":
                turns[-1]["content"] += blocks
            elif blocks:
                turns.append({"role": role, "content": _compact(blocks)})
    if has_state:  # such calls come from nowhere else
        turns = _without_lost_calls(turns)
    if is_beginning and turns and turns[0]["role"] == "assistant":
        turns.insert(0, {**CUT_OFF})
    if turns and turns[-1]["role"] == "assistant":
        turns[-1]["content"] = _without_last_blanks(turns[-1])
    return turns


def is_prompt(turn: Turn) -> bool:
    """Whether the user says something new here, beyond the results of calls."""
    return turn["role"] == "user" and not _holds_results(turn)


def has_calls(turns: Iterable[Turn]) -> bool:
    """Whether there is a call, or a result of one, in these turns."""
    spoken = [turn for turn in turns if not isinstance(turn["content"], str)]
    return any(block["type"].endswith(("tool_use", "tool_result")) for turn in spoken for block in turn["content"])


def goes_on_without_thought(turns: Sequence[Turn]) -> bool:
    """Whether there is a turn to go on with that did not begin with thinking.

    To the vendor all that the assistant says since the last prompt is one turn.
    """
    first = None
    for turn in reversed(turns):
        if is_prompt(turn):
            break
        first = turn
    return first is not None and not is_thought(blocks_of(first)[0])


def blocks_of(turn: Turn) -> list[Block]:
    """The content of a turn as blocks."""
    content: str | list[Block] = turn["content"]
    return [text_block(content)] if isinstance(content, str) else content


def text_block(text: str) -> Block:
    """A text."""
    return {"type": "text", "text": text}


def _compact(blocks: list[Block]) -> str | list[Block]:
    """These blocks as the content of a turn."""
    is_bare = len(blocks) == 1 and blocks[0].keys() == _TEXT and blocks[0]["type"] == "text"
    return blocks[0]["text"] if is_bare else blocks


def _encoded(
    message: Message, names: _CallNames, provider: str, replay_reasoning: bool
) -> Iterator[tuple[str, list[Block]]]:
    if message.role == "assistant":
        names.open(message.calls)
        yield "assistant", _echo(message, names, provider, replay_reasoning) or _said(message, names)
    elif message.role != "system":
        yield "user", [_result(result, names) for result in message.results]
        yield "user", _said(message, names)


def _echo(message: Message, names: _CallNames, provider: str, replay_reasoning: bool) -> list[Block]:
    """The blocks of a turn as they came, if they came from this provider."""
    return [
        {**block, "id": names[block["id"]]} if block["type"] == "tool_use" else block
        for block in unsealed(provider, message).get("content", [])
        if replay_reasoning or not is_thought(block)
    ]


def _said(message: Message, names: _CallNames) -> list[Block]:
    return [block for one in message.content if (block := _block(one, names))]


class _CallNames:
    """The ids of calls on this wire, where they have letters, digits, _ and -, and no two are alike.

    Other servers use other characters, or begin to count anew in every turn.
    """

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._names: dict[str, str] = {}

    def open(self, calls: Iterable[ToolUseBlock]) -> None:
        """From here on, ids are those of the calls of this turn."""
        self._names = {call.id: self._fresh(call.id) for call in calls}

    def __getitem__(self, id: str) -> str:
        return self._names.get(id) or _FOREIGN.sub("_", id)

    def _fresh(self, id: str) -> str:
        clean = name = _FOREIGN.sub("_", id) or "call"
        while self._count[name]:
            self._count[clean] += 1
            name = f"{clean}_{self._count[clean]}"
        self._count[name] += 1
        return name


def _block(block: ContentBlock, names: _CallNames) -> Block | None:
    """A block of ours on this wire; None for blank text, which is refused, and for results."""
    if isinstance(block, TextBlock):
        return text_block(block.text) if block.text.strip() else None
    if isinstance(block, ImageBlock):
        return {"type": "image", "source": _source(block.url)}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": names[block.id], "name": block.name, "input": block.input}
    return None


def _source(url: str) -> dict[str, str]:
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    media_type, payload = split_data_uri(url)
    return {"type": "base64", "media_type": media_type, "data": payload}


def _result(result: ToolResultBlock, names: _CallNames) -> Block:
    content = [block for part in result_blocks(result) if (block := _block(part, names))]
    told = content or result_text(result, mark_error=False)
    block = {"type": "tool_result", "tool_use_id": names[result.tool_use_id], "content": told}
    return block | {"is_error": True} if result.is_error else block


def _holds_results(turn: Turn) -> bool:
    return bool(blocks_of(turn)[0]["type"] == "tool_result")


def _without_last_blanks(turn: Turn) -> str | list[Block]:
    """The content of a turn that the model is to go on with, which must not end with blanks."""
    *others, last = blocks_of(turn)
    return _compact([*others, {**last, "text": last["text"].rstrip()} if last["type"] == "text" else last])


def _without_lost_calls(turns: list[Turn]) -> list[Turn]:
    """The turns without calls to the server's own tools that were paused and then passed over.

    Such a call has no result and will get none; it is refused anywhere but in the turn that goes on.
    """
    prompts = [index for index, turn in enumerate(turns) if is_prompt(turn)]
    spoken = [block for turn in turns if turn["role"] == "assistant" for block in blocks_of(turn)]
    answered = {str(block.get("tool_use_id")) for block in spoken}
    for turn in turns[: prompts[-1] if prompts else 0]:
        if turn["role"] == "assistant":
            blocks = blocks_of(turn)
            kept = [block for block in blocks if not _is_server_call(block) or str(block.get("id")) in answered]
            turn["content"] = _compact(without_last_thoughts(kept) if len(kept) < len(blocks) else kept)
    return [turn for turn in turns if turn["content"]]


def _is_server_call(block: Block) -> bool:
    return block["type"] in ("server_tool_use", "mcp_tool_use")
