"""What a refusal says that a server lacks, and how long that is remembered."""

import pytest

from openagent import AgentOptions, APIError
from openagent.abilities import (
    ANSWER_FORMAT,
    TOOLS,
    Abilities,
    says_bad_schema,
    says_no_forced_call,
    says_no_format,
    says_no_tools,
)

REFUSALS = [
    # no tools, no structured output, no forced call, a bad schema
    (400, "registry.ollama.ai/library/gemma:2b does not support tools", "tools call"),
    (404, 'No endpoints found that support tool use. Try disabling "add".', "tools call"),
    (400, "Thinking mode does not support this tool_choice", "call"),
    (400, "tool_choice 'specified' is incompatible with thinking enabled", "call"),
    (400, "This response_format type is unavailable now", "format"),
    (400, "output_config.format: Extra inputs are not permitted", "format"),
    (405, "json_schema response format is not supported for model: step", "format"),
    (400, "Invalid schema for response_format 'answer': In context=(), 'oneOf' is not permitted.", "format schema"),
    (400, "output_config.format.schema: 'additionalProperties' must be explicitly set to false", "format schema"),
    (401, "you may not use tools: not supported; nor response_format", ""),
    (429, "slow down with response_format", ""),
    (400, "the model is not supported", ""),
    (400, "maximum context length is 4096 tokens", ""),
]


@pytest.mark.parametrize(("status", "said", "lacks"), REFUSALS)
def test_a_refusal_says_what_the_server_lacks(status, said, lacks):
    error = APIError(said, status=status)
    asked = {"tools": says_no_tools, "format": says_no_format, "call": says_no_forced_call, "schema": says_bad_schema}
    assert {name for name, says in asked.items() if says(error)} == set(lacks.split())


def test_it_is_remembered_by_protocol_address_and_model():
    options = AgentOptions(model="m", base_url="http://localhost:1/v1")
    abilities = Abilities()
    abilities.note(options, TOOLS)
    same = [options, options.replace(temperature=0)]
    others = [
        options.replace(model="n"),
        options.replace(base_url="http://x/v1"),
        options.replace(protocol="anthropic"),
    ]
    assert [abilities.lacks(asked, TOOLS) for asked in (*same, *others)] == [True, True, False, False, False]
    assert not abilities.lacks(options, ANSWER_FORMAT)
    abilities.forget()
    assert not abilities.lacks(options, TOOLS)
