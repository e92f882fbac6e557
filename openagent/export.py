"""A conversation for readers: a page of HTML that stands alone, and Markdown.

Nothing is cut, nothing that was said is HTML or a script, and the page fetches nothing.

Owns: the page around a conversation, the order of its parts. Does not know: how a value looks (``markup``), files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from .markup import block_html, call_details, conversation_html, escaped, prompt_html, safe_markdown
from .messages import ContentBlock, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock

# Of the web only this page itself: what a model wrote could not fetch anything even if the escaping failed.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48em;margin:2em auto;padding:0 1em}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.5em}"
    "strong{text-transform:capitalize}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}a{color:#8bf}}"
)
_TITLE = "A conversation"


def to_html(messages: Sequence[Message], system_prompt: str = "") -> str:
    """The conversation as a whole page of HTML."""
    system = prompt_html(system_prompt) if system_prompt else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{_TITLE}</title><style>{_STYLE}</style></head>\n'
        f"<body><h1>{_TITLE}</h1>{system}{conversation_html(messages, most=None)}</body></html>\n"
    )


def to_markdown(messages: Sequence[Message], system_prompt: str = "") -> str:
    """The conversation as Markdown, as a code host shows it: calls unfold, pictures are named."""
    results = {result.tool_use_id: result for message in messages for result in message.results}
    called = {call.id for message in messages for call in message.calls}
    parts = [f"# {_TITLE}", *(["## System", safe_markdown(system_prompt)] if system_prompt else [])]
    for message in messages:
        told: list[str] = []
        for is_text, blocks in groupby(message.content, lambda block: isinstance(block, TextBlock)):
            if is_text:
                told.append(safe_markdown("\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))))
            else:
                told += [part for block in blocks for part in _markdown(block, results, called)]
        if told or not message.content:
            parts += [f"## {message.role.capitalize()}", *told]
    return "\n\n".join(parts) + "\n"


def _markdown(block: ContentBlock, results: dict[str, ToolResultBlock], called: set[str]) -> Iterator[str]:
    """A block that is no text; the result of a call that is there stands with the call."""
    if isinstance(block, ToolUseBlock):
        yield call_details(block, results.get(block.id), most=None)
    elif isinstance(block, ImageBlock):
        is_inline = block.url.startswith("data:")
        yield f"*{escaped(block.url.partition(';')[0])}*" if is_inline else block_html(block, most=None)
    elif isinstance(block, ToolResultBlock) and block.tool_use_id not in called:
        yield block_html(block, most=None)
