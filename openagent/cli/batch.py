"""``openagent batch``: a file of prompts in, a file of answers out.

Owns: its arguments, its summary, its exit code. Does not know: how the rows are asked and kept.
"""

from __future__ import annotations

import argparse
import sys
import time

from ..batch import FORMATS, Budget, Ledger, Pace, Tally, fill
from ..errors import ConfigError
from ..options import AgentOptions
from .arguments import add_model, add_server, settings
from .shapes import HELP, shape

DESCRIPTION = """Ask for each row of INPUT and append the answers to OUTPUT, a line of JSON each.
Started again it asks only for what is missing. Exit code 1 if there are failures in OUTPUT."""


def add_batch(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command; the parser must resolve conflicts, as -o is the output here, not an option."""
    parser.description = DESCRIPTION
    parser.set_defaults(run=run_batch)
    parser.add_argument("input", metavar="INPUT", help="a .jsonl, .csv or .txt file, or - for lines of JSON on stdin")
    add_model(parser)
    add_server(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUTPUT", help="where the answers go, line by line")
    parser.add_argument("-t", "--template", metavar="TEXT", help='the prompt of a row, as "Translate: {text}"')
    parser.add_argument("--schema", metavar="SHAPE", help=HELP)
    parser.add_argument("--key", metavar="COLUMN", help="the column that tells rows apart (else their number does)")
    parser.add_argument("--format", default="", choices=FORMATS, help="of INPUT, if its name does not say it")
    parser.add_argument("--retry-errors", action="store_true", help="ask again for the rows that failed")
    parser.add_argument("-w", "--workers", type=int, default=8, metavar="N", help="how many are asked at once (8)")
    parser.add_argument("--rps", type=float, metavar="N", help="at most so many requests per second")
    parser.add_argument("--rpm", type=float, metavar="N", help="at most so many requests per minute")
    parser.add_argument("--tpm", type=float, metavar="N", help="at most so many tokens per minute")
    parser.add_argument("--budget-requests", type=int, metavar="N", help="end when so many requests were sent")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="end when so many tokens were used")
    parser.add_argument("--cache", metavar="FOLDER", help="keep answers there, and ask nothing twice")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")


def run_batch(chosen: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    options = AgentOptions(**settings(chosen))
    pace = Pace(requests_per_second=chosen.rps, requests_per_minute=chosen.rpm, tokens_per_minute=chosen.tpm)
    budget = Budget(requests=chosen.budget_requests, tokens=chosen.budget_tokens)
    if chosen.input == chosen.output:
        raise ConfigError(f"output {chosen.output!r} is the input: choose another file")
    tally = Tally()
    started = time.monotonic()
    with Ledger(chosen.output, drop_errors=chosen.retry_errors) as ledger:
        try:
            fill(
                options,
                chosen.input,
                ledger,
                tally,
                form=chosen.format,
                key=chosen.key,
                template=chosen.template,
                schema=None if chosen.schema is None else shape(chosen.schema),
                workers=chosen.workers,
                pace=pace,
                budget=budget,
                cache=chosen.cache,
                progress=False if chosen.quiet else "lines",
            )
        finally:
            if not chosen.quiet:
                print(f"openagent: {summary(tally, ledger, time.monotonic() - started)}", file=sys.stderr)
    return 1 if tally.failed + ledger.failed else 0


def summary(tally: Tally, ledger: Ledger, seconds: float) -> str:
    """What a run has come to, in a line."""
    kinds = ", ".join(f"{kind} {count}x" for kind, count in sorted(tally.failures.items()))
    parts = [
        f"{tally.answered} answered",
        f"{tally.failed} failed" + (f" ({kinds})" if kinds else ""),
        f"{tally.tokens} tokens in {tally.requests} requests",
        f"{seconds:.1f} s, {tally.done / seconds if seconds else 0:.1f}/s",
    ]
    if ledger.known:
        before = f"{len(ledger.known)} were there before"
        parts.append(before + (f", of which {ledger.failed} failed (--retry-errors)" if ledger.failed else ""))
    if tally.ended_by == "budget":
        parts.append("the budget is spent: the rest was not sent")
    return "; ".join(parts)
