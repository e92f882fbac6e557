"""The messages of Chat Completions as values: what the adapter sends, and lists that other programs keep.

Owns: the JSON of one message, both ways. Does not know: requests, streams, the state of providers.
Source: https://platform.openai.com/docs/api-reference/chat/create (messages), with what it calls deprecated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..assembly import read_arguments
from ..errors import ConfigError
from ..messages import ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock
from . import result_text, written

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def to_openai(messages: Iterable[Message], system_prompt: str = "") -> list[dict[str, Any]]:
    """The messages as Chat Completions has them, the system prompt first if there is one.

    What has no place there is told in the text, an image in a result, or left out, what a provider wants back.
    """
    first = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return first + [entry for message in messages for entry in _entries(message)]


def _entries(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield result_entry(result)
    if message.role == "assistant" and message.content:
        turn: dict[str, Any] = {"role": "assistant", "content": joined_text(message)}
        yield turn | ({"tool_calls": [_own_call(call) for call in message.calls]} if message.calls else {})
    elif len(message.results) < len(message.content):
        role = "user" if message.role == "tool" else message.role
        yield {"role": role, "content": content_parts(message)}


def _own_call(call: ToolUseBlock) -> dict[str, Any]:
    arguments = written(call.input) if call.raw_arguments is None else call.raw_arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def result_entry(result: ToolResultBlock) -> dict[str, Any]:
    """A result as the message that it is here."""
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": result_text(result)}


def joined_text(message: Message) -> str:
    """The texts of a message, each on a line of its own."""
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))


def content_parts(message: Message) -> str | list[dict[str, Any]]:
    """What a user says: a text, or texts and images in order."""
    if not any(isinstance(block, ImageBlock) for block in message.content):
        return joined_text(message)
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ImageBlock):
            parts.append({"type": "image_url", "image_url": {"url": block.url, "detail": block.detail}})
        elif isinstance(block, TextBlock) and block.text:
            parts.append({"type": "text", "text": block.text})
    return parts


def from_openai(messages: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages of a Chat Completions list, to be assigned to ``client.history``.

    Also takes the roles ``developer`` and ``function``, ``function_call`` and ``refusal``; other members of a message,
    such as ``name``, are left out. ``ConfigError``, which says where, for what no message can hold.
    """
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Iterable):
        raise ConfigError(f"messages {messages!r:.100} must be a list of dicts with role and content")
    found: list[Message] = []
    for index, entry in enumerate(messages):
        if not isinstance(entry, Mapping):
            raise ConfigError(f"messages[{index}] {entry!r:.100} must be a dict with role and content")
        found.append(_message(entry, f"messages[{index}]", found))
    return found


def _message(entry: Mapping[str, Any], place: str, before: list[Message]) -> Message:
    role = entry.get("role")
    if role == "tool":
        return _result(_text_at(entry, "tool_call_id", place), entry, place)
    if role == "function":
        name = _text_at(entry, "name", place)
        calls = [call for message in before for call in message.calls if call.name == name]
        if not calls:
            raise ConfigError(f"{place}.name {name!r:.100} is no function that was called before")
        return _result(calls[-1].id, entry, place)
    if not isinstance(role, str) or role not in _ROLES:
        raise ConfigError(f"{place}.role {role!r:.100} must be one of {', '.join(_ROLES)}, tool, function")
    blocks = _blocks(entry.get("content"), f"{place}.content")
    if entry.get("refusal") is not None:
        blocks.append(TextBlock(_text_at(entry, "refusal", place)))
    if role == "assistant":
        blocks += _calls(entry, place)
        if len(blocks) > 1 and blocks[0] == TextBlock(""):
            del blocks[0]
    return Message(_ROLES[role], blocks)  # type: ignore[arg-type]


def _result(id: str, entry: Mapping[str, Any], place: str) -> Message:
    blocks = _blocks(entry.get("content"), f"{place}.content")
    if not all(isinstance(block, TextBlock) for block in blocks):
        raise ConfigError(f"{place}.content of a result must be text")
    return Message.tool_result(id, joined_text(Message("tool", blocks)))


def _blocks(content: Any, place: str) -> list[ContentBlock]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextBlock(content)]
    if not isinstance(content, (list, tuple)):
        raise ConfigError(f"{place} {content!r:.100} must be a text, a list of parts or None")
    return [_block(part, f"{place}[{index}]") for index, part in enumerate(content)]


def _block(part: Any, place: str) -> ContentBlock:
    if isinstance(part, str):
        return TextBlock(part)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in ("text", "refusal"):
        return TextBlock(_text_at(part, kind, place))
    if kind != "image_url":
        raise ConfigError(f"{place}.type {kind!r:.100} must be 'text', 'refusal' or 'image_url'")
    image = part.get("image_url")
    url, detail = (image.get("url"), image.get("detail")) if isinstance(image, Mapping) else (image, None)
    try:
        return ImageBlock(url, "auto" if detail is None else detail)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"{place}.image_url: {error}") from error


def _calls(entry: Mapping[str, Any], place: str) -> list[ToolUseBlock]:
    legacy, calls = entry.get("function_call"), entry.get("tool_calls")
    if legacy is not None:
        # It had no id; the place in the list makes one that is the same each time.
        number = place.removeprefix("messages[").removesuffix("]")
        return [_call({"id": f"call_{number}", "function": legacy}, f"{place}.function_call", "")]
    if not isinstance(calls, (list, tuple, type(None))):
        raise ConfigError(f"{place}.tool_calls {calls!r:.100} must be a list")
    return [_call(call, f"{place}.tool_calls[{index}]", ".function") for index, call in enumerate(calls or ())]


def _call(call: Any, place: str, inner: str) -> ToolUseBlock:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise ConfigError(f"{place}{inner} {function!r:.100} must be a dict with name and arguments")
    id, name = _text_at(call, "id", place), _text_at(function, "name", place + inner)
    arguments = function.get("arguments")
    if isinstance(arguments, Mapping):  # Ollama's own API and some libraries keep them so
        return ToolUseBlock(id, name, dict(arguments))
    if not isinstance(arguments, (str, type(None))):
        raise ConfigError(f"{place}{inner}.arguments {arguments!r:.100} must be JSON text")
    return ToolUseBlock(id, name, *read_arguments(arguments or ""))


def _text_at(source: Mapping[str, Any], key: str, place: str) -> str:
    value = source.get(key)
    if not isinstance(value, str):
        raise ConfigError(f"{place}.{key} {value!r:.100} must be a text")
    return value
