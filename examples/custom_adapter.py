"""A wire format of your own: the completions endpoint from before there was chat, as a fourth protocol.

An adapter is two pure methods: one writes a request, the other makes the decoder that hears the answer.
The loop, retries, interrupts, the history and whatever else the client does come with it.
"""

from openagent import Client, ConfigError, FinishReason, TextBlock, TurnDecoder, Usage, WireAdapter


class CompletionsTurn(TurnDecoder):
    """Hears one answer: events like {"choices": [{"text": "Hel"}]}, the last with a finish reason."""

    def payload(self, payload):
        for choice in payload["choices"]:
            self.answer.text(choice["text"])
            if word := choice.get("finish_reason"):
                self.answer.finish = FinishReason(word, word)
                self.answer.ended = True  # without this, the answer counts as broken off
        if counts := payload.get("usage"):
            self.answer.usage = Usage(counts["prompt_tokens"], counts["completion_tokens"], raw=counts)

    def document(self, payload):
        """For servers that answer with one JSON object where a stream was asked for."""
        if "choices" in payload:
            self.payload(payload)
        return "choices" in payload


class TextCompletions(WireAdapter):
    """Writes the conversation as a play for two voices that the model is to go on with."""

    @classmethod
    def check(cls, options):
        if options.tools:
            raise ConfigError("tools cannot be called on this protocol")

    def encode(self, instruction, include_tools):
        lines = [self.system_prompt(instruction)]
        for message in self.messages:
            if not all(isinstance(block, TextBlock) for block in message.content):
                raise ConfigError("only text can be sent on this protocol")
            lines.append(f"{message.role.title()}: {message.text}")
        prompt = "\n".join([*lines, "Assistant:"])
        body = {"model": self.options.model, "prompt": prompt, "stop": ["\nUser:"], "stream": True}
        if self.options.max_tokens is not None:
            body["max_tokens"] = self.options.max_tokens
        auth = {"Authorization": f"Bearer {self.options.api_key}"} if self.options.api_key else {}
        return self.post("/completions", auth, body)

    def decoder(self, headers):
        return CompletionsTurn(headers)


client = Client(protocol=TextCompletions, system_prompt="A helpful assistant talks to a user.", max_tokens=50)
for question in ("What is the capital of France?", "And of Norway?"):
    print("You:", question)
    print("Model:", end="", flush=True)
    for text in client.stream(question):
        print(text, end="", flush=True)
    print(f" [{client.finish_reason}, {client.usage.output_tokens} tokens]")
