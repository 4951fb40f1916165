"""A ResultSet: tables, series, estimates, the summary document."""

from __future__ import annotations

import json
import math

import pytest
from fake_core import spec
from fake_plan import make_plan, plan_of
from jostle.errors import InputError
from jostle.results.harm import Harms
from jostle.results.tables import View, phase_tables
from jostle.results.tidy_frame import tidy
from jostle.scenario import PlannedRun

KEY = "flows.newcomer.controller"


@pytest.fixture
def results(carry_out):
    return carry_out(make_plan())


def test_flows_have_a_row_per_run_flow_and_phase(results):
    assert results.flows.height == 4 * 3 * 2 * 3
    assert results.flows.columns[:11] == [
        "condition", KEY, "seed", "run_id", "flow", "group", "transport", "controller",
        "completion_time_s", "completion_rate_bps", "unfinished",
    ]  # fmt: skip
    first = results.flows.row(0, named=True)
    assert (first["condition"], first[KEY], first["seed"]) == ("cubic", "cubic", 1)
    assert first["completion_time_s"] is None
    assert first["throughput_bps"] > 0


def test_links_and_fairness(results):
    assert results.links.height == 4 * 3 * 3
    assert results.links["utilisation"].is_between(0, 1).all()
    assert results.fairness.height == 4 * 3 * 3


def test_series_has_a_column_per_seed(results):
    series = results.series("newcomer", "rtt", "bbr")
    assert series.columns == ["time_s", "seed_1", "seed_2", "seed_3"]
    assert series["time_s"].to_list() == [float(t) for t in range(1, 11)]
    assert series["seed_1"][0] is None
    run = results.runs_of(1)[0].run
    expected = run.flows.filter(flow="newcomer")["rtt_mean_s"]
    assert series["seed_1"].to_list() == expected.to_list()


def test_a_flow_has_no_window_before_it_starts(results):
    # Flows start after 1.3 s at the earliest.
    assert results.series("newcomer", "cwnd", "bbr")["seed_1"][0] is None
    assert results.series("newcomer", "cwnd", "bbr")["seed_1"][5] > 0


def test_series_of_internals_and_full_names(results):
    internal = results.series("incumbent", "w_max_packets", {KEY: "bbr"})
    assert internal["time_s"].to_list() == [float(t) for t in range(1, 11)]
    assert results.series("incumbent", "cwnd_bytes", 0).equals(
        results.series("incumbent", "cwnd", "cubic")
    )


def test_modes_are_text(results):
    modes = results.series("incumbent", "mode", "cubic")["seed_1"]
    assert modes.to_list()[-1] in ("concave", "convex", "reno_friendly", "recovery")
    assert set(results.series(None, "mode")["flow"]) == {"incumbent", "newcomer"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("incumbnet", "cwnd", 0), "did you mean `incumbent`"),
        (("incumbent", "cwdn", 0), "did you mean `cwnd`"),
        (("incumbent", "cwnd"), "several conditions: name one of cubic | bbr | vivace | hybla"),
        (("incumbent", "cwnd", "reno"), "no such condition"),
        (("incumbent", "cwnd", 4), "no such condition"),
        (("incumbent", "cwnd", -1), "no such condition"),
    ],
)
def test_series_says_what_there_is(results, arguments, message):
    with pytest.raises(InputError) as raised:
        results.series(*arguments)
    assert message in str(raised.value)


def test_estimate_is_that_of_the_rows(results):
    frame = results.estimate("goodput", phase="steady")
    assert frame.height == 8
    assert frame["n"].to_list() == [3] * 8
    assert set(frame["unit"]) == {"bit/s"}
    row = frame.filter(condition="bbr", flow="newcomer").row(0, named=True)
    rows = results.flows.filter(condition="bbr", flow="newcomer", phase="steady")
    sample = rows["goodput_bps"].to_numpy()
    half = 4.30265 * sample.std(ddof=1) / math.sqrt(3)
    assert row["value"] == pytest.approx(sample.mean())
    assert row["high"] == pytest.approx(sample.mean() + half, rel=1e-5)


def test_estimates_of_links_and_runs(results):
    assert results.estimate("utilisation")["link"].to_list() == ["bottleneck"] * 4
    jain = results.estimate("jain", "steady", method="bootstrap")
    assert "flow" not in jain.columns
    assert jain["condition"].to_list() == ["cubic", "bbr", "vivace", "hybla"]
    with pytest.raises(InputError, match="no phase `stedy`; did you mean `steady`"):
        results.estimate("jain", "stedy")
    with pytest.raises(InputError, match="no measure"):
        results.estimate("happiness")


def test_one_run_has_no_interval(carry_out):
    results = carry_out(make_plan(1))
    frame = results.estimate("rtt")
    assert frame["low"].null_count() == frame.height
    assert set(frame["method"]) == {"one run, no interval"}
    assert "±" not in str(phase_tables(results, "overall"))


