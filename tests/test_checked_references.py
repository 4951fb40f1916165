"""References to RFCs and to functions of Linux name what exists, in one form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from doc_blocks import rfc_references  # noqa: E402
from doc_blocks.source_texts import continuous, texts  # noqa: E402

HERE = "tests/test_checked_references.py"


@pytest.fixture(scope="module")
def rfc_texts():
    """Return path and text of each file that names an RFC, except this one."""
    return [(path, text) for path, text in texts("RFC") if path != HERE]


def test_references_to_rfcs_have_one_form(rfc_texts):
    """A section, an appendix and a list of them: `RFC 9002 §7.3 and §B.6`."""
    other = [
        f"{path}: {form}" for path, text in rfc_texts for form in rfc_references.other_forms(text)
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
    assert len(rfc_references.other_forms(continuous(text))) == 1


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
    assert not rfc_references.other_forms(text)
