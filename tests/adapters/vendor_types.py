"""The vendors' own types of request parameters, from their SDKs, as readers of what we send."""

from collections.abc import Iterable, Mapping

import pydantic
from anthropic.types import message_create_params as anthropic
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses

TYPES = {
    "openai-chat": pydantic.TypeAdapter(chat.CompletionCreateParamsStreaming),
    "openai-responses": pydantic.TypeAdapter(responses.ResponseCreateParamsStreaming),
    "anthropic": pydantic.TypeAdapter(anthropic.MessageCreateParamsStreaming),
}


def walked(value):
    """The value with its lazy iterators drawn out: only then are their items looked at."""
    if isinstance(value, pydantic.BaseModel):  # a block of an answer; what is not among its fields is unknown
        value = {name: getattr(value, name) for name in type(value).model_fields if name in value.model_fields_set}
    if isinstance(value, Mapping):
        return {name: walked(item) for name, item in value.items()}
    return value if isinstance(value, str) or not isinstance(value, Iterable) else [walked(item) for item in value]


def lost(given, read, path=""):
    """The members that were not read as they were given: unknown ones are dropped in silence."""
    if isinstance(given, dict) and isinstance(read, dict):
        for name, value in given.items():
            here = f"{path}.{name}" if path else name
            yield from lost(value, read[name], here) if name in read else [here]
    elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        for one, other in zip(given, read, strict=True):
            yield from lost(one, other, path)
    elif given != read:
        yield path


def unread(protocol, body):
    """What the vendor's types do not read in a body; an error if they refuse it."""
    return set(lost(body, walked(TYPES[protocol].validate_python(body))))
