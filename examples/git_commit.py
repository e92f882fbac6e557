"""A writer of commit messages: git diff --cached | python examples/git_commit.py | git commit -F -"""

import sys
import textwrap
from dataclasses import dataclass
from typing import Annotated

from openagent import Client


@dataclass
class CommitMessage:
    subject: Annotated[str, "what the change does, in the imperative, at most 60 characters"]
    body: Annotated[str, "why, in one or two sentences; empty if that is plain"]


diff = sys.stdin.read()
if not diff.strip():
    sys.exit("there is nothing to commit: git add something first")
client = Client(system_prompt="You write commit messages for git.", temperature=0)
message = client.extract(f"Write the message for this change:\n\n{diff[:20_000]}", CommitMessage)
print(message.subject)
if message.body:
    print("\n" + textwrap.fill(message.body, 72))
