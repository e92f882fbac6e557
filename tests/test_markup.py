"""What a model wrote cannot bring an element into a page, and still looks as it was meant."""

import markdown_it
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openagent import Message, ToolUseBlock, Usage
from openagent.markup import closing_line, conversation_html, message_html, safe_markdown, usage_html

DOLLAR = "<span>\\$</span>"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a < b & **c**", "a &lt; b & **c**"),
        ("`a < $b`, $c", f"`a < $b`, {DOLLAR}c"),
        ("``a ` <b>`` <b>", "``a ` &lt;b>`` &lt;b>"),
        ("```html\n<b>$1</b>\n```\n<b>", "```html\n<b>$1</b>\n```\n&lt;b>"),
        (r"\$5, \<b>, \\$ and \* \![x](y)", rf"{DOLLAR}5, &lt;b>, \\{DOLLAR} and \* \![x\](y)"),
        ("```\n<b>", "```\n<b>\n```"),
        ("- ```\n  x\n  ```\n<b>", "- ```\n  x\n  ```\n&lt;b>\n```text\n```"),
        ("- x\n  ```\n  <b>\n<b>", "- x\n  ```\n  <b>\n&lt;b>\n```text\n```"),
        ("[x](javascript:y) [x](https://y)", "[x\\](javascript:y) [x](https://y)"),
        ("[x]: javascript:y", "[x\\]: javascript:y"),
        ("~~~~\n```\n<b>\n~~~~\n<b>", "~~~~\n```\n<b>\n~~~~\n&lt;b>"),
        ("a ` b\n`<b>`\n\n`<b>`", "a ` b\n`&lt;b>`\n\n`<b>`"),
        ("| ` | <b> ` |", "| ` | &lt;b> ` |"),
        ("- x\n  ```\n  <b>", "- x\n  ```\n  <b>\n  ```"),
        ("```a<b\nc", "```a&lt;b\nc\n```text\n```"),
        ("![x](http://evil/?q)", "\\![x](http://evil/?q)"),
    ],
)
def test_code_stays_and_the_rest_is_disarmed(text, safe):
    assert safe_markdown(text) == safe


def raw_html(text):
    """The HTML, pictures and links that a renderer would let through, without ours."""
    renderer = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    renderer.validateLink = lambda url: True
    tokens = [token for block in renderer.parse(text) for token in [block, *(block.children or [])]]
    found = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
    pictures = [token.content for token in tokens if token.type == "image"]
    links = [token.attrs["href"] for token in tokens if token.type == "link_open"]
    wrong = [link for link in links if not link.startswith(("https://", "mailto:"))]
    return [html for html in found if html not in ("<span>", "</span>")] + pictures + wrong


PIECES = [
    "`",
    "``",
    "```",
    "~~~",
    "<b>",
    "<b ",
    "<!--",
    "-->",
    "|",
    "-|-",
    "\n",
    "\n\n",
    "    ",
    "> ",
    "- ",
    "# ",
    "\\",
    "a ",
]


TEXTS = st.lists(
    st.sampled_from(
        [
            *PIECES,
            "$",
            "![x](y)",
            "[x](javascript:y)",
            "[x](",
            "java&#115;cript:y",
            ")",
            "1. ",
            "---",
            "[x]: ",
            "  ",
            "\t",
        ]
    ),
    max_size=25,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_no_element_comes_through(text):
    assert raw_html(safe_markdown(text)) == []


@settings(max_examples=400, deadline=None)
@given(TEXTS, TEXTS)
@example("```<b>", "```\n<b>")
@example("- a\n  ```\n  b", "```\n<b>")
@example("a\r~~~~<b>", "~~~~\n<b>")
def test_no_element_comes_through_behind_another_text(first, second):
    assert raw_html(f"{safe_markdown(first)}\n\n# A heading\n\n{safe_markdown(second)}") == []


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("```<b>")
@example("- a\n  ```\n  b")
@example("- ```\n  a\n  ```\n~~~ `\n```")
def test_no_code_goes_on_behind_a_text(text):
    assert "<h1>A heading</h1>" in markdown_it.MarkdownIt().render(f"{safe_markdown(text)}\n\n# A heading")


def test_results_stand_with_their_calls():
    call = ToolUseBlock("c", "f", {})
    page = conversation_html([Message.user("q"), Message.assistant(call), Message.tool_result("c", "42")])
    assert page == (
        '<div><div style="margin: 0.3em 0"><strong>user</strong><div style="white-space: pre-wrap">q</div></div>'
        '<div style="margin: 0.3em 0"><strong>assistant</strong><details><summary><code>f()</code> done</summary>'
        "<pre>&#123;&#125;</pre><pre>42</pre></details></div></div>"
    )


def test_a_result_without_its_call_is_shown_alone():
    assert "<pre>42</pre>" in conversation_html([Message.tool_result("c", "42")])


def test_an_image_from_elsewhere_is_a_link():
    page = message_html(Message.user_with_image("q", "https://example.org/x.png"))
    assert '<a href="https://example.org/x.png" rel="noreferrer">' in page
    assert "<img" not in page


def test_usage_shows_the_numbers_that_came():
    assert usage_html(Usage(7)) == "<table><tr><th>input tokens</th><td>7</td></tr></table>"
    assert closing_line(None, None, 2) == "interrupted · 2.0 s"
