"""What an examination finds: one finding per question, the quirks seen, and the settings that follow from them.

Owns: the values of a report, their dict and the line of Python. Does not know: servers, how anything was found out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["yes", "partly", "no", "unclear", "note"]
Ending = Literal["complete", "timeout", "interrupted"]


@dataclass(frozen=True)
class Finding:
    """The answer to one question, by trying.

    ``verdict`` is for programs and ``text`` for people; ``details`` are the numbers and names behind it, ``settings``
    the settings of ``AgentOptions`` that follow from it.
    """

    name: str
    verdict: Verdict
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Quirk:
    """One way in which the server differs from the protocol's reference; ``name`` is stable."""

    name: str
    text: str


@dataclass(frozen=True)
class Report:
    """What is known of one server, as far as the examination came.

    ``settings`` are what ``Client(**settings)`` takes; a key is not among them. ``line`` is the same as Python.
    ``seconds`` it took in all, with so many ``requests``.
    """

    base_url: str
    model: str
    server: str
    findings: tuple[Finding, ...]
    quirks: tuple[Quirk, ...]
    settings: Mapping[str, Any]
    needs_key: bool
    requests: int
    seconds: float
    ending: Ending = "complete"

    @property
    def answers(self) -> bool:
        """Whether the model answered at all, on any protocol."""
        return any(self.finding(name, "yes") for name in ("chat", "responses", "anthropic"))

    def finding(self, name: str, verdict: str = "") -> Finding | None:
        """The finding of this name, if there is one (with this verdict)."""
        return next((f for f in self.findings if f.name == name and verdict in ("", f.verdict)), None)

    @property
    def line(self) -> str:
        """The line of Python that makes the client for this server."""
        key = {"api_key": "..."} if self.needs_key else {}
        return f"Client({', '.join(f'{name}={value!r}' for name, value in {**self.settings, **key}.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can say."""
        plain = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        findings = [dataclasses.asdict(finding) for finding in self.findings]
        quirks = [dataclasses.asdict(quirk) for quirk in self.quirks]
        ours = {"findings": findings, "quirks": quirks, "settings": dict(self.settings)}
        return plain | ours | {"answers": self.answers, "line": self.line, "seconds": round(self.seconds, 3)}
