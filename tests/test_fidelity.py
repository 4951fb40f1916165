"""The simulator beside the kernel: what is observed, compared, and judged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
from fake_backend import NOTHING, Constant, FakeBackend
from fake_core import spec
from fake_plan import plan_of
from jostle import _core
from jostle.backends import SimBackend
from jostle.fidelity import TOLERANCES, Tolerance, compare, observe, quantities
from jostle.fidelity.comparison import FlowComparison
from jostle.fidelity.document import document
from jostle.fidelity.overlay import overlay_data
from jostle.fidelity.tables import comparison_rows, signed
from jostle.figures import draw
from jostle.results import ResultSet
from jostle.results.measures import measure
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import PlannedRun
from jostle.stats import Estimate, difference, estimate

ENDS = [{"probability": end, "value_ns": 1_000_000} for end in (0.0, 1.0)]

Of = Callable[[Mapping[str, Any], int], Constant]


def results(
    name: str, behaviour: Of, controllers=("cubic",), *, seeds=3, broken=(), link=None
) -> ResultSet:
    backend = FakeBackend(name, behaviour, lambda s: s["seed"] in broken)
    specs = [spec(seed, controllers) for seed in range(1, seeds + 1)]
    for one in specs:
        one["links"][0] |= link or {}
    runs = [PlannedRun(0, one["seed"], one) for one in specs]
    executor = local(1)
    try:
        return Session(backend, executor, None).carry_out(plan_of("A title", [{}], runs))
    finally:
        executor.shutdown()


def compared(ours: Of, theirs: Of, controllers=("cubic",), **options: Any):
    found = compare(
        "a-scenario",
        results("sim", ours, controllers, **options),
        results("kernel", theirs, controllers, **options),
    )
    (cell,) = found.cells
    return cell


def constant(**values: Any) -> Of:
    return lambda _flow, _seed: Constant(**values)


def by_name(**goodputs_mbps: float) -> Of:
    return lambda flow, _seed: Constant(goodput_bps=goodputs_mbps[flow["name"]] * 1e6)


def test_a_run_is_observed_in_its_second_half():
    record = FakeBackend("sim", constant(retransmitted=7)).run(spec(1, ("cubic", "bbr")))
    seen = observe(record)
    assert list(seen) == ["incumbent", "newcomer"]
    assert seen["incumbent"].goodput == pytest.approx(10e6)
    assert seen["incumbent"].share == pytest.approx(0.5)
    assert seen["incumbent"].srtt == pytest.approx(0.05)
    assert seen["incumbent"].retransmitted == 7


def test_an_interval_counts_for_the_part_of_it_that_lies_in_the_second_half():
    """10 s in bins that end at 4, 6, 9 and 10 s: of the one from 4 to 6 s a half."""
    record = FakeBackend("sim").run(spec(1, ("cubic",)))
    flows = pl.DataFrame(
        {
            "time_s": [4.0, 6.0, 9.0, 10.0],
            "flow": ["incumbent"] * 4,
            **{name: [value] * 4 for name, value in NOTHING.items()},
            "throughput_bps": [1e6] * 4,
            "goodput_bps": [99e6, 9e6, 1e6, 5e6],
            "srtt_s": [9.0, 0.1, None, 0.3],
            "retransmitted_packets": [1, 2, 3, 0],
        }
    )
    links = record.links.clear()
    tables = {**record.tables, "flows": flows, "links": links}
    seen = observe(dataclasses.replace(record, tables=tables))["incumbent"]
    assert seen.goodput == pytest.approx((9e6 + 3e6 + 5e6) / 5)
    assert seen.srtt == pytest.approx(0.2)
    assert (seen.retransmitted, seen.share) == (6.0, 1.0)


def test_what_is_observed_is_what_the_registry_measures():
    """But for the smoothed RTT, which no measure is."""
    made = spec(1, ("cubic", "reno"))
    half_ns = made["duration_ns"] // 2
    made["phases"].append({"name": "late", "from_ns": half_ns, "to_ns": 2 * half_ns})
    record = SimBackend(_core).run(made)
    for name, seen in observe(record).items():
        for quantity in (one for one in quantities() if one.name != "srtt"):
            phase = "overall" if quantity.name == "retransmitted" else "late"
            expected = measure(quantity.name).of_summary(record.summary, phase, name)
            assert getattr(seen, quantity.name) == pytest.approx(expected), quantity


def test_a_run_in_which_nobody_gets_anything():
    seen = observe(FakeBackend("sim", constant(goodput_bps=0.0, srtt_s=None)).run(spec()))
    assert [(one.goodput, one.share, one.srtt) for one in seen.values()] == [(0.0, None, None)] * 2


@pytest.mark.parametrize(
    ("quantity", "value", "within"),
    [
        ("goodput_bps", 10.19e6, True),
        ("goodput_bps", 9.79e6, False),
        ("srtt_s", 0.0524, True),
        ("srtt_s", 0.0526, False),
        ("retransmitted", 130, True),
        ("retransmitted", 69, False),
        ("srtt_s", None, False),
    ],
)
def test_a_flow_alone_is_judged_by_three_quantities(quantity: str, value: Any, within: bool):
    cell = compared(constant(**{quantity: value}), constant())
    assert cell.kind == "solo"
    assert cell.within is within
    outside = [m.quantity.name for _, m in cell.judged if not m.within]
    assert outside == ([] if within else [quantity.removesuffix("_bps").removesuffix("_s")])
    assert (cell.excess <= 1) is within


def test_many_retransmissions_are_judged_by_their_proportion():
    near = compared(constant(retransmitted=1240), constant(retransmitted=1000))
    far = compared(constant(retransmitted=1260), constant(retransmitted=1000))
    assert (near.within, far.within) == (True, False)
    assert far.excess == pytest.approx(260 / 250)


def test_flows_that_share_are_judged_by_their_share_alone():
    pair = ("cubic", "bbr")
    near = compared(by_name(incumbent=54.9, newcomer=45.1), by_name(incumbent=5, newcomer=5), pair)
    far = compared(by_name(incumbent=55.1, newcomer=44.9), by_name(incumbent=5, newcomer=5), pair)
    assert (near.kind, near.within, far.within) == ("shared", True, False)
    assert far.excess == pytest.approx(0.051 / 0.05)
    assert [m.quantity.name for _, m in far.judged] == ["share", "share"]
    assert far.controllers == pair


def test_a_share_inside_the_interval_of_the_kernel_is_within():
    """Shares of 20, 50 and 80 %: the 95 % interval reaches 74.5 points to either side."""

    def wild(flow: Mapping[str, Any], seed: int) -> Constant:
        mine = 0.2 + 0.3 * (seed - 1)
        return Constant(goodput_bps=1e7 * (mine if flow["name"] == "incumbent" else 1 - mine))

    cell = compared(by_name(incumbent=9, newcomer=1), wild, ("cubic", "bbr"))
    assert cell.within
    assert cell.excess == pytest.approx(40 / 74.5, rel=1e-3)
    # The other way round it is not: a simulator does not excuse itself by its own spread.
    assert not compared(wild, by_name(incumbent=9, newcomer=1), ("cubic", "bbr")).within


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ({}, "solo"),
        ({"loss": {"kind": "independent", "parameters": {"probability": 0.01}}}, "lossy"),
        ({"outages": {"mean_interval_ns": 10**9, "durations": ENDS}}, "lossy"),
        ({"loss_steps": [{"at_ns": 0, "probability": 0.01}]}, "lossy"),
    ],
)
def test_where_packets_are_lost_at_random_the_same_seeds_are_compared(
    link: dict[str, Any], kind: str
):
    """With seeds 1, 2, 3 a run has 9, 10, 11 Mbit/s; the kernel has only run with 1 and 2."""

    def wild(_flow: Mapping[str, Any], seed: int) -> Constant:
        return Constant(goodput_bps=8e6 + seed * 1e6)

    kernel = results("kernel", wild, link=link, seeds=2)
    (cell,) = compare("a-scenario", results("sim", wild, link=link), kernel).cells
    assert cell.kind == kind
    paired = kind == "lossy"
    assert cell.runs == ((2, 2) if paired else (3, 2))
    assert cell.flows[0].of("goodput").simulator.value == pytest.approx(9.5e6 if paired else 10e6)
    assert cell.within == paired


def test_a_cell_with_a_run_that_failed_is_not_judged_on_the_others():
    link = {"loss": {"kind": "independent", "parameters": {"probability": 0.01}}}

    def wild(_flow: Mapping[str, Any], seed: int) -> Constant:
        return Constant(goodput_bps=8e6 + seed * 1e6)

    simulator = results("sim", wild, link=link, broken=(3,))
    (cell,) = compare("a-scenario", simulator, results("kernel", wild, link=link)).cells
    assert (cell.compared, cell.within, cell.runs) == (False, False, (2, 3))
    assert cell.incomplete == "simulator: 2 of 3 runs, 1 failed: the sim is out of order"


def test_a_tolerance_without_numbers_allows_nothing():
    exact = Tolerance("goodput", "the same")
    same, other = estimate([1.0], "1"), estimate([1.1], "1")
    assert exact.expected(same, same).used_margin == 0.0
    assert exact.expected(other, same).used_margin == math.inf


def test_a_flow_that_gets_nothing_from_the_kernel():
    found = compare(
        "a-scenario", results("sim", constant()), results("kernel", constant(goodput_bps=0.0))
    )
    assert not found.cells[0].within
    flow = document([found])["scenarios"][0]["conditions"][0]["flows"][0]
    assert flow["measures"]["goodput"]["excess"] is None
    assert flow["measures"]["goodput"]["within"] is False


def test_a_difference_of_zeros_is_none():
    cell = compared(constant(retransmitted=0), constant(retransmitted=0))
    measure = cell.flows[0].of("retransmitted")
    assert (measure.excess, measure.relative, measure.resolved) == (0.0, None, False)


def test_difference_by_hand():
    """Welch's interval of 1, 2, 3 less 4, 8: variances of the means 1/3 and 4."""
    found = difference([1, 2, 3], [4, 8], "s")
    freedom = (1 / 3 + 4) ** 2 / ((1 / 3) ** 2 / 2 + 4**2 / 1)
    from scipy.stats import t

    half = t.ppf(0.975, freedom) * math.sqrt(1 / 3 + 4)
    assert found.value == -4.0
    assert (found.high - found.low) / 2 == pytest.approx(half)
    assert (found.n, found.unit) == (2, "s")


