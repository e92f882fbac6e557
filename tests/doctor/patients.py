"""What a server answers that has nothing wrong with it, by the doctor's question."""

import json

from openagent.testing import answer, call, raw

JSON = {"Content-Type": "application/json"}


def page(value):
    return raw(json.dumps(value), headers=JSON, framing="length")


MODELS = page(
    {"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "vllm", "max_model_len": 4096}]}
)
WEATHER = call("weather", {"city": "Oslo"})


def kind(request):
    """Which of the doctor's questions a request is."""
    if request.method == "GET" or not isinstance(request.body, dict) or "/api/" in request.path:
        return request.path
    for end in ("/responses", "/messages"):
        if request.path.endswith(end):
            return end
    text = json.dumps(request.body["messages"])
    if "tools" in request.body:
        last = request.body["messages"][-1]["role"]
        return "result" if last == "tool" else "two" if "Rome" in text else "tool"
    if "response_format" in request.body:
        schema = request.body["response_format"].get("json_schema", {}).get("schema", {})
        return "json" if not schema else "shape" if "inhabitants" in json.dumps(schema) else "emulated"
    if "image_url" in text:
        return "image"
    if request.body["messages"][0]["role"] == "system":
        return "system"
    return "chat"


GOOD = {
    "/v1/models": MODELS,
    "/version": page({"version": "0.9.1"}),
    "chat": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "system": "Hi.",
    "tool": answer(calls=[WEATHER]),
    "two": answer(calls=[WEATHER, call("weather", {"city": "Rome"})]),
    "result": "It is 12 °C.",
    "shape": '{"city": "Oslo", "inhabitants": 700000}',
    "image": "Yellow.",
    "/responses": "Hi!",
    "/messages": "Hi!",
}
EMULATED = '{"tool": "weather", "arguments": {"city": "Oslo"}}'
