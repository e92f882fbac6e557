"""Runs inside a peer's environment: hears replies through that peer, one for each line that it is sent.

A line is the URL of a reply; the answer to it is a line with the seconds of CPU and the characters heard.
Imports nothing of ours.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator


def openai(url: str) -> Iterator[str]:
    import openai

    said = [{"role": "user", "content": "Say something."}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k") as client:
        for chunk in client.chat.completions.create(model="bench", messages=said, stream=True):
            if chunk.choices:
                yield chunk.choices[0].delta.content or ""


def anthropic(url: str) -> Iterator[str]:
    import anthropic

    said = [{"role": "user", "content": "Say something."}]
    with anthropic.Anthropic(base_url=url, api_key="k") as client:
        for event in client.messages.create(model="bench", max_tokens=9, messages=said, stream=True):
            if event.type == "content_block_delta":
                yield event.delta.text


def chatlas(url: str) -> Iterator[str]:
    from chatlas import ChatOpenAICompletions

    chat = ChatOpenAICompletions(model="bench", base_url=f"{url}/v1", api_key="k")
    yield from chat.stream("Say something.", echo="none")


def llm(url: str) -> Iterator[str]:
    from llm.default_plugins.openai_models import Chat

    model = Chat("bench", api_base=f"{url}/v1")
    model.key = "k"
    yield from model.prompt("Say something.")


def litellm(url: str) -> Iterator[str]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the internet
    import litellm

    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 1_000_000_000  # our words are all alike

    said = [{"role": "user", "content": "Say something."}]
    for chunk in litellm.completion(
        model="openai/bench", api_base=f"{url}/v1", api_key="k", messages=said, stream=True
    ):
        if chunk.choices:
            yield chunk.choices[0].delta.content or ""


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    heard = {"openai": openai, "anthropic": anthropic, "chatlas": chatlas, "llm": llm, "litellm": litellm}[sys.argv[1]]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is no answer
    for line in sys.stdin:
        started = cpu()
        count = sum(map(len, heard(line.strip())))
        print(cpu() - started, count, file=answers, flush=True)


main()
