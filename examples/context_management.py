"""Keeping a conversation short: look at its size, cut it when it grows, keep what must stay."""

from openagent import Client, Message, estimate_tokens, is_approaching_limit, truncate_messages

LIMIT = 120  # tokens; a real model has thousands

client = Client()
client.history.append(Message.system("The user is called Ada."))
for question in ("Tell me a fact about bees.", "Another one.", "And one about ants."):
    print("You:", question)
    print("Model:", client.ask(question))
    if is_approaching_limit(client.history, LIMIT, margin=0.5):
        client.history = truncate_messages(client.history, keep=2)
    print(f"[{len(client.history)} messages, about {estimate_tokens(client.history)} tokens]")
