"""OpenAI Responses, both ways, without anything stored at the server.

Owns: the JSON of ``/responses``. Does not know: other protocols, network, the loop.
Source: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .. import codec
from ..answer_schema import is_strict
from ..errors import ConfigError
from ..messages import ContentBlock, ImageBlock, Message, Role, TextBlock, ToolUseBlock
from ..options import AgentOptions
from ..tools import Tool
from . import Request, WireAdapter, check_extra_body, result_blocks, result_text, unsealed
from .openai_responses_items import distinct, plain, replayed
from .openai_responses_turn import ResponsesTurn

_PATH = "/responses"
# OpenAI's models that do not reason refuse to be asked for encrypted reasoning, and to be given any.
_NEVER_REASONS = re.compile(r"(.*[/:])?(gpt-3\.5|gpt-4|chatgpt-4|gpt-5-chat)")


class OpenAIResponses(WireAdapter):
    """The adapter of ``protocol="openai-responses"``."""

    @classmethod
    def check(cls, options: AgentOptions) -> None:
        """Stop words, a seed, and a number as reasoning effort cannot be said here."""
        check_extra_body(options)
        for name in ("stop", "seed"):
            if getattr(options, name) not in (None, ()):
                raise ConfigError(f"{name} {getattr(options, name)!r:.100} cannot be set on the Responses protocol")
        if isinstance(options.reasoning_effort, int):
            raise ConfigError(
                f"reasoning_effort {options.reasoning_effort} must be a word such as 'low' on this protocol"
            )

    def decoder(self, headers: Mapping[str, str]) -> ResponsesTurn:
        """A decoder for one turn."""
        return ResponsesTurn(headers, provider=self.provider)

    def encode(self, instruction: str | None, include_tools: bool) -> Request:
        """The request for the next round."""
        options = self.options
        body: dict[str, Any] = {"model": options.model, "stream": True, "store": False}
        if system := self.system_prompt(instruction):
            body["instructions"] = system
        if self._replays_reasoning:
            body["include"] = ["reasoning.encrypted_content"]
        limits = {"max_output_tokens": options.max_tokens, "temperature": options.temperature, "top_p": options.top_p}
        body |= {name: value for name, value in limits.items() if value is not None}
        if options.reasoning_effort is not None:
            body["reasoning"] = {"effort": options.reasoning_effort}
            if options.include_reasoning:
                body["reasoning"]["summary"] = "auto"
        if options.response_format is not None:
            body["text"] = {"format": _format(options)}
        if include_tools:
            body |= self._tools()
        auth = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
        said, messages = self.beginning(_bare)
        items = distinct(self.rows(messages, self._encoded, _bare))
        return self.post(_PATH, auth, body, "input", said, codec.dump_rows(items))

    @property
    def _replays_reasoning(self) -> bool:
        return self.options.replay_reasoning and not _NEVER_REASONS.match(self.options.model)

    def _tools(self) -> dict[str, Any]:
        options = self.options
        members: dict[str, Any] = {"tools": [_tool(tool) for tool in self.tools]}
        choice = options.tool_choice
        # A forced call is forced once: in the rounds after it the model must be free to answer.
        if choice is not None and not (self.has_recorded and choice not in ("auto", "none")):
            is_word = choice in ("auto", "none", "required")
            members["tool_choice"] = choice if is_word else self._named(choice)
        if options.parallel_tool_calls is not None:
            members["parallel_tool_calls"] = options.parallel_tool_calls
        return members

    def _named(self, name: str) -> dict[str, Any]:
        """The choice of one tool; a vendor's own is named by its type and what tells it from others."""
        vendor = next((tool.vendor for tool in self.tools if tool.name == name), None)
        if vendor is None:
            return {"type": "function", "name": name}
        return {member: vendor[member] for member in ("type", "name", "server_label") if member in vendor}

    def _encoded(self, message: Message) -> Iterator[dict[str, Any]]:
        for result in message.results:
            output = list(filter(None, map(_part, result_blocks(result)))) or result_text(result)
            yield {"type": "function_call_output", "call_id": result.tool_use_id, "output": output}
        if message.role == "assistant":
            items = unsealed(self.provider, message).get("items")
            if items:
                yield from replayed(items, with_reasoning=self._replays_reasoning)
            else:
                yield from filter(None, map(_said, message.content))
        elif message.role == "system":
            if text := "\n".join(block.text for block in message.content if isinstance(block, TextBlock)):
                yield {"role": "system", "content": text}
        elif content := list(filter(None, map(_part, message.content))):
            yield {"role": "user", "content": content}


def _bare(role: Role, text: str) -> dict[str, Any]:
    if role == "assistant":
        return plain(text)
    if role == "system":
        return {"role": "system", "content": text}
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def _said(block: ContentBlock) -> dict[str, Any] | None:
    """What the model said or asked for, as an item of a turn that this provider did not write."""
    if isinstance(block, ToolUseBlock):
        arguments = codec.dump(block.input)
        return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}
    if isinstance(block, TextBlock) and block.text:
        return plain(block.text)
    return None


def _part(block: ContentBlock) -> dict[str, Any] | None:
    if isinstance(block, ImageBlock):
        return {"type": "input_image", "image_url": block.url, "detail": block.detail}
    if isinstance(block, TextBlock) and block.text:
        return {"type": "input_text", "text": block.text}
    return None


def _tool(tool: Tool) -> dict[str, Any]:
    if tool.vendor is not None:
        return tool.vendor
    # Strict mode is the default of this API and refuses schemas with optional properties.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.told_schema(),
        "strict": tool.strict,
    }


def _format(options: AgentOptions) -> dict[str, Any]:
    form = options.response_format
    if not isinstance(form, Mapping):
        return {"type": "json_object"}
    held = {"strict": True} if is_strict(form, options.base_url) else {}
    return {"type": "json_schema", "name": "answer", "schema": dict(form), **held}
