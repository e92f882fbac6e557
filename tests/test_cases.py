"""What real servers send, from public bug reports: each fixture in ``cases/`` over a real socket.

A fixture's ``expect`` describes one request, run in manual mode with retries off.
"""

import base64
import json
import re
import time
from pathlib import Path

import pytest

from openagent import (
    AgentError,
    APIError,
    Client,
    ContextOverflowError,
    InvalidResponseError,
    StreamInterruptedError,
    TextBlock,
    ToolUseBlock,
)
from openagent.testing import ScriptedServer, raw

FOLDER = Path(__file__).parent / "cases"
CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*-*.json"))]
ERRORS = {
    "stream_interrupted": StreamInterruptedError,
    "api_error": APIError,
    "context_overflow": ContextOverflowError,
    "invalid_response": InvalidResponseError,
}


def chunk_bytes(chunk):
    return base64.b64decode(chunk["b64"]) if isinstance(chunk, dict) else chunk.encode()


def served(case):
    http = case["http"]
    headers = {name.lower(): value for name, value in http["headers"].items()}
    framing = "chunked" if "transfer-encoding" in headers else "length" if "content-length" in headers else "close"
    return raw(
        *[chunk for chunk in map(chunk_bytes, http["chunks"]) if chunk],
        status=http["status"],
        headers=http["headers"],
        framing=framing,
        end=http["close"],
        delay=0.002,
        hold=http.get("hold_open_s", 0.0),
    )


def options_of(case):
    tools = [
        {"name": tool["name"], "description": tool["description"], "parameters": tool["parameters"]}
        for tool in case.get("tools") or []
    ]
    return {
        "model": "m",
        "api_key": "k-secret-key",
        "protocol": case["protocol"],
        "tools": tools,
        "include_reasoning": True,
    }


def heard(client):
    client.send("hello")
    blocks, text = [], []
    for block in client.receive():
        if isinstance(block, TextBlock):
            text.append(block.text)
        else:
            blocks.append(block)
    return [TextBlock("".join(text)), *blocks] if "".join(text).strip() else blocks


def compared(case, text):
    how = case["expect"].get("compare") or ""
    if "collapse_ufffd" in how:
        text = re.sub("\ufffd+", "\ufffd", text)
    return text.strip() if "strip_text" in how else text


def plain(case, block):
    if isinstance(block, TextBlock):
        return {"type": "text", "text": compared(case, block.text)}
    shown = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input if not block.error else None}
    return shown | ({"raw_arguments": block.raw_arguments} if block.raw_arguments else {})


def expected(case, block, actual):
    if block["type"] == "text":
        return {"type": "text", "text": compared(case, block["text"])}
    block = dict(block)
    if block["id"] is None and actual and actual.get("id"):  # made up by us
        block["id"] = actual["id"]
    if block["input"] is not None:
        block.pop("raw_arguments", None)
    return block


def check_blocks(case, expect, blocks):
    shown = [plain(case, block) for block in blocks]
    wanted = [
        expected(case, block, shown[place] if place < len(shown) else None)
        for place, block in enumerate(expect["blocks"])
        if block["type"] != "text" or block["text"].strip()
    ]
    if expect.get("error") == "bad_tool_arguments":
        for block in (*shown, *wanted):
            block.pop("raw_arguments", None)
    assert shown == wanted


def check_answer(case, expect, client, blocks):
    check_blocks(case, expect, blocks)
    assert client.finish_reason.raw in [expect["finish_reason"], *expect.get("finish_any_of", [])]
    assert (client.reasoning or None) == expect["reasoning"]
    assert what_follows(client) == expect["turn"]
    check_usage(expect, client.usage)


def what_follows(client):
    """What the turn asks of the loop, in the fixtures' words."""
    if client.finish_reason.is_truncated:
        return "truncated"
    words = {"content_filter": "refused", "pause_turn": "continue"}
    calls = client.history[-1].calls
    return words.get(client.finish_reason) or ("run_tools" if calls else "final")


def check_usage(expect, usage):
    if expect["usage"] is None:
        assert usage is None
        return
    counts = usage.raw
    shown = {
        "input_tokens": counts.get("prompt_tokens", counts.get("input_tokens")),
        "output_tokens": counts.get("completion_tokens", counts.get("output_tokens")),
        "cache_read_tokens": usage.cache_read_tokens,
    }
    assert {name: shown[name] for name in expect["usage"]} == expect["usage"]


