"""Emulated tools and answers with a shape, on the embedded model; ``tests/soak/tools.py`` has the long runs."""

import subprocess
import sys
from copy import copy
from dataclasses import dataclass
from datetime import date
from enum import Enum

import pytest
from jsonschema import Draft202012Validator
from test_schema import CASES

from openagent import Client, InvalidResponseError, tool
from openagent.extraction import NEXT_STEP
from openagent.schema import type_schema


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"sunny in {city}, 21 degrees"


@tool
def get_time(city: str) -> str:
    """Get the current time in a city."""
    return f"14:35 in {city}"


TOOLS = [add, get_weather, get_time]
QUESTIONS = [
    ("What is 1723 plus 2581?", "add", {"a": 1723, "b": 2581}),
    ("What is the weather in Oslo?", "get_weather", {"city": "Oslo"}),
    ("What time is it in Tokyo?", "get_time", {"city": "Tokyo"}),
    ("Add 15 and 27.", "add", {"a": 15, "b": 27}),
    ("How is the weather in Paris today?", "get_weather", {"city": "Paris"}),
    ("Tell me the time in London.", "get_time", {"city": "London"}),
    ("What is 8 + 9?", "add", {"a": 8, "b": 9}),
    ("Is it raining in Berlin?", "get_weather", {"city": "Berlin"}),
    ("What is the current time in New York?", "get_time", {"city": "New York"}),
    ("Calculate the sum of 300 and 450.", "add", {"a": 300, "b": 450}),
    ("What's the weather like in Rome?", "get_weather", {"city": "Rome"}),
    ("What time is it now in Sydney?", "get_time", {"city": "Sydney"}),
    ("What is 99 plus 1?", "add", {"a": 99, "b": 1}),
    ("Tell me the weather in Madrid.", "get_weather", {"city": "Madrid"}),
    ("Can you tell me what time it is in Cairo?", "get_time", {"city": "Cairo"}),
    ("How much is 1234 plus 4321?", "add", {"a": 1234, "b": 4321}),
    ("Weather in Lisbon?", "get_weather", {"city": "Lisbon"}),
    ("Time in Moscow?", "get_time", {"city": "Moscow"}),
    ("What do you get if you add 12 to 30?", "add", {"a": 12, "b": 30}),
    ("Will I need an umbrella in Dublin?", "get_weather", {"city": "Dublin"}),
]
STEADY = {"provider": "local", "temperature": 0, "seed": 1, "max_tokens": 100}


def test_at_least_sixteen_of_twenty_questions_get_the_right_call_and_all_get_valid_ones():
    """It is 17 or 18, by what else the server has in its cache."""
    right = 0
    with Client(**STEADY, tools=TOOLS) as client:
        for question, name, arguments in QUESTIONS:
            client.clear_history()
            client.send(question)
            list(client.receive())
            calls = client.history[-1].calls
            right += [(made.name, made.input) for made in calls] == [(name, arguments)]
            assert all(is_valid(made) for made in calls)
            assert client.finish_reason in ("tool_calls", "stop")
    assert right >= 16


def is_valid(made):
    schema = next(offered.input_schema for offered in TOOLS if offered.name == made.name)
    return made.error is None and Draft202012Validator(schema).is_valid(made.input)


@pytest.mark.parametrize("question", ["What is 1723 plus 2581?", "How is the weather in Paris today?"])
def test_the_whole_loop_runs_and_ends(question):
    with Client(**STEADY, tools=TOOLS, auto_execute_tools=True) as client:
        text = client.ask(question)
        assert (client.finish_reason, bool(text)) == ("stop", True)
        results = [result for message in client.history for result in message.results]
        assert (len(results) >= 1, any(result.is_error for result in results)) == (True, False)


def test_the_command_shows_a_tool_at_work():
    command = [sys.executable, "-m", "openagent", "ask", "--local", "--tool", "calculator", "What is 1723 plus 2581?"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "calculator(a=1723, operator='+', b=2581) -> 4304\n" in done.stderr
    assert "4304" in done.stdout


def test_the_server_takes_a_schema_of_decisions_with_references():
    tree = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"name": {"enum": ["oak"]}}, "required": ["name"]}},
    }
    grow = tool("grow", "Grow a tree").schema(tree | {"required": ["next"]}).build(len)
    with Client(**STEADY, tools=[grow], tool_choice="required") as client:
        client.send("Grow an oak.")
        assert [block.input["next"]["name"] for block in client.receive()] == ["oak"]


