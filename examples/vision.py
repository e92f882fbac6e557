"""Asking about an image: a file, a URL or bytes. (The model must be able to see.)"""

import base64
import tempfile
from pathlib import Path

from openagent import Client, ImageBlock, Message, TextBlock

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

path = Path(tempfile.mkdtemp()) / "pixel.png"
path.write_bytes(base64.b64decode(PIXEL))

client = Client()
print(client.ask("What colour is this pixel?", path))

# The same by hand: any mix of text and images, in order, with the detail to be looked at.
client.send_message(
    Message.user(TextBlock("Compare it with this one:"), ImageBlock.from_base64(PIXEL, "image/png", detail="low"))
)
print("".join(block.text for block in client.receive()))
