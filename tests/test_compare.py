"""Comparing two sides: differences with intervals and tests, and bounds that end with 1."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_core import spec
from fake_plan import make_plan, plan_of
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.cli.verdict_lines import comparison_verdict
from jostle.errors import InputError
from jostle.results.compare import (
    ComparisonResult,
    Difference,
    between,
    compare,
    comparison_note,
    comparison_table,
)
from jostle.results.fail_condition import FailCondition
from jostle.results.measures import measure
from jostle.scenario import PlannedRun
from jostle.stats import Estimate, holm, welch_test
from scipy import stats

KEY = "flows.newcomer.controller"


@pytest.fixture
def results(carry_out):
    return carry_out(make_plan(4, ("cubic", "bbr")))


def test_welch_is_that_of_scipy():
    random = np.random.default_rng(3)
    a, b = random.normal(1.0, 1.0, 9), random.normal(1.5, 3.0, 5)
    ours, theirs = welch_test(a, b), stats.ttest_ind(a, b, equal_var=False)
    assert ours is not None
    assert (ours.t, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert welch_test([1.0], [2.0, 3.0]) is None
    assert welch_test([1.0, 1.0], [2.0, 2.0]) is None


def test_conditions_compared(results):
    first, second = between(results, "newcomer.controller", ("cubic", "bbr"))
    found = compare(first, second, ("throughput", "rtt"), ("steady",), names=("cubic", "bbr"))
    assert len(found.differences) == 4
    rows = results.flows.filter(phase="steady", flow="newcomer")
    cubic, bbr = (
        rows.filter(pl.col(KEY) == name)["throughput_bps"].to_numpy() for name in ("cubic", "bbr")
    )
    (one,) = [
        d for d in found.differences
        if d.measure.name == "throughput" and d.place["flow"] == "newcomer"
    ]  # fmt: skip
    theirs = stats.ttest_ind(bbr, cubic, equal_var=False)
    low, high = theirs.confidence_interval()
    assert (one.change.value, one.change.low, one.change.high) == pytest.approx(
        (bbr.mean() - cubic.mean(), low, high)
    )
    assert one.p == pytest.approx(theirs.pvalue)
    assert [d.corrected for d in found.differences] == pytest.approx(
        holm([d.p for d in found.differences if d.p is not None])
    )
    assert one.relative == pytest.approx(one.change.value / cubic.mean())
    ranks = [(not d.resolved, -abs(d.relative or 0)) for d in found.differences]
    assert ranks == sorted(ranks)
    frame = found.frame()
    assert frame.height == 4
    assert frame["n_first"].to_list() == [4] * 4
    assert results.where({KEY: "cubic"}).compare(results.where({KEY: "cubic"})).height > 0


def test_the_same_twice_differs_nowhere(results):
    found = compare(results, results)
    table = comparison_table(found, 20, 80)
    assert table.rows == ()
    assert table.notes == (f"{len(found.differences)} values the same on both sides.",)


def test_what_one_side_lacks_is_told(results, carry_out):
    found = compare(results, results.where({KEY: "bbr"}), ("throughput",))
    assert found.alone == ("A alone has 2 values.",)
    other = carry_out(plan_of("", [{}], [PlannedRun(0, 1, spec())]))
    with pytest.raises(InputError, match="no condition and flow in common"):
        compare(results, other, ("throughput",))


def test_one_run_says_nothing_of_chance(carry_out):
    first, second = between(carry_out(make_plan(1, ("cubic", "bbr"))), KEY, ("cubic", "bbr"))
    found = compare(first, second, ("throughput",))
    assert all(one.p is None and one.resolved is None for one in found.differences)
    assert "give --repeats" in comparison_note(found)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("throughput < -5 %", True),
        ("throughput of incumbent in steady < -5 %", True),
        ("throughput of newcomer in steady < -5 %", False),
        ("throughput > 100 Mbit/s", False),
        ("share of incumbent < -5 points", True),
        ("share of incumbent < -95 points", False),
    ],
)
def test_relations(carry_out, text, broken):
    results = carry_out(make_plan(12, ("cubic", "bbr")))
    first, second = between(results, KEY, ("cubic", "bbr"))
    found = compare(first, second, ("throughput", "share"), ("steady",))
    assert bool(FailCondition.parse(text).broken_by(found.differences)) is broken


def borderline(corrected: float | None) -> Difference:
    """Return a difference whose interval excludes 0, whatever its adjusted p-value is."""
    mean, change = (
        Estimate(10.0, 9.0, 11.0, 5, "bit/s", ""),
        Estimate(2.0, 0.5, 3.5, 5, "bit/s", ""),
    )
    return Difference(measure("throughput"), {"flow": "a"}, mean, mean, change, 0.02, corrected)


@pytest.mark.parametrize("corrected", [0.78, 0.05, 0.049, None])
def test_one_rule_decides_mark_count_order_and_bound(corrected):
    one = borderline(corrected)
    significant = None if corrected is None else corrected < 0.05
    compared = ComparisonResult(("A", "B"), (one,))
    ((*_, change, _),) = comparison_table(compared, 0, None).rows
    assert one.resolved is significant
    assert change.endswith("?") is (significant is False)
    assert compared.resolved == int(significant is True)
    # A difference that no test could judge is beyond its bound.
    broken = FailCondition.parse("throughput > 5 %").broken_by([one])
    assert bool(broken) is (significant is not False)


@pytest.mark.parametrize("method", ["welch", "mann-whitney"])
def test_copies_of_one_outcome_are_not_tested(method, engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(FIXED)
    words = ["compare", "s.toml", "--store", "none", "--vary", f"{KEY}=reno,cubic"]
    words += ["--method", method]
    assert status(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "values differ, none of which can be tested: nothing is random; largest: " in out
    assert "Nothing is random: no test is possible; give the flows start_jitter." in out
    assert not {"±", "?", "<0.001"} & set(out.split())
    for bound, code in (("goodput of newcomer < -5 %", 1), ("utilisation < 0 %", 0)):
        assert status([*words, "--fail-on", bound]) == code, bound


def test_no_row_is_marked_against_its_p_value(results):
    first, second = between(results, "newcomer.controller", ("cubic", "bbr"))
    for test in ("welch", "mann-whitney"):
        found = compare(first, second, test=test)
        tested = [one for one in found.differences if one.p is not None]
        assert tested
        assert found.resolved == sum(one.corrected < 0.05 for one in tested)
        rows = comparison_table(found, 0, None).rows
        assert any(row[-1] != "–" for row in rows)
        for *_, change, p in rows:
            if p != "–":
                # At three digits 0.050 can be either.
                assert p == "0.050" or change.endswith("?") is (p > "0.050" and p != "<0.001")
        note = comparison_note(found)
        assert f"{found.resolved} of {len(tested)} tested differences" in note
        assert "not adjusted" in note


def test_what_may_be_chance_breaks_nothing(results):
    found = compare(results, results, ("throughput",))
    assert FailCondition.parse("throughput > -1 %").broken_by(found.differences) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("throughput fell", "write it as"),
        ("thruput < 5 %", "no measure `thruput`"),
        ("throughput < 5 ms", "throughput is in Mbit/s"),
        ("throughput < 5 points", "only shares have points"),
    ],
)
def test_relations_that_are_none(text, message):
    with pytest.raises(InputError, match=message):
        FailCondition.parse(text)


def test_relation_of_nothing(results):
    found = compare(results, results, ("throughput",))
    with pytest.raises(InputError, match="no such value was compared"):
        FailCondition.parse("throughput of nobody < 1 %").broken_by(found.differences)


SCENARIO = """
title = "Two flows"
duration          = "10 s"
sampling_interval = "1 s"
repeats = 3
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "incumbent"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "newcomer"
controller = "bbr"
rtt = "40 ms"
start_jitter = "500 ms"
[grid]
"flows.newcomer.controller" = ["cubic", "bbr"]
"""

FIXED = (
    SCENARIO.replace('start_jitter = "500 ms"', "")
    .replace("repeats = 3", "repeats = 6")
    .replace('["cubic", "bbr"]', '["reno", "cubic"]')
)


@pytest.fixture
def jostle(engine, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(SCENARIO)
    Path("worse.toml").write_text(SCENARIO.replace('"10 Mbit/s"', '"5 Mbit/s"'))

    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments, Environment(engine))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_conditions_on_the_command_line(jostle):
    code, out, _ = jostle("compare", "grid.toml", "--vary", "newcomer.controller=cubic,bbr",
                          "-o", "d.csv")  # fmt: skip
    assert code == 0
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert "bbr minus cubic" in out
    frame = pl.read_csv("d.csv")
    assert {"measure", "first", "second", "difference", "p_corrected"} <= set(frame.columns)
    # A place has one number of each measure.
    assert not frame.select("flow", "link", "measure", "phase").is_duplicated().any()


def test_a_bound_ends_with_1(jostle):
    arguments = ("compare", "grid.toml", "worse.toml", "--fail-on")
    code, out, err = jostle(*arguments, "throughput of incumbent < -10 %")
    assert code == 1
    assert "fails: throughput of incumbent < -10 %: " in err
    assert "measure" in out or "throughput" in out
    assert jostle(*arguments, "throughput of incumbent > 10 %")[0] == 0


def test_a_bound_of_a_measure_outside_the_table_is_compared(jostle):
    arguments = ("compare", "grid.toml", "worse.toml", "-o", "d.csv")
    assert jostle(*arguments)[0] == 0
    usual = pl.read_csv("d.csv")["measure"].unique()
    assert jostle(*arguments, "--fail-on", "rtt_p95 > 900 %")[0] == 0
    assert set(pl.read_csv("d.csv")["measure"].unique()) == {*usual, "rtt_p95"}
    assert "rtt_p95" not in usual


def test_stores_and_versions(jostle, engine):
    jostle("run", "grid.toml", "--store", "a")
    jostle("run", "worse.toml", "--store", "b")
    code, out, _ = jostle("compare", "a", "b", "--measures", "throughput")
    assert code == 0
    assert "throughput (Mbit/s)" in out
    calls = engine.calls
    # The store's runs are of no use to another version, and are compared with.
    engine.ENGINE_VERSION = "fake-2"
    jostle("run", "grid.toml", "--store", "a")
    assert engine.calls > calls
    code, out, _ = jostle("compare", "a")
    assert code == 0
    assert "after minus before" in out
    assert "the same on both sides" in out
    code, _, _ = jostle("compare", "b", "grid.toml", "--fail-on", "throughput > 10 %")
    assert code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("grid.toml",), "there are two sides"),
        (("grid.toml", "--vary", "controller"), "write it as KEY=A,B"),
        (("grid.toml", "--vary", "newcomer.controller=cubic,reno"), "no value of"),
        (
            ("grid.toml", "--vary", "newcomer.rtt=10 ms,20 ms"),
            'add "flows.newcomer.rtt" = ["10 ms", "20 ms"] to the table [grid]',
        ),
        (
            ("grid.toml", "--vary", "newcomer.initial_window=4,10"),
            'add "flows.newcomer.initial_window" = [4, 10] to the table [grid]',
        ),
        (("grid.toml", "--vary", "nobody.rtt=10 ms,20 ms"), "no grid key `nobody.rtt`"),
        (("grid.toml", "--vary", "backend=sim"), "write it as KEY=A,B"),
        (("grid.toml", "--vary", "backend=sim,kernle"), "did you mean `kernel`"),
        (("grid.toml", "--vary", "a=b,c", "--vary", "backend=a,b"), "--vary: give it once"),
        (("grid.toml", "grid.toml", "--measures", "rt"), "no measure `rt`"),
        (("grid.toml", "grid.toml", "--fail-on", "rt"), "write it as"),
        (("empty", "grid.toml"), "is no store with plans"),
    ],
)
def test_mistakes(jostle, engine, arguments, message):
    Path("empty").mkdir()
    code, _, err = jostle("compare", *arguments)
    assert code == 2
    assert message in err
    assert engine.calls == 0


def alone(carry, condition: dict[str, str], seeds: range, controllers=("cubic",)):
    runs = [PlannedRun(0, seed, spec(seed, controllers, jitter=True)) for seed in seeds]
    return carry(plan_of("", [condition], runs))


def test_sides_may_differ_as_wholes(carry_out):
    """Other seeds, another number of runs, a key with another value or none at all."""
    first = alone(carry_out, {"rate": "10 Mbit/s"}, range(1, 5))
    second = alone(carry_out, {"rate": "20 Mbit/s", "buffer": "1 BDP"}, range(50, 57))
    found = compare(first, second, ("throughput",))
    (one,) = found.differences
    values = [
        side.flows.filter(phase="overall")["throughput_bps"].to_numpy() for side in (first, second)
    ]
    expected = stats.ttest_ind(values[1], values[0], equal_var=False)
    assert one.p == pytest.approx(expected.pvalue)
    assert "rate" not in one.place
    assert found.alone == (
        "Of rate A has 10 Mbit/s, B has 20 Mbit/s.", "Of buffer A has no value, B has 1 BDP.",
    )  # fmt: skip
    assert "not paired" in comparison_note(found)
    assert "Welch's t test" in comparison_note(found)


def test_a_flow_alone_may_have_another_name(carry_out):
    first = alone(carry_out, {}, range(1, 4))
    made = spec(9, ("bbr",))
    made["flows"][0]["name"] = "rival"
    second = carry_out(plan_of("", [{}], [PlannedRun(0, 9, made)]))
    found = compare(first, second, ("throughput",))
    assert [one.place["flow"] for one in found.differences] == ["incumbent"]
    assert found.alone == ("The flow is called incumbent in A and rival in B.",)


def test_ranks_ask_nothing_of_distributions(results):
    first, second = between(results, "newcomer.controller", ("cubic", "bbr"))
    found = compare(first, second, ("throughput",), ("steady",), test="mann-whitney")
    for one in found.differences:
        left, right = (
            side.flows.filter(phase="steady", flow=one.place["flow"])["throughput_bps"].to_numpy()
            for side in (first, second)
        )
        expected = stats.mannwhitneyu(right, left, method="exact").pvalue
        if one.p is not None and len({*left, *right}) == 8:
            assert one.p == pytest.approx(expected)
    assert all(one.resolved == (one.corrected < 0.05) for one in found.differences if one.p)
    assert any(one.p is not None for one in found.differences)
    assert "Mann and Whitney's U test" in comparison_note(found)


def test_ranks_on_the_command_line(jostle):
    code, out, _ = jostle("compare", "grid.toml", "worse.toml", "--method", "mann-whitney")
    assert code == 0
    assert max(map(len, out.splitlines()[1:])) <= 80


def mean_of(value: float | None) -> Estimate:
    return Estimate(value, None, None, int(value is not None), "bit/s", "")


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (2e6, 3e6, "+50.0 %"),
        (0.0, 3e6, "+3.000"),
        # 0.4 bit/s are printed as 0 Mbit/s.
        (0.4, 3e6, "+3.000"),
        (-1e6, 2e6, "+3.000"),
        (1e6, -2e6, "\N{MINUS SIGN}3.000"),
        (-2e6, -1e6, "+50.0 %"),
    ],
)
def test_a_change_from_or_across_zero_has_no_percentage(first, second, text):
    change = mean_of(second - first)
    one = Difference(
        measure("throughput"), {"flow": "a"}, mean_of(first), mean_of(second), change, None
    )
    table = comparison_table(ComparisonResult(("A", "B"), (one,)), 20, None)
    assert table.rows[0][4] == text
    assert (one.relative is not None) == text.endswith("%")


@pytest.fixture
def without_rtt(carry_out):
    """Two sides, of which the second has no RTT."""
    first, second = (
        carry_out(plan_of("", [{}], [PlannedRun(0, seed, spec()) for seed in (1, 2)]))
        for _ in range(2)
    )
    for one in second.results:
        _remove_rtt(one.run)
    return first, second


def _remove_rtt(run):
    for flow in run.summary["flows"]:
        for phase in flow["phases"].values():
            phase["rtt_mean_s"] = None


def test_a_value_that_one_side_lacks_is_no_change(without_rtt):
    first, second = without_rtt
    found = compare(first, second, ("throughput", "rtt"), ("steady",))
    assert {one.measure.name for one in found.differences} == {"throughput"}
    assert found.alone == ("A alone has 2 values.",)
    assert found.differences
    with pytest.raises(InputError, match="A and B never both have a value of the RTT"):
        compare(first, second, ("rtt",), ("steady",))


def first_run_without_rtt(results):
    changed = deepcopy(results.results[0].run)
    _remove_rtt(changed)
    first_run, *others = results.results
    return type(results)(
        results.title,
        results.backend,
        results.backend_version,
        conditions=results.conditions,
        results=[first_run._replace(run=changed), *others],
        failures=(),
    )


def test_runs_without_a_value_leave_it_untested(carry_out):
    first, second = (
        carry_out(plan_of("", [{}], [PlannedRun(0, seed, spec()) for seed in (1, 2, 3)]))
        for _ in range(2)
    )
    second = first_run_without_rtt(second)
    found = compare(first, second, ("rtt",), ("steady",))
    (one, *_) = found.differences
    assert one.unfinished == ("", "1 of 3 runs have no value")
    assert (one.p, one.resolved) == (None, None)
    assert "not judged (B: 1 of 3 runs have no value)" in comparison_verdict(found)
    assert FailCondition.parse("rtt > 1000 ms").broken_by(found.differences)


def test_a_bound_on_a_value_that_one_side_lacks_is_broken(without_rtt):
    first, second = without_rtt
    found = compare(first, second, ("throughput", "rtt"), ("steady",))
    assert comparison_verdict(found).startswith("2 values of A alone; ")
    bound = FailCondition.parse("rtt > 1000 ms")
    assert len(bound.broken_by([*found.differences, *found.one_sided])) == 2


def test_a_bound_takes_names_in_quotes() -> None:
    bound = FailCondition.parse('rtt of "a in b" in "late in b" > 10 %')
    assert (bound.who, bound.phase) == ("a in b", "late in b")
    with pytest.raises(InputError, match="in quotes"):
        FailCondition.parse("rtt of a in b in c > 10 %")


def test_the_first_line_counts_values_that_are_not_judged_apart(without_rtt, carry_out):
    """The values that are judged do not speak for the others."""
    plan = plan_of("", [{}], [PlannedRun(0, seed, spec()) for seed in (1, 2, 3)])
    first, second = carry_out(plan), carry_out(plan)
    second = first_run_without_rtt(second)
    found = compare(first, second, ("throughput", "rtt"), ("steady",))
    assert comparison_verdict(found) == (
        "2 values not judged (B: 1 of 3 runs have no value); the other 2 are the same"
    )
    found = compare(*without_rtt, ("throughput", "rtt"), ("steady",))
    assert comparison_verdict(found) == "2 values of A alone; the other 2 are the same"
