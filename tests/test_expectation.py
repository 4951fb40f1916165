"""Expectations: accepted ranges, verdicts, distances; how tables of them are written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from jostle.results.expectation_text import expectation_cells, expectation_entry
from jostle.results.number_format import estimate_text
from jostle.results.text_table import Table, html_table, markdown_table
from jostle.stats import Estimate, expect
from jostle.stats.expectation import expect_between, joint_verdict


def ours(value: float | None, half: float | None = None, *, incomplete: str = "") -> Estimate:
    ends = (None, None) if value is None or half is None else (value - half, value + half)
    return Estimate(value, *ends, 5, "ms", "", incomplete)


@pytest.mark.parametrize(
    ("value", "half", "verdict"),
    [
        (6.4, 0.5, "holds"),
        (6.4, 2.0, "open"),
        (4.0, 0.5, "fails"),
        (4.9, 0.5, "open"),
        (11.0, 0.5, "fails"),
        # The interval contains the whole range.
        (4.0, 9.0, "open"),
        (6.4, None, "holds"),
        (11.0, None, "fails"),
        (None, None, None),
    ],
)
def test_a_range_around_a_published_number_has_two_ends(value, half, verdict) -> None:
    """6.4 ×, from a quarter less to half as much again."""
    found = expect_between(ours(value, half), 6.4, 1.6, 3.2, "about 6.4 ×")
    assert found.verdict == verdict
    assert found.holds is {"holds": True, "fails": False}.get(verdict, found.holds)


def test_a_failed_run_leaves_no_verdict() -> None:
    found = expect(ours(5.0, 1.0, incomplete="4 of 5 runs"), "below", 10.0)
    assert (found.holds, found.verdict, found.certain) == (None, None, False)


@pytest.mark.parametrize(
    ("relation", "target", "margin", "value", "excess"),
    [
        ("below", 10.0, 0.0, 12.0, 0.2),
        ("below", 10.0, 0.0, 8.0, -0.2),
        ("above", 10.0, 0.0, 8.0, 0.2),
        ("about", 10.0, 1.0, 8.0, 0.1),
        ("about", 10.0, 1.0, 12.0, 0.1),
        ("about", 10.0, 1.0, 10.5, -0.05),
        ("below", 0.0, 0.0, 3.0, 3.0),
        ("about", 0.0, 2.0, 3.0, 0.5),
        ("above", 10.0, 0.0, math.inf, -math.inf),
        ("below", 10.0, 0.0, math.inf, math.inf),
        ("below", 10.0, 0.0, None, -math.inf),
    ],
)
def test_the_distance_is_from_the_accepted_range(relation, target, margin, value, excess) -> None:
    assert expect(ours(value), relation, target, margin).excess == pytest.approx(excess)


def test_the_used_margin_is_that_of_the_side() -> None:
    def used(value: float | None) -> float | None:
        return expect_between(ours(value), 10.0, 2.0, 4.0, "").used_margin

    assert [used(value) for value in (9.0, 10.0, 12.0, 16.0, None)] == [0.5, 0.0, 0.5, 1.5, None]
    assert expect(ours(11.0), "about", 10.0).used_margin == math.inf


def test_the_ratio_to_a_published_number() -> None:
    assert expect(ours(12.0), "about", 10.0, 1.0).ratio == pytest.approx(1.2)
    assert expect(ours(12.0), "about", 0.0, 1.0).ratio is None
    assert expect(ours(None), "about", 10.0, 1.0).ratio is None


def test_a_probability_needs_an_interval_and_one_bound() -> None:
    assert expect(ours(10.0, 1.0), "below", 10.0).probability == pytest.approx(0.5)
    assert expect(ours(9.0, 1.0), "above", 10.0).probability == pytest.approx(0.025, abs=1e-4)
    assert expect(ours(9.0), "above", 10.0).probability == 0.0
    assert expect(ours(10.5, 3.0), "about", 10.0, 1.0).probability == 1.0
    late = expect(ours(10.5, 3.0), "below", 10.0)
    assert 0.0 < late.probability < 0.5
    assert (late.verdict, late.for_worst_run().verdict) == ("open", "fails")
    assert late.for_worst_run().probability == 0.0


@pytest.mark.parametrize(
    ("verdicts", "together"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "open"], "open"),
        (["open", None], None),
        ([None, "open", "fails"], "fails"),
        ([], "holds"),
    ],
)
def test_expectations_hold_together(verdicts, together) -> None:
    assert joint_verdict(verdicts) == together


def test_an_event_that_never_occurred_is_null_in_a_document() -> None:
    entry = expectation_entry(expect(ours(math.inf), "below", 10.0), "bound value never holds")
    assert json.dumps(entry, allow_nan=False) == (
        '{"bound": 10.0, "value": null, "never": true, "holds": false}'
    )
    assert list(expectation_entry(expect(ours(9.0, 1.0), "below", 10.0), "interval n")) == [
        "interval", "n",
    ]  # fmt: skip


def test_cells_say_what_is_open() -> None:
    parts = [expect(ours(9.0, 0.5), "below", 10.0), expect(ours(9.0, 2.0), "below", 10.0)]
    assert expectation_cells(parts[:1], "holds") == ("9.00 ± 0.50 ms (n = 5)", "yes")
    assert expectation_cells(parts, "open") == (
        "9.00 ± 0.50 ms (n = 5); 9.00 ± 2.00 ms (n = 5)",
        "open",
    )
    assert expectation_cells([expect(ours(None), "below", 1.0)], None) == ("–", "–")


def test_a_table_as_markdown_and_html() -> None:
    table = Table(("claim", "holds"), (("a | <b>", "no (open)"),))
    assert markdown_table(table.header, table.rows) == (
        "| claim | holds |\n| --- | --- |\n| a \\| <b> | no (open) |"
    )
    made = html_table(table)
    assert '<td style="text-align:left">a | &lt;b&gt;</td>' in made
    assert '<td class="no" style="text-align:left">no (open)</td>' in made


@pytest.mark.parametrize(
    ("relation", "target", "verdict"),
    [
        ("below", 2.0, "fails"), ("below", 4.0, "open"),
        ("above", 2.0, "holds"), ("above", 4.0, "open"),
        ("about", 2.0, "fails"), ("about", 3.5, "open"),
    ],
)  # fmt: skip
def test_an_event_that_may_come_after_the_run_is_open(
    relation: Any, target: float, verdict: str
) -> None:
    """The event did not occur in 3 s: it comes at any later time."""
    cut = replace(ours(math.inf), possible=(3.0, math.inf))
    found = expect(cut, relation, target, 0.1)
    assert found.verdict == verdict
    assert found.ended_early is (verdict == "open")
    assert (found.holds is None) is (verdict == "open")
    entry = expectation_entry(found, "value never possible")
    assert entry == {"value": None, "never": True, "possible": [3.0, None]}


def test_possible_values_are_written_as_a_range() -> None:
    found = replace(ours(70.0), possible=(70.0, 100.0))
    assert estimate_text(found, unit=True) == f"70.0 to 100.0 {found.unit}".strip()
    assert expect(found, "above", 80.0).verdict == "open"
    assert expect(replace(found, incomplete="1 of 2 runs"), "above", 60.0).verdict is None
