"""The embedded model itself, fetched by our own function and spoken to with ``requests``."""

import json
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import requests

from openagent.local import serve

QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
STORY = "Write a long story about a dog."


@pytest.fixture(scope="module")
def endpoint():
    return serve()


def post(endpoint, path, *, stream=False, **body):
    body = {"model": endpoint.model, "temperature": 0, "max_tokens": 30, "stream": stream, **body}
    return requests.post(f"{endpoint.base_url}/{path}", json=body, stream=stream, timeout=50)


def chat(endpoint, prompt, **body):
    return post(endpoint, "chat/completions", messages=[{"role": "user", "content": prompt}], **body)


def chunks(response):
    lines = [line.removeprefix(b"data: ") for line in response.iter_lines() if line]
    assert lines.pop() == b"[DONE]"
    return [json.loads(line)["choices"][0] for line in lines]


def test_the_stream_says_that_paris_is_the_capital(endpoint):
    said = chunks(chat(endpoint, QUESTION, stream=True))
    assert "".join(choice["delta"].get("content") or "" for choice in said) == ANSWER
    assert said[-1]["finish_reason"] == "stop"


def test_the_responses_wire_says_the_same(endpoint):
    answer = post(endpoint, "responses", input=QUESTION).json()
    assert (answer["status"], answer["output"][-1]["content"][0]["text"]) == ("completed", ANSWER)


def test_the_anthropic_wire_says_the_same(endpoint):
    answer = post(endpoint, "messages", messages=[{"role": "user", "content": QUESTION}]).json()
    assert (answer["stop_reason"], answer["content"]) == ("end_turn", [{"type": "text", "text": ANSWER}])


def test_a_limit_of_tokens_is_the_finish_reason(endpoint):
    answer = chat(endpoint, STORY, max_tokens=5).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["model"] == "smollm2-135m-instruct"


def test_a_schema_is_kept_to(endpoint):
    schema = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    answer = chat(endpoint, QUESTION, response_format=form).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"capital": "Paris"}


def test_two_are_answered_at_once(endpoint):
    with chat(endpoint, STORY, stream=True, max_tokens=1000) as story:
        lines = story.iter_lines()
        next(lines)
        assert chat(endpoint, QUESTION).json()["choices"][0]["message"]["content"] == ANSWER
        assert next(lines) is not None  # the story goes on


def test_an_abandoned_answer_is_not_generated_any_further(endpoint):
    with chat(endpoint, STORY, stream=True, max_tokens=4000, ignore_eos=True) as story:
        next(story.iter_lines())
    began = time.monotonic()
    answer = chat(endpoint, QUESTION).json()
    assert answer["choices"][0]["message"]["content"] == ANSWER
    assert time.monotonic() - began < 15  # 4000 tokens take a minute and more


def test_other_threads_run_while_it_answers(endpoint):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    chat(endpoint, STORY, max_tokens=30)
    done.set()
    thread.join()
    assert len(ticks) > 3


def test_a_web_page_cannot_read_its_answers(endpoint):
    url = f"{endpoint.base_url}/models"
    answer = requests.get(url, headers={"Origin": "https://example.com"}, timeout=50)
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_nothing_of_its_log_reaches_the_users_output_and_a_busy_exit_is_clean():
    program = """
        import requests
        from openagent.local import serve
        endpoint = serve()
        body = {"messages": [{"role": "user", "content": "Tell me a story."}], "stream": True}
        answer = requests.post(f"{endpoint.base_url}/chat/completions", json=body, stream=True, timeout=50)
        next(answer.iter_lines())
        requests.post(f"{endpoint.base_url}/chat/completions", data="no json", timeout=50)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (run.stdout, run.stderr, run.returncode) == ("", "", 0)
