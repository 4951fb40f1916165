"""References to RFCs and to functions of Linux name what exists, in one form."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import linux_functions  # noqa: E402
from doc_blocks import rfc_references  # noqa: E402
from doc_blocks.source_texts import continuous, files_with, texts  # noqa: E402

HERE = "tests/test_checked_references.py"
OTHER_KERNELS = (
    "crates/controllers/src/algorithms/bbr3/", "crates/controllers/src/slow_start/suss",
    "crates/controllers/src/peer_cache/stateful_tcp.rs", "docs/reference/algorithms/bbr3.md",
    "docs/explanation/engineering-notes.md",
)  # fmt: skip
"""Code and pages that follow the kernel of an algorithm's authors, and the list of changes."""


@pytest.fixture(scope="module")
def rfc_texts():
    """Return path and text of each file that names an RFC, except this one."""
    return [(path, text) for path, text in texts("RFC") if path != HERE]


def test_references_to_rfcs_have_one_form(rfc_texts):
    """A section, an appendix and a list of them: `RFC 9002 §7.3 and §B.6`."""
    other = [
        f"{path}: {form}"
        for path, text in rfc_texts
        for form in rfc_references.malformed_references(text)
    ]
    assert not other, "\n".join(other)


def test_each_section_exists_and_each_rfc_of_the_table_is_mentioned(rfc_texts):
    """The table has the titles of the RFCs that are mentioned, and the headings of sections."""
    headings = rfc_references.headings()
    found = [each for path, text in rfc_texts for each in rfc_references.references(text, path)]
    missing = [str(each) for each in found if each.section not in headings.get(each.rfc, {})]
    assert not missing, "\n".join(missing)
    assert {each.rfc for each in found} == set(headings)


@pytest.mark.parametrize(
    "text",
    [
        "RFC 9002, section 7.3", "RFC 9002 section 7", "RFC 9002's section 7",
        "RFC 9002 (section 7)", "RFC 9002, 7.3", "RFC 6298 (2.1)", "RFC 9002, §7",
        "RFC 9002 (§7)", "RFC 9002, B.6",
        "RFC 9002, appendix B", "RFC 9002 Appendix B.6", "section 7.3 of RFC 9002", "RFC9002",
        "§7.3 of RFC 9002", "(RFC\n    /// 9002, section 7.3)",
    ],
)  # fmt: skip
def test_another_form_is_found(text):
    """In comments of more than one line, too."""
    assert len(rfc_references.malformed_references(continuous(text))) == 1


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("RFC 9002 §7.3.2: at once", ["7.3.2"]),
        ("RFC 9002 §B.6 and §7", ["B.6", "7"]),
        ("RFC 9743 §5.1.3, §5.1.4 and §7.2", ["5.1.3", "5.1.4", "7.2"]),
        ("(RFC\n    /// 8985 §6.2, step 2)", ["6.2"]),
        ("as in RFC\n# 8985 says", [""]),
    ],
)
def test_a_reference_is_read(text, sections):
    """A list has several sections; without one, the whole RFC is meant."""
    text = continuous(text)
    assert [each.section for each in rfc_references.references(text)] == sections
    assert not rfc_references.malformed_references(text)


@pytest.mark.parametrize("rfc", rfc_references.pages())
def test_each_section_of_a_page_has_code_or_a_reason(rfc):
    """A reason names a section that exists, and not one whose rules all have code."""
    sections = rfc_references.Sections(rfc)
    assert sections.omitted.keys() <= sections.headings.keys()
    assert not sections.gaps()
    assert not sections.idle_reasons()
    assert f"generated: rfc {rfc} " in (ROOT / f"docs/reference/rfcs/{rfc}.md").read_text("utf-8")


@pytest.fixture(scope="module")
def linux():
    """Return the mentions of Linux functions in the repository, without those of this file."""
    return [each for each in linux_functions.mentions() if not each.place.startswith(HERE)]


