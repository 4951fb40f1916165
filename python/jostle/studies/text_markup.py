"""Rendering of a study's texts on its page and in a terminal."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.deflist import deflist_plugin

_ELSEWHERE = re.compile(r"https?://\S+", re.IGNORECASE)


def inline(text: str) -> Markup:
    """Render a sentence as HTML, with text between backticks as code.

    A number stays on one line with its interval.
    """
    return Markup(_sentences().renderInline(text.replace(" ± ", "\u00a0±\u00a0")))


def render_page(text: str) -> Markup:
    """Render Markdown as HTML, with headings one level lower.

    HTML in the text is escaped. Links to other files are rendered as text, because the page is a
    single file.
    """
    return Markup(_pages().render(text))


@functools.cache
def _sentences() -> MarkdownIt:
    return MarkdownIt("zero").enable("backticks")


@functools.cache
def _pages() -> MarkdownIt:
    markdown = (
        MarkdownIt("commonmark", {"html": False})
        .enable("table")
        # Loading an image from a server would reveal that the page is read.
        .disable("image")
        .use(deflist_plugin)
    )
    for name, rule in {
        "heading_open": _heading,
        "heading_close": _heading,
        "link_open": _link,
        "link_close": _link_end,
        "table_open": lambda *_: '<div class="wide"><table class="prose">\n',
        "table_close": lambda *_: "</table></div>\n",
    }.items():
        markdown.add_render_rule(name, rule)
    return markdown


def _heading(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    level = min(6, int(tokens[at].tag[1:]) + 1)
    return f"<h{level}>" if tokens[at].nesting > 0 else f"</h{level}>\n"


def _link(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    target = str(tokens[at].attrGet("href") or "")
    return Markup('<a href="{}">').format(target) if _ELSEWHERE.fullmatch(target) else "<span>"


def _link_end(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    # Links are not nested: the latest opened link ends here.
    opened = next(one for one in tokens[at::-1] if one.type == "link_open")
    target = str(opened.attrGet("href") or "")
    return "</a>" if _ELSEWHERE.fullmatch(target) else "</span>"
