"""Stopping an answer: after a time, and from another thread. The client can be used again at once."""

import threading

from openagent import Client, Timeout

client = Client()

# A deadline for the whole exchange is an option; what was heard comes with the error.
try:
    client.ask("Count to a million.", deadline=0.5)
except Timeout as error:
    print(f"[{error}; heard: {''.join(block.text for block in error.blocks)}]")

# Another thread may stop the answer whenever it likes. (So does Ctrl-C, as KeyboardInterrupt.)
timer = threading.Timer(0.3, client.interrupt)
timer.start()
heard = "".join(client.stream("Count to a million."))
timer.cancel()
print(f"[interrupted; heard: {heard}]")

print(client.ask("Just say hello."))
