"""Values as HTML and as safe Markdown, for a page that is not ours.

Whatever a model, a tool or a user wrote is escaped: it cannot bring an element, a script or a formula into the page,
and a picture is not fetched before somebody clicks on its link.

Owns: HTML. Does not know: notebooks, the client, how an answer comes about.
Source: CommonMark 0.31 (code spans, fences, escapes); MathJax looks for ``$`` in text and leaves code alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from .approval import described
from .messages import ContentBlock, FinishReason, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock, Usage
from .tools import Tool

SHOWN_CHARS = 5000
"""How much of one argument, result or text is shown."""
# HTML's own (html.escape does the same, but costs an import), then what Markdown and MathJax look for, and line ends,
# since a blank line ends HTML in Markdown.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    | {character: f"&#{ord(character)};" for character in "'\n\r$\\`*_[]{}|~"}
)
_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([\w +#.\t-]*)$")
_FENCE_MARK = re.compile(r"```|~~~")
_FENCE_START = re.compile(r"(?:^|[\r\n]) {0,3}(`{3,}|~{3,})")
_TICKS = re.compile(r"`+")
# A link may lead to the web or to a mail, and nowhere else: not to javascript:, however it is spelt.
_LIVE = re.compile(r"\\.|[<$]|!(?=\[)|\](?=\()(?!\((?:https?://|mailto:))|\](?=:)(?!: *https?://)")
_SAFE = {"<": "&lt;", "$": "<span>\\$</span>", "!": "\\!", "]": "\\]"}
_SAFE |= {f"\\{character}": _SAFE[character] for character in "<$"}


def escaped(text: str) -> str:
    """The text as HTML that also survives within Markdown, on one line.

    >>> escaped("<b> costs $1")
    '&lt;b&gt; costs &#36;1'
    """
    return text.translate(_ENTITIES)


def safe_markdown(text: str) -> str:
    """Markdown of a model that renders as it should, without HTML, formulas between dollars, and pictures.

    Code stays as it is, as far as every renderer agrees that it is code. What follows it on a page is not in it.

    >>> safe_markdown("**Only** $5 for `<b>`!")
    '**Only** <span>\\\\$</span>5 for `<b>`!'
    """
    reader = _Reader()
    return "\n".join([*map(reader.line, text.split("\n")), *reader.end(text)])


class _Reader:
    """Where code is, line by line, as far as all renderers agree on it.

    Beyond a fence that it does not understand, as one behind a list's bullet, nothing is code to it any more.
    """

    def __init__(self) -> None:
        self._fence = ""  # what ends the code
        self._indent = ""
        self._has_stray = False  # backticks without a partner stand in this paragraph
        self._is_lost = False

    def line(self, line: str) -> str:
        """The line, disarmed where it is no code."""
        if self._is_lost:
            return _disarmed(line)
        mark = _FENCE.match(line)
        if self._fence:
            return self._code(line, mark)
        if mark is not None:
            self._indent, self._fence, self._has_stray = mark[1], mark[2], False
            return line
        if _FENCE_MARK.search(line):
            self._is_lost = True
            return _disarmed(line)
        self._has_stray = self._has_stray and bool(line.strip())
        return self._prose(line)

    def end(self, text: str) -> list[str]:
        """The lines to put behind the text, so that no code goes on."""
        if not self._is_lost:
            return [self._indent + self._fence] if self._fence else []
        # Two lines after which nothing is open: the first opens a fence or is code, the second ends either.
        marks = sorted((mark[1] for mark in _FENCE_START.finditer(text)), key=len)
        return [line for fence in {mark[0]: mark for mark in marks}.values() for line in (f"{fence}text", fence)]

    def _code(self, line: str, mark: re.Match[str] | None) -> str:
        if line.strip() and not line.startswith(self._indent):  # a list's item may end here, and its fence with it
            self._fence, self._is_lost = "", True
            return _disarmed(line)
        if mark is not None and mark[2].startswith(self._fence) and not mark[3].strip():
            self._fence = ""
        return line

    def _prose(self, line: str) -> str:
        runs = list(_TICKS.finditer(line))
        pairs = list(zip(runs[::2], runs[1::2], strict=False))
        # With strays, escapes or a table it depends on the renderer where code is: then nothing is.
        is_odd = len(runs) % 2 == 1 or any(len(start[0]) != len(end[0]) for start, end in pairs)
        if self._has_stray or is_odd or "|" in line or "\\`" in line or line.startswith(("    ", "\t")):
            self._has_stray = self._has_stray or bool(runs)
            return _disarmed(line)
        parts, at = [], 0
        for start, end in pairs:
            parts += [_disarmed(line[at : start.start()]), line[start.start() : end.end()]]
            at = end.end()
        return "".join([*parts, _disarmed(line[at:])])


def _disarmed(text: str) -> str:
    return _LIVE.sub(lambda found: _SAFE.get(found[0], found[0]), text)


def shortened(text: str, most: int | None = SHOWN_CHARS) -> str:
    """As much of the text as is shown; all of it if ``most`` is None."""
    return text if most is None or len(text) <= most else f"{text[:most]}... ({len(text) - most} more characters)"


def details(summary: str, body: str, *, is_open: bool = False) -> str:
    """A line that unfolds. Both parts are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{body}</details>"