class Genre(Enum):
    NOVEL = "novel"
    POETRY = "poetry"


@dataclass
class Book:
    title: str
    pages: int
    genre: Genre
    authors: list[str]
    published: date


BOOKS = [
    "Emma, a novel of 474 pages by Jane Austen, was published on 1815-12-23.",
    "Leaves of Grass by Walt Whitman: poetry, 95 pages, 1855-07-04.",
    "On 1813-01-28 came Pride and Prejudice, Jane Austen's novel of 432 pages.",
    "Middlemarch by George Eliot: a novel, 880 pages, published on 1871-12-01.",
    "The Waste Land, poetry by T. S. Eliot, 64 pages, appeared on 1922-10-15.",
    "Good Omens is a novel by Terry Pratchett and Neil Gaiman, 288 pages, 1990-05-10.",
    "Ulysses: James Joyce's novel of 730 pages came out on 1922-02-02.",
    "Ariel, poetry, by Sylvia Plath. 105 pages. Published 1965-03-11.",
    "Lyrical Ballads by Wordsworth and Coleridge, poetry, 210 pages, 1798-09-18.",
    "Dracula by Bram Stoker, a novel with 418 pages, published 1897-05-26.",
    "Jane Eyre, a novel by Charlotte Bronte, 532 pages, 1847-10-16.",
    "The novel Moby-Dick by Herman Melville has 635 pages; it was published on 1851-10-18.",
    "Howl and Other Poems: poetry by Allen Ginsberg, 57 pages, 1956-11-01.",
    "Beloved (a novel by Toni Morrison) has 324 pages and was published on 1987-09-02.",
    "Flowers of Evil, poetry by Charles Baudelaire, 252 pages, 1857-06-25.",
    "Don Quixote, Miguel de Cervantes' novel, 863 pages, first published 1605-01-16.",
    "Frankenstein: a novel of 280 pages by Mary Shelley, published 1818-01-01.",
    "North: poetry by Seamus Heaney, 73 pages, June 1975, to be exact 1975-06-09.",
    "The Odyssey, translated poetry by Homer, 541 pages, published 1996-11-01.",
    "Rebecca by Daphne du Maurier is a novel of 410 pages from 1938-08-01.",
]
RECORDS = STEADY | {"max_tokens": 200}


def is_a_book(book):
    return [type(value) for value in vars(book).values()] == [str, int, Genre, list, date]


@pytest.mark.parametrize("text", BOOKS[:4])
def test_a_record_comes_out_as_a_valid_dataclass(text):
    with Client(**RECORDS) as client:
        assert is_a_book(client.extract(text, Book))


def test_a_record_grows_before_it_is_whole():
    with Client(**RECORDS) as client:
        *partial, book = (copy(value) for value in client.extract_stream(BOOKS[4], Book))
    fields = list(vars(book))
    assert all(list(value) == fields[: len(value)] for value in partial)
    assert (len(partial) > 10, list(partial[-1]), is_a_book(book)) == (True, fields, True)


@pytest.mark.parametrize("protocol", ["openai-responses", "anthropic"])
def test_a_protocol_on_which_the_server_ignores_the_schema_is_reported(protocol, caplog):
    """llama.cpp, which keeps to a schema on Chat Completions only."""
    with Client(provider="local", protocol=protocol, temperature=0, max_tokens=60) as client:
        with pytest.raises(InvalidResponseError, match="only protocol='openai-chat' has it"):
            client.extract("Name a colour in one word.", Book, retries=0)
    assert [record.getMessage() for record in caplog.records] == [
        f"the model is not held to the JSON Schema by its server: {NEXT_STEP}"
    ]


def test_the_server_takes_the_schema_of_every_type():
    client = Client(**STEADY | {"max_tokens": 1}, retry=None)
    for kind, *_ in CASES:
        own = type_schema(kind)
        shared = {"$defs": own.pop("$defs")} if "$defs" in own else {}
        whole = {"type": "object", "properties": {"x": own}, "required": ["x"], "additionalProperties": False, **shared}
        client.clear_history()
        client.ask("x", response_format=whole)  # an APIError names what cannot be compiled