def test_differences_of_few_runs():
    assert difference([1.0], [], "s") == Estimate(None, None, None, 0, "s", "no value on one side")
    assert difference([1.0], [3.0, 4.0], "s").low is None
    assert difference([None, math.nan, 2.0, 2.0], [1.0, 1.0], "s").low == 1.0


def test_whether_a_difference_is_more_than_chance():
    def noisy(offset_bps: float) -> Of:
        return lambda _flow, seed: Constant(goodput_bps=offset_bps + 1e6 * (seed % 2))

    near = compared(noisy(10.2e6), noisy(10e6), seeds=4).flows[0].of("goodput")
    far = compared(noisy(20e6), noisy(10e6), seeds=4).flows[0].of("goodput")
    assert (near.resolved, far.resolved) == (False, True)
    assert compared(noisy(9e6), noisy(1e6), seeds=1).flows[0].of("goodput").resolved is None


def test_a_side_without_runs_is_not_within():
    found = compare(
        "a-scenario",
        results("sim", constant()),
        results("kernel", constant(), broken=(1, 2, 3)),
    )
    (cell,) = found.cells
    assert (cell.compared, cell.within, cell.runs) == (False, False, (3, 0))
    assert cell.excess == math.inf
    assert [side for side, _ in found.failures] == ["kernel"] * 3
    failed = "kernel: 0 of 3 runs, 3 failed: the kernel is out of order"
    assert comparison_rows(found).rows == ((failed, *[""] * 6),)
    assert document([found])["cells"] == {"within": 0, "total": 1}


