"""10,000 prompts with mixed faults: ``python tests/soak/many_prompts.py [PROMPTS]``.

5 % of the requests get a 429, 2 % a stream that breaks off, 1 % a 500, 1 % are slow; the others take 50 ms. First a
loop with one client and a run with eight workers take turns on the same server. Then ``openagent batch`` is killed with
SIGKILL at a third and at two thirds, and goes on to the end: every key once, every answer right. Last, its memory is
looked at all along a run that nothing stops. Prints the figures.
"""

import itertools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openagent.testing import ScriptedServer, answer, failure

LATENCY = 0.05
TURNS = 3

LOOP = """
import sys, time
from openagent import AgentError, AgentOptions, Client, map_prompts

def one_after_the_other(options, prompts):
    with Client(options) as client:
        for prompt in prompts:
            while True:
                client.clear_history()
                try:
                    yield client.ask(prompt)
                    break
                except AgentError:
                    continue

url, number, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options, prompts = AgentOptions(model="m", base_url=url), [f"p{n}" for n in range(number)]
started = time.perf_counter()
if workers:
    answers = [result.answer for result in map_prompts(options, prompts, workers=workers, progress=False)]
else:
    answers = list(one_after_the_other(options, prompts))
assert answers == [f"re: {prompt}" for prompt in prompts]
print((time.perf_counter() - started) / number)
"""


def script(after_ms):
    """A function for the server's script: an echo with faults by the number of the request."""
    numbers = itertools.count(1)
    headers = {} if after_ms is None else {"retry-after-ms": str(after_ms)}

    def moody(request):
        number = next(numbers)
        time.sleep(0.5 if number % 100 == 50 else LATENCY)
        text = f"re: {request.body['messages'][-1]['content']}"
        if number % 20 == 0:
            return failure(429, "slow down", headers=headers)
        if number % 50 == 1:
            return answer(text, cut=300)
        return failure(500, "oops") if number % 100 == 2 else text

    return moody


def seconds_each(server, prompts, workers):
    command = [sys.executable, "-c", LOOP, server.url, str(prompts), str(workers)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def compared(after_ms, prompts):
    """How many times as fast eight workers are as a loop, with the same faults."""
    with ScriptedServer(script(after_ms), repeat=True) as server:
        turns = [(seconds_each(server, prompts // 8, 0), seconds_each(server, prompts, 8)) for _ in range(TURNS)]
    ratios = [loop / run for loop, run in turns]
    asks = "no Retry-After" if after_ms is None else f"Retry-After {after_ms} ms"
    rates = ", ".join(f"{1 / loop:.1f}/s and {1 / run:.1f}/s" for loop, run in turns)
    print(f"429 with {asks}: loop and eight workers {rates}: {statistics.median(ratios):.1f} times as fast", flush=True)


def run(server, folder, *, kill_at=None, watch=None):
    """Seconds, exit code, summary; ``watch`` gets the memory of the process in MB every so often."""
    command = [sys.executable, "-m", "openagent", "batch", "in.txt", "-o", "out.jsonl", "-m", "m"]
    started = time.monotonic()
    with subprocess.Popen(
        [*command, "--base-url", server.url], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        if kill_at is not None:
            server.wait_for_requests(kill_at, timeout=3600)
            process.send_signal(signal.SIGKILL)
        while watch is not None and process.poll() is None:
            watch.append(resident(process.pid) or (watch or [0])[-1])
            time.sleep(0.5)
        _, err = process.communicate()
    return time.monotonic() - started, process.returncode, err.strip().splitlines()[-1:]


def resident(pid):
    """MB of memory; 0 if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0)


def killed_twice(prompts):
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(script(50), repeat=True) as server:
        Path(folder, "in.txt").write_text("".join(f"p{number}\n" for number in range(prompts)))
        for part in (1, 2):
            print("killed:", run(server, folder, kill_at=part * prompts // 3), flush=True)
        print("to the end:", run(server, folder), flush=True)
        lines = [json.loads(line) for line in Path(folder, "out.jsonl").read_text().splitlines()]
        assert sorted(int(line["key"]) for line in lines) == list(range(1, prompts + 1))
        wrong = [line for line in lines if line["answer"] != f"re: p{int(line['key']) - 1}"]
        print(f"{len(lines)} lines, each key once; {len(wrong)} without the right answer: {wrong[:3]}")
        print(f"{len(server.requests)} requests, {len(server.complaints)} complaints", flush=True)
        assert all(line["error"] is not None for line in wrong)


def undisturbed(prompts):
    memory = []
    with tempfile.TemporaryDirectory() as folder, ScriptedServer(script(50), repeat=True) as server:
        Path(folder, "in.txt").write_text("".join(f"p{number}\n" for number in range(prompts)))
        print("undisturbed:", run(server, folder, watch=memory))
    tenths = [memory[len(memory) * part // 10] for part in range(1, 10)]
    print("MB of memory after each tenth of the time:", *(f"{size:.1f}" for size in tenths))


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    compared(50, number // 8)
    compared(None, number // 8)
    killed_twice(number)
    undisturbed(number)
