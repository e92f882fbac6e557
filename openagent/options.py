"""Everything a user may set, checked before any request.

``AgentOptions`` is frozen; ``replace`` gives a changed copy. A wrong setting raises ``ConfigError``
with its name and its value. What only a protocol can judge is asked of its adapter by the client.

Owns: the settings, their checks, and the one function that reads the environment.
Does not know: adapters, the client.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import ConfigError
from .hooks import Hooks
from .limits import Limits
from .presets import PRESETS, Preset, canonical_base_url, is_private, key_variable, ollama_address, origin, preset
from .retry import RetryConfig
from .values import dataclass, defaults, field

if TYPE_CHECKING:
    from .tools import Tool

DEFAULT_BASE_URL = "http://localhost:1234/v1"
TOOL_MODES = ("native", "emulated", "auto")
PROTOCOLS = ("openai-chat", "openai-responses", "anthropic")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Which settings another host must not inherit: the key goes to the one host that the user named with it.
_BOUND_TO_HOST = ("api_key", "headers", "cert")


def environment(*names: str) -> str | None:
    """The value of the first of these variables that is set; an empty variable is unset."""
    return next((value for name in names if (value := os.environ.get(name))), None)


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The settings of a client, or of one request.

    ``timeout`` is seconds to connect and the longest silence between bytes; ``deadline`` the seconds
    that one exchange may take in all. ``max_tool_iterations=0`` sends no tools.
    ``max_tool_result_chars`` counts over one exchange. ``response_format`` is a JSON Schema or
    ``"json"``. The calls of a turn run in up to ``tool_workers`` threads. ``approve`` is asked before each call
    (``openagent.ask_user`` asks at the terminal); a tool's own goes before it. A call that is made with the
    same arguments more than ``max_repeated_calls`` times is the last. ``tool_mode`` is ``"native"``,
    ``"emulated"`` (tools by structured output, for models and servers that have none; what the built-in
    model always gets) or ``"auto"`` (native unless the server refuses). ``rescue_tool_calls`` runs calls that
    a server left in the text. ``extra_body`` is merged into the request's body last.
    ``limits`` is how much a server may send.
    """

    model: str = ""
    base_url: str = ""
    provider: str = ""
    protocol: str | Callable[..., Any] = ""
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    system_prompt: str = ""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: str | tuple[str, ...] = ()
    seed: int | None = None
    tools: tuple[Any, ...] = ()
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    auto_execute_tools: bool = False
    max_tool_iterations: int = 5
    max_tool_calls: int = 15
    max_tool_result_chars: int = 300_000
    max_repeated_calls: int = 3
    tool_workers: int = 1
    approve: Callable[..., Any] | None = None
    tool_mode: str = "native"
    rescue_tool_calls: bool = False
    final_response: bool = True
    include_reasoning: bool = False
    reasoning_effort: str | int | None = None
    replay_reasoning: bool = True
    response_format: Mapping[str, Any] | str | None = None
    think_tags: bool = True
    cache_prompt: bool = False
    include_usage: bool = True
    empty_content: str | None = ""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    timeout: float | tuple[float, float] = (10.0, 600.0)
    deadline: float | None = None
    retry: RetryConfig | None = field(default_factory=RetryConfig)
    accept_unfinished: bool = False
    limits: Limits = field(default_factory=Limits)
    proxies: str | Mapping[str, str] | None = None
    verify: bool | str | None = None
    cert: str | tuple[str, str] | None = None

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in _DEFAULTS}
        self.__dict__["_as_given"] = given
        for name, value in (_resolved(given) | _normalised(given)).items():
            object.__setattr__(self, name, value)
        _check_switches(self)
        _check_sampling(self)
        _check_limits(self)
        _check_network(self)

    def replace(self, **changes: Any) -> AgentOptions:
        """A copy with these settings changed.

        A new provider brings its own address and protocol, and a key, headers and a certificate never
        follow to another host: give them again. What the environment said is kept.
        """
        check_names(changes)
        found = {name: getattr(self, name) for name in ("model", "base_url", "protocol", "tools")}
        given = self._given | found | {"api_key": self.api_key or ""} | changes
        if "provider" in changes:
            given |= {name: "" for name in ("base_url", "protocol") if name not in changes}
        if origin(_resolved(given)["base_url"]) != origin(self.base_url):
            given |= {name: _DEFAULTS[name] for name in _BOUND_TO_HOST if name not in changes}
        return AgentOptions(**given)

    @property
    def registry(self) -> dict[str, Tool]:
        """The tools by name, in order."""
        return _by_name(self.tools)

    @property
    def connect_timeout(self) -> float:
        """Seconds to wait for a connection."""
        return self.timeout[0] if isinstance(self.timeout, tuple) else self.timeout

    @property
    def read_timeout(self) -> float:
        """The longest silence between bytes, in seconds."""
        return self.timeout[1] if isinstance(self.timeout, tuple) else self.timeout

    @property
    def _given(self) -> dict[str, Any]:
        return dict(self.__dict__["_as_given"])

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.__dict__.items() if name in _DEFAULTS and value != _DEFAULTS[name]}
        if "api_key" in shown:
            shown["api_key"] = "***"
        if "headers" in shown:
            shown["headers"] = dict.fromkeys(shown["headers"], "***")
        if "tools" in shown:
            shown["tools"] = [tool.name for tool in self.tools]
        for name in ("proxies", "cert", "extra_body"):  # may hold passwords
            if name in shown:
                shown[name] = "***"
        address, mark, _ = shown.get("base_url", "").partition("?")
        if mark:  # a query may hold a key
            shown["base_url"] = f"{address}?***"
        return f"AgentOptions({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