def check_error(case, expect, error):
    kinds = tuple(ERRORS[name] for name in expect.get("error_any_of", [expect["error"]]))
    assert isinstance(error, kinds)
    for part in expect.get("error_contains", []):
        assert part in str(error)
    if "retryable" in expect:
        assert error.retryable is expect["retryable"]
    assert "k-secret-key" not in str(error)
    text = [block for block in expect["blocks"] if block["type"] == "text"]
    check_blocks(case, {"blocks": text}, error.blocks)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_case_gives_what_is_expected(case):
    expect = case["expect"]
    started = time.monotonic()
    with (
        ScriptedServer(served(case), strict=False) as server,
        Client(base_url=server.url, retry=None, **options_of(case)) as client,
    ):
        if expect["error"] in ERRORS:
            with pytest.raises(AgentError) as caught:
                heard(client)
            check_error(case, expect, caught.value)
            assert [message.role for message in client.history] == ["user"]
        else:
            check_answer(case, expect, client, heard(client))
        assert len(server.requests) == 1
    assert time.monotonic() - started < expect.get("max_seconds", 10)


ONCE = [case for case in CASES if case["expect"].get("max_requests")]


@pytest.mark.parametrize("case", ONCE, ids=[case["id"] for case in ONCE])
def test_what_would_fail_again_is_not_asked_again(case):
    with (
        ScriptedServer(served(case), strict=False, repeat=True) as server,
        Client(base_url=server.url, **options_of(case)) as client,
    ):
        if case["expect"]["error"]:
            with pytest.raises(APIError):
                heard(client)
        else:
            heard(client)
        assert len(server.requests) == case["expect"]["max_requests"] == 1


LOOPING = [case for case in CASES if case["expect"]["turn"] in ("run_tools", "continue")]


def members(body, where):
    """What the rule of a fixture names: ``assistant.a[0].b``, ``assistant.a[*]``, ``input[type=b].c``."""
    start, _, path = where.partition(".") if where.startswith("assistant") else ("", "", where)
    turn = next(message for message in body["messages"] if message["role"] == "assistant") if start else body
    found = [turn]
    for name, index in re.findall(r"(\w+)|\[([^]]+)\]", path):
        if name:
            found = [value[name] for value in found]
        elif index.isdigit():
            found = [value[int(index)] for value in found]
        else:
            key, _, wanted = index.partition("=")
            found = [item for value in found for item in value if key == "*" or item.get(key) == wanted]
    return found


def check_replay(body, rule):
    found = members(body, rule["where"])
    if "equals" in rule:
        assert found == [rule["equals"]]
    elif "json_string_of" in rule:
        assert [json.loads(text) for text in found] == [rule["json_string_of"]]
    elif "order" in rule:
        assert [item["type"] for item in found[0] if "type" in item] == rule["order"]
    else:
        assert rule["no_blank_text"]
        assert [block for block in found if not block.get("text", "-").strip()] == []


@pytest.mark.parametrize("case", LOOPING, ids=[case["id"] for case in LOOPING])
def test_each_tool_turn_is_run_answered_and_accepted_by_a_strict_server(case):
    expect, ran = case["expect"], []

    def stub(name):
        return lambda arguments: ran.append((name, arguments)) or "ok"

    settings = options_of(case)
    settings["tools"] = [tool | {"handler": stub(tool["name"])} for tool in settings["tools"]]
    with (
        ScriptedServer(served(case), "done", strict=False) as server,
        Client(base_url=server.url, retry=None, auto_execute_tools=True, **settings) as client,
    ):
        assert client.ask("hello") == "done"
        replayed = server.requests[1].body
    with (
        ScriptedServer("fine") as strict,
        Client(base_url=strict.url, retry=None, **settings) as other,
    ):
        other.history = client.history
        other.ask("and now?")
        assert strict.complaints == []
    assert not {name for name, _ in ran} & set(expect.get("forbidden_tools", []))
    results = {block.tool_use_id: block for message in client.history for block in message.results}
    for wanted in expect.get("tool_results", []):
        assert results[wanted["id"]].is_error is wanted["is_error"]
        for part in wanted.get("contains", []):
            assert part in json.dumps(results[wanted["id"]].content)
    calls = [block for block in client.history[1].content if isinstance(block, ToolUseBlock)]
    assert [call.id for call in calls] == list(results)
    for rule in expect.get("replay", []):
        check_replay(replayed, rule)