def test_different_plans_are_not_compared():
    other = ResultSet("A title", "kernel", "1", conditions=[{}, {}], results=[])
    with pytest.raises(ValueError, match="different conditions"):
        compare("a-scenario", results("sim", constant()), other)


def test_document():
    found = compare(
        "a-scenario",
        results("sim", constant(goodput_bps=10.5e6), seeds=2),
        results("kernel", constant(), seeds=3),
    )
    whole = document([found])
    assert whole["schema"] == "jostle.fidelity/2"
    assert whole["tolerances"]["solo"]["goodput"] == {
        "relative": 0.02, "absolute": None, "or_inside_interval": False,
    }  # fmt: skip
    assert whole["cells"] == {"within": 0, "total": 1}
    (scenario,) = whole["scenarios"]
    assert (scenario["scenario"], scenario["title"]) == ("a-scenario", "A title")
    assert scenario["versions"] == {"simulator": "fake-1", "kernel": "fake-1"}
    (condition,) = scenario["conditions"]
    assert condition["runs"] == {"simulator": 2, "kernel": 3}
    (flow,) = condition["flows"]
    assert list(flow["measures"]) == ["goodput", "share", "srtt", "retransmitted"]
    goodput = flow["measures"]["goodput"]
    assert goodput["simulator"] == {"value": 10.5e6, "low": 10.5e6, "high": 10.5e6, "n": 2}
    assert goodput["difference"]["value"] == pytest.approx(0.5e6)
    assert goodput["difference"]["relative"] == pytest.approx(0.05)
    assert goodput["excess"] == pytest.approx(2.5)
    assert (goodput["within"], flow["measures"]["share"]["within"]) == (False, None)


