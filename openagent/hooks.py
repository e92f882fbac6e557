"""Functions of the user that look at a run and may change it.

A chain per point. The functions of a chain run in order; each sees what the ones before it
changed; the first block ends the chain. (A hook that merely says "continue" ends nothing, so a
logger cannot switch a later guard off.) An exception in a hook is the user's and passes unchanged.

Owns: the chain and the values its functions see and return. Does not know: tools, providers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, Union

from .errors import ConfigError
from .messages import Message
from .values import dataclass, field, replace

HOOK_PRE_TOOL_USE = "pre_tool_use"
HOOK_POST_TOOL_USE = "post_tool_use"
HOOK_USER_PROMPT_SUBMIT = "user_prompt_submit"


@dataclass(frozen=True)
class PreToolUseEvent:
    """A call is about to be run; ``history`` ends with the turn that asks for it and what was answered so far."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    history: tuple[Message, ...]


@dataclass(frozen=True)
class PostToolUseEvent:
    """A call has its result; ``history`` ends with the result as the tool gave it."""

    tool_name: str
    tool_input: dict[str, Any]
    tool_use_id: str
    tool_result: Any
    is_error: bool
    history: tuple[Message, ...]


@dataclass(frozen=True)
class UserPromptSubmitEvent:
    """The caller's prompt is about to be sent; it is not yet in ``history``."""

    prompt: str
    history: tuple[Message, ...]


HookEvent = Union[PreToolUseEvent, PostToolUseEvent, UserPromptSubmitEvent]


@dataclass(frozen=True)
class HookDecision:
    """What a hook wants: one of the five constructors below. Returning None means to go on."""

    action: str
    value: Any = None
    reason: str = ""

    @classmethod
    def continue_(cls) -> HookDecision:
        """Go on, nothing changed."""
        return cls("continue")

    @classmethod
    def block(cls, reason: str = "") -> HookDecision:
        """Do not send the prompt, do not run the call, do not show the result; say why."""
        return cls("block", reason=reason)

    @classmethod
    def modify_input(cls, value: dict[str, Any], reason: str = "") -> HookDecision:
        """Run the call with this input. (``pre_tool_use``)"""
        return cls("modify_input", value, reason)

    @classmethod
    def modify_prompt(cls, text: str, reason: str = "") -> HookDecision:
        """Send this prompt instead. (``user_prompt_submit``)"""
        return cls("modify_prompt", text, reason)

    @classmethod
    def modify_result(cls, value: Any, reason: str = "") -> HookDecision:
        """Show the model this result instead. (``post_tool_use``)"""
        return cls("modify_result", value, reason)


Hook = Callable[[Any], Union[HookDecision, None]]
_Seen = TypeVar("_Seen", PreToolUseEvent, PostToolUseEvent, UserPromptSubmitEvent)


@dataclass(frozen=False)
class Hooks:
    """The three chains. ``add_...`` appends and returns the same object, so that calls can be chained."""

    pre_tool_use: list[Hook] = field(default_factory=list)
    post_tool_use: list[Hook] = field(default_factory=list)
    user_prompt_submit: list[Hook] = field(default_factory=list)

    def add_pre_tool_use(self, hook: Hook) -> Hooks:
        """Ask this function before each call; it gets a ``PreToolUseEvent``."""
        self.pre_tool_use.append(hook)
        return self

    def add_post_tool_use(self, hook: Hook) -> Hooks:
        """Ask this function after each call; it gets a ``PostToolUseEvent``."""
        self.post_tool_use.append(hook)
        return self

    def add_user_prompt_submit(self, hook: Hook) -> Hooks:
        """Ask this function before each prompt of the caller; it gets a ``UserPromptSubmitEvent``."""
        self.user_prompt_submit.append(hook)
        return self


def ask(chain: list[Hook], event: _Seen, *, action: str, changes: str) -> tuple[_Seen, HookDecision | None]:
    """The event as the chain changed it, and the block that ended the chain, if one did.

    ``action`` is the one modification that makes sense at this point, ``changes`` the field of the
    event that it replaces.
    """
    for hook in chain:
        decision = _decision(hook, event, action)
        if decision.action == "block":
            return event, decision
        if decision.action == action:
            event = replace(event, **{changes: decision.value})
    return event, None


def _decision(hook: Hook, event: HookEvent, action: str) -> HookDecision:
    decision = hook(event)
    if decision is None:
        return HookDecision.continue_()
    name = getattr(hook, "__name__", repr(hook))
    if not isinstance(decision, HookDecision):
        raise ConfigError(f"hook {name} returned {decision!r:.100}; it must return None or a HookDecision")
    if decision.action not in ("continue", "block", action):
        raise ConfigError(f"hook {name} returned {decision.action}, which has no meaning here; {action} has")
    if decision.action == "modify_input" and not isinstance(decision.value, dict):
        raise ConfigError(f"hook {name} changed the input to {decision.value!r:.100}; it must be a dict")
    if decision.action == "modify_prompt" and not isinstance(decision.value, str):
        raise ConfigError(f"hook {name} changed the prompt to {decision.value!r:.100}; it must be a str")
    return decision
