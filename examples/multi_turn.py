"""A conversation. The client keeps the history; it is a list of plain values that fits into JSON."""

import json
import tempfile
from pathlib import Path

from openagent import Client, Message

client = Client(system_prompt="You are a patient teacher.")
for question in ("What is a prime number?", "Is 91 one?"):
    print("You:", question)
    print("Model:", end=" ")
    for text in client.stream(question):
        print(text, end="", flush=True)
    print()

path = Path(tempfile.mkdtemp()) / "conversation.json"
path.write_text(json.dumps([message.to_dict() for message in client.history]), encoding="utf-8")

later = Client(system_prompt="You are a patient teacher.")
later.history = [Message.from_dict(item) for item in json.loads(path.read_text(encoding="utf-8"))]
print("You: And 97?")
print("Model:", later.ask("And 97?"))
