"""What became of a study's claims, and its texts on a page."""

from __future__ import annotations

import math

import pytest
from jostle.stats import Estimate, Expectation
from jostle.studies import verdicts as groups
from jostle.studies.evaluate import ClaimRow, Evaluation
from jostle.studies.fitted_network import FITTED
from jostle.studies.json_document import Column
from jostle.studies.text_markup import inline, render_page
from jostle.studies.verdicts import in_short, verdicts

DESCRIBED = Column("sim", "described", "as described")
FADES = Column("sim", "fades", "short fades")
LINUX = Column("kernel", "described", "Linux 6.1")
LINUX_FADES = Column("kernel", "fades", "Linux 6.1, short fades")
FITTED_NETWORK = Column("sim", FITTED, "fitted network")


def evaluation(holds: bool | None, *, parts: int = 1) -> Evaluation:
    """One claim, whose last part decides."""
    ours = Estimate(None if holds is None else 2.0, None, None, 1, "ms", "one run")
    fine = Expectation("≥ 1 ms", 1.0, ours, True, True, 0.0, math.inf)
    last = Expectation("≤ 3 ms", 3.0, ours, holds, True, math.inf, 0.0)
    row = ClaimRow("a", "It is so", (*[fine] * (parts - 1), last), "Because of {a}.")
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
    assert (verdict.text, verdict.asked) == ("It is so", "≤ 3 ms")
    answers = {answer.column: answer.holds for answer in verdict.answers}
    assert answers == {"as described": described, "short fades": fades, "Linux 6.1": linux}
    assert verdict.reason == f"Because of {'–' if described is None else '2.00 ms'}."


def test_without_readings_it_does_not_hold_and_linux_may_stand_alone() -> None:
    assert [one.title for one in verdicts({DESCRIBED: evaluation(False)})] == [groups.NOT]
    assert [one.title for one in verdicts({LINUX: evaluation(False)})] == [groups.LINUX_CONTRADICTS]


@pytest.mark.parametrize(
    ("holds", "group"),
    [
        ({DESCRIBED: False, FITTED_NETWORK: True}, groups.BY_FIT),
        ({DESCRIBED: False, FITTED_NETWORK: True, FADES: True}, groups.HOLDS_IN_OTHER_SETUP),
        ({DESCRIBED: True, FITTED_NETWORK: False}, groups.HOLDS),
        # Linux with another setup neither contradicts a claim nor confirms it.
        ({DESCRIBED: True, LINUX_FADES: False}, groups.HOLDS),
        ({DESCRIBED: False, LINUX_FADES: True}, groups.NOT),
        ({DESCRIBED: None, FADES: False, LINUX_FADES: True}, groups.UNKNOWN),
        ({LINUX: True, LINUX_FADES: False}, groups.HOLDS),
        ({LINUX: None, LINUX_FADES: True}, groups.HOLDS_IN_OTHER_SETUP),
    ],
)
def test_only_the_setup_of_the_first_column_decides_for_linux(
    holds: dict[Column, bool | None], group: str
) -> None:
    found = verdicts({column: evaluation(each) for column, each in holds.items()})
    assert [one.title for one in found] == [group]


def test_a_result_is_open_if_a_part_is_uncertain() -> None:
    def is_open(holds: bool | None, *certain: bool) -> bool:
        ours = Estimate(2.0, 1.0, 3.0, 5, "ms", "t")
        parts = tuple(
            Expectation("≥ 1 ms", 1.0, ours, holds, each, 0.0, math.inf) for each in certain
        )
        row = ClaimRow("a", "It is so", parts, "")
        (group,) = verdicts({DESCRIBED: Evaluation((), (), (row,))})
        return group.verdicts[0].answers[0].open

    assert not is_open(True, True, True)
    assert is_open(True, True, False)
    assert is_open(False, False, True)
    assert not is_open(None, False), "an unknown result has no interval"


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


def test_a_sentence_names_every_group_in_order() -> None:
    columns = (DESCRIBED, FADES, FITTED_NETWORK, LINUX)
    results = (
        (None, None, None, None),
        (False, False, False, None),
        (False, False, True, None),
        (False, True, True, None),
        (False, True, True, True),
        (True, True, True, False),
        (True, False, None, True),
    )
    found = verdicts(
        {
            column: Evaluation((), (), tuple(evaluation(row[at]).claims[0] for row in results))
            for at, column in enumerate(columns)
        }
    )
    assert in_short(found) == (
        "Of 7 claims: 1 hold as described, 1 are contradicted by Linux itself, "
        "1 hold on Linux only, 1 hold in another setup, 1 hold in the fitted network only, "
        "1 hold in no setup, 1 could not be judged."
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
