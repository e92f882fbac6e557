"""The rules that every strict vendor has in common.

Owns: what a request must be on each wire, and how a rule is broken. Does not know: a wire's
own rules.
Source: the vendors' API references and the 400 answers their servers give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from .script import Request

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IMAGE = re.compile(r"https?://\S+|data:image/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}")
_NEVER_NULL = ("tools", "max_tokens", "tool_choice")


class Refused(Exception):
    """The request breaks a rule; its text is what the vendor would say."""


def demand(condition: object, message: str) -> None:
    """Go on if the condition is true, else refuse the request."""
    if not condition:
        raise Refused(message)


def check_request(request: Request) -> dict[str, Any]:
    """The body of a request that keeps the common rules; ``Refused`` for any other."""
    demand(request.method == "POST", f"Invalid method for URL ({request.method} {request.path}). Use POST.")
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    demand(kind == "application/json", f"Unsupported content type: {kind!r}. Use 'application/json'.")
    body = _parsed(request.raw)
    demand(isinstance(body, dict), "The request body must be a JSON object.")
    for name in _NEVER_NULL:
        demand(body.get(name, 0) is not None, f"Invalid type for '{name}': got null instead. Leave it out.")
    model = body.get("model")
    demand(isinstance(model, str) and model, "you must provide a model parameter")
    demand(isinstance(body.get("stream") or False, bool), "Invalid type for 'stream': expected a boolean.")
    return body  # type: ignore[no-any-return]


def _parsed(raw: bytes) -> Any:
    try:
        body = json.loads(raw.decode(), parse_constant=_no_constant)
        if b"\\ud" in raw.lower():
            json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as exc:
        raise Refused(f"We could not parse the JSON body of your request: {exc}") from exc
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def check_bearer(headers: Mapping[str, str]) -> None:
    """An Authorization header, if there is one, holds a bearer token."""
    given = headers.get("authorization")
    demand(given is None or re.fullmatch(r"Bearer \S+", given), "Invalid Authorization header: expected 'Bearer KEY'.")


def check_name(name: Any, where: str) -> None:
    """The name is one that a function may have."""
    demand(isinstance(name, str) and _NAME.fullmatch(name), f"Invalid '{where}': expected the pattern {_NAME.pattern}.")


def check_arguments(text: Any, where: str) -> None:
    """The arguments are the text of a JSON object."""
    demand(isinstance(text, str), f"Invalid type for '{where}': expected a string.")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        value = None
    demand(isinstance(value, dict), f"Invalid '{where}': expected the JSON text of an object.")


def check_schema(schema: Any, where: str) -> None:
    """The schema describes an object."""
    good = isinstance(schema, dict) and schema.get("type") == "object"
    demand(good, f"Invalid schema for '{where}': schema must be a JSON Schema of 'type: \"object\"'.")


def check_image_url(url: Any, where: str) -> None:
    """The URL is one that a vendor can load an image from."""
    good = isinstance(url, str) and _IMAGE.fullmatch(url)
    demand(good, f"Invalid '{where}': expected an http(s) URL or a base64 data URL of an image.")


def check_text(text: Any, where: str) -> None:
    """The text is a string with something in it."""
    demand(isinstance(text, str), f"Invalid type for '{where}': expected a string.")
    demand(text, f"Invalid '{where}': empty string. Expected a string with minimum length 1.")


def checked_object(value: Any, where: str) -> dict[str, Any]:
    """The value, an object."""
    demand(isinstance(value, dict), f"Invalid type for '{where}': expected an object.")
    return value  # type: ignore[no-any-return]


def checked_list(value: Any, where: str) -> list[Any]:
    """The value, a list of at least one."""
    demand(isinstance(value, list), f"Invalid type for '{where}': expected an array.")
    demand(value, f"Invalid '{where}': empty array. Expected an array with minimum length 1.")
    return value  # type: ignore[no-any-return]


def checked_objects(value: Any, where: str) -> list[dict[str, Any]]:
    """The value, a list of at least one object."""
    return [checked_object(entry, f"{where}[{index}]") for index, entry in enumerate(checked_list(value, where))]


def check_tool_names(names: list[Any]) -> None:
    """No two tools have one name."""
    demand(len(set(names)) == len(names), "tools: Tool names must be unique.")


def check_positive(body: Mapping[str, Any], name: str) -> None:
    """The member, if there is one, is a positive integer."""
    value = body.get(name, 1)
    demand(type(value) is int and value > 0, f"Invalid '{name}': expected an integer of at least 1.")


def check_answer_schema(schema: Any, where: str, *, all_required: bool) -> None:
    """Every object in the schema is closed and, if so asked, has all its properties required."""
    if isinstance(schema, list):
        for part in schema:
            check_answer_schema(part, where, all_required=all_required)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        demand(closed, f"{where}: For 'object' type, 'additionalProperties' must be explicitly set to false")
        whole = not all_required or set(schema.get("required", ())) == set(schema.get("properties", ()))
        demand(whole, f"Invalid schema for '{where}': 'required' must include every key in properties.")
    for name, part in schema.items():
        inner = list(part.values()) if name in ("properties", "$defs") and isinstance(part, dict) else part
        check_answer_schema(inner, where, all_required=all_required)
