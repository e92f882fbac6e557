import copy
import pickle

import pytest

import openagent
from openagent import errors
from openagent.errors import (
    AgentError,
    APIError,
    ConfigError,
    ContextOverflowError,
    InvalidResponseError,
    PromptBlockedError,
    StreamInterruptedError,
    Timeout,
    ToolError,
    TransportError,
)
from openagent.messages import TextBlock

FACTS = {
    "retryable": True,
    "status": 503,
    "body": '{"error":"busy"}',
    "request_id": "req_7",
    "retry_after": 2.5,
    "blocks": [TextBlock("half")],
}
ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AgentError)]


def facts(error):
    return {name: getattr(error, name) for name in FACTS}


def test_every_error_is_one_family_of_two_levels():
    """design.md 6."""
    parents = {kind.__name__: [base.__name__ for base in kind.__bases__] for kind in ALL}
    assert parents == {
        "AgentError": ["Exception"],
        "ConfigError": ["AgentError", "ValueError"],
        "PromptBlockedError": ["AgentError"],
        "ToolError": ["AgentError"],
        "TransportError": ["AgentError"],
        "Timeout": ["TransportError"],
        "APIError": ["AgentError"],
        "ContextOverflowError": ["APIError"],
        "InvalidResponseError": ["AgentError"],
        "StreamInterruptedError": ["AgentError"],
    }


def test_every_error_can_be_imported_from_the_package():
    assert {kind for kind in ALL if getattr(openagent, kind.__name__, None) is not kind} == set()


def test_an_error_without_facts_says_that_there_are_none():
    nothing = dict.fromkeys(FACTS) | {"retryable": False, "blocks": []}
    assert facts(AgentError("no")) == nothing


def test_an_error_carries_the_facts_a_program_can_act_on():
    error = APIError("API error 503: busy", **FACTS)
    assert (str(error), facts(error)) == ("API error 503: busy", FACTS)


def test_the_blocks_of_an_error_are_a_copy():
    blocks = [TextBlock("half")]
    error = StreamInterruptedError("cut", blocks=blocks)
    blocks.clear()
    assert error.blocks == [TextBlock("half")]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("copied", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_an_error_survives_being_copied_and_pickled(kind, copied):
    """An error crosses processes (a pool of workers) with all its facts."""
    error = kind("it failed", **FACTS)
    twin = copied(error)
    assert (type(twin), str(twin), facts(twin)) == (kind, "it failed", FACTS)


def test_a_wrong_setting_is_also_a_value_error():
    with pytest.raises(ValueError, match="temperature"):
        raise ConfigError("temperature 9 must be from 0 to 2")


def test_no_error_is_retryable_by_its_class_alone():
    """Whether another try may help is decided where the error is made."""
    assert [kind.__name__ for kind in ALL if kind.retryable] == []


def test_the_parties_at_fault_can_be_told_apart():
    kinds = (ConfigError, PromptBlockedError, ToolError, TransportError, APIError, InvalidResponseError)
    assert [issubclass(Timeout, kind) for kind in kinds] == [False, False, False, True, False, False]
    assert [issubclass(ContextOverflowError, kind) for kind in kinds] == [False, False, False, False, True, False]
    assert [issubclass(StreamInterruptedError, kind) for kind in kinds] == [False] * 6
