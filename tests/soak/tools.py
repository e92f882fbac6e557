"""All questions of ``tests/test_real_model_tools.py``, with the whole loop; prints each run and the figures::

python tests/soak/tools.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from test_real_model_tools import QUESTIONS, STEADY, TOOLS

from openagent import Client


def main() -> None:
    right = ended = 0
    with Client(**STEADY, tools=TOOLS, auto_execute_tools=True) as client:
        for question, name, arguments in QUESTIONS:
            client.clear_history()
            text = client.ask(question)
            calls = [call for message in client.history for call in message.calls]
            is_right = [(call.name, call.input) for call in calls[:1]] == [(name, arguments)]
            right += is_right
            ended += client.finish_reason is not None
            print("right" if is_right else "WRONG", question, [(call.name, call.input) for call in calls], repr(text))
    print(f"{right} of {len(QUESTIONS)} right, {ended} ended")


if __name__ == "__main__":
    main()
