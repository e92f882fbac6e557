"""300 prompts over ``mpi4py.futures``: ``mpiexec -n 4 python -m mpi4py.futures tests/soak/mpi.py``.

Needs ``pip install mpi4py mpich``. The first process serves and asks for the results, the other three do the work:
each prompt has a tool called that tells its process. Then: every prompt once, in order, all three at work.
"""

import os
import time
from collections import Counter

from openagent import AgentOptions, map_prompts, tool
from openagent.testing import ScriptedServer, answer, call

PROMPTS = 300


@tool
def process_id() -> int:
    """The process that runs this tool."""
    return os.getpid()


def told_process(request):
    last = request.body["messages"][-1]
    time.sleep(0.02)
    return last["content"] if last["role"] == "tool" else answer(calls=[call("process_id", {})])


def main():
    from mpi4py.futures import MPIPoolExecutor

    with ScriptedServer(told_process, repeat=True) as server, MPIPoolExecutor() as executor:
        options = AgentOptions(model="m", base_url=server.url, tools=[process_id], auto_execute_tools=True)
        prompts = [f"p{number}" for number in range(PROMPTS)]
        results = list(map_prompts(options, prompts, executor=executor, workers=3, progress=False))
        assert [(result.index, result.input) for result in results] == list(enumerate(prompts))
        assert [result.error for result in results] == [None] * PROMPTS
        shares = Counter(result.answer for result in results)
        print(f"{PROMPTS} answered, each once; by process: {dict(shares)}; {len(server.requests)} requests")
        assert len(shares) == 3
        assert len(server.requests) == 2 * PROMPTS


if __name__ == "__main__":
    main()
