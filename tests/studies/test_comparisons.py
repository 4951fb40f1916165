"""Numbers and claims of a study compared with given values of runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.stats
from jostle.results.number_format import estimate_text
from jostle.stats import Estimate, Expectation
from jostle.stats.expectation import expect_between
from jostle.studies.evaluate import (
    NumberRow,
    _claim,
    _interval,
    _number,
    _ranking,
    value_estimate,
)
from jostle.studies.models import Claim, ClaimPart, Number, Value
from jostle.studies.runs import Runs

INF = float("inf")
NEVER = "1 of 2 runs never had a finite value"
RTT, LOAD = Value(measure="rtt"), Value(measure="throughput")
RTTS, LOADS = [10.0, 12.0], [4.0, 6.0]


def ratio_ends() -> tuple[float, float, float]:
    """The ratio of the means of RTTS and LOADS, and Fieller's interval.

    The variance of both means is 1. The second mean, 5, is not significantly different from 0.
    """
    variances = np.array([1.0, 2.2**2])
    t = scipy.stats.t.ppf(0.975, variances.sum() ** 2 / np.square(variances).sum())
    (end,) = (root for root in np.roots([25 - t**2, -2 * 11 * 5, 121 - t**2]) if root > 0)
    return 2.2, float(end), INF


def difference_ends(factor: float) -> tuple[float, float, float]:
    """The difference of the means of RTTS and `factor` LOADS, with Welch's interval."""
    other = [factor * load for load in LOADS]
    ends = scipy.stats.ttest_ind(RTTS, other, equal_var=False).confidence_interval(0.95)
    return 11 - factor * 5, ends.low, ends.high


def runs_with(
    rtt: list[float],
    load: list[float] | None = None,
    *,
    failed: str = "",
    tolerance: float = 0.05,
    paired: bool = False,
) -> Runs:
    """Runs with an RTT, and runs with a throughput: the same ones if they are `paired`."""
    values = {"rtt": rtt, "throughput": load or []}
    fake = SimpleNamespace(
        study=SimpleNamespace(file=SimpleNamespace(tolerance=tolerance)),
        summary=lambda value: values[value.measure],
        bounds=lambda _: (0.0, None),
        incomplete=lambda *_: failed,
        possible=lambda _: [],
        are_of_same_runs=lambda *_: paired,
    )
    return cast("Runs", fake)


def compared(runs: Runs, **part: Any) -> Expectation:
    """Compare the RTT as `part` says."""
    part_ = ClaimPart(**{"left": RTT, "relation": "above", **part})
    (tested,) = _claim(runs, Claim(id="a", text="", parts=(part_,))).parts
    return tested


@pytest.mark.parametrize(
    ("part", "relation", "ours", "holds", "miss"),
    [
        ({"right": LOAD, "factor": 2}, "≥ 2 ×", ratio_ends(), True, 0),
        ({"right": LOAD, "factor": 4}, "≥ 4 ×", ratio_ends(), False, 1.8 / 4),
        ({"right": LOAD, "factor": 2, "relation": "below"}, "≤ 2 ×", ratio_ends(), False,
         0.2 / 2),
        ({"right": LOAD, "factor": 2, "margin": 1}, "≥ 1 ms", difference_ends(2), True, 0),
        ({"right": LOAD, "factor": 2, "margin": 2}, "≥ 2 ms", difference_ends(2), False, 1 / 2),
        ({"right": LOAD, "relation": "about", "within": 6}, "about 0 ms ± 6",
         difference_ends(1), True, 0),
        ({"right": LOAD, "relation": "about", "within": 2}, "about 0 ms ± 2",
         difference_ends(1), False, 2),
        ({"right": LOAD, "relation": "about", "factor": 2, "tolerance": 0.125}, "about 2 × ± 0.25",
         ratio_ends(), True, 0),
        ({"right": LOAD, "relation": "about", "factor": 2, "tolerance": 0.05}, "about 2 × ± 0.1",
         ratio_ends(), False, 0.1 / 2),
    ],
)  # fmt: skip
def test_values_are_compared_by_ratio_or_difference(
    part: dict[str, Any], relation: str, ours: tuple[float, ...], holds: bool, miss: float
) -> None:
    tested = compared(runs_with(RTTS, LOADS), **part)
    assert (tested.relation, tested.holds, tested.ours.n) == (relation, holds, 2)
    assert f" {tested.ours.unit}" in relation
    assert (tested.ours.value, tested.ours.low, tested.ours.high) == pytest.approx(ours)
    assert max(tested.excess, 0) == pytest.approx(miss)
    kind = "ratio" if tested.ours.unit == "×" else "difference"
    words = {"ratio": "Fieller", "difference": "Welch"}
    assert f"{kind} of means" in tested.ours.method
    assert words[kind] in tested.ours.method


