"""Docstrings: what they say of the whole and of each parameter.

Owns: reading the Google, NumPy, reST and Epydoc styles, by ``docstring_parser``. Does not know: types.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple


class Doc(NamedTuple):
    """The description of the whole, and the texts of the parameters by name."""

    text: str
    params: dict[str, str]


def documented(thing: Any) -> Doc:
    """What the docstring of a function or class says; empty where there is none."""
    text = inspect.cleandoc(vars(thing).get("__doc__") or "" if isinstance(thing, type) else thing.__doc__ or "")
    written = isinstance(thing, type) and text.startswith(f"{thing.__name__}(")  # by dataclass, or NamedTuple
    if not text or written:
        return Doc("", {})
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text)
    except Exception:  # a docstring is prose: what a parser makes of it must not stop a tool
        return Doc(text.strip(), {})
    params = {param.arg_name.lstrip("*"): _line(param.description) for param in parsed.params}
    return Doc((parsed.description or "").strip(), params)


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
