"""A synchronous LLM agent client: a plain object, a ``for`` loop, no asyncio.

>>> from openagent import Client
>>> client = Client(model="qwen3:8b", provider="ollama")  # doctest: +SKIP
>>> for text in client.stream("Hello!"):  # doctest: +SKIP
...     print(text, end="", flush=True)
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters import ProviderAdapter, Request, WireAdapter
    from .adapters.openai_chat_messages import from_openai, to_openai
    from .approval import Approval, ask_user
    from .batch import Budget, Pace, Result, map_prompts
    from .client import Client, query
    from .decoding import TurnDecoder
    from .errors import (
        AgentError,
        APIError,
        ConfigError,
        ContextOverflowError,
        InvalidResponseError,
        PromptBlockedError,
        StreamInterruptedError,
        Timeout,
        ToolError,
        TransportError,
    )
    from .events import (
        CallAnnounced,
        CallFinished,
        CallStarted,
        Event,
        ReasoningDelta,
        Response,
        ResponseStarted,
        RoundFinished,
        RunFinished,
        TextDelta,
        TurnFinished,
    )
    from .history import coalesce_text_blocks, estimate_tokens, is_approaching_limit, truncate_messages
    from .hooks import (
        HOOK_POST_TOOL_USE,
        HOOK_PRE_TOOL_USE,
        HOOK_USER_PROMPT_SUBMIT,
        HookDecision,
        Hooks,
        PostToolUseEvent,
        PreToolUseEvent,
        UserPromptSubmitEvent,
    )
    from .limits import Limits
    from .messages import (
        ContentBlock,
        FinishReason,
        ImageBlock,
        Message,
        TextBlock,
        ToolResultBlock,
        ToolUseBlock,
        Usage,
    )
    from .notebook import load_ipython_extension
    from .options import AgentOptions, get_base_url, get_model
    from .profiles import profile
    from .retry import RetryConfig, is_retryable_error
    from .tools import Tool, tool, tools_of
    from .transport import retry_with_backoff, retry_with_backoff_conditional

__version__ = "0.1.0"

__all__ = [
    "HOOK_POST_TOOL_USE",
    "HOOK_PRE_TOOL_USE",
    "HOOK_USER_PROMPT_SUBMIT",
    "APIError",
    "AgentError",
    "AgentOptions",
    "Approval",
    "Budget",
    "CallAnnounced",
    "CallFinished",
    "CallStarted",
    "Client",
    "ConfigError",
    "ContentBlock",
    "ContextOverflowError",
    "Event",
    "FinishReason",
    "HookDecision",
    "Hooks",
    "ImageBlock",
    "InvalidResponseError",
    "Limits",
    "Message",
    "Pace",
    "PostToolUseEvent",
    "PreToolUseEvent",
    "PromptBlockedError",
    "ProviderAdapter",
    "ReasoningDelta",
    "Request",
    "Response",
    "ResponseStarted",
    "Result",
    "RetryConfig",
    "RoundFinished",
    "RunFinished",
    "StreamInterruptedError",
    "TextBlock",
    "TextDelta",
    "Timeout",
    "Tool",
    "ToolError",
    "ToolResultBlock",
    "ToolUseBlock",
    "TransportError",
    "TurnDecoder",
    "TurnFinished",
    "Usage",
    "UserPromptSubmitEvent",
    "WireAdapter",
    "ask_user",
    "coalesce_text_blocks",
    "estimate_tokens",
    "from_openai",
    "get_base_url",
    "get_model",
    "is_approaching_limit",
    "is_retryable_error",
    "load_ipython_extension",
    "map_prompts",
    "profile",
    "query",
    "retry_with_backoff",
    "retry_with_backoff_conditional",
    "to_openai",
    "tool",
    "tools_of",
    "truncate_messages",
]

# Where each name lives. A room is imported when something of it is asked for: the command line needs few of them.
_ROOMS = {
    "adapters": "ProviderAdapter Request WireAdapter",
    "adapters.openai_chat_messages": "from_openai to_openai",
    "approval": "Approval ask_user",
    "batch": "Budget Pace Result map_prompts",
    "client": "Client query",
    "decoding": "TurnDecoder",
    "errors": (
        "AgentError APIError ConfigError ContextOverflowError InvalidResponseError PromptBlockedError "
        "StreamInterruptedError Timeout ToolError TransportError"
    ),
    "events": (
        "CallAnnounced CallFinished CallStarted Event ReasoningDelta Response ResponseStarted RoundFinished "
        "RunFinished TextDelta TurnFinished"
    ),
    "history": "coalesce_text_blocks estimate_tokens is_approaching_limit truncate_messages",
    "hooks": (
        "HOOK_POST_TOOL_USE HOOK_PRE_TOOL_USE HOOK_USER_PROMPT_SUBMIT HookDecision Hooks PostToolUseEvent "
        "PreToolUseEvent UserPromptSubmitEvent"
    ),
    "limits": "Limits",
    "messages": "ContentBlock FinishReason ImageBlock Message TextBlock ToolResultBlock ToolUseBlock Usage",
    "notebook": "load_ipython_extension",
    "options": "AgentOptions get_base_url get_model",
    "profiles": "profile",
    "retry": "RetryConfig is_retryable_error",
    "tools": "Tool tool tools_of",
    "transport": "retry_with_backoff retry_with_backoff_conditional",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        return getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if "IPython" in sys.modules:  # a notebook shows our values as HTML from the start
    from .notebook import register_if_there

    register_if_there()
