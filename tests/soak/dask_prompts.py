"""10,000 prompts with mixed faults on a dask cluster: ``python tests/soak/dask_prompts.py [PROMPTS]``.

Three worker processes of three threads each; the faults are those of ``many_prompts.py``. At a third of the results one
worker is killed with SIGKILL. Then: every prompt once, in order, every answer right. Prints the figures, also what a
task costs that does nothing, which is the scheduler's share.
"""

import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter

from many_prompts import script

from openagent import AgentOptions, map_prompts
from openagent.testing import ScriptedServer

WORKERS, THREADS = 3, 3


def nothing_seconds(executor, tasks=2000):
    """Seconds per task that does nothing."""
    started = time.perf_counter()
    for future in [executor.submit(int, number) for number in range(tasks)]:
        future.result()
    return (time.perf_counter() - started) / tasks


def main(number):
    from distributed import Client, LocalCluster

    memory = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedServer(script(50), repeat=True) as server,
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=THREADS, dashboard_address=None, local_directory=folder
        ) as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor(pure=False)
        print(f"a task that does nothing: {nothing_seconds(executor) * 1000:.2f} ms", flush=True)
        pids = list(client.run(os.getpid).values())
        started = time.monotonic()
        prompts = (f"p{n}" for n in range(number))
        run = map_prompts(
            AgentOptions(model="m", base_url=server.url), prompts, executor=executor, workers=WORKERS * THREADS,
            progress=False,
        )  # fmt: skip
        places, wrong, kinds = [], [], Counter()
        for result in run:
            places.append(result.index)
            if result.answer != f"re: {result.input}":
                wrong.append(result)
                kinds[repr(result.error)] += 1
            if len(places) == number // 3:
                os.kill(pids[0], signal.SIGKILL)
                print(f"{len(places)} results, worker {pids[0]} killed", flush=True)
            if len(places) % (number // 10) == 0:
                memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        seconds = time.monotonic() - started
        asked = Counter(request.body["messages"][-1]["content"] for request in server.requests)
        now = list(client.run(os.getpid).values())
    assert places == list(range(number))
    assert all(result.error is not None for result in wrong)
    print(f"{len(places)} results, each prompt once and in order; {len(wrong)} without an answer: {dict(kinds)}")
    print(f"{len(asked)} prompts in {sum(asked.values())} requests, {seconds:.0f} s, {number / seconds:.1f}/s")
    print(f"workers before {sorted(pids)}, after {sorted(now)}")
    print("MB of this process at most, after each tenth:", *(f"{size:.0f}" for size in memory))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
