"""What the pages say exists: the names they import, the files and headings they link to, the pages of the site."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import openagent

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKING = [*PAGES, *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "examples/README.md"))]
SITE = (ROOT / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def code_of(page):
    """The Python of a page, block by block."""
    return [code for _, language, code in FENCED.findall(page.read_text(encoding="utf-8")) if language == "python"]


def missing(code):
    """The names that the code imports from openagent and that are not there."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if node.module and node.module.split(".")[0] == "openagent"]
    asked = [(node.module, alias.name) for node in ours for alias in node.names]
    return [pair for pair in asked if not hasattr(importlib.import_module(pair[0]), pair[1])]


def anchors(page):
    """The anchors of a page's headings, as a code host and mkdocs make them."""
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(page):
    """The relative links of a page that lead nowhere."""
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_compiles_and_imports_what_exists(page):
    assert [pair for code in code_of(page) for pair in missing(code)] == []


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    assert broken_links(page) == []


def test_a_link_to_no_file_and_to_no_heading_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One `two`, three\n[a](#one-two-three) [b](#four) [c](none.md) [d](https://e.org/#f)\n")
    assert broken_links(page) == ["#four", "none.md"]


def test_a_name_that_is_not_there_is_found():
    assert missing("from openagent import Client, Nothing\nfrom openagent.testing import nobody") == [
        ("openagent", "Nothing"),
        ("openagent.testing", "nobody"),
    ]


def test_the_reference_has_every_public_name():
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: openagent\.(?!testing\.)[\w.]+\.(\w+)$", reference, re.MULTILINE)
    assert sorted(listed) == sorted(openagent.__all__)


def test_the_navigation_names_every_page():
    named = re.findall(r"- (?:\w+: )?(\S+\.md)$", SITE, re.MULTILINE)
    assert {page.name for page in PAGES} - set(named) == set()
