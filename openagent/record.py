"""The latest request and its response as values to look at, with nothing secret in them.

Owns: what was sent and heard last, what of it is masked, the same as a command for curl.
Does not know: how it is sent. What is masked is masked when somebody looks: a request pays nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from . import codec, faults
from .adapters import masked
from .options import AgentOptions
from .presets import key_variable
from .values import dataclass

MASK = "***"
PLAIN_HEADERS = {
    *("accept", "accept-encoding", "anthropic-version", "content-length", "content-type", "date", "retry-after"),
    *("request-id", "server", "transfer-encoding", "x-request-id"),
}
PLAIN_QUERY = {"alt", "api-version", "beta"}
KEY_HEADERS = {"authorization", "x-api-key", "api-key"}
ARGUMENT_BYTES = 100_000  # Linux takes 128 KiB in one argument


@dataclass(frozen=True)
class SentRequest:
    """A request as it went out: ``body`` is its JSON, None if it had none. Secrets are ``***``."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: Any
    key_variable: str = "OPENAGENT_API_KEY"

    def as_curl(self) -> str:
        """The request as a command for a POSIX shell; what is masked is a variable of the environment."""
        import shlex

        words = ["curl", "-X", shlex.quote(self.method), _quoted(self.url, self.key_variable)]
        for name, value in self.headers.items():
            if name.lower() != "content-length":
                words += ["-H", _quoted(f"{name}: {value}", self._variable(name))]
        if self.body is None:
            return " ".join(words)
        text = self.body if isinstance(self.body, str) else codec.dump(self.body)
        if len(text.encode()) <= ARGUMENT_BYTES:
            return " ".join([*words, "--data-raw", shlex.quote(text)])
        return " ".join([*words, "--data", "@-", "<<'EOF'"]) + f"\n{text}\nEOF\n"

    def _variable(self, header: str) -> str:
        if header.lower() in KEY_HEADERS:
            return self.key_variable
        return "OPENAGENT_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in header.upper())


@dataclass(frozen=True)
class HeardResponse:
    """The head of a response; ``seconds`` is the time from the sending to the headers. Secrets are ``***``."""

    status: int
    headers: Mapping[str, str]
    request_id: str | None
    seconds: float


class Record:
    """What one client sent and heard last."""

    def __init__(self) -> None:
        self._sent: tuple[Any, AgentOptions, float] | None = None
        self._heard: tuple[int, Mapping[str, str], AgentOptions, float] | None = None

    def sent(self, prepared: Any, options: AgentOptions) -> None:
        """A request, as ``requests`` prepared it, is about to go out."""
        self._sent, self._heard = (prepared, options, time.monotonic()), None

    def heard(self, status: int, headers: Mapping[str, str]) -> None:
        """The headers of its response are in."""
        if self._sent is not None:
            _, options, start = self._sent
            self._heard = (status, headers, options, time.monotonic() - start)

    @property
    def request(self) -> SentRequest | None:
        """The latest request, masked."""
        if self._sent is None:
            return None
        prepared, options, _ = self._sent
        headers = {name: value for name, value in prepared.headers.items() if value != "@@@SKIP_HEADER@@@"}
        variable = key_variable(options.base_url) or "OPENAGENT_API_KEY"
        url = masked(options, _plain_url(prepared.url or ""))
        return SentRequest(
            prepared.method or "", url, _plain(headers, options), _body(prepared.body, options), variable
        )

    @property
    def response(self) -> HeardResponse | None:
        """The head of the response to the latest request, masked; None if there was none."""
        if self._heard is None:
            return None
        status, headers, options, seconds = self._heard
        id = faults.request_id(headers)
        return HeardResponse(status, _plain(headers, options), id and masked(options, id), seconds)


def _plain(headers: Mapping[str, str], options: AgentOptions) -> dict[str, str]:
    return {name: _plain_value(name.lower(), value, options) for name, value in headers.items()}


def _plain_value(name: str, value: Any, options: AgentOptions) -> str:
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    if name in PLAIN_HEADERS:
        return masked(options, text)
    return f"Bearer {MASK}" if name == "authorization" and text.startswith("Bearer ") else MASK


def _plain_url(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")
    fields = [field.partition("=") for field in parts.query.split("&") if field]
    query = "&".join(f"{name}={value if name in PLAIN_QUERY else MASK}" for name, _, value in fields)
    return urlunsplit((parts.scheme, f"{MASK}@{host[2]}" if host[1] else host[2], parts.path, query, ""))


def _body(body: Any, options: AgentOptions) -> Any:
    if not body:
        return None
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
    try:
        return _masked_deep(codec.parse(text), options)
    except ValueError:
        return masked(options, text)


def _masked_deep(value: Any, options: AgentOptions) -> Any:
    if isinstance(value, str):
        return masked(options, value)
    if isinstance(value, dict):
        value = _without_sensitive(value, options)
        return {masked(options, name): _masked_deep(item, options) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked_deep(item, options) for item in value]
    return value


def _without_sensitive(part: dict[str, Any], options: AgentOptions) -> dict[str, Any]:
    """A call, on whatever wire, without the values of its tool's sensitive parameters."""
    sensitive = next((tool.sensitive for tool in options.tools if tool.name == part.get("name")), ())
    shown = dict(part)
    for member in ("arguments", "input"):
        given = part.get(member)
        if not sensitive or not isinstance(given, (str, dict)):
            continue
        try:
            plain = codec.parse(given) if isinstance(given, str) else given
            hidden = {name: MASK if name in sensitive else value for name, value in plain.items()}
        except (ValueError, AttributeError):  # no JSON object
            shown[member] = MASK
            continue
        shown[member] = codec.dump(hidden) if isinstance(given, str) else hidden
    return shown


def _quoted(text: str, variable: str) -> str:
    """The text as one word for a shell, with a variable for what is masked."""
    import shlex

    return f'"${variable}"'.join(shlex.quote(part) if part else "" for part in text.split(MASK))
