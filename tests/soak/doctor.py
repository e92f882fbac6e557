"""The doctor on the embedded model, with all its questions::

    python tests/soak/doctor.py

``tests/doctor`` asks it the first of them. What the others must find is checked here.
"""

from openagent import AgentOptions
from openagent.doctor import examine

EXPECTED = {"tools": "partly", "structured output": "yes", "images": "no"}


def main():
    """Print the report, and fail if it is not what this model is known for."""
    report = examine(AgentOptions(provider="local"))
    for finding in report.findings:
        print(f"{finding.verdict:8} {finding.name:20} {finding.text}")
    print(f"{report.line}: {report.requests} requests in {report.seconds:.1f} s")
    assert {name: report.finding(name).verdict for name in EXPECTED} == EXPECTED
    assert (report.ending, report.line) == ("complete", "Client(provider='local')")


if __name__ == "__main__":
    main()