def test_each_linux_function_that_is_named_has_a_row_and_each_row_is_named(linux):
    """`linux_functions.py TREE --add` adds the rows."""
    _, rows = linux_functions.read_table()
    meant = [(each, linux_functions.row_of(each, list(rows))) for each in linux]
    wrong = [f"{each.place}: {each.file}::{each.function}" for each, row in meant if len(row) != 1]
    assert not wrong, "\n".join(wrong)
    assert {row for _, found in meant for row in found} == set(rows)


def test_comments_name_the_file_of_a_linux_function():
    """A name without its file is not found by the command; other kernels have other functions."""
    names = {name for _, name in linux_functions.read_table()[1] if "_" in name}
    bare = re.compile(r"`([a-z_0-9]+)`")
    found = [
        f"{path}: {name}"
        for path in files_with("`_", "`bbr_", "`cake_", "`tcp_", "`hystart_", "`bictcp_")
        for name in bare.findall((ROOT / path).read_text("utf-8"))
        if name in names and not path.startswith(OTHER_KERNELS)
    ]
    assert not found


SOURCE = """
#define twice(x) ((x) * 2)
/* The state { of a flow. */
struct flow { int a; };

static bool __bpf_kfunc first(struct flow *flow,
\t\t\t      int more)
{
\tif (more) { /* a } in a comment */
\t\treturn flow->a == '}' || say("/* { */");
\t}
\treturn false;
}

u32 second(void)
{
\treturn twice(3);
}
"""


def test_only_tokens_from_the_name_on_are_hashed():
    """Comments, spaces, line breaks, return type and annotations do not count."""
    texts = linux_functions.function_texts(SOURCE)
    assert list(texts) == ["first", "second"]
    same = SOURCE.replace("static bool __bpf_kfunc", "bool").replace(" more)", "  more) /* x */")
    assert linux_functions.function_texts(same.replace(",\n\t\t\t", ", // y\n")) == texts
    other = linux_functions.function_texts(SOURCE.replace("/* { */", "/* [ */"))
    assert other["first"] != texts["first"]
    assert other["second"] == texts["second"]


@pytest.fixture
def followed(tmp_path):
    """Return a repository that follows a function, and a kernel source tree."""
    for folder in ("crates", "tools/references", "linux/net/ipv4"):
        (tmp_path / folder).mkdir(parents=True)
    code = (
        "/// `tcp_x.c::second`.\n#[inline]\npub(crate) const fn ours() {\n    // `tcp_x.c::first`\n"
    )
    (tmp_path / "crates" / "x.rs").write_text(code)
    (tmp_path / linux_functions.TABLE).write_text("file\tfunction\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    tree = tmp_path / "linux"
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 5\n")
    (tree / "net/ipv4/tcp_x.c").write_text(SOURCE)
    assert linux_functions.main([str(tree), "--add"], tmp_path) == 0
    return tmp_path, tree


def test_the_command_lists_what_changed_and_what_follows_it(followed, capsys):
    """A function with other tokens, and one that moved."""
    root, tree = followed
    assert linux_functions.main([str(tree)], root) == 0
    assert capsys.readouterr().out == "0 of 2 functions differ between 6.1.5 and 6.1.5\n"
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 0\n")
    first, _, second = SOURCE.partition("u32 ")
    (tree / "net/ipv4/tcp_x.c").write_text(first.replace("false", "true"))
    (tree / "net/ipv4/tcp_y.c").write_text("u32 " + second)
    assert linux_functions.main([str(tree)], root) == 1
    assert capsys.readouterr().out.splitlines() == [
        "net/ipv4/tcp_x.c::first",
        "    crates/x.rs: fn ours",
        "net/ipv4/tcp_x.c::second, not found; now in net/ipv4/tcp_y.c",
        "    crates/x.rs: fn ours",
        "2 of 2 functions differ between 6.1.5 and 6.12.0",
    ]
