"""What is wrong here? python examples/log_analyser.py < server.log

The model does not get the whole log, which may be large: it gets tools to look into it.
"""

import re
import sys
from collections import Counter
from typing import Annotated

from openagent import CallFinished, Client, TextDelta, ToolError, tool

LINES = sys.stdin.read().splitlines()


@tool
def count_levels() -> dict:
    """How many lines of each level (ERROR, WARNING, INFO, ...) the log has."""
    return Counter(found[0] for line in LINES if (found := re.search(r"\b[A-Z]{4,8}\b", line)))


@tool(max_result_chars=4000)
def search(pattern: Annotated[str, "a regular expression"], most: int = 10) -> list:
    """The last lines of the log in which a pattern is found, with their numbers."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ToolError(f"{pattern!r} is no regular expression: {error}") from error
    return [f"{number}: {line}" for number, line in enumerate(LINES, 1) if wanted.search(line)][-most:]


client = Client(
    system_prompt="You find the cause of trouble in a log. Look into it with the tools; then answer in two sentences.",
    tools=[count_levels, search],
    auto_execute_tools=True,
)
client.send(f"What is wrong? The log has {len(LINES)} lines.")
for event in client.events():
    if isinstance(event, TextDelta):
        print(event.text, end="", flush=True)
    elif isinstance(event, CallFinished):
        print(f"[{event.call.name} {event.call.input} -> {event.result.content}]")
print()
