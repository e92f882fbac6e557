"""``Ledger``: one durable line a key, one run at a time, repaired when torn."""

import json

import pytest

from openagent import ConfigError
from openagent.batch import Ledger

ONE = {"key": "1", "fingerprint": "f1", "answer": "Grüße", "error": None}
BAD = {"key": "2", "fingerprint": "f2", "answer": None, "error": {"kind": "Timeout", "message": "late"}}
THREE = {"key": "3", "fingerprint": "f3", "answer": "three", "error": None}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.jsonl"


@pytest.fixture
def written(path):
    with Ledger(path) as ledger:
        for record in (ONE, BAD, THREE):
            ledger.append(record)
    return path


def lines(path):
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_is_there_once_it_is_appended(path):
    with Ledger(path) as ledger:
        ledger.append(ONE)
        assert lines(path) == [ONE]
        assert (ledger.known, ledger.failed) == ({}, 0)


def test_what_stands_in_the_file_is_known(written):
    with Ledger(written) as ledger:
        assert (ledger.known, ledger.failed) == ({"1": "f1", "2": "f2", "3": "f3"}, 1)
    assert lines(written) == [ONE, BAD, THREE]


def test_failures_can_be_dropped_so_that_no_key_comes_twice(written):
    with Ledger(written, drop_errors=True) as ledger:
        assert (ledger.known, ledger.failed) == ({"1": "f1", "3": "f3"}, 0)
        with pytest.raises(ConfigError, match="in use by another run"):
            Ledger(written)
        ledger.append(BAD | {"answer": "now", "error": None})
    assert [record["key"] for record in lines(written)] == ["1", "3", "2"]
    assert [path.name for path in written.parent.iterdir()] == ["out.jsonl"]


def test_a_second_run_on_the_same_file_is_refused(path):
    with Ledger(path), pytest.raises(ConfigError, match="in use by another run"):
        Ledger(path)
    Ledger(path).close()


def test_wherever_the_last_line_is_torn_the_rest_is_kept(written):
    whole = written.read_bytes()
    start = whole.rindex(b'{"key"')
    for size in range(start, len(whole) + 1):
        written.write_bytes(whole[:size])
        with Ledger(written) as ledger:
            is_whole = size >= len(whole) - 1
            assert list(ledger.known) == (["1", "2", "3"] if is_whole else ["1", "2"])
        assert written.read_bytes() == (whole if is_whole else whole[:start])


def test_zeros_that_a_power_cut_left_are_cut_away(written):
    whole = written.read_bytes()
    written.write_bytes(whole + b"\0" * 100)
    Ledger(written).close()
    assert written.read_bytes() == whole


@pytest.mark.parametrize("content", ["my novel", "a,b\n1,2\n", '{"other": 1}\n', "[]\n"])
def test_a_file_that_is_no_output_is_left_alone(path, content):
    path.write_text(content)
    with pytest.raises(ConfigError, match="is no output of a run"):
        Ledger(path)
    assert path.read_text() == content


def test_a_place_that_cannot_be_written_is_a_wrong_setting(tmp_path):
    with pytest.raises(ConfigError, match="cannot write to"):
        Ledger(tmp_path / "missing" / "out.jsonl")
    with pytest.raises(ValueError, match="starts with its key"), Ledger(tmp_path / "out") as ledger:
        ledger.append({"answer": "x", "key": "1"})
