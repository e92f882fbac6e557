"""What a conversation is made of: blocks, messages, usage, finish reasons.

Plain values, to and from plain dicts. ``provider_state`` is what a provider wants back with a
turn (signatures, encrypted reasoning); nobody but the adapter that wrote it reads it.

Owns: the values of the conversation. Does not know: providers, network, how a turn came about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union

from .errors import ConfigError
from .images import check_mime, checked_url, data_uri, decoded, file_content
from .values import dataclass, field, replace

Role = Literal["system", "user", "assistant", "tool"]
ImageDetail = Literal["auto", "low", "high"]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """An image by its ``http(s)`` or ``data:`` URL; checked when made (``ConfigError``)."""

    url: str
    detail: ImageDetail = "auto"

    def __post_init__(self) -> None:
        if self.detail not in ("auto", "low", "high"):
            raise ConfigError(f"image detail {self.detail!r} must be 'auto', 'low' or 'high'")
        object.__setattr__(self, "url", checked_url(self.url))

    @classmethod
    def from_url(cls, url: str, *, detail: ImageDetail = "auto") -> ImageBlock:
        """The image at an ``http(s)`` or ``data:`` URL."""
        return cls(url, detail)

    @classmethod
    def from_base64(cls, payload: str, mime: str = "image/png", *, detail: ImageDetail = "auto") -> ImageBlock:
        """The image in base64 text; its type is read from its bytes."""
        check_mime(mime)
        return cls(data_uri(decoded(payload)), detail)

    @classmethod
    def from_file_path(cls, path: str | os.PathLike[str], *, detail: ImageDetail = "auto") -> ImageBlock:
        """The PNG, JPEG, GIF or WebP image in a file of at most 20 MB."""
        return cls(data_uri(file_content(path), origin=f"file {os.fspath(path)!r}"), detail)

    def with_detail(self, detail: ImageDetail) -> ImageBlock:
        """The same image to be looked at with another detail."""
        return replace(self, detail=detail)

    def __repr__(self) -> str:
        url = self.url if len(self.url) <= 100 else self.url[:97] + "..."
        return f"ImageBlock(url={url!r}, detail={self.detail!r})"


@dataclass(frozen=True, slots=True)
class ToolUseBlock:
    """A call that the model asks for.

    ``input`` is always a dict. If the arguments were no JSON object it is empty,
    ``raw_arguments`` holds their text and ``error`` the reason; such a call must not be run.
    """

    id: str
    name: str
    input: dict[str, Any]
    raw_arguments: str | None = None
    error: str | None = None
    provider_state: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResultBlock:
    """The result of a call: any JSON value.

    An image in it is a dict such as ``block_to_dict`` makes of it, alone or as an item of a list.
    """

    tool_use_id: str
    content: Any
    is_error: bool = False

    @property
    def parts(self) -> list[Any] | None:
        """The items of the content, images as ``ImageBlock``; None if there is no image in it."""
        items = self.content if isinstance(self.content, list) else [self.content]
        found = [_image(item) or item for item in items]
        return found if any(isinstance(item, ImageBlock) for item in found) else None


def _image(item: Any) -> ImageBlock | None:
    if not isinstance(item, dict) or item.keys() != {"type", "url", "detail"} or item["type"] != "image":
        return None
    try:
        return ImageBlock(item["url"], item["detail"])
    except (ConfigError, TypeError):  # it only looks like one
        return None


ContentBlock = Union[TextBlock, ImageBlock, ToolUseBlock, ToolResultBlock]

Attachment = Union[ImageBlock, TextBlock, str, "os.PathLike[str]"]

_KINDS: dict[str, type[Any]] = {
    "text": TextBlock,
    "image": ImageBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS: dict[str, dict[str, type[Any]]] = {
    "text": {"text": str},
    "image": {"url": str, "detail": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str, "content": object},
}
_OPTIONAL: dict[str, type[Any]] = {"raw_arguments": str, "error": str, "is_error": bool, "provider_state": dict}


def block_to_dict(block: ContentBlock) -> dict[str, Any]:
    """The block as a plain dict with its ``type``; empty optional keys are left out."""
    kind = _NAMES[type(block)]
    known = {"type": kind} | {name: getattr(block, name) for name in _FIELDS[kind]}
    return known | {name: value for name in _OPTIONAL if (value := getattr(block, name, None))}


def block_from_dict(source: Mapping[str, Any]) -> ContentBlock:
    """The block of such a dict; ``ConfigError`` if it is none. Unknown keys are ignored."""
    kind = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigError(f"content block {source!r:.100} has no known type (one of {', '.join(_KINDS)})")
    for name, wanted_type in (_FIELDS[kind] | _OPTIONAL).items():
        is_none = name in _OPTIONAL and source.get(name) is None
        if not is_none and not isinstance(source.get(name, wanted_type()), wanted_type):
            raise ConfigError(f"content block {source!r:.100}: {name} must be a {wanted_type.__name__}")
    wanted = [name for name in (*_FIELDS[kind], *_OPTIONAL) if name in source and name in _KINDS[kind].__slots__]
    try:
        block: ContentBlock = _KINDS[kind](**{name: source[name] for name in wanted})
    except TypeError as exc:
        raise ConfigError(f"content block {source!r:.100} is incomplete: {exc}") from exc
    return block


@dataclass(frozen=True)
class Message:
    """One entry of the conversation: a role and a list of blocks."""

    role: Role
    content: list[ContentBlock]
    provider_state: dict[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.role not in ("system", "user", "assistant", "tool"):
            raise ConfigError(f"message role {self.role!r} must be 'system', 'user', 'assistant' or 'tool'")
        object.__setattr__(self, "content", _blocks([self.content] if isinstance(self.content, str) else self.content))

    @classmethod
    def user(cls, *content: str | ContentBlock) -> Message:
        """What the user says: texts and images, in order."""
        return cls("user", _blocks(content))

    @classmethod
    def assistant(cls, *content: str | ContentBlock) -> Message:
        """What the model said: texts and calls, in order."""
        return cls("assistant", _blocks(content))

    @classmethod
    def system(cls, text: str) -> Message:
        """An instruction in the midst of the conversation."""
        return cls("system", [TextBlock(text)])

    @classmethod
    def tool_result(cls, tool_use_id: str, content: Any, *, is_error: bool = False) -> Message:
        """The result of one call."""
        return cls("tool", [ToolResultBlock(tool_use_id, content, is_error)])

    @classmethod
    def user_with_image(cls, text: str, url: str, *, detail: ImageDetail = "auto") -> Message:
        """A text and the image it is about."""
        return cls("user", [TextBlock(text), ImageBlock(url, detail)])

    @property
    def text(self) -> str:
        """The text blocks joined, with nothing between."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def only_text(self) -> str:
        """The text of a message that is one text and nothing else, as most are; empty of any other.

        Who walks over a conversation asks this first: 0.1 µs a message, against 3 of the looks at its blocks.
        """
        content = self.content
        return content[0].text if len(content) == 1 and type(content[0]) is TextBlock else ""

    @property
    def calls(self) -> list[ToolUseBlock]:
        """The calls that this message asks for, in order."""
        return [block for block in self.content if isinstance(block, ToolUseBlock)]

    @property
    def results(self) -> list[ToolResultBlock]:
        """The results that this message holds, in order."""
        return [block for block in self.content if isinstance(block, ToolResultBlock)]

    def to_dict(self) -> dict[str, Any]:
        """The message as a plain dict, ready for JSON."""
        plain: dict[str, Any] = {"role": self.role, "content": [block_to_dict(block) for block in self.content]}
        if self.provider_state:
            plain["provider_state"] = self.provider_state
        return plain

    @classmethod
    def from_dict(cls, source: Mapping[str, Any]) -> Message:
        """The message of such a dict, its images checked again; ``ConfigError`` if it is none."""
        if not isinstance(source, Mapping) or "role" not in source or "content" not in source:
            raise ConfigError(f"message {source!r:.100} needs 'role' and 'content'")
        content = source["content"]
        if not isinstance(content, (str, list)):
            raise ConfigError(f"message content {content!r:.100} must be a list of blocks")
        state = source.get("provider_state")
        if not isinstance(state, (dict, type(None))):
            raise ConfigError(f"provider_state {state!r:.100} of a message must be a dict")
        blocks = content if isinstance(content, str) else [block_from_dict(block) for block in content]
        return cls(source["role"], blocks, state)  # type: ignore[arg-type]


