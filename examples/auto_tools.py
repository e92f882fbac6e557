"""The client runs the tools: give it functions, read the text and, if you like, the events."""

from datetime import date
from typing import Annotated

from openagent import CallFinished, CallStarted, Client, TextDelta, tool


@tool
def days_between(
    start: Annotated[date, "the first day"],
    end: Annotated[date, "the last day"],
) -> int:
    """Count the days from one date to another."""
    return (end - start).days


client = Client(tools=[days_between], auto_execute_tools=True, max_tool_iterations=3)
client.send("How many days are there from 2024-02-01 to 2024-03-01?")
for event in client.events():
    if isinstance(event, TextDelta):
        print(event.text, end="", flush=True)
    elif isinstance(event, CallStarted):
        print(f"[{event.call.name} {event.call.input}]")
    elif isinstance(event, CallFinished):
        print(f"[-> {event.result.content}]")
print()
