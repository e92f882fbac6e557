"""openagent: a synchronous LLM agent client."""

__version__ = "0.1.0"