def test_a_bound_is_the_factor_times_a_number_plus_the_margin() -> None:
    runs = runs_with([11, 11])
    tested = compared(runs, right=2, factor=5, margin=1)
    assert (tested.relation, tested.target) == ("≥ 11 ms", 11)
    assert (tested.holds, tested.certain) == (True, True)
    assert not compared(runs, right=2, factor=5, margin=1.001).holds
    assert compared(runs, right=2, factor=5, margin=1, relation="below").holds


@pytest.mark.parametrize(
    ("left", "right", "value", "words"),
    [
        ([0.5, 0.5], [0, 0], INF, "ratio, no interval"),
        ([0, 0], [0, 0], 1.0, "ratio, no interval"),
        ([10], [4, 6], 2.0, "ratio, no interval"),
        (
            [INF, 1],
            [INF, 1],
            None,
            f"{NEVER}; {NEVER}",
        ),
        ([INF, 1], [4, 6], INF, NEVER),
        ([4, 6], [INF, 1], 0.0, NEVER),
        ([1, 2], [], None, "no value on one side"),
    ],
)
def test_a_ratio_may_lack_an_interval_or_a_value(
    left: list[float], right: list[float], value: float | None, words: str
) -> None:
    ours = compared(runs_with(left, right), right=LOAD).ours
    assert (ours.value, ours.low, ours.high, ours.method) == (value, None, None, words)
    assert (ours.n, ours.unit) == (min(len(left), len(right)), "×")


def test_resamples_without_a_ratio_are_left_out() -> None:
    left, right = (side.model_copy(update={"summary": "median"}) for side in (RTT, LOAD))
    ours = compared(runs_with([10, 12], [0, 5]), left=left, right=right).ours
    assert ours.method == "ratio, expanded percentile bootstrap 95 % interval"
    assert (ours.value, ours.low, ours.high) == pytest.approx((4.4, 10 / 5, 12 / 2.5))


def test_failed_runs_allow_no_verdict() -> None:
    runs = runs_with([10, 12], [4, 6], failed="2 of 3 runs")
    for right in (LOAD, 2.0):
        tested = compared(runs, right=right)
        assert (tested.holds, tested.certain, tested.verdict) == (None, False, None)
        assert tested.ours.incomplete == "2 of 3 runs"
    difference = compared(runs, right=LOAD, margin=1)
    assert (difference.holds, difference.ours.incomplete) == (None, "2 of 3 runs")


def test_an_order_compares_neighbours() -> None:
    part = ClaimPart(relation="order", order=(RTT, LOAD, RTT))
    tested = _claim(runs_with([10, 12], [4, 6]), Claim(id="a", text="", parts=(part,))).parts
    assert [one.relation for one in tested] == ["≥ 1 ×", "≥ 1 ×"]
    assert [one.holds for one in tested] == [True, False]


@pytest.mark.parametrize(
    ("bounds", "holds", "decides"),
    [
        ([1.0], True, 0),
        ([1.0, 2.0], True, 0),
        ([1.0, 3.0], False, 1),
        ([1.0, None], None, 1),
        ([None, 3.0], False, 1),
    ],
)
def test_a_claim_holds_if_all_of_its_parts_do(
    bounds: list[float | None], holds: bool | None, decides: int
) -> None:
    """The RTT is 2 ms; no run has a throughput."""
    parts = tuple(
        ClaimPart(left=RTT if bound else LOAD, relation="above", right=bound or 1.0)
        for bound in bounds
    )
    row = _claim(runs_with([2, 2]), Claim(id="a", text="It is so", parts=parts, finding="Why"))
    assert (row.id, row.text, row.finding, row.holds) == ("a", "It is so", "Why", holds)
    assert row.decisive is row.parts[decides]


@pytest.mark.parametrize(
    ("sample", "published", "holds"),
    [
        # The t interval of 9 and 11 is 10 ± 12.7, without negative RTTs.
        ([9.0, 11.0], 22.7, True),
        ([9.0, 11.0], 22.8, False),
        ([9.0, 11.0], 0.0, True),
        ([9.0, 11.0], -0.1, False),
        # Without an interval, within the tolerance of 5 % of the published number.
        ([10.0], 10.5, True),
        ([10.5], 10.0, True),
        ([10.6], 10.0, False),
        ([9.4], 10.0, False),
        ([], 10.0, None),
        ([10.0], None, None),
    ],
)
def test_a_number_agrees_within_the_interval_or_the_tolerance(
    sample: list[float], published: float | None, holds: bool | None
) -> None:
    number = Number(id="n", text="RTT of {x}", measure="rtt", measured_by="x", finding="Why")
    row = _number(runs_with(sample), number, number, "reno", published)
    assert (row.id, row.text, row.ours.unit, row.finding) == ("n.reno", "RTT of reno", "ms", "Why")
    assert (row.published, row.holds) == (published, holds)
    assert row.ours == value_estimate(runs_with(sample), number)
    failed = _number(runs_with(sample, failed="2 of 3 runs"), number, number, "", published)
    assert (failed.id, failed.holds) == ("n", None)


