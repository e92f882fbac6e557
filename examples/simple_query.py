"""One question, without a history: the events of the answer as they come."""

from openagent import AgentOptions, RunFinished, TextDelta, query

options = AgentOptions(system_prompt="Answer in one short sentence.")

for event in query("What is the capital of France?", options):
    if isinstance(event, TextDelta):
        print(event.text, end="", flush=True)
    elif isinstance(event, RunFinished):
        print(f"\n[{event.finish_reason}]")
