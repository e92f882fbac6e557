"""Answers with a shape: a type or a JSON Schema becomes what the server is asked for, its JSON a value.

The server's structured output does it where there is one, else a tool call that is forced. What comes is
validated all the same; a mistake is shown to the model, which may try again.

Owns: shapes, the order of attempts. Does not know: wire formats; it asks whoever can ``ask`` and ``send``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import codec
from .errors import AgentError, APIError, ConfigError, InvalidResponseError
from .messages import Attachment, TextBlock, ToolUseBlock
from .schema import check, check_schema, convert, type_schema
from .tools import Tool

# OpenAI, Groq, DeepSeek, vLLM and others name the member they refuse; Anthropic's older models name theirs.
_NO_FORMAT = re.compile(r"response_?format|json_?schema|output_config|output_format|structured.?output", re.IGNORECASE)
_TOOL = "give_answer"


class Form:
    """A shape as the server has to be told it; ``read`` makes its value of JSON."""

    def __init__(self, shape: Any) -> None:
        self._kind = None if isinstance(shape, Mapping) else shape
        try:
            inner = dict(shape) if isinstance(shape, Mapping) else type_schema(shape)
            check_schema(inner, "extract")
        except ConfigError as exc:
            raise ConfigError(f"{shape!r:.100} is no shape for an answer: {exc}") from exc
        # Vendors want an object at the root.
        self._is_wrapped = inner.get("type") != "object"
        self.schema = _wrapped(inner) if self._is_wrapped else inner

    def read(self, said: Any) -> Any:
        """The value; ``ValueError`` with a text for the model if it is none of this shape."""
        complaint = check(self.schema, said)
        if complaint:
            raise ValueError(complaint)
        plain = said["value"] if self._is_wrapped else said
        return plain if self._kind is None else convert(plain, self._kind)


def _wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    shared = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
        **shared,
    }


def extract(
    client: Any, prompt: str, shape: Any, attachments: Sequence[Attachment], *, retries: int, settings: dict[str, Any]
) -> Any:
    """A value of this shape; see ``Client.extract``."""
    if type(retries) is not int or retries < 0:
        raise ConfigError(f"retries {retries!r:.100} must be a whole number, 0 or more")
    form = Form(shape)
    for name in ("response_format", "tool_choice"):
        if name in settings:
            raise ConfigError(f"{name} cannot be set for extract(): it comes from the shape")
    ask, words, complaint, text = _by_format, prompt, "", ""
    for _ in range(retries + 1):
        try:
            text = ask(client, words, attachments, form, settings)
        except APIError as exc:
            if ask is _by_tool or exc.status not in (400, 404, 422) or not _NO_FORMAT.search(str(exc)):
                raise
            ask = _by_tool
            text = ask(client, words, attachments, form, settings)
        _check_end(client, text)
        try:
            return form.read(codec.parse(text))
        except ValueError as exc:  # no JSON, another shape, or no value of the type
            complaint = str(exc)
        words, attachments = f"That is wrong: {complaint}. Give the whole answer again: {prompt}", ()
    raise InvalidResponseError(
        f"the model gave no answer of this shape in {retries + 1} attempts: {complaint}",
        body=text[:2000],
        blocks=[TextBlock(text)] if text else [],
    )


def _by_format(client: Any, words: str, parts: Sequence[Attachment], form: Form, settings: dict[str, Any]) -> str:
    """The JSON text, by the server's structured output; tools are offered only where they are run."""
    if not settings.get("auto_execute_tools", client.options.auto_execute_tools):
        settings = {"tools": ()} | settings
    choice = {} if client.options.tool_choice is None else {"tool_choice": "auto"}
    said: str = client.ask(words, *parts, **settings, **choice, response_format=form.schema)
    return said


def _by_tool(client: Any, words: str, parts: Sequence[Attachment], form: Form, settings: dict[str, Any]) -> str:
    """The JSON text, as the arguments of a call that the model has to make; the call gets an answer."""
    forced = Tool(_TOOL, "Give the answer.", form.schema)
    own = {"tools": [forced], "tool_choice": _TOOL, "auto_execute_tools": False}
    client.send(words, *parts, **settings | own)
    said = ""
    for block in client.receive():
        if not isinstance(block, ToolUseBlock):
            said += block.text
            continue
        said = codec.dump(block.input) if block.error is None else block.raw_arguments or ""
        client.add_tool_result(block.id, "received")
    return said


def _check_end(client: Any, text: str) -> None:
    """``AgentError`` if the answer did not end as answers should."""
    finish = client.finish_reason
    heard = [TextBlock(text)] if text else []
    if finish is None:
        raise AgentError("the answer was interrupted before it had its shape", blocks=heard)
    if finish.is_truncated:
        raise AgentError(
            "the answer was cut by the output limit before it had its shape: raise max_tokens", blocks=heard
        )
    if finish == "content_filter":
        raise AgentError(f"the model refused to answer: {text[:200]}", blocks=heard)
