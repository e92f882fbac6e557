"""One call of a tool, from what the model wrote to a result that it can read.

Whatever goes wrong is an error result that the model reads; only ``KeyboardInterrupt`` and its like
come out.

Owns: the check of a call, running its tool, what its result looks like, masking. Does not know: hooks,
providers, which call comes next.
"""

from __future__ import annotations

import contextvars
import inspect
import logging
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from . import codec
from .errors import ToolError
from .messages import ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock, block_to_dict
from .readable import first_items, readable, text_of
from .schema import check, without_nulls
from .tools import Tool

log = logging.getLogger("openagent.tools")

MASK = "***"


def problem(tool: Tool | None, call: ToolUseBlock, known: Iterable[str] = ()) -> str | None:
    """What is wrong with a call before it is run, told for the model; None if nothing.

    ``tool`` is None if none has the call's name; ``known`` are the names there are.
    """
    if tool is None:
        return f"Tool {call.name!r} not found. {_available(call.name, list(known))}"
    if call.error is not None:
        raw = f" They were: {call.raw_arguments[:200]}" if call.raw_arguments else ""
        return f"the arguments of tool {call.name!r} cannot be used: {call.error}.{raw}"
    if tool.handler is None:
        return f"tool {tool.name!r} cannot be run here: it has no handler"
    complaint = check(tool.input_schema, without_nulls(tool.input_schema, call.input))
    return complaint and f"invalid arguments: {complaint}"


def _available(name: str, known: list[str]) -> str:
    if not known:
        return "There are no tools."
    import difflib  # slow to import

    close = difflib.get_close_matches(name, known, n=3)
    rest = [other for other in known if other not in close]
    return f"Available tools: {', '.join([*close, *rest][:50])}"


def run(
    tool: Tool | None, call: ToolUseBlock, known: Iterable[str] = (), *, is_checked: bool = False
) -> ToolResultBlock:
    """The result of one call: what the tool returned, as JSON, or an error that the model can read.

    ``is_checked`` says that ``problem`` found none in this very call.
    """
    text = None if is_checked else problem(tool, call, known)
    if tool is None or text is not None:
        return failure(call, text or "")
    try:
        content = _within(tool, lambda: _content(tool, call))
    except ToolError as exc:
        return failure(call, _cut(text_of(exc), tool.max_result_chars))
    except Exception as exc:
        # The frames only: the exception's text may quote the arguments, which no log may hold.
        frames = "".join(traceback.format_tb(exc.__traceback__))
        log.debug("tool %s raised %s\n%s", call.name, type(exc).__name__, frames)
        return failure(call, f"{type(exc).__name__}: {_cut(text_of(exc), tool.max_result_chars)}")
    return ToolResultBlock(call.id, content)


def failure(call: ToolUseBlock, text: str) -> ToolResultBlock:
    """The error result of a call (R-50.5)."""
    return ToolResultBlock(call.id, {"error": codec.mend(text), "tool": call.name, "id": call.id}, is_error=True)


def masked(tool: Tool | None, call: ToolUseBlock) -> ToolUseBlock:
    """The call as events show it: without the values of sensitive parameters."""
    if tool is None or not tool.sensitive:
        return call
    shown = {name: MASK if name in tool.sensitive else value for name, value in call.input.items()}
    return replace(call, input=shown, raw_arguments=call.raw_arguments and MASK, provider_state=None)


def masked_result(tool: Tool | None, call: ToolUseBlock, result: ToolResultBlock) -> ToolResultBlock:
    """The result as events show it: an error may quote the values of sensitive parameters."""
    if tool is None or not tool.sensitive or not result.is_error:
        return result
    secrets = [text_of(call.input[name]) for name in tool.sensitive if name in call.input]
    if call.raw_arguments:
        secrets.append(call.raw_arguments[:200])
    return replace(result, content=_without(result.content, [secret for secret in secrets if secret]))


def _without(content: Any, secrets: list[str]) -> Any:
    if isinstance(content, dict):
        return {name: _without(value, secrets) for name, value in content.items()}
    if isinstance(content, list):
        return [_without(value, secrets) for value in content]
    if not isinstance(content, str):
        return content
    for secret in secrets:
        content = content.replace(secret, MASK)
    return content


def _content(tool: Tool, call: ToolUseBlock) -> Any:
    result = tool.execute(without_nulls(tool.input_schema, call.input))
    if inspect.iscoroutine(result):
        result.close()
        raise ToolError("the tool returned a coroutine, and openagent awaits nothing")
    if isinstance(result, Iterator):
        result = first_items(result)
    if _holds_images(result):
        return [_part(item) for item in (result if isinstance(result, (list, tuple)) else [result])]
    return _limited(readable(result), tool.max_result_chars)


def _holds_images(result: Any) -> bool:
    items = result if isinstance(result, (list, tuple)) else [result]
    return any(isinstance(item, ImageBlock) for item in items)


def _part(item: Any) -> Any:
    if isinstance(item, ImageBlock):
        return block_to_dict(item)
    return item.text if isinstance(item, TextBlock) else readable(item)


def _limited(content: Any, limit: int) -> Any:
    """The content as it is, or the beginning of its text."""
    if isinstance(content, str):
        return _cut(content, limit)
    if not isinstance(content, (list, dict)):
        return content
    text = codec.dump(content)
    return content if len(text) <= limit else _cut(text, limit)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: these are the first {limit} of {len(text)} characters]"


def _within(tool: Tool, work: Callable[[], Any]) -> Any:
    """What the work returns or raises; ``ToolError`` if that takes longer than the tool's timeout."""
    if tool.timeout is None:
        return work()
    outcome: list[tuple[Any, BaseException | None]] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def labour() -> None:
        try:
            outcome.append((context.run(work), None))
        except BaseException as exc:  # goes on in the thread that waits
            outcome.append((None, exc))
        done.set()

    threading.Thread(target=labour, name=f"openagent tool {tool.name}", daemon=True).start()
    if not done.wait(tool.timeout):
        raise ToolError(
            f"timed out after {tool.timeout:g} s; it cannot be stopped and may still be running, "
            "so it may yet have effects"
        )
    result, error = outcome[0]
    if error is not None:
        raise error
    return result
