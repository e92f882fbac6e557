"""Faults planted into good requests: what reads our requests is no reader that passes everything."""

import json

import pytest
from vendor_types import pydantic, unread

CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
GOOD = {
    "openai-chat": {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.y"}}]},
            {"role": "assistant", "content": "", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
        "tools": [{"type": "function", "function": {"name": "look"}}],
    },
    "openai-responses": {
        "model": "m",
        "stream": True,
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.y", "detail": "low"}]},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {}, "strict": False}],
    },
    "anthropic": {
        "model": "m",
        "stream": True,
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x.y"}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    },
}
ABSENT = object()
PLANTED = [
    ("openai-chat", "messages.0.role", "robot"),
    ("openai-chat", "messages.0.content.0.image_url", "https://x.y"),
    ("openai-chat", "messages.1.tool_calls.0.function.name", ABSENT),
    ("openai-chat", "messages.2.tool_call_id", ABSENT),
    ("openai-chat", "tool_choice", {"type": "function", "name": "look"}),
    ("openai-chat", "max_output_tokens", 9),
    ("openai-responses", "input.0.content.0.detail", "huge"),
    ("openai-responses", "input.1.call_id", ABSENT),
    ("openai-responses", "input.1.arguments", {}),
    ("openai-responses", "input.2.output", 1),
    ("openai-responses", "tools.0", GOOD["openai-chat"]["tools"][0]),
    ("openai-responses", "text", {"format": {"type": "json_schema", "name": "answer"}}),
    ("anthropic", "max_tokens", ABSENT),
    ("anthropic", "messages.0.content.0.source.type", "uri"),
    ("anthropic", "messages.1.content.0.input", "{}"),
    ("anthropic", "messages.2.content.0.tool_use_id", ABSENT),
    ("anthropic", "messages.2.content.0.name", "look"),
    ("anthropic", "tools.0.input_schema", ABSENT),
]


@pytest.mark.parametrize(("protocol", "path", "value"), PLANTED)
def test_a_planted_fault_is_found(protocol, path, value):
    body = json.loads(json.dumps(GOOD[protocol]))
    assert unread(protocol, body) == set()
    *steps, last = path.split(".")
    place = body
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    last = int(last) if last.isdigit() else last
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    try:
        found = unread(protocol, body)
    except pydantic.ValidationError:
        found = {path}
    assert found
