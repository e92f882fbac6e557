"""What a server says when it says no, as one of our errors.

Error bodies look alike on all wires and differ from host to host: an object or a text under
``error``, a list around it, FastAPI's ``detail``, an HTML page of a proxy. This room reads them all.

Owns: reading refusals: message, status, request id, retry-after, context overflow.
Does not know: how a refusal came (HTTP or stream), what is done about it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from . import codec
from .errors import AgentError, APIError, ContextOverflowError, InvalidResponseError
from .retry import RETRYABLE_STATUSES

MAX_BODY_CHARS = 2000
MAX_SAMPLE_CHARS = 200

Mask = Callable[[str], str]  # a text without the secrets in it; asked before a text is cut, or half a secret stays

_STATUS_OF_TYPE = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
}
_OVERFLOW = (  # compiled when there is an error: 0.7 ms
    r"exceed_context_size|context_length_exceeded|maximum context length|prompt is too long|prompt exceeds max length"
    r"|exceeds? (the )?(available |model'?s? |maximum )?context|tokens in request more than max tokens allowed"
    r"|context (window|size|length)[^.]{0,40}(exceed|overflow|too)|exceed context limit|input (is )?too long"
    r"|input[^.]{0,60}exceeds?[^.]{0,40}(token|context)[^.]{0,20}(limit|allowed)"
    r"|context the overflows|greater than the context length"  # LM Studio
    r"|inputs` tokens \+ `max_new_tokens` must be"  # TGI
)
_OUTPUT_LIMIT = r"max_(completion_|output_)?tokens\W[^.]{0,40}is too large"  # vLLM
_HINTS = {
    401: "check api_key",
    403: "check api_key and what it may do",
    404: "check the model's name, and base_url: it usually ends with /v1",
    405: "check base_url: it usually ends with /v1",
}


def from_status(status: int, headers: Mapping[str, str], body: bytes, *, url: str, mask: Mask = str) -> AgentError:
    """The error of an HTTP reply that is not 2xx. ``headers`` must ignore case."""
    text = mask(body.decode("utf-8", "replace").strip())
    if 300 <= status < 400:
        place = headers.get("Location", "nowhere").partition("?")[0]
        return APIError(
            f"API error {status}: {url} redirects to {place}; redirects are not followed: set base_url to its target",
            status=status,
            body=text[:MAX_BODY_CHARS],
        )
    said = _parsed(text)
    return _error(_message(said) or _snippet(text) or "(no text)", status, headers, text, _object(said))


def from_payload(error: Any, headers: Mapping[str, str], *, whole: Any = None, mask: Mask = str) -> APIError:
    """The error of an error object or text inside a reply that began well."""
    said = {"error": error} if not isinstance(error, dict) else error
    message = _message(said) or "the server reported an error without details"
    kind = said.get("type")
    if isinstance(kind, str) and kind and kind != "error" and not message.startswith(kind):
        message = f"{kind}: {message}"
    body = _json(error if whole is None else whole)
    return _error(mask(message), _status(said), headers, mask(body), said)


def not_an_answer(status: int, headers: Mapping[str, str], body: bytes, *, mask: Mask = str) -> InvalidResponseError:
    """The error of a 2xx reply that is no answer at all, such as a web page."""
    text = mask(body.decode("utf-8", "replace"))
    kind = headers.get("Content-Type", "no content type")
    return InvalidResponseError(
        f"the reply (status {status}, {kind}) is no answer of this protocol; it starts with "
        f"{text[:MAX_SAMPLE_CHARS]!r}. Check base_url: it usually ends with /v1",
        status=status,
        body=text[:MAX_BODY_CHARS],
    )


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """The seconds that the server asks to wait: ``retry-after-ms``, or ``Retry-After`` as seconds or date."""
    from email.utils import parsedate_to_datetime

    for name, unit in (("retry-after-ms", 1000.0), ("Retry-After", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("Retry-After", ""))
        return max(0.0, date.timestamp() - (time.time() if now is None else now))
    except (ValueError, TypeError, OverflowError):
        return None


def request_id(headers: Mapping[str, str]) -> str | None:
    """The server's name for the request, by its usual headers."""
    return headers.get("x-request-id") or headers.get("request-id")


def _error(
    message: str, status: int | None, headers: Mapping[str, str], body: str, said: Mapping[str, Any]
) -> APIError:
    message, body = codec.mend(message), codec.mend(body)  # or they could not be printed
    overflow = status in (None, 400, 413, 422, 500) and _is_overflow(f"{message} {said.get('code')} {said.get('type')}")
    asked = headers.get("x-should-retry", "").lower()
    retryable = asked == "true" if asked in ("true", "false") else status in RETRYABLE_STATUSES
    wait = retry_after(headers)
    hint = _HINTS.get(status or 0) or (None if wait is None else f"the server asks to wait {wait:g} s")
    return (ContextOverflowError if overflow else APIError)(
        f"API error{'' if status is None else f' {status}'}: {message[:MAX_BODY_CHARS]}{f' ({hint})' if hint else ''}",
        retryable=retryable and not overflow,
        status=status,
        body=body[:MAX_BODY_CHARS],
        request_id=request_id(headers),
        retry_after=wait,
    )


def _is_overflow(words: str) -> bool:
    return bool(re.search(_OVERFLOW, words, re.IGNORECASE)) and not re.search(_OUTPUT_LIMIT, words, re.IGNORECASE)


def _parsed(text: str) -> Any:
    try:
        return codec.parse(text)
    except ValueError:
        return None


def _json(payload: Any) -> str:
    try:
        return codec.dump(payload)
    except ValueError:  # nested as deeply as could be read, but not written
        return ""


def _object(said: Any) -> dict[str, Any]:
    """The error object of an error body, where there is one."""
    if isinstance(said, list) and said:
        said = said[0]
    if isinstance(said, dict) and isinstance(said.get("error"), dict):
        said = said["error"]
    return said if isinstance(said, dict) else {}


def _message(said: Any, depth: int = 8) -> str:
    """The words in an error body, wherever this server puts them."""
    if isinstance(said, str):
        return said.strip()
    if depth and isinstance(said, list):
        return next((message for item in said if (message := _message(item, depth - 1))), "")
    if depth and isinstance(said, dict):
        for key in ("error", "message", "detail", "msg", "errors", "error_message", "type"):
            if message := _message(said.get(key), depth - 1):
                return message
    return ""


def _snippet(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).strip()[:MAX_SAMPLE_CHARS]


def _status(said: Mapping[str, Any]) -> int | None:
    for key in ("code", "status", "status_code", "http_code"):
        code = said.get(key)
        if type(code) is int and 400 <= code <= 599:
            return code
    for key in ("type", "code"):
        kind = said.get(key)
        if isinstance(kind, str) and kind in _STATUS_OF_TYPE:
            return _STATUS_OF_TYPE[kind]
    return None
