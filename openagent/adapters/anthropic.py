"""Anthropic Messages, both ways.

A turn goes back to its provider as it came, all blocks in order, from the state of its message; to any
other provider, or edited, as our own blocks say it.

Owns: the JSON of ``/messages``. Does not know: other protocols, network, the loop.
Source: https://docs.anthropic.com/en/api/messages, .../tool-use, .../extended-thinking, .../prompt-caching
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import codec
from ..answer_schema import ANTHROPIC
from ..errors import ConfigError
from ..messages import Message
from ..options import AgentOptions
from ..tools import Tool
from . import Request, WireAdapter, check_extra_body, unsealed, written
from .anthropic_conversation import (
    CUT_OFF,
    Block,
    Turn,
    bare_turn,
    blocks_of,
    goes_on_without_thought,
    has_calls,
    is_prompt,
    text_block,
    turns_of,
)
from .anthropic_turn import AnthropicTurn

DEFAULT_MAX_TOKENS = 4096  # this wire must be told a limit
MIN_THINKING_TOKENS = 1024

_PATH = "/messages"
_VERSION = "2023-06-01"
_MARK = {"type": "ephemeral"}
_WORDS = {"auto": "auto", "none": "none", "required": "any"}


class Anthropic(WireAdapter):
    """The adapter of ``protocol="anthropic"``.

    ``reasoning_effort`` is a number of tokens to think with at most, a word that leaves it to the model
    (``output_config.effort``), or ``"none"``.
    """

    @classmethod
    def check(cls, options: AgentOptions) -> None:
        """No seed, no JSON without a schema, no temperature above 1, and what thinking rules out."""
        check_extra_body(options)
        if options.seed is not None:
            raise ConfigError(f"seed {options.seed} cannot be set on this protocol")
        if options.response_format == "json":
            raise ConfigError("response_format 'json' cannot be asked for on this protocol: give a JSON Schema")
        if options.temperature is not None and options.temperature > 1:
            raise ConfigError(f"temperature {options.temperature} must be from 0 to 1 on this protocol")
        if isinstance(options.reasoning_effort, int):
            _check_thinking(options, options.reasoning_effort)

    def decoder(self, headers: Mapping[str, str]) -> AnthropicTurn:
        """A decoder for one turn."""
        return AnthropicTurn(headers, provider=self.provider)

    def encode(self, instruction: str | None, include_tools: bool) -> Request:
        """The request for the next round."""
        options = self.options
        said, messages = self.beginning(bare_turn)
        turns = turns_of(
            messages, provider=self.provider, replay_reasoning=options.replay_reasoning, is_beginning=not said
        )
        if not turns:
            raise ConfigError("there is nothing to send: all that the conversation says is blank")
        body: dict[str, Any] = {
            "model": options.model,
            "max_tokens": _max_tokens(options),
            "stream": True,
        }
        if system := self._system(messages, instruction):
            body["system"] = system
        for name in ("temperature", "top_p"):
            if getattr(options, name) is not None:
                body[name] = getattr(options, name)
        if options.stop:
            body["stop_sequences"] = list(options.stop)
        body |= _thinking(options, turns) | _output_config(options) | self._tools(include_tools, turns)
        if container := self._container(turns):
            body["container"] = container
        if options.cache_prompt:
            _mark(body, turns)
        # The input of a call may be the caller's own.
        rest = memoryview(written(turns).encode())[1:-1] if has_calls(turns) else codec.dump_rows(turns)
        head = codec.dump_rows([CUT_OFF]) if said and self.messages[0].role == "assistant" else b""
        return self.post(_PATH, self._head(), body, "messages", head, said, rest)

    def _head(self) -> dict[str, str]:
        head = {"anthropic-version": _VERSION}
        # The vendor refuses two keys; a header of the user's own wins.
        has_own = any(name.lower() == "authorization" for name in self.options.headers)
        return head | ({"x-api-key": self.options.api_key} if self.options.api_key and not has_own else {})

    def _system(self, messages: Sequence[Message], instruction: str | None) -> str:
        """All that the system says: on this wire it has one place, before the conversation."""
        said = [message.text for message in messages if message.role == "system"]
        return "\n\n".join(text for text in (self.system_prompt(instruction), *said) if text.strip())

    def _tools(self, include_tools: bool, turns: Sequence[Turn]) -> dict[str, Any]:
        """The tools; in a round without any, only if the conversation has calls.

        Then they are there but not to be used: Bedrock and some gateways refuse calls in the conversation
        of a request without tools.
        """
        options = self.options
        if not include_tools and not (self.tools and has_calls(turns)):
            return {}
        members: dict[str, Any] = {"tools": [_tool(tool) for tool in self.tools]}
        if not include_tools:
            return members | {"tool_choice": {"type": "none"}}
        choice = options.tool_choice
        if self.has_recorded and choice not in ("auto", "none"):
            choice = None  # a forced call is forced once
        if choice is None and options.parallel_tool_calls is not False:
            return members
        named = _choice(choice or "auto")
        if options.parallel_tool_calls is False and named["type"] != "none":
            named["disable_parallel_tool_use"] = True
        return members | {"tool_choice": named}

    def _container(self, turns: Sequence[Turn]) -> str | None:
        """Where the server runs the code of the turn that goes on; it is wanted only then."""
        if is_prompt(turns[-1]):
            return None
        spoken = next((message for message in reversed(self.messages) if message.role == "assistant"), None)
        return unsealed(self.provider, spoken).get("container") if spoken else None


def _check_thinking(options: AgentOptions, budget: int) -> None:
    """What the vendor refuses together with a number of thinking tokens."""
    together = f"together with reasoning_effort {budget}"
    if budget < MIN_THINKING_TOKENS:
        raise ConfigError(f"reasoning_effort {budget} must be at least {MIN_THINKING_TOKENS} tokens on this protocol")
    if options.max_tokens is not None and options.max_tokens <= budget:
        raise ConfigError(
            f"max_tokens {options.max_tokens} must be more than reasoning_effort {budget}: it includes it"
        )
    if options.temperature not in (None, 1):
        raise ConfigError(f"temperature {options.temperature} cannot be set {together}")
    if options.top_p is not None and options.top_p < 0.95:
        raise ConfigError(f"top_p {options.top_p} must be at least 0.95 {together}")
    if options.tool_choice not in (None, "auto", "none"):
        raise ConfigError(f"tool_choice {options.tool_choice!r} cannot be forced {together}")


def _max_tokens(options: AgentOptions) -> int:
    budget = options.reasoning_effort if isinstance(options.reasoning_effort, int) else 0
    return DEFAULT_MAX_TOKENS + budget if options.max_tokens is None else options.max_tokens


def _thinking(options: AgentOptions, turns: Sequence[Turn]) -> dict[str, Any]:
    effort = options.reasoning_effort
    if effort is None:
        return {}
    if isinstance(effort, int):
        # A turn that began without thinking (with another provider, say) must go on without.
        if goes_on_without_thought(turns):
            return {}
        return {"thinking": {"type": "enabled", "budget_tokens": effort}}
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    shown = {"display": "summarized"} if options.include_reasoning else {}  # newer models hide it by default
    return {"thinking": {"type": "adaptive", **shown}}


def _output_config(options: AgentOptions) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if isinstance(options.reasoning_effort, str) and options.reasoning_effort != "none":
        config["effort"] = options.reasoning_effort
    if isinstance(options.response_format, Mapping):
        config["format"] = {"type": "json_schema", "schema": dict(options.response_format)}
    return {"output_config": config} if config else {}


def _tool(tool: Tool) -> Block:
    if tool.vendor is not None:
        return dict(tool.vendor)
    described = {"description": tool.description} if tool.description else {}
    held = {"strict": True} if tool.strict else {}
    return {"name": tool.name, **described, "input_schema": tool.told_schema(ANTHROPIC), **held}


def _choice(choice: str) -> dict[str, Any]:
    return {"type": _WORDS[choice]} if choice in _WORDS else {"type": "tool", "name": choice}


def _mark(body: dict[str, Any], turns: Sequence[Turn]) -> None:
    """Marks what the next request will begin with too: tools, system, the conversation so far (three of four)."""
    if body.get("tools"):
        body["tools"][-1] = _marked(body["tools"][-1])
    if "system" in body:
        body["system"] = [_marked(text_block(body["system"]))]
    asked = next((turn for turn in reversed(turns) if turn["role"] == "user"), None)
    if asked is not None:
        *others, last = blocks_of(asked)
        asked["content"] = [*others, _marked(last)]


def _marked(block: Block) -> Block:
    return {"cache_control": _MARK} | block
