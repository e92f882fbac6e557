import email.utils
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from openagent import faults
from openagent.errors import APIError, ContextOverflowError, InvalidResponseError

URL = "http://localhost:1234/v1"


def refused(status, body="", headers=None):
    content = body if isinstance(body, (str, bytes)) else json.dumps(body)
    content = content.encode() if isinstance(content, str) else content
    return faults.from_status(status, CaseInsensitiveDict(headers or {}), content, url=URL)


def reported(error, **headers):
    return faults.from_payload(error, CaseInsensitiveDict(headers))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "busy", "type": "server_error", "code": None}}, "busy"),
        ({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "Loading model"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ([{"error": {"code": 400, "message": "Bad model", "status": "INVALID_ARGUMENT"}}], "Bad model"),
        ({"error": "Unexpected endpoint"}, "Unexpected endpoint"),
        ({"detail": "Not found"}, "Not found"),
        ({"detail": [{"loc": ["body", "model"], "msg": "field required", "type": "missing"}]}, "field required"),
        ({"message": "no"}, "no"),
        ({"errors": [{"message": "first"}, {"message": "second"}]}, "first"),
        ({"error": {"message": "", "type": "server_error"}}, "server_error"),
        ({"object": "error", "message": "vLLM says no", "code": 400}, "vLLM says no"),
        ("plain words", "plain words"),
        ('"a text"', "a text"),
        ("<html><h1>Bad\n  Gateway</h1></html>", "Bad Gateway"),
        ("", "(no text)"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ({"error": {}}, '{"error": {}}'),
        ([], "[]"),
        (" \n ", "(no text)"),
    ],
)
def test_the_words_are_found_wherever_the_server_puts_them(body, words):
    """R-106, err-01, err-04, err-06, sse-30."""
    assert str(refused(418, body)) == f"API error 418: {words}"


def test_the_status_is_said_once_and_the_body_is_kept():
    """B-47, B-48: a field, not prose."""
    error = refused(503, "Service Unavailable")
    assert (type(error), str(error)) == (APIError, "API error 503: Service Unavailable")
    assert (error.status, error.body, error.retryable) == (503, "Service Unavailable", True)


def test_body_and_words_are_cut_to_a_readable_size():
    """R-106: the seed has no cap."""
    long = refused(400, {"error": {"message": "m" * 100_000}})
    assert (len(long.body), len(str(long)) < faults.MAX_BODY_CHARS + 100) == (faults.MAX_BODY_CHARS, True)
    assert len(str(refused(400, "x" * 100_000))) < 300
    told = reported({"message": "m" * 100_000})
    assert (len(told.body), len(str(told)) < faults.MAX_BODY_CHARS + 100) == (faults.MAX_BODY_CHARS, True)


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *[(status, True) for status in (408, 409, 429, 500, 502, 503, 504, 529)],
        *[(status, False) for status in (400, 401, 403, 404, 405, 413, 422, 501, 505, 599)],
    ],
)
def test_the_status_alone_decides_whether_to_try_again(status, retryable):
    """R-213, design.md 7.10, B-44, B-45: the 500 in the text does not count."""
    for words in ("max_tokens 500 too small", "error 429", ""):
        assert refused(status, {"error": {"message": words}}).retryable is retryable
        assert reported({"code": status, "message": words}).retryable is retryable


def test_the_server_may_say_itself_whether_to_try_again():
    """design.md 7.10: x-should-retry."""
    assert refused(429, headers={"X-Should-Retry": "false"}).retryable is False
    assert refused(400, headers={"x-should-retry": "TRUE"}).retryable is True
    assert refused(429, headers={"x-should-retry": "perhaps"}).retryable is True
    assert refused(400, {"error": "prompt is too long"}, {"x-should-retry": "true"}).retryable is False