def pre(value: Any, most: int | None = SHOWN_CHARS) -> str:
    """A value as it would stand in a file: a text as it is, anything else as indented JSON."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=repr)
    return f"<pre>{escaped(shortened(text, most))}</pre>"


def call_details(
    call: ToolUseBlock,
    result: ToolResultBlock | None = None,
    seconds: float | None = None,
    *,
    most: int | None = SHOWN_CHARS,
) -> str:
    """A call and, if it is there, its result, behind one line."""
    state = "..." if result is None else "failed" if result.is_error else "done"
    time = "" if seconds is None else f", {seconds:.1f} s"
    line = described(call)
    title = f"<code>{escaped(line if len(line) <= 100 else line[:97] + '...')}</code> {state}{time}"
    body = pre(call.raw_arguments if call.raw_arguments is not None else call.input, most)
    return details(title, body + ("" if result is None else pre(result.content, most)))


def reasoning_details(text: str) -> str:
    """The reasoning of a model behind one line."""
    lines = escaped(shortened(text)).replace("&#10;", "<br>")
    return details("Reasoning", f"<blockquote>{lines}</blockquote>")


def closing_line(reason: FinishReason | str | None, usage: Usage | None, seconds: float) -> str:
    """How an answer ended, in one line of plain text.

    >>> closing_line("stop", Usage(7, 5), 1.234)
    'stop · 7 tokens in, 5 out · 1.2 s'
    """
    tokens = "" if usage is None else tokens_line(usage)
    return " · ".join(part for part in (str(reason or "interrupted"), tokens, f"{seconds:.1f} s") if part)


def tokens_line(usage: Usage) -> str:
    """The numbers that the server told."""
    said = [(usage.input_tokens, "{} tokens in"), (usage.output_tokens, "{} out")]
    return ", ".join(words.format(number) for number, words in said if number is not None)


def block_html(block: ContentBlock, *, most: int | None = SHOWN_CHARS) -> str:
    """A block of a message."""
    if isinstance(block, TextBlock):
        return f'<div style="white-space: pre-wrap">{escaped(block.text)}</div>'
    if isinstance(block, ImageBlock):
        if block.url.startswith("data:"):
            return f'<img src="{escaped(block.url)}" alt="image" style="max-width: 20em">'
        return f'<a href="{escaped(block.url)}" rel="noreferrer">{escaped(shortened(block.url, most))}</a>'
    if isinstance(block, ToolUseBlock):
        return call_details(block, most=most)
    return details(f"result{' (failed)' if block.is_error else ''}", pre(block.content, most))


def prompt_html(text: str) -> str:
    """A system prompt."""
    return message_html(Message("system", [TextBlock(text)]))


def message_html(message: Message, results: Sequence[ToolResultBlock] = (), *, most: int | None = SHOWN_CHARS) -> str:
    """A message, the calls with those of the results that are theirs."""
    given = {result.tool_use_id: result for result in results}
    parts = [
        call_details(block, given.get(block.id), most=most)
        if isinstance(block, ToolUseBlock)
        else block_html(block, most=most)
        for block in message.content
    ]
    return f'<div style="margin: 0.3em 0"><strong>{message.role}</strong>{"".join(parts)}</div>'


def conversation_html(messages: Sequence[Message], *, most: int | None = SHOWN_CHARS) -> str:
    """A conversation, each result with its call."""
    results = [result for message in messages for result in message.results]
    known = {call.id for message in messages for call in message.calls}
    rows = []
    for message in messages:
        rest = [b for b in message.content if not (isinstance(b, ToolResultBlock) and b.tool_use_id in known)]
        if rest or not message.content:
            rows.append(message_html(Message(message.role, rest), results, most=most))
    return f"<div>{''.join(rows)}</div>"


def tool_html(tool: Tool) -> str:
    """A tool: its name, what it is for, its schema behind a line."""
    about = f"<strong><code>{escaped(tool.name)}</code></strong> {escaped(tool.description)}"
    return f"<div>{about}{details('schema', pre(dict(tool.input_schema)))}</div>"


def table_html(rows: Iterable[tuple[str, Any]]) -> str:
    """Names and values side by side."""
    cells = "".join(f"<tr><th>{escaped(name)}</th><td>{escaped(str(value))}</td></tr>" for name, value in rows)
    return f"<table>{cells}</table>"


def usage_html(usage: Usage) -> str:
    """The numbers that the server told."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    numbers = [(name.replace("_", " "), getattr(usage, name)) for name in names]
    return table_html((name, number) for name, number in numbers if number is not None)