_DEFAULTS = defaults(AgentOptions)


def check_names(settings: Iterable[str]) -> None:
    """``ConfigError`` if one of these is no setting, with the name that was probably meant."""
    for name in settings:
        if name not in _DEFAULTS:
            from difflib import get_close_matches  # slow to import

            close = get_close_matches(name, _DEFAULTS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see help(openagent.AgentOptions)"
            raise ConfigError(f"there is no setting {name!r}: {hint}")


def get_base_url(provider: str = "", fallback: str = DEFAULT_BASE_URL) -> str:
    """The address to talk to: the environment's, else the provider's, else the fallback."""
    found = environment("OPENAGENT_BASE_URL", "OPEN_AGENT_BASE_URL")
    usual = _own_address(preset(provider)) if provider else environment("OPENAI_BASE_URL")
    return canonical_base_url(found or usual or fallback)


def get_model(fallback: str | None = None, prefer_env: bool = True) -> str | None:
    """The model to ask: the environment's if it is preferred and set, else the fallback."""
    return (environment("OPENAGENT_MODEL", "OPEN_AGENT_MODEL") if prefer_env else None) or fallback


def _resolved(given: Mapping[str, Any]) -> dict[str, Any]:
    """Model, address, protocol and key, from what was given, the preset and the environment."""
    name = given["provider"]
    if not isinstance(name, str):
        raise ConfigError(f"provider {name!r} must be a name")
    known = preset(name) if name else None
    named = environment("OPENAGENT_BASE_URL", "OPEN_AGENT_BASE_URL")
    usual = named or environment("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    address = _text(given, "base_url") or (_own_address(known) if known else usual)
    address = canonical_base_url(address) if address else ""
    key = given["api_key"]
    if key is None:
        # Our variable goes with our address: it is not for a host that the program chose against it.
        ours = not named or canonical_base_url(named) == address
        key = _vendors_key(address) or (environment("OPENAGENT_API_KEY") if ours and address else None)
    model_name = _text(given, "model") or ("" if address == "" else get_model() or "")
    if not model_name.strip() and address:
        raise ConfigError("model is required: pass model=... or set OPENAGENT_MODEL")
    protocol = given["protocol"] or (known.protocol if known else "openai-chat")
    return {"base_url": address, "api_key": key or None, "model": model_name, "protocol": _protocol(protocol)}


def _own_address(known: Preset) -> str:
    """A preset's address, or the one that its own variable names."""
    named = environment(known.address_variable) if known.address_variable else None
    return (ollama_address(named) if named and known.address_variable == "OLLAMA_HOST" else named) or known.base_url


def _vendors_key(address: str) -> str | None:
    """The key in a vendor's variable: for its own host, or where the vendor's variable for the address points."""
    for known in PRESETS.values():
        named = environment(known.address_variable) if known.key_variable and known.address_variable else None
        is_there = named and is_private(address) and origin(canonical_base_url(named)) == origin(address)
        if is_there and (key := environment(known.key_variable)):
            return key
    variable = key_variable(address)
    return environment(variable) if variable else None


def _protocol(protocol: Any) -> Any:
    if callable(protocol):
        return protocol
    name = str(protocol).lower().replace("_", "-")
    name = {"openai": "openai-chat"}.get(name, name)
    if name not in PROTOCOLS:
        raise ConfigError(f"protocol {protocol!r} must be one of {', '.join(PROTOCOLS)} (or an adapter of your own)")
    return name


def _normalised(given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with one shape each: tuples, plain dicts, tools made of functions and dicts."""
    tools = given["tools"]
    if isinstance(tools, (str, Mapping)) or not isinstance(tools, Iterable):
        raise ConfigError(f"tools {tools!r:.100} must be a list of tools")
    stop, hooks, extra_body = given["stop"] or (), given["hooks"], given["extra_body"] or {}
    is_right = isinstance(stop, (str, list, tuple)) and all(isinstance(text, str) and text for text in stop)
    _check(is_right, "stop", stop, "a text or texts, none empty")
    _check(hooks is None or isinstance(hooks, Hooks), "hooks", hooks, "Hooks(...)")
    _check(isinstance(extra_body, Mapping), "extra_body", extra_body, "a dict")
    return {
        "tools": tuple(_by_name(tools).values()),
        "hooks": Hooks() if hooks is None else hooks,
        "stop": (stop,) if isinstance(stop, str) else tuple(stop),
        "headers": _headers(given["headers"]),
        "extra_body": dict(extra_body),
        "timeout": tuple(given["timeout"]) if isinstance(given["timeout"], (list, tuple)) else given["timeout"],
    }


def _by_name(tools: Iterable[Any]) -> dict[str, Tool]:
    tools = tuple(tools)
    if not tools:
        return {}
    from .tools import by_name

    return by_name(tools)


def _headers(headers: Any) -> dict[str, str]:
    """The headers, of names that differ only by case the last."""
    if not isinstance(headers, Mapping):
        raise ConfigError("headers must be a dict of names and values")
    checked: dict[str, tuple[str, str]] = {}
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ConfigError(f"header {name!r} has an invalid name")
        if not is_header_value(value):
            raise ConfigError(f"header {name!r} has an invalid value")  # which is not shown: it may be a secret
        checked[name.lower()] = (name, value)
    return dict(checked.values())


def is_header_value(value: Any) -> bool:
    """Whether a text can be the value of an HTTP header."""
    return (
        isinstance(value, str)
        and all(" " <= c <= "~" or c == "\t" or "\x80" <= c <= "\xff" for c in value)
        and value == value.strip()
    )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given[name]
    if not isinstance(value, str):
        raise ConfigError(f"{name} {value!r:.100} must be a text")
    if value and not value.strip():
        raise ConfigError(f"{name} {value!r} is blank")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _check(is_right: bool, name: str, value: Any, rule: str) -> None:
    if not is_right:
        raise ConfigError(f"{name} {value!r:.100} must be {rule}")


def _check_sampling(options: AgentOptions) -> None:
    for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1)):
        value = getattr(options, name)
        _check(value is None or (_is_number(value) and low <= value <= high), name, value, f"from {low} to {high}")
    for name, rule, least in (("max_tokens", "a whole number above 0", 1), ("seed", "a whole number", None)):
        value = getattr(options, name)
        is_right = value is None or (type(value) is int and (least is None or value >= least))
        _check(is_right, name, value, rule)
    _check(isinstance(options.system_prompt, str), "system_prompt", options.system_prompt, "a text")
    form = options.response_format
    _check(form in (None, "json") or isinstance(form, Mapping), "response_format", form, '"json" or a JSON Schema')
    effort = options.reasoning_effort
    _check(
        effort is None or (isinstance(effort, str) and bool(effort)) or (type(effort) is int and effort > 0),
        "reasoning_effort",
        effort,
        "a word such as 'low', or a number of tokens",
    )
    _check(options.empty_content in ("", None, "omit"), "empty_content", options.empty_content, '"", None or "omit"')
    choice = options.tool_choice
    choices = ("auto", "none", *(["required"] if options.tools else ()), *options.registry)
    is_known = choice is None or choice in choices
    _check(is_known, "tool_choice", choice, '"auto", "none", "required" (with tools) or the name of a tool')


def _check_switches(options: AgentOptions) -> None:
    for name, usual in _DEFAULTS.items():
        value = getattr(options, name)
        if isinstance(usual, bool) or (name == "parallel_tool_calls" and value is not None):
            _check(isinstance(value, bool), name, value, "True or False")


def _check_limits(options: AgentOptions) -> None:
    for name in ("max_tool_iterations", "max_tool_calls", "max_tool_result_chars"):
        value = getattr(options, name)
        _check(type(value) is int and value >= 0, name, value, "a whole number, 0 or more")
    for name in ("max_repeated_calls", "tool_workers"):
        value = getattr(options, name)
        _check(type(value) is int and value >= 1, name, value, "a whole number, 1 or more")
    approve = options.approve
    _check(approve is None or callable(approve), "approve", approve, "a function of a call, such as ask_user")
    _check(options.tool_mode in TOOL_MODES, "tool_mode", options.tool_mode, f"one of {', '.join(TOOL_MODES)}")
    _check(
        options.retry is None or isinstance(options.retry, RetryConfig), "retry", options.retry, "a RetryConfig or None"
    )


def _check_network(options: AgentOptions) -> None:
    _check(isinstance(options.limits, Limits), "limits", options.limits, "Limits(...)")
    waits = options.timeout if isinstance(options.timeout, tuple) else (options.timeout,) * 2
    is_right = len(waits) == 2 and all(_is_number(wait) and wait > 0 for wait in waits)
    _check(is_right, "timeout", options.timeout, "seconds above 0, or a pair (connect, read)")
    deadline = options.deadline
    _check(deadline is None or (_is_number(deadline) and deadline > 0), "deadline", deadline, "seconds above 0")
    proxies, verify, cert = options.proxies, options.verify, options.cert
    if not (proxies is None or isinstance(proxies, (str, Mapping))):  # not shown: it may hold a password
        raise ConfigError(f"proxies must be a URL or a dict of URLs, not {type(proxies).__name__}")
    _check(verify is None or isinstance(verify, (bool, str)), "verify", verify, "a bool or the path of a CA bundle")
    is_pair = isinstance(cert, tuple) and [type(part) for part in cert] == [str, str]
    _check(cert is None or isinstance(cert, str) or is_pair, "cert", cert, "a path, or a pair (certificate, key)")
    if options.api_key is not None and not is_header_value(options.api_key):
        raise ConfigError("api_key cannot be sent as an HTTP header: it holds blanks at its ends or odd characters")
