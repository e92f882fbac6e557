"""From the words of an answer to a value: where the JSON stands, and what is wrong with it."""

from typing import Any

import pytest

from openagent.forms import Form, found

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
ONE = '{"x": 1, "y": 2}'
FOUND = [
    ONE,
    f" {ONE}\n",
    f"```json\n{ONE}\n```",
    f"```\n{ONE}\n```\nThat is all.",
    f"Here is the answer:\n\n```json\n{ONE}\n```\n\nI hope that it helps {{really}}.",
    f"The answer is {ONE}.",
    f"```\nx + y\n```\n{ONE}",
    f"As in [1], {{braces}} are not JSON:\n{ONE}",
    f'The schema was {{"type": "object"}}, so:\n{ONE}',
    f'```json\n{{"x": "one"}}\n```\nNo, that is wrong:\n```json\n{ONE}\n```',
]


@pytest.mark.parametrize("text", FOUND)
def test_the_json_is_found_in_an_answer(text):
    assert Form(POINT).read(text) == {"x": 1, "y": 2}


MISSING = [
    ("", "there is no JSON in it"),
    ("I do not know.", "there is no JSON in it"),
    ('{"x": 1, "y"', "there is no JSON in it"),
    ('{"x": 1}', "missing"),
    (f'{{"points": [{ONE}', "there is no JSON in it"),
    (f'{{"points": [{ONE}]}}', "points"),
    ("{" * 300, "there is no JSON in it"),
]


@pytest.mark.parametrize(("text", "told"), MISSING)
def test_what_is_wrong_is_said_to_the_model(text, told):
    with pytest.raises(ValueError, match=told):
        Form(POINT).read(text)


def test_a_part_of_an_answer_that_broke_off_is_no_answer():
    with pytest.raises(ValueError, match="there is no JSON in it"):
        Form(list[int]).read('{"value": [[1, 2], [3')


def test_a_value_without_its_wrapper_is_understood():
    assert [Form(list[int]).read(text) for text in ('{"value": [1, 2]}', "[1, 2]", "```\n[1, 2]\n```")] == [[1, 2]] * 3
    assert Form(dict[str, Any]).read('{"value": 1}') == {"value": 1}


def test_more_than_was_asked_for_is_no_breach_of_an_open_schema():
    shape = {"type": "object", "properties": {"x": {"type": "integer", "maximum": 9}}}
    assert not Form(shape).is_broken_by('{"x": 10, "more": 1}')
    assert Form(shape | {"additionalProperties": False}).is_broken_by('{"x": 10, "more": 1}')


def test_half_a_character_is_replaced():
    assert Form(str).read('{"value": "a \\ud83d b"}') == "a \ufffd b"


def test_null_for_what_is_optional_means_that_it_was_not_given():
    shape = POINT | {"required": ["x"]}
    assert Form(shape).read('{"x": 1, "y": null}') == {"x": 1}


def test_so_it_does_where_one_of_several_types_is_meant():
    other = POINT | {"properties": POINT["properties"] | {"z": {"type": "integer"}}}
    assert Form({"anyOf": [POINT, other]}).read('{"value": {"x": 1, "y": 2, "z": null}}') == {"x": 1, "y": 2}


def test_looking_for_json_ends_soon_in_a_text_of_braces():
    assert list(found("{[" * 100_000 + "\n{" * 100_000)) == []


BREAKS = [
    ('{"x": 1, "y": 2}', False),
    ('{"x": 1, "y": 200}', False),  # a limit that not every server keeps
    ('{"x": 1}', True),
    ('{"x": 1, "y": "2"}', True),
    ("so: {}", True),
]


@pytest.mark.parametrize(("text", "is_broken"), BREAKS)
def test_an_answer_that_no_schema_would_allow_shows_that_there_was_none(text, is_broken):
    limited = POINT | {"properties": {"x": {"type": "integer"}, "y": {"type": "integer", "maximum": 100}}}
    assert Form(limited).is_broken_by(text) is is_broken
