"""Answers with a shape: a dataclass out of a text, shown while it grows, and a choice."""

from dataclasses import dataclass
from typing import Literal

from openagent import AgentError, Client

TEXT = "Bring two lemons, a pound of flour and 3 eggs, please. It is urgent!"


@dataclass
class Item:
    name: str
    count: int = 1


@dataclass
class Shopping:
    items: list[Item]
    urgent: bool


client = Client()
try:
    for shopping in client.extract_stream(f"What is to be bought? {TEXT}", Shopping):
        if isinstance(shopping, dict):  # plain JSON that grows; the last one is the value
            print(f"[{len(shopping.get('items', []))} items so far]")
    print(shopping)
    print(client.extract(f"What is the tone of this? {TEXT}", Literal["polite", "rude"]))
except AgentError as error:  # it broke off, was refused, or never had its shape
    print(error)
