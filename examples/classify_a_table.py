"""A table gets new columns: each row is asked about, the answers are values of a type."""

from dataclasses import dataclass
from typing import Literal

import pandas

from openagent import AgentOptions, map_prompts


@dataclass
class Judgement:
    mood: Literal["good", "bad", "neutral"]
    about: str


reviews = pandas.DataFrame(
    {"text": ["The pump broke after two days.", "Quiet, and it cleans well.", "It came on a Tuesday."]},
    index=[17, 18, 19],
)

run = map_prompts(
    AgentOptions(temperature=0),
    reviews,
    template="How does the customer feel, and about what? In one word each.\n\n{text}",
    schema=Judgement,
    progress=False,
)
table = run.frame()
table["mood"] = [judgement.mood if judgement else "?" for judgement in table["answer"]]
table["about"] = [judgement.about if judgement else "?" for judgement in table["answer"]]
print(table[["text", "mood", "about"]].to_string())
for place, error in table["error"].dropna().items():
    print(f"[{place}: {error}]")
print(f"[{run.tally.answered} answered, {run.tally.failed} failed, {run.tally.tokens} tokens]")
