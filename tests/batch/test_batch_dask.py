"""``map_prompts`` on a cluster of three worker processes, one of which is killed in the middle."""

import os
import signal
import subprocess
import sys
import time

from openagent.testing import answer, call

# In a process of its own: what a cluster leaves behind (threads, loops, signal handlers) is no other test's business.
SCRIPT = """
import os, sys
from distributed import Client, LocalCluster
from openagent import AgentOptions, Result, map_prompts, tool

@tool
def process_id() -> int:
    '''The process that runs this tool.'''
    return os.getpid()

if __name__ == "__main__":
    options = AgentOptions(model="m", base_url=sys.argv[1], tools=[process_id], auto_execute_tools=True)
    folder = sys.argv[2]
    how = {"dashboard_address": None, "local_directory": folder, "host": "127.0.0.1"}
    with LocalCluster(n_workers=3, threads_per_worker=2, **how) as it:
        with Client(it) as client:
            run = map_prompts(options, [f"p{n}" for n in range(30)], executor=client.get_executor(), workers=3)
            for result in run:
                print(result.index, result.answer or repr(result.error), flush=True)
"""


def test_the_work_is_spread_and_a_killed_worker_loses_nothing(serve, tmp_path):
    workers = set()

    def told_process(request):
        last = request.body["messages"][-1]
        time.sleep(0.03)
        if last["role"] != "tool":
            return answer(calls=[call("process_id", {})])
        workers.add(last["content"])
        return last["content"]

    server = serve(told_process, repeat=True)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), server.url, str(tmp_path)]
    complaints = tmp_path / "stderr"
    with (
        complaints.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        lines = [process.stdout.readline() for _ in range(5)]
        os.kill(int(lines[0].split()[1]), signal.SIGKILL)
        lines += process.stdout.readlines()
    assert process.returncode == 0, complaints.read_text()
    results = [line.split() for line in lines]
    assert [int(index) for index, _ in results] == list(range(30))
    assert {answered for _, answered in results} <= workers
    assert len(workers) >= 3
