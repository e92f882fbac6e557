"""What a server can do, found out by trying: ``examine(options)`` for one, ``find()`` for the local ones.

>>> from openagent.doctor import examine
>>> from openagent import AgentOptions
>>> examine(AgentOptions(model="qwen3:8b", provider="ollama")).line  # doctest: +SKIP
"Client(model='qwen3:8b', base_url='http://localhost:11434/v1')"

Owns: the order of the questions, time, what follows from the findings. Does not know: output.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from .. import local
from ..errors import AgentError, ConfigError, Timeout
from ..options import AgentOptions
from ..presets import is_loopback
from .abilities import images, shapes, tools
from .bench import Bench
from .identity import Identity, context_length, identify
from .places import PORTS, Place, find, usual_places
from .report import Ending, Finding, Quirk, Report
from .speaking import PROTOCOLS, greet, speak, system

__all__ = ["PORTS", "Examination", "Finding", "Place", "Quirk", "Report", "examine", "find", "usual_places"]

TIMEOUT = 120.0
ANY = "any"  # the model of options for which the server is to name one


def examine(options: AgentOptions, *, timeout: float = TIMEOUT) -> Report:
    """What this server can do. It takes about a dozen short requests, and at most ``timeout`` seconds.

    The model is the options', or with ``model="any"`` the one that is loaded, or the first, of a server on this
    machine. A question that fails is a finding; ``ConfigError`` is raised for options that cannot be used at all.
    """
    examination = Examination(options, timeout=timeout)
    for _ in examination:
        pass
    return examination.report()


class Examination:
    """An examination that tells each finding as it comes; ``report()`` is what is known, at any time.

    Iterate over it once. A ``KeyboardInterrupt`` goes through; what was found until then is kept.
    """

    def __init__(self, options: AgentOptions, *, timeout: float = TIMEOUT) -> None:
        if not isinstance(options.protocol, str):
            raise ConfigError("an adapter of your own cannot be examined: give one of our protocols")
        self._given = options
        self._is_local = options.provider == "local"
        self._started = time.monotonic()
        self._bench = Bench(options, self._started + timeout)
        self._identity = Identity()
        self._found: list[Finding] = []
        self._is_done = False

    def __iter__(self) -> Iterator[Finding]:
        try:
            for finding in self._findings():
                self._found.append(finding)
                yield finding
            self._is_done = True
        finally:
            self._bench.connections.close()

    def report(self) -> Report:
        """What is known by now."""
        options = self._bench.options
        ending: Ending = "complete" if self._is_done and self._bench.left > 0 else "interrupted"
        return Report(
            base_url=_shown(options.base_url),
            model=options.model,
            server=" ".join(filter(None, (self._identity.title, self._identity.version))),
            findings=tuple(self._found),
            quirks=tuple(self._bench.quirks.values()),
            settings=self._settings(),
            needs_key=_needs_key(self._given, options),
            requests=self._bench.requests,
            seconds=time.monotonic() - self._started,
            ending="timeout" if self._bench.left <= 0 else ending,
        )

    def _findings(self) -> Iterator[Finding]:
        bench = self._bench
        if self._is_local:
            bench.options = local.with_server(bench.options)
        identity = self._identity = identify(bench)
        if identity.error is not None and identity.error.status is None:
            yield Finding("reachable", "no", _why(identity.error, bench.options))
            return
        yield Finding("reachable", "yes", _shown(bench.options.base_url))
        yield _server(identity)
        yield self._models(identity)
        if bench.options.model == ANY and not self._is_local:
            return
        found = context_length(bench, identity, bench.options.model)
        if found:
            yield Finding("context", "yes", f"{found[0]:,} tokens (by {found[1]})", {"tokens": found[0]})
        else:
            yield Finding("context", "note", "not told")
        yield from self._protocols()

    def _models(self, identity: Identity) -> Finding:
        options, names = self._bench.options, identity.models
        if options.model == ANY and is_loopback(options.base_url) and identity.likely_model:
            self._bench.options = options = options.replace(model=identity.likely_model)
        details = {"models": list(names), "tried": options.model}
        if options.model == ANY:
            hint = "choose one with -m" if names else "name one with -m"
            return Finding("models", "unclear", f"{_listed(names)}; {hint}", details)
        is_there = options.model in names or not names
        verdict, odd = ("yes", "") if is_there else ("partly", ", which is not in the list")
        listed = f"; {len(names)} in all: {_listed(names)}" if len(names) > 1 else "" if names else "; no list"
        return Finding("models", verdict, f"{options.model}{odd}{listed}", details)  # type: ignore[arg-type]

    def _protocols(self) -> Iterator[Finding]:
        bench = self._bench
        chosen = str(bench.options.protocol)
        order = [chosen, *(name for name in PROTOCOLS if name != chosen)]
        works = ""
        for protocol in order:
            for finding in (greet if works else speak)(bench, protocol):
                if finding.name == PROTOCOLS[protocol] and finding.verdict == "yes" and not works:
                    works = protocol
                yield finding
            if not works and bench.left <= 0:
                return
        if not works:
            return
        bench.options = bench.options.replace(protocol=works)
        for questions in (system, tools, shapes, images):
            yield from questions(bench)

    def _settings(self) -> dict[str, Any]:
        """What ``Client`` is to be given: where, who, and what turned out to be needed."""
        bench, options = self._bench, self._bench.options
        if self._is_local:
            path = self._given.model
            settings: dict[str, Any] = {"provider": "local"} | ({"model": path} if path not in ("", ANY) else {})
        else:
            settings = {"model": options.model, "base_url": _shown(options.base_url)} | _as_given(self._given)
        if options.protocol != "openai-chat":
            settings["protocol"] = options.protocol
        needed = dict(bench.settings)
        for finding in self._found:
            needed |= {name: value for name, value in finding.settings.items() if name != "protocol"}
        if self._is_local:
            needed.pop("tool_mode", None)  # it has emulated tools anyway
        return settings | needed


def _why(error: AgentError, options: AgentOptions) -> str:
    """Why there is nothing to examine; a deadline of ours would say little."""
    if isinstance(error, Timeout) and "deadline" in str(error):
        return f"{_shown(options.base_url)} does not answer: is it busy, or does it wait for something else?"
    return str(error)


def _shown(base_url: str) -> str:
    """The address without what its query may hold in secret; Azure's version stays."""
    address, _, query = base_url.partition("?")
    kept = "&".join(part for part in query.split("&") if part.startswith("api-version="))
    return f"{address}?{kept}" if kept else address


def _as_given(options: AgentOptions) -> dict[str, Any]:
    """What the user needed to get there at all; the values of headers are secrets."""
    given: dict[str, Any] = {} if options.verify is None else {"verify": options.verify}
    return given | ({"headers": dict.fromkeys(options.headers, "...")} if options.headers else {})


def _server(identity: Identity) -> Finding:
    name = " ".join(filter(None, (identity.title, identity.version)))
    details = {"title": identity.title, "version": identity.version}
    if not name:
        return Finding("server", "unclear", "does not say what it is", details)
    return Finding("server", "yes", name, details)


def _listed(names: tuple[str, ...], limit: int = 4) -> str:
    if not names:
        return "none listed"
    more = f", … ({len(names) - limit} more)" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _needs_key(given: AgentOptions, used: AgentOptions) -> bool:
    """Whether a key was given that a client with the same address would not find by itself."""
    if not given.api_key:
        return False
    try:
        return AgentOptions(model=used.model, base_url=given.base_url).api_key != given.api_key
    except AgentError:
        return True
