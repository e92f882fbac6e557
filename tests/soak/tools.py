"""All questions of ``tests/test_real_model_tools.py`` with the whole loop, and all its records::

python tests/soak/tools.py

Prints each run and the figures; ends with 1 if they are not what they should be. About two minutes.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from test_real_model_tools import BOOKS, QUESTIONS, RECORDS, STEADY, TOOLS, Book, is_a_book, is_valid

from openagent import Client


def questions() -> bool:
    right = ended = 0
    valid = True
    with Client(**STEADY, tools=TOOLS, auto_execute_tools=True) as client:
        for question, name, arguments in QUESTIONS:
            client.clear_history()
            text = client.ask(question)
            calls = [call for message in client.history for call in message.calls]
            is_right = [(call.name, call.input) for call in calls[:1]] == [(name, arguments)]
            right += is_right
            ended += client.finish_reason is not None
            valid &= all(map(is_valid, calls))
            print("right" if is_right else "WRONG", question, [(call.name, call.input) for call in calls], repr(text))
    print(f"{right} of {len(QUESTIONS)} right, {ended} ended, {'no' if valid else 'SOME'} invalid arguments")
    return right >= 16 and ended == len(QUESTIONS) and valid


def records() -> bool:
    valid = copied = 0
    with Client(**RECORDS) as client:
        for text in BOOKS:
            client.clear_history()
            book = client.extract(text, Book)
            valid += is_a_book(book)
            copied += str(book.published) in text
            print(book)
    print(f"{valid} of {len(BOOKS)} valid; {copied} dates are those of the text")
    return valid == len(BOOKS)


def main() -> int:
    started = time.monotonic()
    is_good = [questions(), records()]
    print(f"{time.monotonic() - started:.0f} s")
    return 0 if all(is_good) else 1


if __name__ == "__main__":
    sys.exit(main())
