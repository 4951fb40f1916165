"""What became of a study's claims, and its texts on a page."""

from __future__ import annotations

import pytest
from jostle.stats import Estimate
from jostle.studies import verdicts as groups
from jostle.studies.evaluate import ClaimRow, Evaluation
from jostle.studies.evaluate import ClaimTest as Part
from jostle.studies.json_document import Column
from jostle.studies.text_markup import inline, render_page
from jostle.studies.verdicts import in_short, verdicts

DESCRIBED = Column("sim", "described", "as described")
FADES = Column("sim", "fades", "short fades")
LINUX = Column("kernel", "described", "Linux 6.1")


def evaluation(holds: bool | None, *, parts: int = 1) -> Evaluation:
    """One claim, whose last part decides."""
    ours = Estimate(None if holds is None else 2.0, None, None, 1, "ms", "one run")
    fine = Part("≥ 1 ms", 1.0, ours, holds=True, certain=True)
    last = Part("≤ 3 ms", 3.0, ours, holds, certain=True)
    row = ClaimRow("a", "It is so", (*[fine] * (parts - 1), last), holds, "Because of {a}.")
    return Evaluation((), (), (row,))


@pytest.mark.parametrize(
    ("described", "fades", "linux", "group"),
    [
        (True, None, None, groups.HOLDS),
        (True, False, True, groups.HOLDS),
        (True, True, False, groups.LINUX_CONTRADICTS),
        (False, True, False, groups.LINUX_CONTRADICTS),
        (False, True, True, groups.LINUX_ONLY),
        (False, True, None, groups.HOLDS_IN_OTHER_SETUP),
        (None, True, None, groups.HOLDS_IN_OTHER_SETUP),
        (False, False, None, groups.HOLDS_IN_NO_SETUP),
        (None, None, None, groups.UNKNOWN),
    ],
)
def test_a_claim_stands_in_one_group(
    described: bool | None, fades: bool | None, linux: bool | None, group: str
) -> None:
    found = verdicts({DESCRIBED: evaluation(described), FADES: evaluation(fades),
                      LINUX: evaluation(linux)})  # fmt: skip
    assert [one.title for one in found] == [group]
    (verdict,) = found[0].verdicts
    assert [answer.holds for answer in verdict.answers] == [described, fades, linux]
    assert verdict.reason == f"Because of {'–' if described is None else '2.00 ms'}."


def test_without_readings_it_does_not_hold_and_linux_may_stand_alone() -> None:
    assert [one.title for one in verdicts({DESCRIBED: evaluation(False)})] == [groups.NOT]
    assert [one.title for one in verdicts({LINUX: evaluation(False)})] == [groups.LINUX_CONTRADICTS]


def test_another_part_that_decides_is_named() -> None:
    (group,) = verdicts({DESCRIBED: evaluation(True, parts=2), FADES: evaluation(False, parts=2)})
    (verdict,) = group.verdicts
    assert verdict.asked == "≥ 1 ms"
    assert [one.text for one in verdict.answers] == ["2.00 ms", "2.00 ms, asked for ≤ 3 ms"]


def test_claims_are_counted_in_a_sentence() -> None:
    found = verdicts({DESCRIBED: evaluation(True)})
    assert in_short(found) == "Of 1 claim: holds on the testbed's terms."
    rows = (*evaluation(True).claims, *evaluation(False).claims, *evaluation(False).claims)
    found = verdicts({DESCRIBED: Evaluation((), (), rows)})
    assert in_short(found) == "Of 3 claims: 1 hold as described, 2 do not hold."


def test_sentences_have_code_and_nothing_else() -> None:
    assert inline("`a<b` & *c* 1 ± 2") == "<code>a&lt;b</code> &amp; *c* 1\u00a0±\u00a02"


def test_a_setup_links_to_other_sites_only() -> None:
    text = "# Setup\n[RFC](https://www.rfc-editor.org/) [beside](../simulator.md#x) <b> ![i](x.png)"
    html = render_page(text)
    assert "<h2>Setup</h2>" in html
    assert '<a href="https://www.rfc-editor.org/">RFC</a> <span>beside</span>' in html
    assert "&lt;b&gt;" in html
    assert "<img" not in html
