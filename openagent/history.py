"""Questions about a list of messages, and changed copies of it.

Every function here is pure: it takes messages and returns a number or a new list.

Owns: what can be said by looking at several messages. Does not know: providers, the client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from . import codec
from .errors import ConfigError
from .messages import ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock

_IMAGE_TOKENS = {"low": 85, "high": 300, "auto": 200}

NOT_ANSWERED = {"error": "not run: no result was given before the conversation went on"}


def open_calls(messages: Sequence[Message]) -> list[ToolUseBlock]:
    """The calls of the last turn with calls that have no result yet, in order.

    Only a turn that nothing but results follows can still be answered.
    """
    answered: list[str] = []
    for message in reversed(messages):
        if message.results:
            answered += [result.tool_use_id for result in message.results]
        elif message.calls:
            return [call for call in message.calls if call.id not in answered]
        else:
            return []
    return []


def with_result(messages: Sequence[Message], result: ToolResultBlock) -> list[Message]:
    """A copy with the result of an open call in its place: results stand in the order of their calls."""
    turn = next(index for index in range(len(messages) - 1, -1, -1) if messages[index].calls)
    copy = list(messages)
    _insert(result, copy, turn)
    return copy


def _insert(result: ToolResultBlock, messages: list[Message], turn: int) -> None:
    """Put the result in its place behind the turn, the last one; nothing but results follows it."""
    order = {call.id: place for place, call in reversed(list(enumerate(messages[turn].calls)))}
    place = len(messages)
    while place > turn + 1 and order.get(messages[place - 1].results[0].tool_use_id, -1) > order[result.tool_use_id]:
        place -= 1
    messages.insert(place, Message("tool", [result]))


def settled(messages: Sequence[Message], talk: int = 0) -> tuple[list[Message], list[Message]]:
    """What ``answered`` makes of the messages, and what ``sendable`` does.

    ``talk`` is how many at the beginning are known to be one text and nothing else, for which there is nothing to do.
    """
    if all(message.only_text for message in messages[talk:]):  # a twentieth of the time of the walks
        return list(messages), list(messages)
    whole = answered(messages)
    return whole, sendable(whole)


def answered(messages: Sequence[Message]) -> list[Message]:
    """A copy in which every call has its result right behind its turn; what had none has an error."""
    copy: list[Message] = []
    index = 0
    while index < len(messages):
        turn, place = messages[index], len(copy)
        copy.append(turn)
        index += 1
        if turn.role != "assistant" or turn.only_text or not turn.calls:
            continue
        given: set[str] = set()
        while index < len(messages) and messages[index].results:
            given.update(result.tool_use_id for result in messages[index].results)
            copy.append(messages[index])
            index += 1
        for call in turn.calls:
            if call.id not in given:
                _insert(_unanswered(call), copy, place)
    return copy


def _unanswered(call: ToolUseBlock) -> ToolResultBlock:
    content = {"error": f"not run: {call.error}"} if call.error else NOT_ANSWERED
    return ToolResultBlock(call.id, content, is_error=True)


def sendable(messages: Sequence[Message]) -> list[Message]:
    """A copy that a strict server accepts: calls answered, in order; no stray results, no empty messages.

    Results that belong to no call right before them (cut off, sent twice) are left out, and so is
    what is empty; the list itself keeps them.
    """
    rows = answered(messages)
    copy: list[Message] = []
    index = 0
    while index < len(rows):
        turn = rows[index]
        index += 1
        if turn.only_text:
            copy.append(turn)
            continue
        copy += _without_results(turn)
        if turn.role != "assistant" or not turn.calls:
            continue
        found: dict[str, ToolResultBlock] = {}
        extras: list[Message] = []
        while index < len(rows) and rows[index].results:
            found = {result.tool_use_id: result for result in rows[index].results} | found
            extras += _without_results(rows[index])
            index += 1
        copy += [Message("tool", [found[call.id]]) for call in turn.calls]
        copy += extras
    return copy


def _without_results(message: Message) -> list[Message]:
    """The message without results, as a list of one; of none if nothing is left."""
    rest = [block for block in message.content if not isinstance(block, ToolResultBlock)]
    if not any(not isinstance(block, TextBlock) or block.text for block in rest):
        return [message] if message.provider_state and not message.content else []
    if len(rest) == len(message.content):
        return [message]
    return [Message("user" if message.role == "tool" else message.role, [*rest])]


def check(messages: Iterable[object]) -> None:
    """``ConfigError`` if something in the history is no message."""
    wrong = next((item for item in messages if not isinstance(item, Message)), None)
    if wrong is not None:
        raise ConfigError(f"history item {wrong!r:.100} must be a Message")


def check_continuation(messages: Sequence[Message], *, is_paused: bool = False) -> None:
    """``ConfigError`` if the model has nothing to go on with: no results, no open calls, no unanswered prompt."""
    said = [message for message in messages if message.content != [TextBlock("")]]
    if not said or (said[-1].role == "assistant" and not said[-1].calls and not is_paused):
        raise ConfigError('there is nothing to go on with: send("") continues after tool results')


def up_to_last_prompt(messages: Sequence[Message], purpose: str = "retry") -> list[Message]:
    """A copy up to the last message in which the user says something; ``ConfigError`` if there is none."""
    for end in range(len(messages), 0, -1):
        message = messages[end - 1]
        if message.role == "user" and _without_results(message):
            return list(messages[:end])
    raise ConfigError(f"there is nothing to {purpose}: the history has no user message")


def coalesce_text_blocks(blocks: Iterable[ContentBlock]) -> list[ContentBlock]:
    """A copy with neighbouring text blocks joined, nothing between; other blocks stay where they are."""
    joined: list[ContentBlock] = []
    run: list[str] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            run.append(block.text)
            continue
        if run:
            joined.append(TextBlock("".join(run)))
            run = []
        joined.append(block)
    return [*joined, TextBlock("".join(run))] if run else joined


def estimate_tokens(messages: Sequence[Message]) -> int:
    """A rough number of tokens: a quarter of the bytes, fixed amounts for images.

    Counts messages only: not the system prompt of the options, not the tools, not reasoning.

    >>> estimate_tokens([Message.user("Hello world")])
    9
    """
    if not messages:
        return 0
    size = 16 + sum(8 + sum(_block_bytes(block) for block in message.content) for message in messages)
    return math.ceil(size / 4)


def _block_bytes(block: ContentBlock) -> int:
    if isinstance(block, TextBlock):
        return _bytes(block.text)
    if isinstance(block, ImageBlock):
        return 4 * _IMAGE_TOKENS[block.detail]
    if isinstance(block, ToolUseBlock):
        return _bytes(block.id) + _bytes(block.name) + _bytes(codec.dump(block.input))
    return _bytes(block.tool_use_id) + _content_bytes(block.content)


def _content_bytes(content: Any) -> int:
    """Of a result, which may hold images as dicts."""
    parts = content if isinstance(content, list) else [content]
    images = [part for part in parts if isinstance(part, dict) and part.get("type") == "image" and "url" in part]
    rest = [part for part in parts if not any(part is image for image in images)]
    told = _bytes(codec.dump(rest if isinstance(content, list) else content)) if rest else 0
    return told + sum(4 * _IMAGE_TOKENS.get(image.get("detail", "auto"), 200) for image in images)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def is_approaching_limit(messages: Sequence[Message], limit: int, margin: float = 0.9) -> bool:
    """Whether the estimate is above ``limit * margin`` tokens."""
    if not 0 <= margin <= 1:
        raise ConfigError(f"margin {margin!r} must be between 0 and 1")
    return estimate_tokens(messages) > math.floor(limit * margin)


def truncate_messages(messages: Sequence[Message], keep: int, preserve_system: bool = True) -> list[Message]:
    """A copy of the last ``keep`` messages, after the first one if that is a system message.

    A result never stays without its call: if the cut falls between a turn and its results, the
    results at its edge go too, so the copy may be shorter.
    """
    if keep < 0:
        raise ConfigError(f"keep {keep!r} must be 0 or more")
    if len(messages) <= keep:
        return list(messages)
    start = len(messages) - keep
    while start < len(messages) and messages[start].results:
        start += 1
    head = [messages[0]] if preserve_system and start > 0 and messages[0].role == "system" else []
    return head + list(messages[start:])
