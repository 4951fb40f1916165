"""Repeats until an interval is narrow: where, how many, and the same ones every time."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jostle
import pytest
from jostle.errors import InputError
from jostle.results.measure_samples import MeasureSample, samples
from jostle.results.measures import measure
from jostle.runner import adaptive_repeats
from jostle.runner.adaptive_repeats import check, more_repeats
from jostle.scenario import ScenarioError
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.stopping_rule import parse_until

SCENARIO = {
    "duration": "3 s",
    "repeat_until": "goodput of second ± 2 %",
    "max_repeats": 30,
    "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "flows": [
        {"name": "first", "controller": "reno", "rtt": "30 ms"},
        {"name": "second", "controller": "cubic", "rtt": "30 ms", "start_jitter": "500 ms"},
    ],
    "grid": {"flows.second.start_jitter": ["0 s", "4 ms", "1 s"]},
}


@pytest.fixture
def scenario() -> jostle.Scenario:
    return jostle.Scenario.from_dict(SCENARIO)


def counts(results: jostle.ResultSet) -> list[int]:
    return [len(results.runs_of(at)) for at in range(len(results.conditions))]


@pytest.fixture
def results(scenario: jostle.Scenario) -> jostle.ResultSet:
    return jostle.run(scenario, store=False)


def test_runs_are_where_they_are_needed(results: jostle.ResultSet) -> None:
    made = counts(results)
    assert made[0] == 5, "nothing is random there"
    assert made[2] == 30, "a second of jitter in three cannot be averaged out so soon"
    assert any("1 condition is still wider" in note for note in results.notes)
    found = [s.estimate() for s in samples(results, "goodput", ["overall"])
             if s.place["flow"] == "second"]  # fmt: skip
    for one in found[:2]:
        assert one.value is not None
        assert one.high is not None
        assert one.high - one.value <= 0.02 * one.value
    assert [r.seed for r in results.runs_of(1)] == list(range(1, made[1] + 1))


def test_runs_are_the_same_whatever_carries_them_out(
    scenario: jostle.Scenario, results: jostle.ResultSet, tmp_path: Path
) -> None:
    # What was cut off earlier had some of the runs.
    jostle.run(scenario, store=tmp_path, repeats=7)
    for jobs in (1, 2):
        again = jostle.run(scenario, store=tmp_path, jobs=jobs)
        assert again.to_dict() == results.to_dict()
    plans = list((tmp_path / ".plans").iterdir())
    assert len(plans) == 2, "that of seven repeats, and that of all runs in the end"


def test_a_number_of_repeats_is_that_number(scenario: jostle.Scenario) -> None:
    assert counts(jostle.run(scenario, store=False, repeats=2)) == [2, 2, 2]


def test_the_next_number_is_what_the_deviation_asks_for(
    scenario: jostle.Scenario,
) -> None:
    plan = scenario.plan()
    assert [plan.repeats_of(at) for at in range(3)] == [5, 5, 5]
    first = jostle.run(scenario, store=False, repeats=5)
    more = more_repeats(plan, first)
    assert 0 not in more
    assert more[2] == 10, "twice as many at most"
    longer = plan.repeated(more)
    assert len(longer.runs) == 5 + more.get(1, 5) + 10
    assert [run.seed for run in longer.runs][-10:] == list(range(1, 11))
    assert [run.condition for run in longer.first_run_of_each_condition()] == [0, 1, 2]
    left = longer.without({0})
    assert [left.repeats_of(at) for at in range(2)] == [more.get(1, 5), 10]
    assert left.repeat_until == plan.repeat_until


def wide(half: float) -> MeasureSample:
    """Return five values around 100 Mbit/s whose 95 % interval is ± `half` Mbit/s."""
    away = half * 10**0.5 / 2.7764451051977987  # Student's t of 4 degrees of freedom.
    values = tuple(1e6 * (100 + shift) for shift in (-away, away, 0.0, 0.0, 0.0))
    place = {"flow": "second", "phase": "overall"}
    flows = tuple((value,) for value in values)
    return MeasureSample(measure("goodput"), 0, place, (1, 2, 3, 4, 5), values, flows)


@pytest.mark.parametrize(
    ("half", "runs"), [(1.0, None), (1.99, None), (2.01, 6), (2.4, 8), (3.9, 10), (40.0, 10)]
)
@pytest.mark.parametrize("rule", ["goodput of second ± 2 %", "goodput of second ± 2 Mbit/s"])
def test_an_interval_stops_when_half_of_it_is_within_the_bound_and_not_before(
    rule: str, half: float, runs: int | None, monkeypatch: pytest.MonkeyPatch,
    scenario: jostle.Scenario,
) -> None:  # fmt: skip
    plan = scenario.set(repeat_until=rule).plan()
    sample = wide(half)
    low, high = sample.estimate().low, sample.estimate().high
    assert low == pytest.approx(1e6 * (100 - half))
    assert high == pytest.approx(1e6 * (100 + half))
    monkeypatch.setattr(adaptive_repeats, "samples", lambda *_: [sample])
    results = SimpleNamespace(
        failures=[], results=[None], labels=[""], conditions=[{}], runs_of=lambda _: [None]
    )
    assert more_repeats(plan, results) == ({} if runs is None else {0: runs})
    assert bool(adaptive_repeats.unsettled(plan, results)) is (runs is not None)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("goodput ± 2 %", ("goodput", "", "", 0.02, "percent")),
        ("rtt of a b in late one +- 1 ms", ("rtt", "a b", "late one", 1e6, "time")),
        ("share in steady ±0.01", ("share", "", "steady", 0.01, "number")),
        ("rtt of a in b ± 1 ms", ("rtt", "a", "b", 1e6, "time")),
        ('rtt of "a in b" ± 1 ms', ("rtt", "a in b", "", 1e6, "time")),
        ('rtt of "a in b" in "late in b" ± 1 ms', ("rtt", "a in b", "late in b", 1e6, "time")),
        ("rtt in late in b ± 1 ms", ("rtt", "", "late in b", 1e6, "time")),
    ],
)
def test_rules(text: str, read: tuple[str, str, str, float, str]) -> None:
    rule = parse_until(text)
    assert (rule.measure, rule.who, rule.phase, rule.half, rule.kind) == read


@pytest.mark.parametrize("text", ["goodput", "goodput ± 0 %", "± 2 %", "rtt ± 2 BDP", 3])
def test_no_rules(text: object) -> None:
    with pytest.raises(QuantityError):
        parse_until(text)


def test_a_name_with_the_word_in_needs_quotes(scenario: jostle.Scenario) -> None:
    with pytest.raises(QuantityError, match="in quotes"):
        parse_until("rtt of a in b in c ± 1 ms")
    flow = scenario.file.flows[0].name
    named = scenario.set(**{f"flows.{flow}.name": "web in town"})
    named.set(repeat_until='rtt of "web in town" ± 1 ms').plan()
    with pytest.raises(ScenarioError, match=r'no phase "town".* in quotes: "web in town"'):
        named.set(repeat_until="rtt of web in town ± 1 ms").plan()


def test_units_have_to_agree(scenario: jostle.Scenario) -> None:
    check(scenario.set(repeat_until="goodput ± 1 kbit/s").plan())
    with pytest.raises(InputError, match="`goodput` is in bit/s"):
        check(scenario.set(repeat_until="goodput ± 1 ms").plan())


def test_a_flow_that_is_not_there_is_named(scenario: jostle.Scenario) -> None:
    with pytest.raises(InputError, match="second"):
        jostle.run(scenario.set(repeat_until="goodput of secnd ± 2 %"), store=False)


def test_a_measure_without_values_is_said(scenario: jostle.Scenario) -> None:
    results = jostle.run(scenario.set(repeat_until="mos of second ± 0.1"), store=False)
    (note,) = results.said
    assert note.endswith('without a value for "mos of second ± 0.1" got no more repeats')


def test_flows_of_one_entry_are_named_together(scenario: jostle.Scenario) -> None:
    many = scenario.set({"flows.second.count": 2})
    check(many.set(repeat_until="goodput of second ± 2 %").plan())
    with pytest.raises(InputError, match="no flow `second-1`; did you mean `second`"):
        check(many.set(repeat_until="goodput of second-1 ± 2 %").plan())
    short = {"flows.second.arrivals": {"rate": "5 /s"}, "flows.second.size": "20 kB"}
    check(scenario.set(short).set(repeat_until="completion_time_p50 of second ± 2 %").plan())
    check(scenario.set(repeat_until="utilisation of bottleneck ± 2 %").plan())


def test_shards_take_whole_conditions(
    scenario: jostle.Scenario, results: jostle.ResultSet, tmp_path: Path
) -> None:
    parts = [jostle.run(scenario, store=tmp_path, shard=f"{i}/2") for i in (1, 2)]
    made = counts(results)
    assert [counts(part) for part in parts] == [[made[0], 0, made[2]], [0, made[1], 0]]
    assert not (tmp_path / ".plans").exists(), "no shard knows how many runs there will be"
    segments = set((tmp_path / "segments").iterdir())
    assert jostle.run(scenario, store=tmp_path).to_dict() == results.to_dict()
    assert set((tmp_path / "segments").iterdir()) == segments, "everything was there"
