"""What can go wrong. Every error says whose fault it is, and the conversation stays whole."""

from openagent import AgentError, APIError, Client, ConfigError, RetryConfig, StreamInterruptedError, TransportError

client = Client(retry=RetryConfig(max_attempts=3, initial_delay=0.1))  # rate limits and the like are waited out

try:
    print(client.ask("Hello?"))
    print(client.ask("Tell me a story."))
except ConfigError as error:
    print("A setting is wrong:", error)
except StreamInterruptedError as error:
    print("The answer broke off after:", "".join(block.text for block in error.blocks))
except APIError as error:
    print("The server said no:", error.status, error)
except TransportError as error:
    print("The network failed:", error)
except AgentError as error:
    print("Something else:", error)

client.retry()  # ask the last question again
print("".join(block.text for block in client.receive()))
