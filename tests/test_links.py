"""Links of pages: the checker finds what is wrong, and nothing is wrong with a report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jostle
import pytest
from jostle.report import write_report
from test_report import SCENARIO

CHECKER = Path(__file__).parents[1] / "tools" / "links.py"


def check(*places: Path) -> tuple[int, str]:
    """Exit status of the checker, and what it says."""
    command = [sys.executable, str(CHECKER), *map(str, places)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.returncode, done.stderr


RIGHT = """
<h1 id="top">A page</h1> <code>`a`</code>
<a href="#top">up</a> <a href="other.html#there">there</a> <a href="sub/">below</a>
<a href="#">0</a>
<a href="https://www.rfc-editor.org/rfc/rfc5681#section-3">RFC 5681</a>
<img src="data:,"> <a href="data.csv">data</a>
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "index.html").write_text('<a href="../page.html#top">back</a>')
    (tmp_path / "other.html").write_text('<p id="there">there</p>')
    (tmp_path / "data.csv").write_text("a,b\n")
    (tmp_path / "page.html").write_text(RIGHT)
    return tmp_path


def test_links_that_lead_somewhere_are_right(folder: Path) -> None:
    assert check(folder) == (0, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="nowhere.html">x</a>', "nowhere.html: there is no such file"),
        ('<a href="#nowhere">x</a>', "#nowhere: there is no such anchor"),
        ('<a href="other.html#here">x</a>', "other.html#here: there is no such anchor"),
        ('<a href="other.html"></a>', "other.html: the link has no words"),
        ('<a href="">x</a>', "“”: not a link that a page may have"),
        ('<a href="javascript:x()">x</a>', "“javascript:x()”: not a link that a page may have"),
        ('<a href="https://example">x</a>', "https://example: not the form of an address"),
        ('<a href="https://a.org/`b`">x</a>', "https://a.org/`b`: not the form of an address"),
        ('<img src="gone.png">', "gone.png: there is no such file"),
        ("<p>the `share`</p>", "a literal backtick"),
        ('<p id="top">again</p>', "two elements are called #top"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder: Path, text: str, said: str) -> None:
    page = folder / "page.html"
    page.write_text(RIGHT + text)
    status, errors = check(folder)
    line = "" if "two elements" in said else f"{RIGHT.count(chr(10)) + 1}:"
    assert (status, errors) == (1, f"{page}:{line} {said}\n")


def test_links_of_a_report_lead_somewhere(tmp_path: Path) -> None:
    file = tmp_path / "question.toml"
    file.write_text(SCENARIO, "utf-8")
    page = write_report([jostle.run(file)], tmp_path / "report.html", [str(file)])
    assert '<a href="#' in page.read_text("utf-8")
    assert check(page) == (0, "")
