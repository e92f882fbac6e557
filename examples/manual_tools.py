"""You run the tools: the calls come out of the same loop as the text, and you answer them."""

from openagent import Client, TextBlock, ToolUseBlock, tool


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


client = Client(tools=[add])
client.send("What is 25 + 17?")
for block in client.receive():
    if isinstance(block, TextBlock):
        print(block.text, end="", flush=True)
    elif isinstance(block, ToolUseBlock):
        print(f"[the model asks for {block.name}({block.input})]")
        client.add_tool_result(block.id, client.tools[block.name].execute(block.input))
        if block == client.history[-2].calls[-1]:  # the last call of the turn is answered: go on
            client.send("")
print()
