"""Questions about talking: does it answer at all, how fast, on which protocols, with what beside the text.

Owns: the requests of these questions and the reading of what came. Does not know: tools, shapes, pictures.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import ContextOverflowError, Timeout
from ..messages import Message
from .bench import Bench, Heard
from .quirks import has_usage, is_buffered, quirks, reasoning_name
from .report import Finding

PROTOCOLS = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "anthropic"}
TITLES = {"chat": "Chat Completions", "responses": "OpenAI Responses", "anthropic": "Anthropic Messages"}
COUNT = "Count from 1 to 12, with a comma after each number."
TOKENS = 40


def speak(bench: Bench, protocol: str) -> Iterator[Finding]:
    """Whether this protocol works, and what its stream is like; for the first one that works, in detail."""
    heard = _spoken(bench, protocol, TOKENS, share=0.6)
    if protocol == "openai-chat" and heard.is_refusal:
        heard = _put_otherwise(bench, heard)
    yield protocol_finding(protocol, heard)
    if heard.turn is None:
        for name, text in quirks(heard) if heard.chunks else ():
            bench.note(name, text)
        return
    for name, text in quirks(heard):
        bench.note(name, text)
    yield _streaming(heard)
    yield _reasoning(bench, heard)
    yield _usage(bench, heard)


def greet(bench: Bench, protocol: str) -> Iterator[Finding]:
    """Whether this protocol works, by the shortest of requests."""
    yield protocol_finding(protocol, _spoken(bench, protocol, 16, "Say hi."))


def system(bench: Bench) -> Iterator[Finding]:
    """Whether a system prompt is taken."""
    options = bench.asking(system_prompt="You answer in one word.", max_tokens=bench.budget(16))
    heard = bench.ask(options, [Message.user("Say hi.")])
    if heard.turn is not None:
        yield Finding("system", "yes", "accepted")
    elif heard.is_refusal:
        bench.note("no-system-role", "refuses a system prompt: put it into the first message (Gemma's template)")
        yield Finding("system", "no", f"refused: {reason(heard)}")
    else:
        yield unclear("system", heard)


def protocol_finding(protocol: str, heard: Heard) -> Finding:
    """The finding of a protocol, by what was heard on it."""
    name = PROTOCOLS[protocol]
    if heard.turn is not None:
        return Finding(name, "yes", TITLES[name], settings={} if name == "chat" else {"protocol": protocol})
    status = heard.error.status if heard.error else None
    if status in (404, 405):
        return Finding(name, "no", f"{TITLES[name]}: not there ({status})", {"status": status, "error": reason(heard)})
    return Finding(name, "no", f"{TITLES[name]}: {reason(heard)}", {"status": status, "error": reason(heard)})


def unclear(name: str, heard: Heard) -> Finding:
    """The finding that nothing was found out."""
    return Finding(name, "unclear", reason(heard), {"error": str(heard.error or "")})


def reason(heard: Heard) -> str:
    """Why nothing came, in one short line."""
    if isinstance(heard.error, Timeout):
        return f"no answer within {heard.seconds:.1f} s" if heard.seconds else "no time left"
    text = " ".join(str(heard.error or "nothing came").split()).removeprefix("API error ")
    return text if len(text) <= 160 else text[:159] + "…"


def _spoken(bench: Bench, protocol: str, tokens: int, prompt: str = COUNT, *, share: float = 0.3) -> Heard:
    return bench.ask(bench.asking(protocol=protocol, max_tokens=tokens), [Message.user(prompt)], share=share)


def _put_otherwise(bench: Bench, heard: Heard) -> Heard:
    """The same again without what the server may have refused, one thing after the other."""
    if isinstance(heard.error, ContextOverflowError) or (heard.error and heard.error.status in (404, 405)):
        return heard
    said = str(heard.error).lower()
    if "max_completion_tokens" in said or "max_tokens" in said:
        bench.limit_name = "max_completion_tokens"
        again = _spoken(bench, "openai-chat", TOKENS)
        if again.turn is not None:
            advice = "give extra_body={'max_completion_tokens': N} instead of max_tokens=N"
            bench.note("max-completion-tokens", f"refuses max_tokens: {advice}")
            return again
        bench.limit_name = "max_tokens"
    bench.settings["include_usage"] = False
    again = _spoken(bench, "openai-chat", TOKENS)
    if again.turn is not None:
        bench.note("no-stream-options", f"refuses stream_options: {reason(heard)}")
        return again
    del bench.settings["include_usage"]
    return heard


def _streaming(heard: Heard) -> Finding:
    usage = heard.turn.usage if heard.turn else None
    tokens = (usage.output_tokens if usage else None) or heard.deltas
    first = heard.first if heard.first is not None else heard.seconds
    spent = heard.seconds - first
    rate = (tokens - 1) / spent if spent > 0.001 and tokens > 1 and not is_buffered(heard) else None
    details = {"first_token_seconds": round(first, 3), "tokens_per_second": rate and round(rate, 1), "tokens": tokens}
    if heard.body.lstrip()[:1] in (b"{", b"["):
        return Finding("streaming", "no", f"the whole answer at once, after {first:.2f} s", details)
    speed = f", then {rate:.0f} tokens/s" if rate else ""
    return Finding("streaming", "yes", f"first token after {first:.2f} s{speed}", details)


def _reasoning(bench: Bench, heard: Heard) -> Finding:
    name = reasoning_name(heard)
    if not name:
        return Finding("reasoning", "note", "none told")
    bench.is_reasoning = True
    return Finding("reasoning", "yes", f"told as {name}", {"field": name}, {"include_reasoning": True})


def _usage(bench: Bench, heard: Heard) -> Finding:
    asked = bench.settings.get("include_usage", True)
    if has_usage(heard):
        told = "in the stream, with stream_options" if asked else "in the stream, without being asked"
        return Finding("usage", "yes", told if heard.protocol == "openai-chat" else "in the stream")
    if heard.protocol == "openai-chat" and asked:
        bench.settings["include_usage"] = False
        if has_usage(_spoken(bench, "openai-chat", 16, "Say hi.")):
            bench.note("usage-unasked", "tells the usage only when stream_options is left out")
            return Finding("usage", "partly", "only without stream_options", settings={"include_usage": False})
        del bench.settings["include_usage"]
    return Finding("usage", "no", "not told: client.usage will be None")
