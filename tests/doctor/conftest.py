"""A scripted server that answers the doctor's questions well, but for what a test changes."""

import pytest
from patients import GOOD, kind

from openagent import AgentOptions
from openagent.doctor import examine
from openagent.testing import ScriptedServer, failure


@pytest.fixture
def patient():
    """Starts a server that answers each kind of question; a change is an item or a function of the request."""
    servers = []

    def start(**how):
        answers = GOOD | how.pop("answers", {})

        def play(request):
            item = answers.get(kind(request), failure(404, f"no {request.path}"))
            return item(request) if callable(item) else item

        servers.append(ScriptedServer(play, repeat=True, strict=False, **how))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def diagnose(patient):
    """The report on a server with these changes."""

    def run(answers=None, timeout=20, **settings):
        server = patient(answers=answers or {})
        return examine(AgentOptions(**{"model": "tiny", "base_url": server.url} | settings), timeout=timeout)

    return run
