"""What tests of several rooms need: a clean environment, scripted servers and clients that are closed."""

import signal
import time

import pytest

from openagent import Client
from openagent.presets import PRESETS
from openagent.testing import ScriptedServer

VARIABLES = [
    *(preset.key_variable for preset in PRESETS.values() if preset.key_variable),
    *(preset.address_variable for preset in PRESETS.values() if preset.address_variable),
    "OPENAGENT_PROFILE",
    *(f"{prefix}_{name}" for prefix in ("OPENAGENT", "OPEN_AGENT") for name in ("BASE_URL", "MODEL", "API_KEY")),
    *(name for kind in ("http", "https", "all", "no") for name in (f"{kind}_proxy", f"{kind.upper()}_PROXY")),
]


# A shell that starts the tests in the background has Ctrl-C ignored, in the tests' own children too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_settings_from_the_environment(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "data"))  # where conversations are kept
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "config"))  # there are no profiles
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve():
    """Starts strict servers; whatever the test did to the history, they must have accepted it."""
    servers = []

    def start(*script, **how):
        servers.append(ScriptedServer(*script, **how))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
    assert [complaint for server in servers for complaint in server.complaints] == []


@pytest.fixture
def connect():
    """Makes clients of a server, without retries."""
    clients = []

    def start(server, **settings):
        clients.append(Client(**{"model": "m", "base_url": server.url, "retry": None} | settings))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


@pytest.fixture
def eventually():
    """Whether something becomes true within five seconds, which only a failure takes."""

    def wait(condition):
        until = time.monotonic() + 5
        while not condition() and time.monotonic() < until:
            time.sleep(0.005)
        return condition()

    return wait
