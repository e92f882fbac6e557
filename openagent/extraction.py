"""Answers with a shape: the server's structured output, else a call that is forced, else words in the prompt.

Which of these a server has, it says itself: by refusing, or by an answer that breaks the schema. The client
remembers it. What comes is validated all the same; a mistake is shown to the model, which may try again.

Owns: the order of attempts, what the model is told. Does not know: wire formats; it asks whoever can ``send``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import codec
from .abilities import ANSWER_FORMAT, FORCED_CALL, Abilities, says_bad_schema, says_no_forced_call, says_no_format
from .answer_schema import Dialect, adapted, dialect_of
from .errors import AgentError, APIError, ConfigError, InvalidResponseError
from .events import RoundFinished, TextDelta
from .forms import Form
from .messages import Attachment, TextBlock, ToolUseBlock
from .options import AgentOptions
from .partial_json import ABSENT, PartialJSON
from .tools import Tool

log = logging.getLogger("openagent.extraction")

INSTRUCTION = "Answer with JSON alone, no other words. It must fit this JSON Schema:\n"
NEXT_STEP = "use a server with structured output (with llama.cpp, only protocol='openai-chat' has it) or a larger model"
_TOOL = "give_answer"


@dataclass(frozen=True)
class Task:
    """What is to be extracted, from whom, and what is known of the server."""

    client: Any
    form: Form
    options: AgentOptions
    settings: dict[str, Any]
    abilities: Abilities
    retries: int
    is_live: bool  # whether the value is wanted while it grows


IsHeld = Callable[[], bool]  # whether the server held the model to the schema; asked of wrong answers only
# Yields ABSENT when a request is out, then the value as it grows; returns the text.
Asked = Generator[Any, None, "tuple[str, IsHeld]"]


@dataclass(frozen=True)
class Way:
    """One way to get an answer with a shape; ``needs`` is what the server must be able to do."""

    needs: str
    ask: Callable[[Task, str, Sequence[Attachment]], Asked]
    says_no: Callable[[APIError], bool]


def extract(
    client: Any,
    prompt: str,
    shape: Any,
    attachments: Sequence[Attachment],
    abilities: Abilities,
    *,
    retries: int,
    settings: dict[str, Any],
) -> Any:
    """A value of this shape; see ``Client.extract``. ``abilities`` is what is known of the servers."""
    task = _task(client, shape, abilities, retries, settings, is_live=False)
    return [*_grown(_attempts(task, prompt, attachments))][-1]


def extract_stream(
    client: Any,
    prompt: str,
    shape: Any,
    attachments: Sequence[Attachment],
    abilities: Abilities,
    *,
    retries: int,
    settings: dict[str, Any],
) -> Iterator[Any]:
    """The value as it grows; see ``Client.extract_stream``."""
    task = _task(client, shape, abilities, retries, settings, is_live=True)
    run = _attempts(task, prompt, attachments)
    next(run)  # the request is out, and what the server refuses has been raised
    return _grown(run)


def _task(
    client: Any, shape: Any, abilities: Abilities, retries: int, settings: dict[str, Any], *, is_live: bool
) -> Task:
    """What is needed; ``ConfigError`` for a shape or a setting that cannot be."""
    if type(retries) is not int or retries < 0:
        raise ConfigError(f"retries {retries!r:.100} must be a whole number, 0 or more")
    for name in ("response_format", "tool_choice"):
        if name in settings:
            raise ConfigError(f"{name} cannot be set for extract(): it comes from the shape")
    options = client.options.replace(**settings) if settings else client.options
    return Task(client, Form(shape), options, settings, abilities, retries, is_live)


def _grown(run: Generator[Any, None, Any]) -> Iterator[Any]:
    while True:
        try:
            value = next(run)
        except StopIteration as end:
            yield end.value
            return
        if value is not ABSENT:
            yield value


def _attempts(task: Task, prompt: str, parts: Sequence[Attachment]) -> Generator[Any, None, Any]:
    way, words, complaint, text = _first_way(task), prompt, "", ""
    for _ in range(task.retries + 1):
        way, text, is_held = yield from _asked(task, way, words, parts)
        is_prose = way is FORMAT and bool(text.strip()) and not text.lstrip().startswith(("{", "`"))
        _check_end(task.client, text, may_be_cut=is_prose)  # which no schema would have let begin
        try:
            return task.form.read(text)
        except ValueError as exc:  # no JSON, another shape, or no value of the type
            complaint = str(exc)
        if not is_held():
            _note_ignorance(task)
            way = PROMPT
        words, parts = f"That is wrong: {complaint}. Give the whole answer again: {prompt}", ()
    hint = f"; the server does not hold the model to a schema: {NEXT_STEP}" if way is PROMPT else ""
    raise InvalidResponseError(
        f"the model gave no answer of this shape in {task.retries + 1} attempts: {complaint}{hint}",
        body=text[:2000],
        blocks=[TextBlock(text)] if text else [],
    )


def _first_way(task: Task) -> Way:
    """The best of which the server has not said that it has it not."""
    can_say = _answer_schema(task) is not None
    known = (way for way in WAYS if not task.abilities.lacks(task.options, way.needs))
    return next(way for way in known if can_say or way is not FORMAT)


def _asked(
    task: Task, way: Way, words: str, parts: Sequence[Attachment]
) -> Generator[Any, None, tuple[Way, str, IsHeld]]:
    """The answer, by this way or, if the server refuses that, by the next one."""
    while True:
        try:
            text, is_held = yield from way.ask(task, words, parts)
            return way, text, is_held
        except APIError as exc:
            if not way.says_no(exc):
                raise
            if not says_bad_schema(exc):
                task.abilities.note(task.options, way.needs)
        except ConfigError:  # on Anthropic's wire a call cannot be forced while the model thinks
            if way is not CALL:
                raise
        way = WAYS[WAYS.index(way) + 1]


def _note_ignorance(task: Task) -> None:
    for needs in (ANSWER_FORMAT, FORCED_CALL):
        task.abilities.note(task.options, needs)
    who = f"model {task.options.model}" if task.options.model else "the model"
    log.warning("%s is not held to the JSON Schema by its server: %s", who, NEXT_STEP)


def _dialect(task: Task) -> Dialect | None:
    protocol = task.options.protocol
    return dialect_of(getattr(protocol, "protocol", protocol), task.options.base_url)


def _answer_schema(task: Task) -> dict[str, Any] | None:
    """The schema for the server's structured output; None if its vendor's dialect cannot say it."""
    dialect = _dialect(task)
    if dialect is None:
        return task.form.schema
    # OpenAI takes what its strict mode cannot say without it.
    return adapted(task.form.schema, dialect) or (task.form.schema if dialect.is_optional else None)


def _by_format(task: Task, words: str, parts: Sequence[Attachment]) -> Asked:
    # Servers that hold a model by a grammar (llama.cpp, vLLM, Ollama) do not show it the schema.
    told = {} if _dialect(task) else {"system_prompt": _told(task)}
    text = yield from _heard(task, words, parts, response_format=_answer_schema(task), **told)
    return text, lambda: not task.form.is_broken_by(text)


def _by_prompt(task: Task, words: str, parts: Sequence[Attachment]) -> Asked:
    return (yield from _heard(task, words, parts, response_format=None, system_prompt=_told(task))), lambda: True


def _told(task: Task) -> str:
    """The system prompt with the schema."""
    return "\n\n".join(filter(None, (task.options.system_prompt, INSTRUCTION + codec.dump(task.form.schema))))


def _heard(task: Task, words: str, parts: Sequence[Attachment], **request: Any) -> Generator[Any, None, str]:
    """The text of the last round; tools are offered only where they are run."""
    client = task.client
    if not task.options.auto_execute_tools:
        request["tools"] = ()
    if client.options.tool_choice is not None:
        request["tool_choice"] = "auto"
    client.send(words, *parts, **task.settings | request)
    yield ABSENT
    pieces: list[str] = []
    growing, is_over = PartialJSON(), False
    for event in client.events():
        if isinstance(event, RoundFinished):
            is_over = True
        elif isinstance(event, TextDelta):
            if is_over:
                pieces, growing, is_over = [], PartialJSON(), False
            pieces.append(event.text)
            if task.is_live and growing.feed(event.text if growing.value is not ABSENT else _from_brace(event.text)):
                yield task.form.plain(growing.value)
    return "".join(pieces)


def _from_brace(text: str) -> str:
    """What may be the beginning of the answer: some models say a word first."""
    place = text.find("{")
    return text[place:] if place >= 0 else ""


def _by_call(task: Task, words: str, parts: Sequence[Attachment]) -> Asked:
    """The JSON text, as the arguments of a call that the model has to make; the call gets an answer."""
    forced = Tool(_TOOL, "Give the answer.", task.form.schema)
    request = {"tools": [forced], "tool_choice": _TOOL, "tool_mode": "native", "rescue_tool_calls": True}
    task.client.send(words, *parts, **task.settings | request | {"auto_execute_tools": False, "response_format": None})
    yield ABSENT
    said, calls = "", 0
    for block in task.client.receive():
        if not isinstance(block, ToolUseBlock):
            said += block.text
            continue
        said, calls = codec.dump(block.input) if block.error is None else block.raw_arguments or "", calls + 1
        task.client.add_tool_result(block.id, "received")
    return said, lambda: calls > 0


FORMAT = Way(ANSWER_FORMAT, _by_format, says_no_format)
CALL = Way(FORCED_CALL, _by_call, says_no_forced_call)
PROMPT = Way("", _by_prompt, lambda _: False)
WAYS = (FORMAT, CALL, PROMPT)


def _check_end(client: Any, text: str, *, may_be_cut: bool) -> None:
    """``AgentError`` if the answer did not end as answers should."""
    finish = client.finish_reason
    heard = [TextBlock(text)] if text else []
    if finish is None:
        raise AgentError("the answer was interrupted before it had its shape", blocks=heard)
    if finish.is_truncated and not may_be_cut:
        raise AgentError(
            "the answer was cut by the output limit before it had its shape: raise max_tokens", blocks=heard
        )
    if finish == "content_filter":
        raise AgentError(f"the model refused to answer: {text[:200]}", blocks=heard)
