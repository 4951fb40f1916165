"""Every measure has one value, by whichever way it is asked for."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from fake_core import MS, SECOND, spec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jostle import _core
from jostle.backends import RunRecord, SimBackend, canonical_json
from jostle.results import ResultSet
from jostle.results.finished_runs import ConditionRun
from jostle.results.measures import Measure, measures
from jostle.results.number_format import plain
from jostle.results.series_query import COUNTS, columns
from jostle.results.tables import View, phase_tables
from jostle.stats import estimate
from jostle.studies.models import Window
from jostle.studies.time_windows import RunView

DURATION_S = 6
MEASURES = list(measures().values())

controllers = st.sampled_from(("cubic", "reno", "bbr", "hybla", "none"))
moments = st.integers(0, DURATION_S * 10).map(lambda tenths: tenths * SECOND // 10)


@st.composite
def specs(draw) -> dict[str, Any]:
    """Runs with what once made two numbers of a name: late flows, pings, stops, still links."""
    names = draw(st.lists(controllers, min_size=1, max_size=4))
    made = spec(draw(st.integers(1, 99)), tuple(names), DURATION_S)
    made["interval_ns"] = draw(st.sampled_from((100 * MS, 500 * MS)))
    bounds = sorted(draw(st.lists(moments, min_size=2, max_size=2, unique=True)))
    made["phases"] = [
        {"name": "overall", "from_ns": 0, "to_ns": DURATION_S * SECOND},
        {"name": "part", "from_ns": bounds[0], "to_ns": bounds[1]},
    ]
    for number, flow in enumerate(made["flows"]):
        flow["start_ns"] = min(draw(moments), DURATION_S * SECOND - 1)
        is_pings = flow["transport"] == "udp"
        if draw(st.booleans()) and not is_pings:
            flow["source"] = {"kind": "fixed", "bytes": draw(st.integers(1, 3_000_000))}
        elif draw(st.booleans()) and not is_pings:
            flow["source"] = {
                "kind": "request_response",
                "bytes": draw(st.integers(1, 100_000)),
                "think_ns": draw(st.integers(0, 5)) * 100 * MS,
                "count": draw(st.sampled_from((None, 3))),
            }
        if draw(st.booleans()):
            flow["group"] = "together"
        ending = [at for at in range(number) if made["flows"][at]["source"]["kind"] == "fixed"]
        if ending and draw(st.booleans()):
            flow |= {"after": draw(st.sampled_from(ending)), "start_ns": draw(moments) // 10}
        elif draw(st.booleans()):
            flow["stop_ns"] = flow["start_ns"] + draw(moments) + SECOND
    link = made["links"][0]
    if draw(st.booleans()):
        still = draw(moments)
        steps = [(0, 10_000_000), (still, 0), (still + SECOND, 5_000_000)]
        link["capacity"] = {
            "kind": "steps",
            "steps": [{"at_ns": at, "rate_bps": rate} for at, rate in dict(steps).items()],
        }
    if draw(st.booleans()):
        ends = [{"probability": p, "value_ns": 300 * MS} for p in (0.0, 1.0)]
        link["outages"] = {"mean_interval_ns": 2 * SECOND, "durations": ends}
    return made


def whose(measure: Measure, record: RunRecord) -> list[str]:
    if measure.scope == "run":
        return [""]
    return [entry["name"] for entry in record.summary[f"{measure.scope}s"]]


def by_name(frame: pl.DataFrame, scope: str) -> dict[str, dict[str, Any]]:
    """Rows of a phase by the names of those whose they are; of a run there is one."""
    rows = {"" if scope == "run" else row[scope]: row for row in frame.rows(named=True)}
    assert len(rows) == frame.height
    return rows


@settings(max_examples=40, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(specs())
@pytest.mark.slow
def test_every_measure_has_one_value(made: dict[str, Any]) -> None:
    record = SimBackend(_core).run(made)
    results = ResultSet(
        "", "sim", "1", conditions=[{}], results=[ConditionRun(0, made["seed"], record)]
    )
    view = RunView(record)
    frames = {
        "fairness": ("run", results.fairness),
        "totals": ("run", results.run_totals),
        "flow": ("flow", results.flows),
        "group": ("group", results.groups),
        "link": ("link", results.links),
    }
    for phase in ("overall", "part"):
        span = view.span(phase, None, "")
        rows = {
            place: by_name(frame.filter(phase=phase), scope)
            for place, (scope, frame) in frames.items()
        }
        for measure in MEASURES:
            if measure.elsewhere:
                continue
            estimates = by_name(results.estimate(measure.name, phase), measure.scope)
            place = measure.scope if measure.place == "phases" else measure.place
            for who in whose(measure, record):
                value = measure.of_summary(record.summary, phase, who)
                where = (measure.name, phase, who, made)
                least, most = measure.bounds
                assert value is None or least is None or value >= least - 1e-12, where
                assert value is None or most is None or value <= most + 1e-12, where
                assert estimates[who]["value"] == value, where
                assert rows[place][who][measure.key] == value, where
                read = None if value is None else value * measure.factor
                assert view.value(measure, who, span) == read, where
        _tables_show_it(results, record, phase)


def _tables_show_it(results: ResultSet, record: RunRecord, phase: str) -> None:
    summary = {flow["name"]: flow for part in ("flows", "links") for flow in record.summary[part]}
    shown = [m for m in MEASURES if m.scope in ("flow", "link") and not m.elsewhere]
    for measure in shown:
        for table in phase_tables(results, phase, View((measure.name,), each=True)):
            who = [cell.replace("\n", " ") for cell in table.header].index(measure.scope)
            for row in table.rows:
                value = measure.of_entry(summary[row[who]], phase)
                decimals = len(row[-1].partition(".")[2])
                assert row[-1] == plain(value, measure.factor, decimals)


@settings(max_examples=40, derandomize=True,
          suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
@given(specs())
def test_a_window_between_ends_of_intervals_has_what_a_phase_has(made: dict[str, Any]) -> None:
    """The series is enough for the same number: nobody can tell by it how it was asked for."""
    step_ns = made["interval_ns"]
    part = made["phases"][1]
    part["from_ns"] -= part["from_ns"] % step_ns
    part["to_ns"] += -part["to_ns"] % step_ns
    record = SimBackend(_core).run(made)
    low_s, high_s = part["from_ns"] / 1e9, part["to_ns"] / 1e9
    view = RunView(record)
    for measure in MEASURES:
        if measure.elsewhere or not measure.any_window:
            continue
        for number, who in enumerate(whose(measure, record)):
            value = measure.of_summary(record.summary, "part", who)
            again = view._series.window_measure(measure.name, number, low_s, high_s)
            where = (measure.name, who, made)
            # Sums of rates times lengths are exact but for rounding; counts are whole.
            close = None if value is None else pytest.approx(value, rel=1e-6, abs=1e-3)
            assert again == close, where


OF_DATAGRAMS = {"jitter", "datagram_loss", "mouth_to_ear", "r_factor", "mos"}
"""What no flow with a connection has."""


def test_a_window_that_is_a_phase_is_that_phase() -> None:
    record = SimBackend(_core).run(spec())
    view = RunView(record)
    same = view.span("mine", Window(time=("5 s", "10 s")), "")
    assert same.phase == "steady"
    assert view.span("mine", Window(time=("5 s", "9 s")), "").phase == ""
    for measure in (m for m in MEASURES if m.place == "phases" and m.scope == "flow"):
        value = measure.of_summary(record.summary, "steady", "newcomer")
        if (
            measure.name.startswith(("response", "frame", "late_frames"))
            or measure.name in OF_DATAGRAMS
        ):
            assert value is None
            continue
        assert value is not None
        assert view.value(measure, "newcomer", same) == value * measure.factor


def test_flows_that_wait_have_their_share() -> None:
    """Two of three flows wait for others; the index is of all three."""
    made = spec(1, ("cubic", "cubic", "cubic"), 30, jitter=False)
    first, second, third = made["flows"]
    first["source"] = second["source"] = {"kind": "fixed", "bytes": 5_000_000}
    second["after"], third["after"] = 0, 1
    record = SimBackend(_core).run(made)
    rates = [flow["phases"]["overall"]["throughput_bps"] for flow in record.summary["flows"]]
    assert min(rates) > 0
    jain = sum(rates) ** 2 / (3 * sum(rate**2 for rate in rates))
    assert record.summary["fairness"]["overall"]["jain"] == pytest.approx(jain)
    assert _core.run(canonical_json(made)).summary


def test_flows_that_count_in_jains_index_converge() -> None:
    """The second flow stops before the phase, and the phase begins within a second."""
    made = spec(1, ("cubic", "bbr"), 14, jitter=False)
    made["flows"][1]["stop_ns"] = 6 * SECOND
    ends = (6 * SECOND + SECOND // 2, 14 * SECOND)
    made["phases"] = [made["phases"][0], {"name": "alone", "from_ns": ends[0], "to_ns": ends[1]}]
    record = SimBackend(_core).run(made)
    found = record.summary["fairness"]["alone"]
    assert (found["jain"], found["convergence_time_s"]) == (1.0, 7.0)
    series = RunView(record)._series
    assert series.window_measure("convergence_time", 0, 6.5, 14.0) == 7.0


def test_an_interval_of_negative_ratings_is_not_cut() -> None:
    """ITU-T G.107: R has no lower bound; Annex B gives R < 0 a MOS of 1, and R > 100 one of 4.5."""
    rating = measures()["r_factor"]
    found = estimate([-10.1, -16.5, -9.4], rating.unit, bounds=rating.bounds)
    assert found.low == pytest.approx(-21.7, abs=0.1)
    assert found.high == pytest.approx(-2.3, abs=0.1)
    assert not rating.is_balance
    bounds = {name: one.bounds for name, one in measures().items()}
    assert bounds["mos"] == (1.0, 4.5)
    assert bounds["starvation"] == (1.0, None)
    assert bounds["path_loss"] == bounds["cut_options"] == bounds["rebuffering"] == (0.0, 1.0)
    # A utility or a gradient of a controller can be negative.
    assert bounds["internal"] == (None, None)


def test_what_cannot_be_asked_of_a_series_is_an_error() -> None:
    made = spec(1, ("cubic", "none"), 3)
    run = SimBackend(_core).run(made)
    series = RunView(run)._series
    assert series.window_measure("throughput", 1, 0.0, 3.0) is not None
    assert len(series.bins("utilisation", 0, 0.0, 3.0, 0.5)) == 6
    nan = float("nan")
    for ask, said in [
        (lambda: series.window_measure("throughput", 2, 0.0, 3.0), "position 2 of 2 flows"),
        (lambda: series.window_measure("utilisation", 1, 0.0, 3.0), "position 1 of 1 links"),
        (lambda: series.window_measure("jain", 1, 0.0, 3.0), "position 1 of 1 runs"),
        (lambda: series.window_measure("throughput", 0, nan, 3.0), "no stretch of time"),
        (lambda: series.window_measure("throughput", 0, 3.0, 0.0), "no stretch of time"),
        (lambda: series.bins("throughput", 2, 0.0, 3.0), "position 2 of 2 flows"),
        (lambda: series.span_of_shares(2, 0.0, 1.0), "position 2 of 2 flows"),
        *[
            (lambda bin_s=bin_s: series.bins("throughput", 0, 0.0, 3.0, bin_s), "at most")
            for bin_s in (0.0, -1.0, nan, 1e-300)
        ],
    ]:
        with pytest.raises(ValueError, match=said):
            ask()


def test_columns_of_other_lengths_are_no_series() -> None:
    run = SimBackend(_core).run(spec(1, ("cubic",), 3))
    facts = [{"start_s": 1e300, "completion_time_s": 1e300, "pings": None}]
    text = canonical_json(run.spec)
    flows, links = columns(run.flows, COUNTS), columns(run.links, COUNTS)
    assert _core.Series(text, facts, flows, links).window_measure("jain", 0, 0.0, 3.0) is None
    for table, column in [(flows, "lived_s"), (links, "dropped_overflow"), (links, "time_s")]:
        whole = table[column]
        table[column] = whole[:-1]
        with pytest.raises(ValueError, match="rows"):
            _core.Series(text, facts, flows, links)
        table[column] = whole
