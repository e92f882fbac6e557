"""OpenAI Chat Completions, both ways, with the dialects of the servers that speak it.

Owns: the JSON of ``/chat/completions``. Does not know: other protocols, network, the loop.
Source: https://platform.openai.com/docs/api-reference/chat; dialects are cited where they are handled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from .. import codec
from ..errors import ConfigError
from ..messages import Message, Role, ToolUseBlock
from ..options import AgentOptions
from . import Request, WireAdapter, check_extra_body, unsealed, written
from .openai_chat_messages import content_parts, joined_text, result_entry
from .openai_chat_turn import ChatTurn

_PATH = "/chat/completions"


class OpenAIChat(WireAdapter):
    """The adapter of ``protocol="openai-chat"``."""

    @classmethod
    def check(cls, options: AgentOptions) -> None:
        """Everything but a number as reasoning effort can be said here."""
        check_extra_body(options)
        if isinstance(options.reasoning_effort, int):
            raise ConfigError(
                f"reasoning_effort {options.reasoning_effort} must be a word such as 'low' on this protocol"
            )

    def decoder(self, headers: Mapping[str, str]) -> ChatTurn:
        """A decoder for one turn."""
        return ChatTurn(headers, provider=self.provider, think_tags=self.options.think_tags)

    def encode(self, instruction: str | None, include_tools: bool) -> Request:
        """The request for the next round."""
        options = self.options
        body: dict[str, Any] = {"model": options.model, "stream": True}
        # Mistral tells the usage unasked, and answers 422 to who asks (openai-agents-python#442, litellm#8978).
        if options.include_usage and urlsplit(options.base_url).hostname != "api.mistral.ai":
            body["stream_options"] = {"include_usage": True}
        if options.max_tokens is not None:
            body[_limit_name(options.base_url)] = options.max_tokens
        for name in ("temperature", "top_p", "seed", "reasoning_effort"):
            if getattr(options, name) is not None:
                body[name] = getattr(options, name)
        if options.stop:
            body["stop"] = list(options.stop)
        if options.response_format is not None:
            body["response_format"] = _response_format(options)
        if include_tools:
            body |= self._tools()
        auth = {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {}
        system = self.system_prompt(instruction)
        head = codec.dump_rows([_bare("system", system)] if system else [])
        said, messages = self.beginning(_bare)
        rest = codec.dump_rows(self.rows(messages, self._encoded, _bare))
        return self.post(_PATH, auth, body, "messages", head, said, rest)

    def _tools(self) -> dict[str, Any]:
        options = self.options
        members: dict[str, Any] = {"tools": [tool.vendor or tool.to_openai_format() for tool in self.tools]}
        choice = options.tool_choice
        # A forced call is forced once: in the rounds after it the model must be free to answer.
        if choice is not None and not (self.has_recorded and choice not in ("auto", "none")):
            is_word = choice in ("auto", "none", "required")
            members["tool_choice"] = choice if is_word else {"type": "function", "function": {"name": choice}}
        if options.parallel_tool_calls is not None:
            members["parallel_tool_calls"] = options.parallel_tool_calls
        return members

    def _encoded(self, message: Message) -> Iterator[dict[str, Any]]:
        for result in message.results:
            yield result_entry(result)
        if message.calls:
            yield self._turn_with_calls(message)
        elif message.role == "assistant" and message.content:  # else it says something to another provider only
            yield self._with_state({"role": "assistant", "content": joined_text(message)}, message)
        elif len(message.results) < len(message.content):
            role = "user" if message.role == "tool" else message.role
            yield {"role": role, "content": content_parts(message)}

    def _turn_with_calls(self, message: Message) -> dict[str, Any]:
        text = joined_text(message)
        turn: dict[str, Any] = {"role": "assistant", "content": text or self.options.empty_content}
        if self.options.empty_content == "omit" and not text:
            del turn["content"]
        turn["tool_calls"] = [_call(call, self.provider) for call in message.calls]
        return self._with_state(turn, message)

    def _with_state(self, turn: dict[str, Any], message: Message) -> dict[str, Any]:
        state = unsealed(self.provider, message) if message.provider_state and self.options.replay_reasoning else {}
        thinking = state.pop("thinking", None)
        if thinking is not None:  # Mistral wants the parts back as it sent them
            parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thinking}]}]
            turn["content"] = parts + ([{"type": "text", "text": turn["content"]}] if message.text else [])
        return turn | state


def _bare(role: Role, text: str) -> dict[str, Any]:
    return {"role": "user" if role == "tool" else role, "content": text}


def _call(call: ToolUseBlock, provider: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": written(call.input)}
    state = call.provider_state or {}
    if state.get("provider") != provider:
        return {"id": call.id, "type": "function", "function": function}
    extras = {name: value for name, value in state.items() if name not in ("provider", "function")}
    return {"id": call.id, "type": "function", "function": {**state.get("function", {}), **function}, **extras}


def _response_format(options: AgentOptions) -> dict[str, Any]:
    form = options.response_format
    if not isinstance(form, Mapping):
        return {"type": "json_object"}
    from ..answer_schema import is_strict

    held = {"strict": True} if is_strict(form, options.base_url) else {}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(form), **held}}


def _limit_name(base_url: str) -> str:
    """OpenAI and Azure refuse the older name for their newer models; most others know only that."""
    host = urlsplit(base_url).hostname or ""
    newer = host == "api.openai.com" or host.endswith((".openai.azure.com", ".azure.com"))
    return "max_completion_tokens" if newer else "max_tokens"
