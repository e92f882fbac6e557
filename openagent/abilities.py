"""What servers have said they cannot do, as one client has heard it, so that it does not ask anew.

Owns: reading such refusals, remembering them. Does not know: requests, what is done instead.
"""

from __future__ import annotations

import re
from typing import Any

from .errors import APIError
from .options import AgentOptions

TOOLS = "tools"
ANSWER_FORMAT = "structured output"
FORCED_CALL = "forced calls"


class Abilities:
    """What each server, by protocol, address and model, is known to lack."""

    def __init__(self) -> None:
        self._lacking: set[tuple[Any, ...]] = set()

    def lacks(self, options: AgentOptions, what: str) -> bool:
        """Whether the server of these options has said that it cannot do this."""
        return _key(options, what) in self._lacking

    def note(self, options: AgentOptions, what: str) -> None:
        """The server of these options cannot do this."""
        self._lacking.add(_key(options, what))

    def forget(self) -> None:
        """Ask anew."""
        self._lacking.clear()


def _key(options: AgentOptions, what: str) -> tuple[Any, ...]:
    return (options.protocol, options.base_url, options.model, what)


# Ollama: "... does not support tools"; vLLM: '"auto" tool choice requires --enable-auto-tool-choice ...'; llama.cpp:
# "tools param requires --jinja flag"; OpenRouter: "No endpoints found that support tool use"; Groq: "`tool calling` is
# not supported with this model".
_NO_TOOLS = (
    r"tools?\b.{0,60}(not supported|unsupported|requires? --)"
    r"|(not|n't|no \w+( found)?( that)?) support.{0,30}\btools?\b"
    r"|(not|n't) support.{0,20}\bfunction.?call"
)
# OpenAI, Groq, DeepSeek, vLLM and others name the member they refuse; Anthropic's older models name theirs.
_NO_FORMAT = r"response_?format|json[_ ]?schema|output_config|output_format|structured.?output"
# OpenAI: "Invalid schema for response_format 'answer': ..."; Anthropic: "output_config.format.schema: ..."; vLLM: "The
# provided JSON schema contains features not supported by xgrammar."; llama.cpp: "JSON schema conversion failed: ...".
_BAD_SCHEMA = r"invalid.{0,12}schema|format\.schema|schema (is too|contains|conversion)"
# DeepSeek: "Thinking mode does not support this tool_choice"; Moonshot: "tool_choice 'required' is incompatible ...".
_NO_CHOICE = r"tool_?choice"


def says_no_tools(error: APIError) -> bool:
    """Whether the server refused a request because of its tools."""
    return error.status in (None, 400, 404, 422, 500, 501) and _says(error, _NO_TOOLS)


def says_no_format(error: APIError) -> bool:
    """Whether the server refused a request because of the form that the answer was to have."""
    return error.status in (None, 400, 404, 405, 422, 500, 501) and _says(error, _NO_FORMAT)


def says_bad_schema(error: APIError) -> bool:
    """Whether it refused just this schema, and may take another."""
    return _says(error, _BAD_SCHEMA)


def says_no_forced_call(error: APIError) -> bool:
    """Whether the server refused a request because of a call that it was to make."""
    return says_no_tools(error) or (error.status in (400, 404, 422) and _says(error, _NO_CHOICE))


def _says(error: APIError, pattern: str) -> bool:
    return re.search(pattern, str(error), re.IGNORECASE | re.DOTALL) is not None  # compiled when it is needed