@pytest.mark.parametrize(
    ("published", "holds"),
    [
        # Ours is p = 0.0213. Bonferroni's level is 0.05, 0.025 and 0.0167 for 1, 2 and 3 numbers.
        (0.04, True),
        (0.06, False),
        ({"a": 0.02, "b": 0.5}, True),
        ({"a": 0.025, "b": 0.5}, True),
        ({"a": 0.03, "b": 0.5}, False),
        ({"a": 0.02, "b": 0.5, "c": 0.5}, True),
        ({"a": 0.01, "b": 0.5, "c": 0.5}, False),
        (None, None),
    ],
)
def test_p_values_agree_on_significance(published: Any, holds: bool | None) -> None:
    number = Number(
        id="n", text="p of {x}", measure="rtt", statistic="p", against={"x": "other"},
        measured_by="x" if isinstance(published, dict) else None, published=published,
    )  # fmt: skip
    samples = {"other": [4.0, 5.0, 6.0], "constant": [1.0, 1.0]}
    runs: Any = SimpleNamespace(
        per_run=lambda value: samples.get(value.where.get("x"), [1.0, 2.0, 3.0]),
        incomplete=lambda *_: "",
        study=SimpleNamespace(file=SimpleNamespace(tolerance=0.05)),
    )
    wanted = published["a"] if isinstance(published, dict) else published
    row = _number(runs, number, number, "a", wanted)
    assert row.ours.value == pytest.approx(0.0213, abs=5e-5)
    assert row.holds is holds
    constant = number.model_copy(update={"where": {"x": "constant"}, "against": {"x": "constant"}})
    assert _number(runs, constant, constant, "a", 0.04).holds is None


def test_the_ends_of_an_interval_are_inside() -> None:
    number = Number(id="n", text="RTT", measure="rtt")
    runs = runs_with([9.0, 11.0])
    end = value_estimate(runs, number).high
    assert end is not None
    assert _number(runs, number, number, "", end).holds is True


def ranked(*rows: tuple[str, float, float | None], failed: str = "") -> Any:
    """Rank labels by published value and ours, which has an interval of ± 1."""
    table = {label: published for label, published, _ in rows}
    number = Number(
        id="n",
        text="RTT of {x}",
        measure="rtt",
        measured_by="x",
        published=table,
        ranking=True,
        finding="Why",
    )
    compared = []
    for label, value, our in rows:
        ends = (None, None) if our is None else (our - 1, our + 1)
        ours = Estimate(our, *ends, 5, "ms", "", failed)
        expected = expect_between(ours, value, 0.0, 0.0, "")
        compared.append(NumberRow(f"n.{label}", "", ours, expected, None, ""))
    return _ranking(number, compared)


def test_an_order_agrees_unless_two_intervals_contradict_it() -> None:
    same = ranked(("b", 2, 20), ("a", 3, 30), ("c", 1, 10))
    assert (same.published, same.ours, same.holds) == (("a", "b", "c"), ("a", "b", "c"), True)
    assert (same.id, same.text, same.finding) == ("n", "RTT of …", "Why")
    near = ranked(("a", 3, 10), ("b", 2, 11), ("c", 1, 5))
    assert (near.ours, near.holds) == (("b", "a", "c"), True)
    assert ranked(("a", 3, 10), ("b", 2, 13)).holds is False
    # The first and the last label contradict the published order, not two neighbours.
    assert ranked(("a", 3, 10), ("b", 2, 11.5), ("c", 1, 13)).holds is False
    assert ranked(("a", 3, 10), ("b", 3, 20)).holds is True, "equal in the paper"
    assert ranked(("a", 3, 10), ("b", 2, None)).holds is None
    absent = ranked(("a", 3, None), ("b", 2, 0.5))
    assert (absent.ours, absent.holds) == (("b", "a"), None), "an absent value is the last"
    assert ranked(("a", 3, 20), ("b", 2, 10), failed="2 of 3 runs").holds is None


