"""Tools for a model that has none: structured output does it, and calls left in the text are understood."""

from openagent import CallStarted, Client, TextDelta, tool

STOCK = {"lemon": 12, "egg": 0}


@tool
def in_stock(item: str) -> int:
    """How many of an item are in stock."""
    return STOCK.get(item, 0)


def ask(question: str, **settings: object) -> None:
    print("You:", question)
    client.send(question, **settings)
    for event in client.events():
        if isinstance(event, CallStarted):
            print(f"[{event.call.name} {event.call.input}]")
        elif isinstance(event, TextDelta):
            print(event.text, end="", flush=True)
    print()


client = Client(tools=[in_stock], auto_execute_tools=True)
ask("How many lemons do you have?", tool_mode="emulated")
ask("And eggs?", rescue_tool_calls=True)  # native again: the history fits both