def _blocks(content: Iterable[str | ContentBlock]) -> list[ContentBlock]:
    blocks: list[ContentBlock] = []
    for item in content:
        if isinstance(item, str):
            item = TextBlock(item)
        if type(item) not in _NAMES:
            raise ConfigError(f"message content {item!r:.100} is no text and no block")
        if isinstance(item, TextBlock) and not isinstance(item.text, str):
            raise ConfigError(f"the text of {item!r:.100} must be a str")
        blocks.append(item)
    return blocks


def attached(item: Attachment) -> ContentBlock:
    """The block of an attachment: a block as it is, a URL or a path as an image."""
    if isinstance(item, (ImageBlock, TextBlock)):
        return item
    if isinstance(item, str) and item.startswith(("http://", "https://", "data:")):
        return ImageBlock(item)
    if isinstance(item, (str, os.PathLike)):
        return ImageBlock.from_file_path(item)
    raise ConfigError(f"attachment {item!r:.100} must be an ImageBlock, a TextBlock, a URL or the path of an image")


class FinishReason(str):
    """Why a turn ended, in one vocabulary for all providers.

    ``stop``, ``length``, ``tool_calls``, ``content_filter``, ``max_tool_iterations``,
    ``unspecified``, or the server's own word. ``raw`` is what the wire said, None if nothing.
    """

    raw: str | None
    is_truncated: bool

    def __new__(cls, value: str, raw: str | None = None, *, is_truncated: bool | None = None) -> FinishReason:
        self = super().__new__(cls, value)
        self.raw = raw
        self.is_truncated = value == "length" if is_truncated is None else is_truncated
        return self

    def __reduce__(self) -> Any:
        return _finish_reason, (str(self), self.raw, self.is_truncated)


def _finish_reason(value: str, raw: str | None, is_truncated: bool) -> FinishReason:
    return FinishReason(value, raw, is_truncated=is_truncated)


@dataclass(frozen=True)
class Usage:
    """Tokens of one turn, or of several summed.

    ``input_tokens`` counts the whole prompt, cached tokens included, on every wire. A number
    that the server did not send is None; ``raw`` is what it sent last.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    raw: dict[str, Any] | None = field(default=None, repr=False)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cache_read_tokens, other.cache_read_tokens),
            _sum(self.cache_write_tokens, other.cache_write_tokens),
            _sum(self.reasoning_tokens, other.reasoning_tokens),
            other.raw or self.raw,
        )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
