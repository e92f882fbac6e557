"""A conversation as it is kept: plain JSON of a documented, versioned form, and back.

The form is published as ``conversation.schema.json`` beside this file. It holds no key and no address: who is asked,
and where, is a matter of options, and a file that somebody sent must not say where your words go. The model's name is
in it as a note.

Owns: the value and its form, all versions of it. Does not know: files, the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ConfigError
from .messages import FinishReason, Message, Usage, block_to_dict

VERSION = 2
"""What is written; 1 knew messages and the system prompt only."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")

Renaming = Callable[[str], str]


@dataclass(frozen=True)
class Conversation:
    """What was said, and how the latest request ended; ``model`` is who was asked last."""

    messages: Sequence[Message] = field(default_factory=list)
    system_prompt: str = ""
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    model: str = ""


def to_plain(conversation: Conversation, rename: Renaming = str) -> dict[str, Any]:
    """The conversation as a plain dict, the URLs of its images renamed."""
    reason, usage = conversation.finish_reason, conversation.usage
    plain: dict[str, Any] = {
        "openagent": VERSION,
        "model": conversation.model,
        "system_prompt": conversation.system_prompt,
        "messages": [_message(message, rename) for message in conversation.messages],
    }
    if reason is not None:
        plain["finish_reason"] = {"value": str(reason), "raw": reason.raw, "is_truncated": reason.is_truncated}
    if usage is not None:
        plain["usage"] = {name: value for name in (*_TOKENS, "raw") if (value := getattr(usage, name)) is not None}
    return plain


def _message(message: Message, rename: Renaming) -> dict[str, Any]:
    if message.only_text and not message.provider_state:
        return message.to_dict()
    content = [_renamed(block_to_dict(block), rename) for block in message.content]
    return message.to_dict() | {"content": content}


def _renamed(block: dict[str, Any], rename: Renaming) -> dict[str, Any]:
    """The block with the URL of an image renamed, also of those in a result."""
    if block.get("type") == "image" and isinstance(block.get("url"), str):
        return block | {"url": rename(block["url"])}
    if block.get("type") != "tool_result":
        return block
    content = block.get("content")
    renamed = [_part(item, rename) for item in content] if isinstance(content, list) else _part(content, rename)
    return block | {"content": renamed}


def _part(item: Any, rename: Renaming) -> Any:
    is_image = isinstance(item, dict) and item.keys() == {"type", "url", "detail"}
    return _renamed(item, rename) if is_image and item["type"] == "image" else item


def from_plain(plain: Any, rename: Renaming = str) -> Conversation:
    """The conversation of such a dict, of this version or an older one; ``ConfigError`` if it is none."""
    version = plain.get("openagent") if isinstance(plain, dict) else None
    if type(version) is not int or version < 1:
        raise ConfigError('this is no conversation of openagent, which says {"openagent": 2} in it')
    if version > VERSION:
        raise ConfigError(f"version {version} is newer than the {VERSION} that this openagent reads: upgrade openagent")
    prompt, model = plain.get("system_prompt", ""), plain.get("model", "")
    if not isinstance(plain.get("messages"), list) or not isinstance(prompt, str) or not isinstance(model, str):
        raise ConfigError(
            "this is no conversation of openagent: messages must be a list, system_prompt and model texts"
        )
    messages = [_read_message(message, rename) for message in plain["messages"]]
    return Conversation(messages, prompt, _finish_reason(plain.get("finish_reason")), _usage(plain.get("usage")), model)


def _read_message(plain: Any, rename: Renaming) -> Message:
    if isinstance(plain, dict) and isinstance(plain.get("content"), list):
        content = [_renamed(block, rename) if isinstance(block, dict) else block for block in plain["content"]]
        plain = plain | {"content": content}
    return Message.from_dict(plain)


def _finish_reason(plain: Any) -> FinishReason | None:
    if plain is None:
        return None
    value = plain.get("value") if isinstance(plain, Mapping) else None
    raw, is_truncated = (plain.get("raw"), plain.get("is_truncated", False)) if value else (None, False)
    if not isinstance(value, str) or not isinstance(raw, (str, type(None))) or not isinstance(is_truncated, bool):
        raise ConfigError(f"finish_reason {plain!r:.100} is none")
    return FinishReason(value, raw, is_truncated=is_truncated)


def _usage(plain: Any) -> Usage | None:
    if plain is None:
        return None
    numbers = {name: plain[name] for name in (*_TOKENS, "raw") if name in plain} if isinstance(plain, dict) else {"": 0}
    raw = numbers.get("raw")
    is_right = all(type(value) is int for name, value in numbers.items() if name != "raw" and value is not None)
    if "" in numbers or not is_right or not isinstance(raw, (dict, type(None))):
        raise ConfigError(f"usage {plain!r:.100} is none")
    return Usage(**numbers)
