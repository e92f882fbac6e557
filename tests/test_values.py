"""A value is a dataclass: whatever is asked of one, the answer is that of ``dataclasses``."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import sys
from typing import Any, get_type_hints

import pytest

import openagent
from openagent import AgentOptions, HookDecision, ImageBlock, Message, TextBlock, ToolUseBlock, Usage, values
from openagent.retry import RetryConfig


def made(dataclass: Any, field: Any) -> dict[str, Any]:
    """Classes of all kinds that there are, made by one of the two."""

    @dataclass(frozen=True, slots=True)
    class Slotted:
        """One."""

        text: str

    @dataclass(frozen=True, slots=True)
    class Rich:
        """More."""

        name: str
        state: dict[str, Any] | None = field(default=None, repr=False)
        parts: list[Any] = field(default_factory=list)
        vendor: int = field(default=3, kw_only=True)

    @dataclass(frozen=True)
    class Open:
        """With a dict."""

        name: str
        count: int = 1

        def __post_init__(self) -> None:
            object.__setattr__(self, "count", self.count + 1)

    @dataclass(frozen=True, kw_only=True)
    class Named:
        """By name only."""

        name: str = "n"
        other: Any = field(default_factory=dict)

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=False)
    class Loose:
        """Not frozen."""

        items: list[Any] = field(default_factory=list)
        name: str = ""

    return {kind.__name__: kind for kind in (Slotted, Rich, Open, Named, Loose)}


OURS = made(values.dataclass, values.field)
THEIRS = made(dataclasses.dataclass, dataclasses.field)
USES = {
    "Slotted": [(("a",), {}), (("b",), {}), ((), {"text": "a"}), ((), {}), (("a", "b"), {}), ((["a"],), {})],
    "Rich": [(("a",), {}), (("a", {"b": 1}, [2]), {"vendor": 4}), (("a",), {"parts": (1,)}), (("a", 1, 2, 3), {})],
    "Open": [(("a",), {}), (("a", 2), {}), (("a",), {"count": 1}), (("a",), {"many": 1})],
    "Named": [((), {}), ((), {"name": "x", "other": 1}), (("x",), {})],
    "Loose": [((), {}), (([1], "a"), {}), ((), {"items": [1], "name": "a"})],
}


def answers(kind: Any) -> list[Any]:
    """What a class and its values answer to all that can be asked of a dataclass."""
    told: list[Any] = [
        [(one.name, one.type, repr(one.default), one.repr, one.kw_only) for one in dataclasses.fields(kind)],
        [one.default_factory is dataclasses.MISSING for one in dataclasses.fields(kind)],
        str(inspect.signature(kind)),
        (kind.__name__, kind.__qualname__, kind.__doc__, kind.__module__, kind.__match_args__),
        [getattr(kind.__dataclass_params__, name) for name in ("init", "repr", "eq", "order", "frozen")],
        getattr(kind, "__slots__", None),
        get_type_hints(kind.__init__),
    ]
    found = [attempt(lambda use=use: kind(*use[0], **use[1])) for use in USES[kind.__name__]]
    told += [item if isinstance(item, str) else repr(item) for item in found]
    good = [item for item in found if not isinstance(item, str)]
    told.append([one == other for one in good for other in [*good, "a"]])
    for item in good:
        name = dataclasses.fields(item)[-1].name
        told += [
            attempt(lambda item=item: hash(item) == hash(copy.copy(item))),
            attempt(lambda item=item, name=name: setattr(item, name, "new")),
            attempt(lambda item=item, name=name: delattr(item, name)),
            attempt(lambda item=item, name=name: repr(dataclasses.replace(item, **{name: 7}))),
            attempt(lambda item=item: dataclasses.asdict(item)),
            attempt(lambda item=item: copy.deepcopy(item) == item),
        ]
        if hasattr(item, "__dict__"):  # without, dataclasses.dataclass fails in a way that it does not mean
            told += [attempt(lambda item=item: setattr(item, "foreign", "new")), item.__dict__]
        if sys.version_info >= (3, 13):
            told.append(attempt(lambda item=item, name=name: repr(copy.replace(item, **{name: 7}))))
    return told


def attempt(deed: Any) -> Any:
    """What comes of it; the words of the error, if one does."""
    try:
        return deed()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("name", OURS)
def test_a_value_answers_as_a_dataclass(name):
    assert answers(OURS[name]) == answers(THEIRS[name])


@pytest.mark.parametrize("first", ["fields", "signature", "value", "inherit"])
def test_it_is_no_matter_what_is_asked_first(first):
    """What is made late is made by whoever asks first."""
    kind = made(values.dataclass, values.field)["Rich"]
    if first == "fields":
        assert [one.name for one in dataclasses.fields(kind)] == ["name", "state", "parts", "vendor"]
    elif first == "signature":
        assert "vendor" in inspect.signature(kind).parameters
    elif first == "value":
        assert repr(kind("a")).endswith("Rich(name='a', parts=[], vendor=3)")
    else:
        heir = type("Heir", (kind,), {})
        assert heir("a").name == "a"
    assert answers(kind) == answers(THEIRS["Rich"])


def test_a_dataclass_of_the_users_own_can_inherit():
    @dataclasses.dataclass(frozen=True)
    class Marked(Message):
        mark: str = ""

        def __post_init__(self) -> None:
            super().__post_init__()

    message = Marked("user", "a", mark="m")
    assert (message.mark, message.content, message.text) == ("m", [TextBlock("a")], "a")
    assert dataclasses.replace(message, mark="n") == Marked("user", "a", mark="n")
    assert message != Message("user", "a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.mark = "o"


def test_a_subclass_may_have_attributes_of_its_own():
    class Loud(TextBlock):
        def __init__(self, text: str) -> None:
            super().__init__(text.upper())
            self.was = text

    loud = Loud("a")
    assert (loud.text, loud.was, loud == TextBlock("A")) == ("A", "a", False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loud.text = "b"


def test_a_value_that_holds_itself_can_be_shown():
    loop = OURS["Loose"]()
    loop.items.append(loop)
    other = THEIRS["Loose"]()
    other.items.append(other)
    assert repr(loop) == repr(other)


def test_fields_are_not_inherited_by_another_value():
    with pytest.raises(TypeError, match="Heir must not inherit fields"):
        values.dataclass(frozen=True)(type("Heir", (OURS["Open"],), {"__annotations__": {}}))


@pytest.mark.parametrize(
    "value",
    [
        TextBlock("a"),
        ImageBlock("https://a.example/a.png", "low"),
        ToolUseBlock("i", "n", {"a": [1]}, provider_state={"b": 2}),
        Message("user", "a", {"provider": "p"}),
        Usage(1, 2),
        RetryConfig(),
        HookDecision.block("no"),
        AgentOptions(model="m", base_url="http://a.example/v1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_of_ours_can_be_pickled_and_copied(value):
    assert pickle.loads(pickle.dumps(value)) == value == copy.copy(value) == copy.deepcopy(value)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(value, protocol)) == value


def test_each_value_of_the_library_has_the_signature_and_the_fields_that_dataclasses_would_give_it():
    found = set()
    for module in pkgutil.walk_packages(openagent.__path__, "openagent."):
        if not module.name.endswith("__main__"):
            known = vars(importlib.import_module(module.name)).values()
            found |= {kind for kind in known if isinstance(kind, type) and hasattr(kind, "__value_fields__")}
    assert len(found) > 25
    for kind in found:
        fields = dataclasses.fields(kind)
        assert [one.name for one in fields] == list(kind.__annotations__)
        said = [{name: getattr(one, name) for name in ("default", "default_factory", "kw_only")} for one in fields]
        named = [(one.name, one.type, dataclasses.field(**how)) for one, how in zip(fields, said, strict=True)]
        twin = dataclasses.make_dataclass(kind.__name__, named, frozen=True)
        assert str(inspect.signature(kind)) == str(inspect.signature(twin)), kind
        assert kind.__match_args__ == twin.__match_args__
