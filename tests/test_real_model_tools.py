"""Emulated tools and answers with a shape, on the embedded model; ``tests/soak/tools.py`` has the long runs."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum

import pytest

from openagent import Client, tool


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


def test_questions_get_the_right_call_most_of_the_time():
    """Of all 20 it is 17 or 18, by what else the server has in its cache; arguments are never invalid."""
    right = 0
    with Client(**STEADY, tools=TOOLS) as client:
        for question, name, arguments in QUESTIONS[:9]:
            client.clear_history()
            client.send(question)
            list(client.receive())
            calls = client.history[-1].calls
            right += [(made.name, made.input) for made in calls] == [(name, arguments)]
            assert all(isinstance(made.input.get("a", 0), int) and made.error is None for made in calls)
    assert right >= 8


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
]


@pytest.mark.parametrize("text", BOOKS)
def test_a_record_comes_out_as_a_valid_dataclass(text):
    with Client(**STEADY | {"max_tokens": 200}) as client:
        book = client.extract(text, Book)
    assert [type(value) for value in vars(book).values()] == [str, int, Genre, list, date]
