"""The example notebooks run as they stand, and show what is stored in them."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# What a real model says may differ from machine to machine; a scripted server says the same everywhere.
WITH_A_MODEL = {"01_first_chat", "02_a_tool", "05_structured_data"}
UNSTEADY = [
    (r"\d+\.\d s\b", "0.0 s"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1"),
    (r"\bstr\b|\bobject\b", "str"),  # pandas 2 and 3 call a column of texts differently
]


def shown(notebook, *, with_texts):
    """What the cells show: the forms of each output and, if asked for, its text."""
    return [
        [(output.output_type, *forms(output), text(output) if with_texts else "") for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


def forms(output):
    return sorted(output.get("data", {})) or [output.get("name", "")]


def text(output):
    said = output.get("text") or output["data"].get("text/markdown") or output["data"]["text/plain"]
    for pattern, steady in UNSTEADY:
        said = re.sub(pattern, steady, said)
    return said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore")  # of the event loop that runs the kernel
def test_each_notebook_runs_and_shows_what_is_stored(path, tmp_path):
    stored = nbformat.read(path, 4)
    run = nbformat.read(path, 4)
    resources = {"metadata": {"path": str(tmp_path)}}
    # Kernels that start at the same time may take each other's TCP ports.
    apart = {} if os.name == "nt" else {"transport": "ipc", "ip": str(tmp_path / "kernel")}
    config = Config({"KernelManager": apart})
    NotebookClient(
        run, timeout=120, kernel_name="python3", coalesce_streams=True, resources=resources, config=config
    ).execute()
    is_steady = path.stem not in WITH_A_MODEL
    assert shown(run, with_texts=is_steady) == shown(stored, with_texts=is_steady)


def test_every_notebook_is_listed_and_was_run_from_top_to_bottom():
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in NOTEBOOKS if f"notebooks/{path.name}" not in readme] == []
    for path in NOTEBOOKS:
        counts = [cell.execution_count for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
        assert counts == list(range(1, len(counts) + 1)), path.name