def test_table_of_a_flow_alone():
    found = compare(
        "a-scenario",
        results("sim", constant(goodput_bps=10.5e6, retransmitted=110)),
        results("kernel", lambda _flow, seed: Constant(srtt_s=0.05 + 0.0001 * (seed - 2))),
    )
    table = comparison_rows(found)
    assert table.header[: table.text_columns] == ("flow", "controller", "quantity")
    assert [row[2:] for row in table.rows] == [
        ("goodput (Mbit/s)", "10.50", "10.00", "+5.0 %", "OUTSIDE"),
        ("SRTT (ms)", "50.0", "50.0 ± 0.2", "0.0 %", "within"),
        ("retransmitted packets (packets)", "110", "100", "+10 (+10.0 %)", "within"),
    ]


def test_table_of_a_pair():
    pair = ("cubic", "bbr")
    found = compare(
        "a-scenario",
        results("sim", by_name(incumbent=6, newcomer=4), pair),
        results("kernel", by_name(incumbent=5, newcomer=5), pair),
    )
    rows = {row[2]: row[3:] for row in comparison_rows(found).rows if row}
    assert len(comparison_rows(found).rows) == 8
    assert rows["share (%)"] == ("40.0", "50.0", "−10.0 points", "OUTSIDE")
    assert rows["goodput (Mbit/s)"][-1] == "not judged"


@pytest.mark.parametrize(("value", "text"), [(-0.04, "0.0"), (0.05001, "+0.1"), (-2, "−2.0")])
def test_signs(value: float, text: str):
    assert signed(value, 1) == text


def test_overlay_has_a_line_per_flow_and_side():
    pair = ("cubic", "bbr")
    ours = results("sim", by_name(incumbent=6, newcomer=4), pair)
    theirs = results("kernel", by_name(incumbent=5, newcomer=5), pair)
    data = overlay_data(ours, theirs, 0)
    assert [(p.quantity, p.unit) for p in data.panels] == [
        ("Throughput", "Mbit/s"), ("SRTT", "ms"), ("cwnd", "MB"),
    ]  # fmt: skip
    lines = data.panels[0].lines
    assert [line.label for line in lines] == [
        "incumbent (cubic), simulator", "incumbent (cubic), kernel",
        "newcomer (bbr), simulator", "newcomer (bbr), kernel",
    ]  # fmt: skip
    assert [line.style for line in lines] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [line.mean[-1] for line in lines] == pytest.approx([6, 5, 4, 5])
    assert np.isnan(data.panels[1].lines[0].mean[0])
    # Of few runs, an interval would be wider than the figure.
    assert data.caption.endswith("Band: from the smallest to the largest run.")
    for line in lines:
        assert line.extremes
        assert (line.low[-1], line.high[-1]) == pytest.approx((line.mean[-1], line.mean[-1]))
    drawn = draw.stacked(data).axes[0].get_lines()
    assert len({line.get_color() for line in drawn}) == 2
    assert drawn[0].get_linestyle() == drawn[2].get_linestyle() != drawn[1].get_linestyle()


def test_overlay_of_many_flows_has_a_colour_per_flow():
    four = ("cubic", "bbr", "reno", "hybla")
    data = overlay_data(results("sim", constant(), four), results("kernel", constant(), four), 0)
    drawn = draw.stacked(data).axes[0].get_lines()
    assert [line.get_color() for line in drawn[::2]] == [line.get_color() for line in drawn[1::2]]
    assert len({line.get_color() for line in drawn}) == 4


def test_every_judged_quantity_is_observed():
    record = FakeBackend("sim").run(spec())
    seen = observe(record)["incumbent"]
    judged = {tolerance.quantity for each in TOLERANCES.values() for tolerance in each}
    assert judged <= set(vars(seen))


def test_flows_over_quic_are_told_from_those_of_tcp():
    flows = tuple(FlowComparison(name, "cubic", name, ()) for name in ("tcp", "quic"))
    cell = dataclasses.replace(compared(constant(), constant()), flows=flows)
    assert cell.controllers == ("cubic", "cubic over QUIC")
