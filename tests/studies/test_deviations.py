"""Published numbers and ours as ratios, and their headline."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.stats import Estimate
from jostle.stats.expectation import expect, expect_between
from jostle.studies.column import Column
from jostle.studies.deviations import best_setup, deviation_rows, deviations, summarize
from jostle.studies.evaluate import ClaimRow, Evaluation, NumberRow
from jostle.studies.models import StudyFile

VALUE = {"experiment": "flow", "measure": "rtt"}
FILE = StudyFile.model_validate(
    {
        "title": "A study",
        "paper": "A paper",
        "experiments": {"flow": {"scenario": "flow.toml"}},
        "numbers": [
            {"id": "rtt", "text": "RTT", "published": 30, "origin": "figure", **VALUE},
            {"id": "own", "text": "Ours alone", **VALUE},
        ],
        "claims": [
            {
                "id": "ten",
                "text": "Ten times",
                "parts": [
                    {"left": VALUE, "relation": "about", "right": VALUE, "factor": 10, "times": 1.5,
                     "origin": "printed"},
                    {"left": VALUE, "relation": "above", "right": 3},
                ],
            }
        ],
    }
)  # fmt: skip


def ours(value: float | None, unit: str = "ms") -> Estimate:
    return Estimate(value, None, None, 3, unit, "mean")


def evaluation(rtt: float | None, ratio: float | None) -> Evaluation:
    number = NumberRow("rtt", "RTT", ours(rtt), expect(ours(rtt), "about", 30.0, 3.0), None, "")
    own = NumberRow("own", "Ours alone", ours(1.0), None, None, "")
    ten = expect_between(ours(ratio, "×"), 10.0, 10 / 3, 5.0, "about 10 × (× or ÷ 1.5)")
    claim = ClaimRow("ten", "Ten times", (ten, expect(ours(5.0), "above", 3.0)), "")
    return Evaluation((number, own), (), (claim,))


def test_published_numbers_of_numbers_and_claims_are_compared() -> None:
    found = deviations(FILE, evaluation(33.0, 4.0))
    assert [(one.text, one.origin, one.published) for one in found] == [
        ("RTT", "figure", 30.0),
        ("Ten times", "printed", 10.0),
    ]
    assert [one.ratio for one in found] == pytest.approx([1.1, 0.4])
    assert [one.factor for one in found] == pytest.approx([1.1, 2.5])
    assert str(summarize(found)) == (
        "published numbers differ by × 1.80 in the median of 2 and by × 2.50 at most (Ten times)"
    )


def test_what_was_not_measured_is_not_in_the_headline() -> None:
    found = deviations(FILE, evaluation(None, 12.0))
    assert [one.ratio for one in found] == [None, pytest.approx(1.2)]
    assert "the median of 1 " in str(summarize(found))
    assert summarize(deviations(FILE, evaluation(None, None))) is None


def test_the_setup_with_the_smallest_median_is_named_but_never_the_fitted_network() -> None:
    columns = {
        Column("sim", "described", "as described"): evaluation(60.0, 20.0),
        Column("sim", "fades", "short fades"): evaluation(33.0, 11.0),
        Column("sim", "fitted", "fitted", is_fitted=True): evaluation(30.0, 10.0),
    }
    title, found = best_setup(FILE, columns)
    assert title == "short fades"
    assert found.median == pytest.approx(1.1)


def test_a_column_with_few_values_is_not_the_best() -> None:
    columns = {
        Column("sim", "described", "as described"): evaluation(60.0, 20.0),
        Column("kernel", "described", "Linux 6.1"): evaluation(30.0, None),
    }
    found = best_setup(FILE, columns)
    assert found is not None
    assert found[0] == "as described"
    assert best_setup(FILE, {Column("sim", "described", "a"): evaluation(None, None)}) is None


def test_the_table_has_value_origin_runs_and_ratio() -> None:
    columns = {Column("sim", "described", "as described"): evaluation(33.0, None)}
    table = deviation_rows(FILE, columns)
    assert table.header == (
        "published number", "value", "unit", "origin", "as described", "ratio",
    )  # fmt: skip
    assert table.rows == (
        ("RTT", "30.0", "ms", "figure", "33.0 (n = 3)", "1.10"),
        ("Ten times", "10.0", "×", "printed", "–", "–"),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"relation": "above", "right": 3, "origin": "printed"},
        {"relation": "about", "right": 3, "times": 1.5, "within": 2},
        {"relation": "about", "right": 3},
        {"relation": "about", "right": 3, "times": 1.0},
    ],
)
def test_a_published_number_has_a_range_with_two_ends(part: dict[str, Any]) -> None:
    claim = {"id": "a", "text": "It is so", "parts": [{"left": VALUE, **part}]}
    with pytest.raises(ValueError, match=r"origin|times|tolerance"):
        StudyFile.model_validate(FILE.model_dump() | {"claims": [claim]})
