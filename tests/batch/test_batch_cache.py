"""``cache=``: keyed by everything that is sent, whole or not there, safe for several askers."""

import threading
import time

import pytest

from openagent import AgentOptions, ConfigError, map_prompts, tool
from openagent.batch.cache import Cache
from openagent.testing import answer, call, failure


@tool
def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@pytest.fixture
def cached(tmp_path):
    """The answers of a run with the cache of this test."""

    def run(server, prompts, **settings):
        options = AgentOptions(**{"model": "m", "base_url": server.url, "retry": None} | settings)
        return list(map_prompts(options, prompts, cache=tmp_path / "kept", progress=False))

    return run


def test_what_was_answered_is_not_asked_again(serve, cached):
    server = serve("one", "two")
    first = cached(server, ["a"]) + cached(server, ["b"])
    again = cached(server, ["b", "a"])
    assert [result.answer for result in first + again] == ["one", "two", "two", "one"]
    assert [(r.requests, r.tokens, r.finish_reason) for r in again] == [(0, 0, "stop")] * 2
    assert [result.usage for result in again] == [result.usage for result in reversed(first)]
    assert len(server.requests) == 2


def test_the_same_at_the_same_time_is_asked_once(serve, cached):
    def slow(request):
        time.sleep(0.05)
        return "yes"

    server = serve(slow)
    assert {result.answer for result in cached(server, ["same"] * 30)} == {"yes"}
    assert len(server.requests) == 1


@pytest.mark.parametrize("setting", [{"model": "n"}, {"temperature": 1.0}, {"system_prompt": "Be."}, {"seed": 3}])
def test_whatever_changes_the_request_is_another_answer(serve, cached, setting):
    server = serve("one", "two")
    assert cached(server, ["a"])[0].answer == "one"
    assert cached(server, ["a"], **setting)[0].answer == "two"


def test_the_key_is_neither_in_the_folder_nor_part_of_the_question(serve, cached, tmp_path):
    server = serve("one")
    assert cached(server, ["a"], api_key="secret-key-1")[0].requests == 1
    assert cached(server, ["a"], api_key="secret-key-2")[0].requests == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 1
    assert b"secret" not in files[0].read_bytes()


def test_every_round_of_an_exchange_is_kept(serve, cached):
    server = serve(answer(calls=[call("double", {"number": 21})]), "It is 42.")
    settings = {"tools": [double], "auto_execute_tools": True}
    first, again = (cached(server, ["21?"], **settings)[0] for _ in range(2))
    assert (first.answer, first.requests) == ("It is 42.", 2)
    assert (again.answer, again.requests) == ("It is 42.", 0)


@pytest.mark.parametrize("broken", [failure(400, "no"), answer("half of it", cut=250)])
def test_a_failure_is_not_kept(serve, cached, broken):
    server = serve(broken, "good")
    assert cached(server, ["a"])[0].error is not None
    assert cached(server, ["a"])[0].answer == "good"


def test_a_damaged_file_is_as_none(serve, cached, tmp_path):
    server = serve("one", "two")
    cached(server, ["a"])
    for path in tmp_path.rglob("*.reply"):
        path.write_bytes(path.read_bytes()[:-120])
    assert [cached(server, ["a"])[0].answer for _ in range(2)] == ["two", "two"]


def test_a_reader_sees_a_whole_reply_or_none_while_others_write(tmp_path):
    key, bodies = "ab" * 32, [bytes([letter]) * 100_000 for letter in b"xyz"]
    caches = [Cache(tmp_path) for _ in bodies]  # as processes would have them

    def write(cache, body):
        for _ in range(40):
            cache.write(key, {"content-type": "t"}, body)

    writers = [threading.Thread(target=write, args=pair) for pair in zip(caches, bodies, strict=True)]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(Cache(tmp_path).read(key))
    for writer in writers:
        writer.join()
    whole = [({"content-type": "t"}, body) for body in bodies]
    assert [reply for reply in seen if reply is not None and reply not in whole] == []
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".reply"]


def test_a_folder_that_cannot_be_one_is_a_wrong_setting(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be a folder"):
        Cache(tmp_path / "file")