def test_document_is_the_documented_one(results):
    document = json.loads(results.to_json())
    assert list(document) == ["schema", "title", "backend", "conditions"]
    assert document["schema"] == "jostle.summary/3"
    condition = document["conditions"][1]
    assert condition["condition"] == {KEY: "bbr"}
    run = condition["runs"][2]
    assert list(run) == ["seed", "run_id", "flows", "groups", "links", "fairness", "totals"]
    assert run["seed"] == 3
    assert len(run["run_id"]) == 32
    assert set(run["flows"][0]) == {
        "name", "group", "transport", "controller", "start_s", "completion_time_s",
        "completion_rate_bps", "unfinished", "efficiency", "bandwidth_estimate_bps", "phases",
    }  # fmt: skip
    # Flows start when it is over.
    assert run["flows"][0]["phases"]["startup"]["rtt_mean_s"] is None
    assert "NaN" not in results.to_json()


def test_the_document_has_an_estimate_in_place_of_each_number(results):
    document = results.to_dict()
    condition = document["conditions"][1]
    estimates = condition["estimates"]
    flow = estimates["flows"][1]
    frame = results.estimate("throughput", "steady").filter(condition="bbr", flow="newcomer")
    found = flow["phases"]["steady"]["throughput_bps"]
    assert [found[key] for key in ("mean", "low", "high")] == pytest.approx(
        frame.select("value", "low", "high").row(0)
    )
    assert found["n"] == 3
    assert flow["phases"]["startup"]["rtt_mean_s"] == {
        "mean": None, "low": None, "high": None, "n": 0,
    }  # fmt: skip
    assert flow["name"] == "newcomer"
    assert 0 < estimates["fairness"]["steady"]["jain"]["high"] <= 1
    assert estimates["links"][0]["phases"]["steady"]["utilisation"]["high"] <= 1
    assert estimates["groups"][1]["flows"] == 1
    # Whatever a run has a number of, there is an estimate of.
    run = condition["runs"][0]
    for part in ("flows", "groups", "links"):
        for one, other in zip(run[part], estimates[part], strict=True):
            assert one["phases"]["steady"].keys() == other["phases"]["steady"].keys()
    assert run["totals"]["steady"].keys() == estimates["totals"]["steady"].keys()


def test_the_document_can_have_some_phases_alone(results):
    (condition, *_) = results.to_dict(["steady"])["conditions"]
    for part in (*condition["runs"], condition["estimates"]):
        assert list(part["flows"][0]["phases"]) == ["steady"]
        assert list(part["fairness"]) == list(part["totals"]) == ["steady"]


def alone_and_beside(repeats=2):
    """A flow by itself, and beside others."""
    conditions = [{"flows.newcomer.count": str(count)} for count in (0, 1, 2)]
    runs = [
        PlannedRun(count, seed, spec(seed, ("cubic",) * (count + 1)))
        for count in range(3)
        for seed in range(1, repeats + 1)
    ]
    return plan_of("", conditions, runs)


def test_harm_is_what_is_lost_against_being_alone(carry_out):
    results = carry_out(alone_and_beside())
    harm = results.harm()
    assert harm["alone"].to_list() == ["0"] * 2
    assert harm["flow"].to_list() == ["incumbent"] * 2
    frame = results.flows.filter(flow="incumbent", phase="overall")
    rates = [
        frame.filter(condition=name).sort("seed")["throughput_bps"].to_numpy()
        for name in ("0", "1")
    ]
    lost = (rates[0] - rates[1]) / rates[0]
    assert 0.2 < lost.mean() < 0.8
    assert harm["value"][0] == pytest.approx(lost.mean())
    assert harm["n"].to_list() == [2, 2]
    assert harm["high"][0] <= 1
    assert harm["value"][1] > harm["value"][0]
    assert results.estimate("harm").columns == [c for c in harm.columns if c != "alone"]
    # Of a delay less is better.
    frame = results.flows.filter(flow="incumbent", phase="steady")
    delays = [
        frame.filter(condition=name).sort("seed")["rtt_mean_s"].to_numpy() for name in ("0", "1")
    ]
    more = (delays[1] - delays[0]) / delays[1]
    assert results.harm("rtt", "steady")["value"][0] == pytest.approx(more.mean())
    with pytest.raises(InputError, match="harm is of a rate, a time or a delay"):
        results.harm("jain")


def test_there_is_no_harm_without_a_condition_to_compare_with(results):
    with pytest.raises(InputError, match=r"add it to the grid: .flows.NEWCOMER.count. = \[0, 1\]"):
        results.harm()


def test_no_values_at_all_still_make_a_table(carry_out):
    results = carry_out(make_plan())
    frame = results.flows.filter(phase="startup")
    assert frame["rtt_mean_s"].null_count() == frame.height
    assert results.estimate("rtt", "startup")["value"].null_count() == 8
    flows = phase_tables(results, "startup", View(("rtt",)))[0]
    assert {row[-1] for row in flows.rows} == {"–"}


