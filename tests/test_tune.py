"""Tuning: objectives, parameters with their ranges, trials that repeat themselves, the command."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jostle
import pytest
from jostle.backends import create
from jostle.cli import status
from jostle.cli.search_verdicts import tuning_verdict
from jostle.errors import InputError
from jostle.figures.renderer import render_figure
from jostle.parameter_search.objectives import parse_constraint, parse_objective
from jostle.parameter_search.tuning import (
    Score,
    SearchSettings,
    Task,
    Trial,
    best,
    compare_keys,
    evaluate,
    fingerprint,
    tune,
)
from jostle.parameter_search.tuning_report import baseline, evaluate_best, figure, table
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import RunPlan

pytest.importorskip("optuna")
SCENARIO = Path(__file__).parents[1] / "scenarios" / "tune.toml"
BETA = "flows.f.controller.beta"
Carry = Callable[[RunPlan], jostle.ResultSet]


@pytest.fixture(scope="module")
def scenario() -> jostle.Scenario:
    return jostle.load(SCENARIO, {"duration": "2 s", "repeats": 1})


@pytest.fixture
def carry() -> Any:
    executor = local(2)
    yield Session(create("sim"), executor, None).carry_out
    executor.shutdown()


def task(scenario: jostle.Scenario, **changes: Any) -> Task:
    variables = () if "variables" in changes else (scenario.variable(BETA),)
    made: dict[str, Any] = {
        "scenarios": (scenario,),
        "held_out": (),
        "hold": {"bottleneck.rate": "20 Mbit/s"},
        "variables": variables,
        "objectives": (parse_objective("goodput of f", "maximize"),),
        "constraints": (),
    }
    return Task(**{**made, **changes})


def test_parameters_have_the_range_of_the_registry(scenario: jostle.Scenario) -> None:
    beta = scenario.variable(BETA)
    assert beta.range is not None
    assert (beta.range.kind, beta.range.low, beta.range.high) == ("integer", 1, 1023)
    assert beta.range.log
    choices = scenario.variable("flows.f.controller.fast_convergence").choices
    assert [level.value for level in choices] == [False, True]
    other = scenario.set({"flows.f.controller": "bbr"})
    assert other.variable("flows.f.controller.cwnd_gain").range is not None
    given = scenario.variable("bottleneck.delay", {"from": "1 ms", "to": "9 ms"})
    assert given.range is not None
    assert given.range.high == 9e6


@pytest.mark.parametrize(
    ("key", "given", "message"),
    [
        ("flows.f.controller.bta", None, 'did you mean "beta"'),
        ("flows.f.rtt", None, "no parameter with a range"),
        ("flows.g.rtt", None, 'no flow "g"'),
        ("flows.f.rtt", {"from": "1 ms", "to": "1 Mbit/s"}, "is a rate"),
        ("flows.f.rtt", 3, "or a list of values"),
        ("bottleneck.queue.limit", None, "no default range"),
    ],
)
def test_keys_that_have_no_values(
    scenario: jostle.Scenario, key: str, given: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        scenario.variable(key, given)


def test_utilities_are_what_their_authors_say(scenario: jostle.Scenario, carry: Carry) -> None:
    results = carry(scenario.plan())
    parts: dict[str, list[Any]] = {
        name: parse_objective(f"{name} of f", "maximize").per_condition(results)
        for name in ("throughput", "rtt", "path_queueing_delay", "power", "remy(2)", "copa")
    }
    for at in range(3):
        rate, rtt, queueing = (parts[n][at] for n in ("throughput", "rtt", "path_queueing_delay"))
        assert parts["remy(2)"][at] == pytest.approx(math.log(rate) - 2 * math.log(rtt))
        assert parts["copa"][at] == pytest.approx(math.log(rate) - 0.5 * math.log(queueing))
        assert parts["power"][at] == pytest.approx(rate / rtt * 1e3, rel=0.01)


def test_conditions_are_summed_up() -> None:
    values = [3.0, None, 1.0, 5.0]
    assert parse_objective("goodput of f", "maximize").over(values) == 3.0
    assert parse_objective("worst goodput of f", "maximize").over(values) == 1.0
    assert parse_objective("worst rtt of f", "minimize").over(values) == 5.0
    assert parse_objective("goodput", "maximize").over([None]) is None


def test_constraints() -> None:
    bound = parse_constraint("rtt of f in late <= 20 ms")
    assert bound.objective.worst
    assert bound.objective.over([10.0, 25.0]) == 25.0
    assert (bound.excess(25.0), bound.excess(20.0), bound.excess(None)) == (5.0, 0.0, math.inf)
    assert parse_constraint("goodput of f >= 3").excess(2.0) == 1.0
    for text, message in (
        ("rtt of f < 3", "write it as"),
        ("rtt of f <= 3 s", "in ms, not in s"),
        ("rttt of f <= 3", "rttt"),
    ):
        with pytest.raises(InputError, match=message):
            parse_constraint(text)
    with pytest.raises(InputError, match="maximized"):
        parse_objective("remy of f", "minimize")


def test_the_same_study_has_the_same_trials_interrupted_or_not(
    scenario: jostle.Scenario, carry: Carry, tmp_path: Path
) -> None:
    asked = task(scenario, constraints=(parse_constraint("rtt of f <= 100 ms"),))
    whole = tune(asked, carry, SearchSettings(9, seed=3))
    assert whole == tune(asked, carry, SearchSettings(9, seed=3))
    assert [t.labels for t in whole] != [
        t.labels for t in tune(asked, carry, SearchSettings(9, seed=4))
    ]
    calls = 0

    def interrupted(plan: RunPlan) -> jostle.ResultSet:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return carry(plan)

    journal = tmp_path / "study.journal"
    with pytest.raises(KeyboardInterrupt):
        tune(asked, interrupted, SearchSettings(9, seed=3, journal=journal))
    told: list[Trial] = []
    assert tune(asked, carry, SearchSettings(9, seed=3, journal=journal, told=told.append)) == whole
    assert [one.number for one in told] == list(range(3, 9)), "the fourth is tried again"


@pytest.mark.parametrize("sampler", ["tpe", "cmaes", "nsga2", "random"])
def test_every_sampler_repeats_itself(
    scenario: jostle.Scenario, carry: Carry, sampler: str, tmp_path: Path
) -> None:
    bic = scenario.variable("flows.f.controller.bic_scale", {"from": 1, "to": 100})
    delay = scenario.variable("bottleneck.delay", {"from": "1 ms", "to": "9 ms"})
    asked = task(scenario, variables=(scenario.variable(BETA), bic, delay))
    whole = tune(asked, carry, SearchSettings(6, seed=1, sampler=sampler))
    tune(asked, carry, SearchSettings(4, seed=1, sampler=sampler, journal=tmp_path / "j"))
    assert (
        tune(asked, carry, SearchSettings(6, seed=1, sampler=sampler, journal=tmp_path / "j"))
        == whole
    )


def test_a_search_finds_what_is_best(scenario: jostle.Scenario, carry: Carry) -> None:
    """The RTT is shortest behind the shortest queue."""
    limit = scenario.variable("bottleneck.queue.limit", {"from": "1 BDP", "to": "5 BDP"})
    asked = task(
        scenario, variables=(limit,), objectives=(parse_objective("rtt of f", "minimize"),)
    )
    (found, *_) = best(asked, tune(asked, carry, SearchSettings(15, seed=1)))
    assert float(found.labels["bottleneck.queue.limit"].split()[0]) < 1.4


def test_values_that_do_not_fit_together_fail_alone(
    scenario: jostle.Scenario, carry: Carry
) -> None:
    rtt = scenario.variable("flows.f.rtt", {"from": "1 ms", "to": "40 ms"})
    asked = task(scenario.set({"bottleneck.delay": "20 ms"}), variables=(rtt,))
    trials = tune(asked, carry, SearchSettings(8, seed=1))
    scores = [trial.score for trial in trials]
    assert None in scores
    assert any(score is not None for score in scores)


def test_the_front_is_what_nothing_beats(scenario: jostle.Scenario) -> None:
    asked = task(
        scenario,
        objectives=(
            parse_objective("goodput of f", "maximize"),
            parse_objective("rtt of f", "minimize"),
        ),
    )
    values = [(5, 50), (6, 60), (4, 55), (6, 60), (7, 40)]
    trials = [
        Trial(at, {}, {}, Score(one, (1.0 if at == 4 else -1.0,))) for at, one in enumerate(values)
    ]
    trials.append(Trial(9, {}, {}, None))
    assert [one.number for one in best(asked, trials)] == [1, 0]


def test_what_is_held_out_is_not_tuned_on(scenario: jostle.Scenario, carry: Carry) -> None:
    asked = task(scenario, held_out=(scenario.set({"flows.f.rtt": "10 ms"}),))
    tuned, fresh, held = (asked.plans({BETA: 500}, part) for part in ("tuned", "fresh", "held"))
    assert [dict(one.conditions[0]) for one in tuned] == [{"bottleneck.rate": "5 Mbit/s"}]
    assert [len(one.conditions) for one in (*tuned, *held)] == [2, 1, 3]
    seeds = [{run.seed for run in plan.runs} for plan in (*tuned, *fresh)]
    assert not seeds[0] & seeds[1]
    flow = tuned[0].runs[0].spec["flows"][0]
    assert flow["controller"]["parameters"]["beta"] == 500
    assert fingerprint(asked, "tpe", 1, "1") != fingerprint(asked, "tpe", 2, "1")
    found = evaluate_best(
        asked, tune(asked, carry, SearchSettings(3, seed=1)), baseline(asked, carry), carry
    )
    assert set(found.found[0].scores) == {"tuned", "fresh", "held"}
    again = evaluate(asked, found.found[0].trial.values, "tuned", carry)  # type: ignore[union-attr]
    assert again == found.found[0].scores["tuned"]
    assert table(found).rows[0][0] == "as written"
    assert len(render_figure(figure(found)).axes) == 1


def test_what_is_left_out_of_a_tuning_is_listed(scenario: jostle.Scenario, carry: Carry) -> None:
    rtt = scenario.variable("flows.f.rtt", {"from": "1 ms", "to": "40 ms"})
    asked = task(scenario.set({"bottleneck.delay": "20 ms"}), variables=(rtt,))
    trials = tune(asked, carry, SearchSettings(8, seed=1))
    failed = [str(trial.number) for trial in trials if trial.score is None]
    assert failed

    def broken(plan: RunPlan) -> Any:
        """Fail the runs with other seeds."""
        return (
            carry(plan) if plan.runs[0].seed == 1 else SimpleNamespace(failures=("out of order",))
        )

    found = evaluate_best(asked, trials, baseline(asked, carry), broken)
    said = " ".join(found.assumptions)
    assert f"Left out: {len(failed)} of 8 trials ({', '.join(failed)})" in said
    best_trial = found.found[0].trial
    assert best_trial is not None
    assert f"the score of trial {best_trial.number}, other seeds, because a run failed" in said
    assert found.to_dict()["assumptions"] == list(found.assumptions)


def test_conditions_without_a_value_are_listed(carry: Carry) -> None:
    document = {
        "duration": "1 s",
        "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [
            {"name": "f", "controller": "cubic", "rtt": "30 ms"},
            {"name": "g", "controller": "cubic", "rtt": "30 ms"},
        ],
        "grid": {"flows.g.count": [1, 0]},
    }
    scenario = jostle.Scenario.from_dict(document)
    asked = task(
        scenario, hold={}, variables=(scenario.variable(BETA),),
        objectives=(parse_objective("goodput of g", "maximize"),),
    )  # fmt: skip
    written = baseline(asked, carry)
    assert written.scores["tuned"].without_value == (1,)
    found = evaluate_best(asked, [], written, carry)
    assert found.assumptions[0] == (
        'Left out of "goodput of g": 1 conditions without a value (the scenarios as written, '
        "tuned on)."
    )


def unfinished_task(**changes: Any) -> Task:
    """Return a task in which the download of 2 MB completes at 2 Mbit/s with IW 40 only."""
    scenario = jostle.Scenario.from_dict(
        {
            "duration": "8.9 s",
            "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "2 BDP"}},
            "flows": [{"name": "dl", "controller": "cubic", "rtt": "200 ms", "size": "2 MB"}],
            "grid": {"bottleneck.rate": ["2 Mbit/s", "10 Mbit/s"]},
        }
    )
    variable = scenario.variable("flows.dl.initial_window", [4, 10, 40])
    objectives = (parse_objective("completion_time of dl", "minimize"),)
    made = {"hold": {}, "variables": (variable,), "objectives": objectives}
    return task(scenario, **{**made, **changes})


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
@pytest.mark.parametrize("text", ["completion_time of dl", "worst completion_time of dl"])
def test_an_unfinished_run_is_worse_than_a_complete_one(
    carry: Carry, text: str, sampler: str, tmp_path: Path
) -> None:
    asked = unfinished_task(objectives=(parse_objective(text, "minimize"),))
    settings = SearchSettings(6, sampler=sampler, journal=tmp_path / "s" / "t.journal")
    trials = tune(asked, carry, settings)
    assert tune(asked, carry, settings) == trials, "the journal records unfinished runs"
    found = evaluate_best(asked, trials, baseline(asked, carry), carry)
    assert found.found[0].trial is not None
    assert found.found[0].trial.values == {"flows.dl.initial_window": 40}
    document = found.to_dict()
    assert document["written"]["tuned_on"]["unfinished"] == [1]
    assert document["found"][0]["tuned_on"]["unfinished"] == [0]
    bound = 8.9 if text.startswith("worst") else (8.9 + 2.704) / 2
    assert document["written"]["tuned_on"]["objectives"] == [pytest.approx(bound, abs=1e-3)]
    assert table(found).rows[0][-1] == f"> {bound:.4g}"
    assert "(1 unfinished run)" in tuning_verdict(found)
    assert tuning_verdict(found).startswith("best: flows.dl.initial_window = 40")
    assert "lower bound: in 1 run a transfer is not complete" in found.assumptions[0]


def test_a_bound_on_a_completion_time_does_not_hold_for_unfinished_runs(carry: Carry) -> None:
    asked = unfinished_task(constraints=(parse_constraint("completion_time of dl <= 8.95 s"),))
    for window, holds in ((10, False), (40, True)):
        score = evaluate(asked, {"flows.dl.initial_window": window}, "tuned", carry)
        assert score is not None
        assert score.feasible is holds


def test_means_are_compared_over_the_same_runs() -> None:
    goodput = parse_objective("goodput of f", "maximize")

    def score(*runs: float | None) -> Score:
        present = [run for run in runs if run is not None]
        mean, absent = sum(present) / len(present), runs.count(None)
        return Score((mean,), (), (), (0,), (absent,), (tuple((run,) for run in runs),))

    worse, better = score(None, 9.0, 2.0), score(1.0, None, 3.0)
    low, high = compare_keys((goodput,), (worse, better))
    assert worse.objectives > better.objectives
    assert high > low, "both have a value in the third condition only"
    whole, part = compare_keys((goodput,), (score(1.0, 1.0), score(None, 9.0)))
    assert whole > part, "fewer runs without a value"


def test_nothing_left_is_told(scenario: jostle.Scenario, carry: Carry) -> None:
    with pytest.raises(InputError, match="no condition has that"):
        baseline(task(scenario, hold={"bottleneck.rate": "3 Mbit/s"}), carry)
    one = scenario.set({"grid": {"bottleneck.rate": ["5 Mbit/s"]}})
    with pytest.raises(InputError, match="nothing is left"):
        baseline(task(one, hold={"bottleneck.rate": "5 Mbit/s"}), carry)
    harm = parse_objective("harm of f", "minimize")
    with pytest.raises(InputError, match="no value in any condition"):
        baseline(task(scenario, objectives=(harm,)), carry)


def test_harm_to_another_flow_can_be_bounded(carry: Carry) -> None:
    document = {
        "duration": "3 s",
        "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [
            {"name": "cubic", "controller": "cubic", "rtt": "30 ms"},
            {"name": "new", "controller": "cubic", "rtt": "30 ms"},
        ],
        "grid": {"flows.new.count": [0, 1]},
    }
    scenario = jostle.Scenario.from_dict(document)
    bound = parse_constraint("harm of cubic <= 10 %")
    asked = task(
        scenario, hold={}, variables=(scenario.variable("flows.new.controller.beta"),),
        objectives=(parse_objective("goodput of new", "maximize"),), constraints=(bound,),
    )  # fmt: skip
    score = evaluate(asked, {"flows.new.controller.beta": 900}, "tuned", carry)
    assert score is not None
    results = carry(scenario.set({"flows.new.controller.beta": 900}).plan())
    harm = results.harm("throughput")["value"][0]
    assert score.excess == (pytest.approx(100 * harm - 10),)
    assert not score.feasible


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["search", "tune", str(SCENARIO), "--set", "duration=2 s", "--repeats", "1",
             "--vary", BETA,
             "--vary", 'flows.f.controller.bic_scale={ from = 1, to = 100, scale = "log" }',
             "--maximize", "goodput of f", "--minimize", "rtt of f", "--test-condition",
             "bottleneck.rate=20 Mbit/s"]  # fmt: skip
    assert status([*words, "--trials", "3", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["schema"] == "jostle.tuning/1"
    assert status([*words, "--trials", "5", "--json", "-o", "front.svg"]) == 0
    told = capsys.readouterr()
    second = json.loads(told.out)
    assert second["trials"][:3] == first["trials"]
    assert "[4/5]" in told.err
    assert "[3/5]" not in told.err
    assert set(second["found"][0]) == {"trial", "values", "tuned_on", "other_seeds", "held_out"}
    assert (tmp_path / "front.svg").stat().st_size > 1000
    assert status([*words, "--trials", "5"]) == 0
    assert "5 trials, 5 of which could be evaluated" in capsys.readouterr().out
    assert second["assumptions"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", BETA], "say what is to be best"),
        (["--vary", BETA, "--maximize", "goodput of g"], "no flow `g`"),
        (["--vary", "flows.f.rtt", "--maximize", "goodput of f"], "no parameter with a range"),
        (["--vary", BETA, "--maximize", "goodput of f", "--test-condition", "x"], "KEY=VALUE"),
        (["--vary", BETA, "--maximize", "goodput of f", "--minimize", "rtt of f", "--sampler",
          "cmaes", "--set", "duration=1 s"], "cmaes has one objective"),
    ],
)  # fmt: skip
def test_mistakes_end_with_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert status(["search", "tune", str(SCENARIO), *words]) == 2
    assert message in capsys.readouterr().err


def test_a_key_that_the_queue_lacks_is_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--vary", 'bottleneck.queue.target={ from = "1 ms", to = "20 ms" }']
    words += ["--minimize", "rtt of f", "--trials", "2", "--store", str(tmp_path / "store")]
    assert status(["search", "tune", "scenarios/tune.toml", *words]) == 1
    captured = capsys.readouterr()
    out = " ".join(captured.out.split())
    assert out.startswith("no trial could be run")
    assert "No trial holds every constraint" not in out
    assert '"drop_tail" has no parameter "target"' in out
    assert captured.err.count('"drop_tail" has no parameter "target"') == 2


def test_a_utility_of_several_flows_names_one() -> None:
    plan = jostle.load(Path(__file__).parents[1] / "scenarios/first.toml").plan()
    for text, example in (
        ("remy(1)", "remy(1) of incumbent"),
        ("worst copa in overall", "copa of incumbent in overall"),
        ("goodput in overall", "goodput of incumbent in overall"),
    ):
        (first, *_) = parse_objective(text, "maximize").terms
        with pytest.raises(InputError, match=f'say of which, as in "{re.escape(example)}"'):
            first.check(plan)
