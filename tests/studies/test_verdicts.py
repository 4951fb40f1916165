"""Verdicts on a study's claims, and its texts on a page."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from jostle.stats import Estimate, Expectation
from jostle.studies import verdicts
from jostle.studies.column import Column
from jostle.studies.evaluate import ClaimRow, Evaluation
from jostle.studies.text_markup import inline, render_page
from jostle.studies.verdicts import (
    ClaimVerdict,
    claim_verdicts,
    count_text,
    grouped,
    in_short,
)

DESCRIBED = Column("sim", "described", "as described")
FADES = Column("sim", "fades", "short fades", "short fades")
LINUX = Column("kernel", "described", "Linux 6.1")
LINUX_FADES = Column("kernel", "fades", "short fades, Linux 6.1", "short fades")
LINUX_OPEN_WINDOW = Column("kernel", "open-window", "open window, Linux 6.1", "open window")
FITTED_NETWORK = Column("sim", "search", "found by a search", is_fitted=True)


def evaluation(verdict: str | None, *, parts: int = 1) -> Evaluation:
    """One claim, whose last part decides."""
    ours = Estimate(None if verdict is None else 2.0, 1.0, 3.0, 5, "ms", "t")
    holds = None if verdict is None else verdict != "fails"
    fine = Expectation("≥ 1 ms", 1.0, replace(ours, value=2.0), True, True, 0.0, math.inf)
    last = Expectation("≤ 3 ms", 3.0, ours, holds, verdict != "open", math.inf, 0.0)
    row = ClaimRow("a", "It is so", (*[fine] * (parts - 1), last), "Because of {a}.")
    return Evaluation((), (), (row,))


def classes(verdicts: dict[Column, str | None]) -> ClaimVerdict:
    """Return the verdict on the claim over columns."""
    (found,) = claim_verdicts({column: evaluation(each) for column, each in verdicts.items()})
    return found


@pytest.mark.parametrize(
    ("described", "fades", "title"),
    [
        ("holds", "holds", verdicts.EVERY),
        ("holds", None, verdicts.EVERY),
        ("fails", "fails", verdicts.NONE),
        ("holds", "fails", verdicts.DEPENDS),
        ("fails", "holds", verdicts.DEPENDS),
        ("open", "open", verdicts.OPEN),
        ("holds", "open", verdicts.OPEN),
        ("fails", "open", verdicts.OPEN),
        (None, None, verdicts.UNKNOWN),
    ],
)
def test_a_claim_has_one_class_over_all_setups(
    described: str | None, fades: str | None, title: str
) -> None:
    found = classes({DESCRIBED: described, FADES: fades})
    assert found.title == title
    assert (found.text, found.asked) == ("It is so", "≤ 3 ms")
    assert [one.verdict for one in found.results] == [described, fades]
    assert found.reason == f"Because of {'–' if described is None else '2.00 ± 1.00 ms'}."


def test_setups_for_and_against_are_named() -> None:
    found = classes({DESCRIBED: "fails", FADES: "holds", LINUX_OPEN_WINDOW: "open"})
    assert found.title == verdicts.DEPENDS
    assert found.supporting == ("short fades",)
    assert found.contradicting == ("as described",)
    assert found.open == ("open window",)


@pytest.mark.parametrize(
    ("columns", "title"),
    [
        # Linux decides in its setup, if it gives a verdict, and in no other.
        ({DESCRIBED: "holds", LINUX: "fails"}, verdicts.NONE),
        ({DESCRIBED: "fails", LINUX: "holds"}, verdicts.EVERY),
        ({DESCRIBED: "holds", LINUX: "open"}, verdicts.EVERY),
        ({DESCRIBED: "holds", LINUX: None}, verdicts.EVERY),
        ({DESCRIBED: "open", LINUX: "fails"}, verdicts.NONE),
        ({DESCRIBED: "holds", LINUX_FADES: "fails"}, verdicts.DEPENDS),
        ({DESCRIBED: "holds", FADES: "holds", LINUX_FADES: "fails"}, verdicts.DEPENDS),
        # The fitted network was selected by the claims.
        ({DESCRIBED: "fails", FITTED_NETWORK: "holds"}, verdicts.NONE),
        ({DESCRIBED: "holds", FITTED_NETWORK: "fails"}, verdicts.EVERY),
    ],
)
def test_linux_judges_its_setup_and_the_fitted_network_none(
    columns: dict[Column, str | None], title: str
) -> None:
    assert classes(columns).title == title


def test_another_part_that_decides_is_named() -> None:
    (verdict,) = claim_verdicts(
        {DESCRIBED: evaluation("holds", parts=2), FADES: evaluation("fails", parts=2)}
    )
    assert verdict.asked == "≥ 1 ms"
    assert [one.text for one in verdict.results] == [
        "2.00 ± 1.00 ms", "2.00 ± 1.00 ms, asked for ≤ 3 ms",
    ]  # fmt: skip


def test_claims_are_counted_in_a_sentence() -> None:
    (row,) = evaluation("holds").claims
    (failing,) = evaluation("fails").claims
    one = claim_verdicts({DESCRIBED: Evaluation((), (), (row,))})
    assert in_short(grouped(one), 1) == "Of 1 claim in 1 setup: 1 holds."
    three = claim_verdicts({DESCRIBED: Evaluation((), (), (row, failing, failing))})
    assert in_short(grouped(three), 1) == "Of 3 claims in 1 setup: 1 holds, 2 fail."
    assert count_text([row, failing, failing]) == "1 hold, 2 fail"


def test_a_sentence_names_every_class_in_order() -> None:
    results = (
        (None, None), ("fails", "fails"), ("open", "holds"), ("open", "fails"),
        ("holds", "fails"), ("holds", "holds"), ("holds", None),
    )  # fmt: skip
    found = claim_verdicts(
        {
            column: Evaluation((), (), tuple(evaluation(row[at]).claims[0] for row in results))
            for at, column in enumerate((DESCRIBED, FADES))
        }
    )
    assert in_short(grouped(found), 2) == (
        "Of 7 claims in 2 setups: 2 hold in every plausible setup, 1 depends on the setup, "
        "1 fails in every plausible setup, 2 are open, 1 could not be judged."
    )


def test_sentences_have_code_and_nothing_else() -> None:
    assert inline("`a<b` & *c* 1 ± 2") == "<code>a&lt;b</code> &amp; *c* 1\u00a0±\u00a02"


def test_a_setup_links_to_other_sites_only() -> None:
    text = "# Setup\n[RFC](https://www.rfc-editor.org/) [beside](../simulator.md#x) <b> ![i](x.png)"
    html = render_page(text)
    assert "<h2>Setup</h2>" in html
    assert '<a href="https://www.rfc-editor.org/">RFC</a> <span>beside</span>' in html
    assert "&lt;b&gt;" in html
    assert "<img" not in html
