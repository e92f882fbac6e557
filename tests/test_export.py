"""A conversation for readers: whole, and nothing of what was said is more than text."""

from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from openagent import Client, ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock
from openagent.export import to_html, to_markdown

PIXEL = "data:image/png;base64,iVBORw0KGgo="
OURS = {"html", "head", "meta", "title", "style", "body", "h1", "div", "strong", "details", "summary", "code", "pre"}
HISTORY = [
    Message.user("What is in it?"),
    Message("user", [TextBlock("Look:"), ImageBlock(PIXEL), ImageBlock("https://example.org/x.png")]),
    Message.assistant("Let me **see**.", ToolUseBlock("c", "look", {"at": "x"})),
    Message("user", [ToolResultBlock("c", "a dot"), TextBlock("And now?")]),
    Message.assistant("A dot."),
]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_the_page_holds_everything_and_stands_alone():
    page = Elements(to_html(HISTORY, "Be brief."))
    for said in ("Be brief.", "What is in it?", "Look:", "look(at='x')", "a dot", "And now?", "A dot."):
        assert said in page.text
    assert {tag for tag, _ in page.found} == OURS | {"img", "a"}
    fetched = [attributes.get("src") for _, attributes in page.found if "src" in attributes]
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert (fetched, page.found[3][1]["content"]) == ([PIXEL], policy)


def test_the_markdown_holds_everything_in_order():
    assert to_markdown(HISTORY, "Be brief.") == (
        "# A conversation\n\n## System\n\nBe brief.\n\n## User\n\nWhat is in it?\n\n## User\n\nLook:\n\n"
        '*data:image/png*\n\n<a href="https://example.org/x.png" rel="noreferrer">https://example.org/x.png</a>\n\n'
        "## Assistant\n\nLet me **see**.\n\n<details><summary><code>look(at=&#39;x&#39;)</code> done</summary>"
        "<pre>&#123;&#10;  &quot;at&quot;: &quot;x&quot;&#10;&#125;</pre><pre>a dot</pre></details>\n\n"
        "## User\n\nAnd now?\n\n## Assistant\n\nA dot.\n"
    )


def test_nothing_is_cut():
    long = "0123456789" * 2000
    history = [Message.assistant(ToolUseBlock("c", "f", {"x": long})), Message.tool_result("c", long)]
    assert (to_html(history).count(long), to_markdown(history).count(long)) == (2, 2)


def test_texts_side_by_side_are_one_text():
    history = [Message.assistant("- ```", TextBlock("  ```\n  <b>\n  ```"))]
    assert to_markdown(history).endswith("## Assistant\n\n- ```\n\n  ```\n  &lt;b>\n  ```\n```text\n```\n")


def test_a_client_exports_what_it_has_with_its_system_prompt():
    client = Client(model="m", base_url="http://localhost:1", system_prompt="Be brief.")
    client.history = HISTORY
    assert client.to_html() == to_html(HISTORY, "Be brief.")
    assert client.to_markdown() == to_markdown(HISTORY, "Be brief.")


WORDS = st.lists(
    st.sampled_from(
        [
            "<script>",
            "</pre>",
            "</details>",
            "<img src=x onerror=y>",
            '"',
            "'",
            "&lt;",
            "\n",
            "\n\n",
            "`",
            "```",
            "~~~",
            "- ",
            "  ",
            "$",
            "a",
        ]
    ),
    max_size=8,
).map("".join)


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS, WORDS, WORDS, WORDS)
def test_nothing_that_was_said_is_an_element(prompt, text, name, argument, result):
    history = [
        Message.user(text),
        Message.assistant(text, ToolUseBlock("c", name or "f", {argument: argument})),
        Message.tool_result("c", result),
        Message.tool_result("unknown", result),
    ]
    page = Elements(to_html(history, prompt))
    assert {tag for tag, _ in page.found} <= OURS
    assert all(
        name in ("style", "charset", "content", "http-equiv", "lang", "name") for _, a in page.found for name in a
    )
    rendered = Elements(MarkdownIt("commonmark", {"html": True}).enable("table").render(to_markdown(history, prompt)))
    assert not {tag for tag, _ in rendered.found} & {"script", "img", "iframe"}
