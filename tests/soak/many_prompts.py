"""10,000 prompts with mixed faults, killed in the middle: ``python tests/soak/many_prompts.py [PROMPTS]``.

5 % of the requests get a 429, 2 % a stream that breaks off, 1 % a 500, 1 % are slow. The command is killed with
SIGKILL at a third and at two thirds. Then: every key once, every answer right. Prints the figures.
"""

import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openagent.testing import ScriptedServer, answer, failure

LATENCY = 0.05


def script():
    """A function for the server's script: an echo with faults by the number of the request."""
    numbers = itertools.count(1)

    def moody(request):
        number = next(numbers)
        time.sleep(0.5 if number % 100 == 50 else LATENCY)
        text = f"re: {request.body['messages'][-1]['content']}"
        if number % 20 == 0:
            return failure(429, "slow down", headers={"retry-after-ms": "50"})
        if number % 50 == 1:
            return answer(text, cut=300)
        return failure(500, "oops") if number % 100 == 2 else text

    return moody


def run(server, folder, *, kill_at=None):
    """Seconds, exit code, summary."""
    command = [sys.executable, "-m", "openagent", "batch", "in.txt", "-o", "out.jsonl", "-m", "m"]
    started = time.monotonic()
    with subprocess.Popen(
        [*command, "--base-url", server.url], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        if kill_at is not None:
            server.wait_for_requests(kill_at, timeout=3600)
            process.send_signal(signal.SIGKILL)
        _, err = process.communicate()
    return time.monotonic() - started, process.returncode, err.strip().splitlines()[-1:]


def main(prompts):
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(script(), repeat=True) as server:
        Path(folder, "in.txt").write_text("".join(f"p{number}\n" for number in range(prompts)))
        for part in (1, 2):
            print("killed:", run(server, folder, kill_at=part * prompts // 3))
        print("to the end:", run(server, folder))
        lines = [json.loads(line) for line in Path(folder, "out.jsonl").read_text().splitlines()]
        assert sorted(int(line["key"]) for line in lines) == list(range(1, prompts + 1))
        wrong = [line for line in lines if line["answer"] != f"re: p{int(line['key']) - 1}"]
        print(f"{len(lines)} lines, each key once; {len(wrong)} without the right answer: {wrong[:3]}")
        print(f"{len(server.requests)} requests, {len(server.complaints)} complaints")
        print(f"largest child: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB")
        assert all(line["error"] is not None for line in wrong)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