def same_plan(repeats, conditions=2, jitter=False):
    rivals = ("cubic", "hybla")[:conditions]
    runs = [
        PlannedRun(index, seed, spec(seed, ("cubic", rival), jitter=jitter))
        for index, rival in enumerate(rivals)
        for seed in range(1, repeats + 1)
    ]
    return plan_of("", [{KEY: rival} for rival in rivals], runs)


def test_identical_runs_are_noted(carry_out):
    assert carry_out(same_plan(3, jitter=True)).notes == ()
    assert carry_out(same_plan(1)).notes == ()
    assert carry_out(same_plan(5, 1)).notes == (
        "all 5 runs are identical: nothing in this scenario is random; give the flows start_jitter",
    )
    assert "all 3 runs of every condition are identical" in carry_out(same_plan(3)).notes[0]


def test_identical_runs_of_some_conditions_are_noted(carry_out):
    plan = same_plan(3)
    changed = [
        PlannedRun(r.condition, r.seed, spec(1, duration_s=10 + r.condition * r.seed, jitter=False))
        for r in plan.runs
    ]
    results = carry_out(plan_of(plan.title, plan.conditions, changed))
    assert results.notes == (
        "all 3 runs of cubic are identical: nothing there is random; give the flows start_jitter",
    )


def test_a_note_names_three_conditions_and_counts_the_others(carry_out):
    rivals = ("cubic", "reno", "hybla", "bic", "westwood", "highspeed")
    runs = [
        PlannedRun(
            at, seed, spec(1, ("cubic", rival), 10 + (rival == rivals[-1]) * seed, jitter=False)
        )
        for at, rival in enumerate(rivals)
        for seed in (1, 2)
    ]
    (note,) = carry_out(plan_of("", [{KEY: rival} for rival in rivals], runs)).notes
    assert note.startswith(
        "all 2 runs of cubic; reno; hybla and 2 more are identical: nothing there"
    )


def test_the_phase_that_compares_comes_first_and_overall_last(results):
    assert [p.name for p in results.phases] == ["steady", "startup", "overall"]
    assert (results.phases[0].from_s, results.phases[0].to_s) == (5.0, 10.0)


def test_nothing_finished(engine, carry_out):
    engine.broken_seeds = (1,)
    results = carry_out(make_plan(1))
    assert len(results) == 0
    assert results.flows.height == 0
    assert results.phases == ()
    (note,) = results.notes
    assert note.startswith("each of 4 conditions: 0 of 1 run, 1 failed: link `bottleneck`")
    assert json.loads(results.to_json())["conditions"][0]["runs"] == []
    assert results._repr_html_() == f'<p class="note">{note}</p>'


def test_html_of_a_notebook(results):
    html = results._repr_html_()
    assert html.count("<table") == 6  # Flows and links, in each phase.
    assert "newcomer" in html


def test_html_escapes_names(carry_out):
    plan = plan_of("", [{"k": "<script>"}, {"k": "b"}], [
        PlannedRun(c, 1, spec()) for c in (0, 1)
    ])  # fmt: skip
    assert "<script>" not in carry_out(plan)._repr_html_()


def test_harm_is_in_tables_documents_and_plots(carry_out):
    results = carry_out(alone_and_beside())
    harm = results.harm("throughput", "steady").to_dicts()[0]
    table = phase_tables(results, "steady")[0]
    at = [name.replace("\n", " ") for name in table.header].index("harm %")
    told = [row[at] for row in table.rows]
    assert told.count("–") == len(told) - 2
    first, second = results.to_dict()["conditions"][:2]
    assert "alone" not in first["estimates"]
    assert second["estimates"]["alone"] == results.conditions[0]
    (incumbent, newcomer) = second["estimates"]["flows"][:2]
    assert incumbent["phases"]["steady"]["harm"] == {
        "mean": harm["value"], "low": harm["low"], "high": harm["high"], "n": harm["n"]
    }  # fmt: skip
    assert "harm" not in newcomer["phases"]["steady"]
    frame = tidy(results, ("harm",), ("steady",))
    assert frame["mean"].to_list() == results.harm("throughput", "steady")["value"].to_list()
    assert results.plot.box("harm", phase="steady").axes[0].get_ylabel() == "Harm (%)"


def test_harm_finds_its_conditions_among_many(carry_out):
    keys = [(n, rate) for rate in "abc" for n in ("0", "1")]
    runs = [
        PlannedRun(at, 1, spec(1, ("cubic", "bbr")[: int(n) + 1])) for at, (n, _) in enumerate(keys)
    ]
    results = carry_out(plan_of("", [{"n": n, "rate": rate} for n, rate in keys], runs))
    every = Harms(results)
    assert [every.alone(at) for at in range(6)] == [None, 0, None, 2, None, 4]
