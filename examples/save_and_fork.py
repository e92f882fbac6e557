"""A conversation in a file, two ways on from one point, and the list that other libraries take."""

import tempfile
from pathlib import Path

from openagent import Client

path = Path(tempfile.mkdtemp()) / "talk.json"
client = Client(system_prompt="You name one thing, in one word.")
print("Model:", client.ask("A fruit?"))
client.save(path)

later = Client.load(path)
other = later.fork()
print("One way:", later.ask("A red one?"))
print("Another:", other.ask("A green one?"))

taken = other.undo()
print("Taken back:", [message.text for message in taken])
print("For others:", [message["role"] for message in other.to_openai()])