@pytest.mark.parametrize(("status", "hint"), [(401, "api_key"), (403, "api_key"), (404, "/v1"), (405, "/v1")])
def test_the_next_step_is_said_where_there_is_one(status, hint):
    """design.md 6."""
    assert hint in str(refused(status, {"error": "no"}))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after-ms": "1500", "Retry-After": "7"}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "7"}, 7.0),
        ({"retry-after-ms": "-1", "Retry-After": "7"}, 7.0),
        ({"Retry-After": "-7"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:61 GMT"}, None),
        ({"Retry-After": email.utils.formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"Retry-After": email.utils.formatdate(1_000_030 - 60, usegmt=True)}, 0.0),
    ],
)
def test_the_wait_that_a_server_asks_for_is_understood(headers, seconds):
    """design.md 7.10: seconds, milliseconds, a date."""
    assert faults.retry_after(CaseInsensitiveDict(headers), now=1_000_000) == seconds


@given(st.text(max_size=30))
def test_no_header_can_make_reading_it_fail(text):
    found = faults.retry_after({"Retry-After": text, "retry-after-ms": text})
    assert found is None or found >= 0


def test_the_facts_of_the_headers_are_carried():
    """design.md 6."""
    error = refused(429, "slow down", {"Retry-After": "3", "X-Request-Id": "req_1"})
    assert (error.retry_after, error.request_id) == (3.0, "req_1")
    assert refused(429, headers={"request-id": "req_2"}).request_id == "req_2"
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 50 < reported("busy", **{"Retry-After": date}).retry_after <= 60


OVERFLOWS = [
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "This model's maximum context length is 4097 tokens. However, you requested 5360 tokens (1360 in the messages, "
    "4000 in the completion). Please reduce the length of the messages or completion.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    "Prompt exceeds max length",
    "tokens in request more than max tokens allowed",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Trying to keep the first 6131 tokens when context the overflows. However, the model is loaded with context "
    "length of only 4096 tokens, which is not enough.",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
]


@pytest.mark.parametrize("words", OVERFLOWS)
def test_a_conversation_longer_than_the_context_is_recognised(words):
    """err-03, err-09: by the words of all the servers, by status or in the stream; never retried."""
    for error in (refused(400, {"error": {"message": words}}), reported({"message": words, "code": 400})):
        assert (type(error), error.retryable, error.status) == (ContextOverflowError, False, 400)
        assert words in str(error)
    assert type(reported(words)) is ContextOverflowError
    assert type(refused(500, words)) is ContextOverflowError


@pytest.mark.parametrize("name", ["code", "type"])
@pytest.mark.parametrize("word", ["context_length_exceeded", "exceed_context_size_error"])
def test_a_word_for_overflow_is_enough(name, word):
    """err-03."""
    body = {"error": {"message": "too many tokens", name: word}}
    assert type(refused(400, body)) is type(refused(400, [body])) is ContextOverflowError
    assert type(reported(body["error"])) is ContextOverflowError


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens is too large: 32768. This model supports at most 16384 completion tokens.",
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 40000. This model's maximum context length is 32768 "
        "tokens and your request has 20 input tokens",
        "max_tokens must be at least 1",
        "Invalid 'max_output_tokens': integer below minimum value",
        "the image is too long",
    ],
)
def test_a_complaint_about_the_output_limit_is_no_overflow(words):
    """err-03."""
    assert type(refused(400, {"error": {"message": words}})) is APIError


def test_a_busy_or_locked_server_is_no_overflow():
    """Only statuses that can mean it."""
    for status in (401, 403, 404, 429, 503):
        assert type(refused(status, {"error": {"message": "prompt is too long"}})) is APIError


@pytest.mark.parametrize(
    ("error", "words", "status"),
    [
        ({"message": "boom", "type": "server_error"}, "server_error: boom", 500),
        ({"message": "boom"}, "boom", None),
        ({"type": "server_error"}, "server_error", 500),
        ({"type": "", "message": ""}, "the server reported an error without details", None),
        ({"code": 5}, "the server reported an error without details", None),
        ({"message": "quota exceeded", "code": "insufficient_quota"}, "quota exceeded", None),
        ("Input validation error", "Input validation error", None),
        (True, "the server reported an error without details", None),
        (["no", "nay"], "no", None),
        ({"message": {"message": "deeper"}}, "deeper", None),
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded_error: Overloaded", 529),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limit_error: slow", 429),
        ({"type": "api_error", "message": "oops"}, "api_error: oops", 500),
        ({"type": "invalid_request_error", "message": "bad"}, "invalid_request_error: bad", 400),
        ({"type": "authentication_error", "message": "who"}, "authentication_error: who (check api_key)", 401),
        ({"code": "rate_limit_exceeded", "message": "slow"}, "slow", 429),
        ({"code": 503, "type": "unavailable_error", "message": "no slot"}, "unavailable_error: no slot", 503),
        ({"error": "nested", "code": 502}, "nested", 502),
    ],
)
def test_an_error_inside_a_reply_says_what_went_wrong(error, words, status):
    """R-195, R-202, S-24, S-33, err-07, err-10, B-64; an invalid request is not tried again."""
    made = reported(error)
    assert str(made) == f"API error{'' if status is None else f' {status}'}: {words}"
    assert (made.status, made.retryable) == (status, status in (429, 500, 502, 503, 529))


