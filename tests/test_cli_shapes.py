"""``--schema``: fields in words, a JSON Schema, a file with one."""

import pytest

from openagent import ConfigError
from openagent.cli import main
from openagent.cli.shapes import shape

POINT = '{"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}'


def test_fields_are_names_with_types_and_all_are_required():
    assert shape('name, age int, tags list, ids list of int, kind "a"|"b c", is-new bool') == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "kind": {"type": "string", "enum": ["a", "b c"]},
            "is-new": {"type": "boolean"},
        },
        "required": ["name", "age", "tags", "ids", "kind", "is-new"],
        "additionalProperties": False,
    }


def test_a_question_mark_allows_null_and_a_colon_says_more_and_lines_are_fields():
    assert shape('age int?: in years\nkind "a" | "b"?\nyear: int\nname: as it is written\n')["properties"] == {
        "age": {"type": ["integer", "null"], "description": "in years"},
        "kind": {"type": ["string", "null"], "enum": ["a", "b", None]},
        "year": {"type": "integer"},
        "name": {"type": "string", "description": "as it is written"},
    }


def test_a_json_schema_is_taken_as_it_is_and_also_from_a_file(tmp_path):
    expected = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    path = tmp_path / "point"
    path.write_text("\ufeff" + POINT, encoding="utf-8")
    assert shape(POINT) == shape(str(path)) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "'' is no field: a name, then maybe a type, as 'age int'"),
        ("a, , b", "', b' is no field"),
        ("a int b", "'a int b' is no field"),
        ("a, a", "there are two fields 'a'"),
        ("a year", "field 'a' has the type 'year': it may be str, int"),
        ("a list of years", "field 'a' has the type 'years': it may be"),
        ("a str of int", "field 'a' has the type 'str of int': only a list is of something"),
        ('{"type": 5}', "is no JSON Schema: it is invalid at ['type']: 5"),
        ('{"type"', "--schema is no JSON"),
        ("missing.json", "--schema 'missing.json': there is no such file"),
    ],
)
def test_what_is_no_shape_is_told(text, told):
    with pytest.raises(ConfigError) as caught:
        shape(text)
    assert told in str(caught.value)


@pytest.mark.parametrize(("content", "told"), [(b"[1]", "must be an object, not [1]"), (b"\xff", "cannot be read")])
def test_a_file_that_holds_none_is_named(tmp_path, content, told):
    path = tmp_path / "shape.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        shape(str(path))
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


@pytest.fixture
def ask(monkeypatch, capsys, tmp_path):
    """Runs ``openagent ask`` in this process: (exit code, stdout, stderr)."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    def run(server, *arguments):
        monkeypatch.setattr("sys.stdin", None)
        code = main(["ask", "--base-url", server.url, "-m", "m", *arguments])
        return (code, *capsys.readouterr())

    return run


def test_ask_prints_the_object_once_it_fits(ask, serve):
    server = serve('{"name": "Zoë", "age": "7"}', '{"name": "Zoë", "age": 7}')
    assert ask(server, "Zoë is 7.", "--schema", "name, age int") == (0, '{"name":"Zoë","age":7}\n', "")
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == shape("name, age int")


def test_ask_is_exit_code_1_and_prints_nothing_if_no_answer_fits(ask, serve):
    code, out, err = ask(serve(*["She is seven."] * 3), "q", "--schema", "age int")
    assert (code, out) == (1, "")
    assert err.startswith("openagent: error: the model gave no answer of this shape in 3 attempts")


def test_ask_tells_a_wrong_shape_before_anything_is_sent(ask, serve):
    code, out, err = ask(serve(), "q", "--schema", "age year")
    assert (code, out) == (2, "")
    assert "field 'age' has the type 'year'" in err