def test_values_that_are_printed_equal_have_no_order() -> None:
    tied = ranked(("a", 3, 10), ("b", 3, 10.01), ("c", 1, 5))
    assert (tied.published_text, tied.ours_text) == ("a = b > c", "b = a > c")
    absent = ranked(("a", 3, None), ("b", 2, None))
    assert absent.ours_text == "a > b"


@pytest.mark.parametrize(
    ("summary", "value", "interval"),
    [
        ("mean", 4, (0, 4 + 4.302653 * 19**0.5 / 3**0.5)),
        ("median", 2, (1, 9)),
        ("min", 1, (1, 9)),
        ("max", 9, (1, 9)),
        ("sd", 19**0.5, (0, (64 * 2 / 3 / 2) ** 0.5)),
    ],
)
def test_runs_are_summarised_as_requested(summary: Any, value: float, interval: Any) -> None:
    """Samples of three runs: 1, 2 and 9 ms. An RTT is not negative."""
    found = value_estimate(runs_with([1, 2, 9]), RTT.model_copy(update={"summary": summary}))
    assert (found.value, found.low, found.high) == pytest.approx((value, *interval), rel=1e-5)
    assert (found.n, found.unit) == (3, "ms")


def test_the_same_runs_have_the_same_interval() -> None:
    runs = runs_with([1, 2, 4, 8, 16, 32, 64], [3, 5, 7, 11, 13, 17, 19])
    spread = RTT.model_copy(update={"summary": "sd"})
    assert value_estimate(runs, spread) == value_estimate(runs, spread)
    assert compared(runs, right=LOAD) == compared(runs, right=LOAD)


def test_a_value_may_be_infinite_or_absent() -> None:
    never = value_estimate(runs_with([1, INF]), RTT)
    assert (never.value, never.low, never.n, never.never) == (INF, None, 2, True)
    assert estimate_text(never, unit=True, runs=True) == NEVER
    spread = value_estimate(runs_with([1, 2, INF]), RTT.model_copy(update={"summary": "sd"}))
    assert (spread.value, spread.method) == (None, "1 of 3 runs never had a finite value")
    median = RTT.model_copy(update={"summary": "median"})
    assert value_estimate(runs_with([1, 2, INF]), median).value == 2
    assert value_estimate(runs_with([]), median).value is None
    assert value_estimate(runs_with([5]), median).low is None
    assert value_estimate(runs_with([5]), RTT.model_copy(update={"summary": "sd"})).value is None


@pytest.mark.parametrize(
    ("changes", "unit"), [({"summary": "share"}, "% of runs"), ({"bins_above": 5.0}, "%")]
)
def test_shares_are_between_0_and_100(changes: dict[str, Any], unit: str) -> None:
    found = value_estimate(runs_with([0, 50, 100]), RTT.model_copy(update=changes))
    assert (found.value, found.low, found.high, found.unit) == (50, 0, 100, unit)


@pytest.mark.parametrize(("n", "end"), [(3, 4.302653), (10, 2.262157), (1_000_000, 1.959966)])
def test_a_bootstrap_interval_is_as_wide_as_one_with_students_quantile(n: int, end: float) -> None:
    low, high = _interval(np.linspace(0, 1000, 1001), n)
    tail = 1000 * scipy.stats.norm.cdf(-end * (n / (n - 1)) ** 0.5)
    assert (low, high) == pytest.approx((tail, 1000 - tail), abs=1e-3)


def test_values_of_the_same_runs_are_compared_run_by_run() -> None:
    """If one flow gets more, its competitor gets less: the ratio varies more than with chance."""
    up, down = [10.0, 12.0, 14.0], [6.0, 5.0, 4.0]
    apart, paired = (
        compared(runs_with(up, down, paired=same), right=LOAD).ours for same in (False, True)
    )
    assert apart.value == paired.value == 2.4
    assert apart.high is not None
    assert paired.high is not None
    # 12 − 5 r is not significant if it is within 4.3 standard errors of (2 + r) / √3.
    assert paired.high == pytest.approx((12 + 4.302653 * 2 / 3**0.5) / (5 - 4.302653 / 3**0.5))
    assert paired.high > apart.high
    assert not compared(runs_with(up, down, paired=True), right=LOAD, factor=1.5).certain
    assert compared(runs_with(up, down, paired=True), right=LOAD, factor=0.9).verdict == "holds"
    margin = compared(runs_with(up, down, paired=True), right=LOAD, margin=1).ours
    ends = scipy.stats.ttest_rel(up, down).confidence_interval(0.95)
    assert (margin.low, margin.high) == pytest.approx((ends.low, ends.high))