@pytest.mark.parametrize(
    "code", [399, 600, 65936, 70000, -500, 500.5, "500", True, None, "ECONNRESET", [500], {"code": 500}]
)
def test_only_a_whole_number_from_400_to_599_is_a_status(code):
    """R-202."""
    assert (reported({"code": code, "message": "m"}).status, reported({"status": code, "message": "m"}).status) == (
        None,
        None,
    )


@pytest.mark.parametrize("code", [400, 429, 500, 599])
@pytest.mark.parametrize("name", ["code", "status", "status_code", "http_code"])
def test_a_code_in_the_payload_counts_like_the_status_of_a_reply(name, code):
    """R-202, err-09."""
    error = reported({name: code, "message": "m"})
    assert (error.status, error.retryable) == (code, refused(code).retryable)


def test_the_whole_payload_is_kept_as_the_body():
    whole = {"error": "no", "error_type": "validation", "é": [1]}
    error = faults.from_payload("no", CaseInsensitiveDict(), whole=whole)
    assert error.body == '{"error":"no","error_type":"validation","é":[1]}'
    assert reported({"message": "m"}).body == '{"message":"m"}'


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_says_where_it_pointed_without_its_query(status):
    """R-104, design.md 7.12, http-03: not the key."""
    error = refused(status, "Moved", {"Location": "https://other/v1/chat/completions?key=secret", "x-request-id": "r"})
    assert str(error) == (
        f"API error {status}: {URL} redirects to https://other/v1/chat/completions; "
        "redirects are not followed: set base_url to its target"
    )
    assert (type(error), error.status, error.body, error.retryable) == (APIError, status, "Moved", False)
    assert "redirects to nowhere" in str(refused(status))


def test_what_is_no_answer_is_shown_with_a_hint():
    """sse-29: status, content type, a short piece, base_url."""
    page = b"<!DOCTYPE html>" + b"x" * 10_000 + b"\xff"
    error = faults.not_an_answer(200, CaseInsensitiveDict({"content-type": "text/html"}), page)
    assert (type(error), error.status, error.retryable) == (InvalidResponseError, 200, False)
    assert str(error).startswith("the reply (status 200, text/html) is no answer of this protocol; it starts with '<!")
    assert "base_url" in str(error)
    assert len(str(error)) < 400
    assert len(error.body) == faults.MAX_BODY_CHARS
    assert "no content type" in str(faults.not_an_answer(200, {}, b""))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "type", "code", "detail", "status"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(ANY)
def test_no_shape_of_an_error_can_make_reading_it_fail(error):
    """design.md 6."""
    assert isinstance(reported(error), APIError)
    assert isinstance(refused(400, {"error": error}), APIError)


@given(st.binary(max_size=60))
def test_no_body_of_an_error_can_make_reading_it_fail(body):
    assert isinstance(refused(500, body), APIError)


@pytest.mark.parametrize("depth", [100, 500, 900, 950, 1_000, 100_000])
def test_depth_cannot_make_reading_it_fail(depth):
    """design.md 6: a raw RecursionError never reaches the caller."""
    assert isinstance(refused(400, '{"error":' * depth + '"x"' + "}" * depth), APIError)
    assert isinstance(refused(400, "[" * depth + '"x"' + "]" * depth), APIError)
    deep = "x"
    for _ in range(depth):
        deep = {"message": [deep]}
    assert isinstance(reported(deep), APIError)
    assert isinstance(reported({"message": "m", "deep": deep}), APIError)
