"""``openagent doctor``: what a server can do, as a table that grows, or as JSON.

Owns: its arguments, its table, its exit codes (0 a model answered, 1 none did). Does not know: how it is found out.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import codec
from ..doctor import PORTS, Examination, Finding, Place, Report, find
from ..errors import ConfigError
from ..options import AgentOptions, environment
from ..presets import is_loopback
from .arguments import add_server, settings
from .output import be_lenient, harmless

DESCRIPTION = """Find out, by trying, what a server and its model can do, and which settings suit them.
Without URL it looks for servers on this machine. About a dozen short requests are sent."""
NAME_COLUMNS = 20
_MARKS = {"yes": ("✓", "+", "32"), "partly": ("~", "~", "33"), "no": ("✗", "-", "31"), "unclear": ("?", "?", "33")}


def add_doctor(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command; the parser must resolve conflicts, as --timeout is for all of it here."""
    parser.description = DESCRIPTION
    parser.set_defaults(run=run_doctor)
    parser.add_argument("url", nargs="?", default="", metavar="URL", help="the address of a server")
    parser.add_argument("-m", "--model", default="", help="the model to try (the loaded or first one)")
    parser.add_argument("--all", action="store_true", help="examine every local server that answers")
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_server(parser)
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS", help="for a whole examination (120)")


def run_doctor(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    be_lenient()
    if not chosen.timeout > 0:
        raise ConfigError(f"timeout {chosen.timeout!r} must be seconds above 0")
    reports: list[Report] = []
    for options in _chosen(chosen):
        report = _examined(options, chosen)
        reports.append(report)
        if report.ending == "interrupted":
            break
    if chosen.json and (reports or chosen.all):
        dicts = [report.to_dict() for report in reports]
        print(codec.dump(dicts if chosen.all else dicts[0]))
    if reports and reports[-1].ending == "interrupted":
        return 130
    return 0 if any(report.answers for report in reports) else 1


def _chosen(chosen: argparse.Namespace) -> list[AgentOptions]:
    """The servers to be examined: the one that was named, else those that were found."""
    if chosen.url and (chosen.base_url or chosen.provider or chosen.local):
        raise ConfigError(f"URL {chosen.url!r} and --base-url, --provider or --local exclude each other")
    url = chosen.url or chosen.base_url
    is_near = "://" not in url and is_loopback(f"http://{url}")
    chosen.base_url = f"http://{url}" if is_near else url
    chosen.timeout, total = None, chosen.timeout
    given = settings(chosen)
    chosen.timeout = total
    named = given.get("base_url") or given.get("provider") or environment("OPENAGENT_BASE_URL", "OPEN_AGENT_BASE_URL")
    if named and not chosen.all:
        return [AgentOptions(**_with_model(given))]
    for name in ("api_key", "headers"):
        if given.get(name):
            raise ConfigError(f"{name} is for one server: name its URL")
    places = find()
    _tell(chosen, _found(places))
    return [
        AgentOptions(**_with_model(given | {"base_url": place.base_url, "api_key": ""}))
        for place in places[: None if chosen.all else 1]
    ]


def _with_model(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("provider") == "local":
        return given
    return {"model": environment("OPENAGENT_MODEL", "OPEN_AGENT_MODEL") or "any"} | given


def _found(places: list[Place]) -> str:
    if not places:
        ports = ", ".join(f"{port} ({title})" for port, title in PORTS.items())
        return textwrap.fill(
            f"No model server answers on this machine. Looked at the ports {ports}. Start one, or give its URL. "
            "openagent doctor --local examines the embedded model.",
            _width(),
        )
    lines = [f"  {place.base_url}  {place.identity.title or 'a model server'}" for place in places]
    return "\n".join(["Found on this machine:", *lines])


def _examined(options: AgentOptions, chosen: argparse.Namespace) -> Report:
    """The report, its findings shown as they come. Ctrl-C ends it with what is known by then."""
    examination = Examination(options, timeout=chosen.timeout)
    paint = _painter()
    _tell(chosen, "")
    try:
        with _waiting() as wait:
            wait()
            for finding in examination:
                wait(end=True)
                _tell(chosen, row(finding, paint))
                wait()
    except KeyboardInterrupt:
        _tell(chosen, "\nstopped")
    report = examination.report()
    _tell(chosen, summary(report, paint))
    return report


def row(finding: Finding, paint: Callable[[str, str], str]) -> str:
    """The lines of a finding: mark, name, text."""
    fancy, plain, colour = _MARKS.get(finding.verdict, ("·", ".", "2"))
    mark = paint(fancy if _can_print("✓✗·…") else plain, colour)
    return f"{mark} {_beside(finding.name, finding.text)}"


def summary(report: Report, paint: Callable[[str, str], str]) -> str:
    """What comes after the table: quirks, the line of Python, what it cost."""
    lines = [""]
    if report.quirks:
        lines += ["Quirks, which openagent copes with unless it says otherwise:"]
        lines += [f"  {_beside(quirk.name, quirk.text, NAME_COLUMNS + 5)}" for quirk in report.quirks]
        lines += [""]
    if report.answers:
        lines += ["To use it:", *(paint(line, "1") for line in _code(report)), ""]
    ends = {"timeout": ", stopped when the time was up (--timeout)", "interrupted": ", stopped by Ctrl-C"}
    count = f"{report.requests} request{'' if report.requests == 1 else 's'}"
    lines += [f"{count} in {report.seconds:.1f} s{ends.get(report.ending, '')}"]
    return "\n".join(lines)


def _code(report: Report) -> list[str]:
    """The line to copy; in several, if the terminal would break it."""
    if len(report.line) + 2 <= _width():
        return [f"  {report.line}"]
    items = {**report.settings, **({"api_key": "..."} if report.needs_key else {})}
    return ["  Client(", *(f"      {name}={value!r}," for name, value in items.items()), "  )"]


def _beside(name: str, text: str, columns: int = NAME_COLUMNS) -> str:
    width = max(20, _width() - columns - 4)
    lines = textwrap.wrap(harmless(" ".join(text.split())), width, break_on_hyphens=False) or [""]
    return f"\n{' ' * (columns + 2)}".join([f"{name:<{columns}}{lines[0]}", *lines[1:]])


def _width() -> int:
    return min(100, shutil.get_terminal_size().columns)


def _tell(chosen: argparse.Namespace, text: str) -> None:
    print(text, file=sys.stderr if chosen.json else sys.stdout, flush=True)


def _painter() -> Callable[[str, str], str]:
    if not sys.stdout.isatty() or environment("NO_COLOR") or environment("TERM") == "dumb":
        return lambda text, colour: text
    return lambda text, colour: f"\x1b[{colour}m{text}\x1b[0m"


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@contextmanager
def _waiting() -> Iterator[Callable[..., None]]:
    """A word on the terminal while a question is open, taken back before anything else is printed."""

    def wait(*, end: bool = False) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K" if end else "  asking ...", end="", file=sys.stderr, flush=True)

    try:
        yield wait
    finally:
        wait(end=True)
