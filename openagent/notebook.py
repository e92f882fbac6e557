"""At home in IPython and Jupyter: our values as HTML, and the cell magic ``%%ask``.

``import openagent`` in a notebook registers the values; ``%load_ext openagent`` the magic as well.

Owns: what IPython is told of us. Does not know: HTML (``markup``), how an answer is shown (``showing``).
Source: https://ipython.readthedocs.io/en/stable/config/integrating.html
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import markup
from .client import Client
from .errors import ConfigError
from .messages import ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from .tools import Tool

FORMS: dict[type[Any], Callable[[Any], str]] = {
    Message: markup.message_html,
    Tool: markup.tool_html,
    Usage: markup.usage_html,
    **dict.fromkeys((TextBlock, ImageBlock, ToolUseBlock, ToolResultBlock), markup.block_html),
}


def client_html(client: Client) -> str:
    """The conversation of a client, under who it is with."""
    options = client.options
    rows = [("model", options.model), ("messages", len(client.history)), ("tools", ", ".join(client.tools) or "none")]
    return markup.table_html(rows) + markup.conversation_html(client.history)


def register(shell: Any) -> None:
    """Lets a shell of IPython show our values as HTML."""
    formatter = shell.display_formatter.formatters["text/html"]
    for kind, form in {**FORMS, Client: client_html}.items():
        formatter.for_type(kind, form)


def register_if_there() -> None:
    """The same for the shell that this runs in, if it does."""
    ipython = sys.modules.get("IPython")  # which is loaded wherever there is a shell
    shell = getattr(ipython, "get_ipython", lambda: None)()
    if getattr(shell, "display_formatter", None) is not None:
        register(shell)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext openagent``: values as HTML, and the magic ``%%ask``."""
    register(shell)
    shell.register_magic_function(lambda line, cell: ask(shell, line, cell), "cell", "ask")


def ask(shell: Any, line: str, cell: str) -> None:
    """``%%ask [NAME]``: asks the client of this name (``client`` if there is none) what stands in the cell."""
    name = line.strip() or "client"
    client = shell.user_ns.get(name)
    if not isinstance(client, Client):
        raise ConfigError(f"%%ask needs a client: {name} = Client(...) in another cell, or %%ask NAME")
    client.show(cell.strip())
