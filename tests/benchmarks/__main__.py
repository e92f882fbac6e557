"""``python -m tests.benchmarks [MEASURE ...] [--peers] [--write FILE]``: a table in Markdown, in under two minutes."""

from __future__ import annotations

import argparse
import platform
import time
from pathlib import Path

from . import environments
from .measures import ALL, Row
from .peers import peers
from .server import running

HEAD = "| what | ours | other | ratio | goal | |\n|---|---|---|---|---|---|"


def line(row: Row) -> str:
    goal = "" if row.goal is None else f"{row.goal:g}"
    verdict = "" if row.goal is None else "met" if round(row.ratio, 2) <= row.goal else "**missed**"
    return f"| {row.title} | {row.ours} | {row.other} | {row.ratio:.2f} | {goal} | {verdict} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"one of {', '.join(ALL)}; all if none is named")
    parser.add_argument("--peers", action="store_true", help="measure the peers too, in environments that it makes")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there too")
    given = parser.parse_args()
    if given.peers:
        environments.make()
    measures = [ALL[name] for name in given.measures or ALL] + [peers] * given.peers
    started = time.monotonic()
    lines = [HEAD]
    print(HEAD)
    with running() as port:
        for measure in measures:
            for row in measure(port):
                lines.append(line(row))
                print(lines[-1], flush=True)
    closing = f"\nPython {platform.python_version()}, {platform.system()}; {time.monotonic() - started:.0f} s."
    print(closing)
    if given.write:
        given.write.write_text("\n".join([*lines, closing, ""]), encoding="utf-8")


main()
