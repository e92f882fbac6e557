"""What may stand for a prompt: a text, messages, a row for a template, a data frame's rows.

Frames are known by what they can do, so that neither pandas nor polars is imported here.

Owns: from what the user has to what is sent. Does not know: sending.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from ..errors import ConfigError
from ..messages import Message


def check_template(template: str | None) -> None:
    """``ConfigError`` if this is no template."""
    from string import Formatter

    if template is None:
        return
    if not isinstance(template, str):
        raise ConfigError(f"template {template!r:.100} must be a text with {{names}}")
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as exc:
        raise ConfigError(f"template {template!r:.100} is none: {exc}; a brace of its own is written twice") from exc
    for name in names:
        if not name.isidentifier():
            raise ConfigError(f"template {template!r:.100}: {{{name}}} must be the name of a column")


def conversation(source: Any, template: str | None = None) -> str | list[Message]:
    """What to send for one prompt: a text, or messages of which the last is the user's.

    A dict fills the template, or stands for a message, or has its text under ``"prompt"`` or its messages under
    ``"messages"``.
    """
    if template is not None:
        return _filled(template, source)
    if isinstance(source, str):
        return source
    if isinstance(source, Message):
        return [source]
    if isinstance(source, Mapping):
        if "prompt" in source:
            return conversation(source["prompt"])
        if "messages" in source:
            return _messages(source["messages"])
        if "role" in source and "content" in source:
            return _messages([source])
        raise ConfigError(f"prompt {source!r:.100} is a row: say how to ask about it with template=...")
    if isinstance(source, Sequence):
        return _messages(source)
    raise ConfigError(f"prompt {source!r:.100} must be a text, messages, or a dict for a template")


def _filled(template: str, row: Any) -> str:
    if not isinstance(row, Mapping):
        row = {"prompt": row}
    try:
        return template.format_map(row)
    except KeyError as exc:
        raise ConfigError(f"template: there is no {exc} among {', '.join(map(str, row))}") from exc


def _messages(source: Any) -> list[Message]:
    if isinstance(source, (str, Mapping)) or not isinstance(source, Iterable):
        raise ConfigError(f"messages {source!r:.100} must be a list of messages")
    messages = [item if isinstance(item, Message) else Message.from_dict(item) for item in source]
    if not messages or messages[-1].role != "user":
        raise ConfigError("the last message must be the user's: there is nothing to answer")
    return messages


def is_frame(source: Any) -> bool:
    """Whether this is a data frame, of pandas, polars or the like."""
    return all(hasattr(source, name) for name in ("columns", "shape", "__getitem__"))


def rows(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows of a frame, as dicts by column."""
    names = [str(name) for name in frame.columns]
    for values in zip(*(frame[name] for name in frame.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def check_free(frame: Any, names: Iterable[str]) -> None:
    """``ConfigError`` if the frame has one of these columns."""
    taken = [name for name in names if name in list(frame.columns)]
    if taken:
        raise ConfigError(f"the frame has a column {taken[0]!r} already: rename it")


def with_columns(frame: Any, columns: Mapping[str, list[Any]]) -> Any:
    """A copy of the frame with these columns added, its index kept.

    Objects stay as they are in pandas; polars has no place for them, so there they are structs of their fields.
    """
    if hasattr(frame, "assign"):
        return frame.assign(**columns)
    plain = {name: [_plain(value) for value in values] for name, values in columns.items()}
    return frame.hstack(type(frame)(plain, strict=False, infer_schema_length=None))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def size_of(source: Any) -> int | None:
    """How many prompts there are, if that is known."""
    try:
        return len(source)
    except TypeError:
        return None
