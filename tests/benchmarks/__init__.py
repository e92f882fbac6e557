"""What the library costs, beside programs written by hand. Not part of the test run: ``python -m tests.benchmarks``."""
