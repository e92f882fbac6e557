"""The wire formats by name.

Owns: which adapter speaks which protocol. Does not know: what they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .adapters import ProviderAdapter


class Protocols(Mapping[str, type[ProviderAdapter]]):
    """Adapters by protocol; the rooms of a format are loaded when it is spoken."""

    def __getitem__(self, name: str) -> type[ProviderAdapter]:
        if name == "openai-chat":
            from .adapters.openai_chat import OpenAIChat

            return OpenAIChat
        if name == "openai-responses":
            from .adapters.openai_responses import OpenAIResponses

            return OpenAIResponses
        if name == "anthropic":
            from .adapters.anthropic import Anthropic

            return Anthropic
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("openai-chat", "openai-responses", "anthropic"))

    def __len__(self) -> int:
        return 3


ADAPTERS = Protocols()
