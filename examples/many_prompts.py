"""Many prompts at once: a template and its rows, eight at a time, and what became of each."""

from openagent import AgentOptions, Budget, Pace, map_prompts

reviews = [
    {"id": 17, "text": "The pump broke after two days."},
    {"id": 18, "text": "Quiet, and it cleans well."},
    {"id": 19, "text": "It came on a Tuesday."},
]

run = map_prompts(
    AgentOptions(temperature=0),
    reviews,
    template="Answer with one word, good, bad or neutral.\n\n{text}",
    pace=Pace(requests_per_second=20),
    budget=Budget(tokens=100_000),
)
for result in run:
    print(result.input["id"], result.answer or f"[{result.error}]")
print(f"[{run.tally.answered} answered, {run.tally.failed} failed, {run.tally.tokens} tokens]")
