"""The Python interface."""

from __future__ import annotations

import html
import importlib.util
import re
import resource
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import fake_core
import jostle
import pytest
from fake_plan import make_plan
from jostle.backends import SimBackend, create
from jostle.errors import InputError, close_to
from jostle.report import render
from jostle.store.store import Reader

EXAMPLE = Path(__file__).parents[1] / "examples" / "two_flows.py"
SCENARIO = Path(__file__).parents[1] / "scenarios" / "first.toml"


class Planned:
    """Stands in for a scenario: it plans."""

    def plan(self, repeats=None, seed=None):
        return make_plan(repeats or 3)


def test_importing_loads_nothing():
    code = "import jostle, sys; assert 'polars' not in sys.modules; print(dir(jostle))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(name in out.stdout for name in ("load", "run", "Scenario", "ResultSet"))


def test_run_returns_results(tmp_path, engine):
    backend = SimBackend(engine)
    results = jostle.run(Planned(), backend, store=tmp_path, repeats=2)
    assert isinstance(results, jostle.ResultSet)
    assert len(results) == 8
    jostle.run(Planned(), backend, store=tmp_path, repeats=2, jobs=1)
    assert engine.calls == 8


def test_failures_are_listed_and_warned_of(engine):
    engine.broken_seeds = (1,)
    with pytest.warns(RuntimeWarning, match="4 runs failed.*upside down"):
        results = jostle.run(Planned(), SimBackend(engine))
    assert len(results.failures) == 4


@pytest.mark.parametrize("call", [jostle.run, jostle.load])
def test_a_scenario_is_a_path_or_was_loaded(call):
    with pytest.raises(InputError, match=r"not a dict: jostle.Scenario.from_toml and from_dict"):
        call({"duration": "2 s"})


@pytest.mark.parametrize(
    ("given", "known", "meant"),
    [
        ("BBR", ["bbr", "bbr3", "cubic"], ["bbr"]),
        ("geo", ["geo-solo", "geo-shared", "vegas"], ["geo-solo", "geo-shared"]),
        ("cubik", ["bbr", "cubic", "bic"], ["cubic", "bic"]),
        ("be", ["beta", "rate"], ["beta"]),
        ("xyz", ["cubic", "reno"], []),
    ],
)
def test_what_a_name_may_mean(given, known, meant):
    assert close_to(given, known) == meant


def test_unknown_names():
    with pytest.raises(InputError, match="no backend `magic`: choose one of sim"):
        create("magic")
    with pytest.raises(AttributeError):
        _ = jostle.nonsense


def test_version_is_that_of_the_package():
    from importlib import metadata

    assert jostle.__version__ == metadata.version("jostle")


def load_example():
    specification = importlib.util.spec_from_file_location("two_flows", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_example_runs(tmp_path, capsys):
    load_example().main(tmp_path)
    out = capsys.readouterr().out
    assert "incumbent: " in out
    assert "newcomer: " in out
    assert (tmp_path / "two_flows.png").stat().st_size > 1000


def test_report_stands_alone(carry_out, engine):
    results = carry_out(make_plan(2))
    html = render([results], ["a b.toml"])
    assert html.count("data:image/svg+xml;base64,") == 2
    assert html.count('class="charts-data"') == 1
    assert html.count('<table class="jostle">') == 6  # Flows and links, in each phase.
    assert "jostle run 'a b.toml'" in html.replace("&#39;", "'")
    assert results.results[0].run.run_id in html
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert render([results], ["a b.toml"]) == html


@pytest.mark.parametrize(
    ("repeats", "rivals", "note"),
    [
        (1, ("bbr",), "One run: there is no confidence interval"),
        (1, ("bbr", "cubic"), "One run per condition: there is no confidence interval"),
        (3, ("bbr",), "± half of the 95 % confidence interval of the mean over 3 runs"),
    ],
)
def test_report_says_what_the_intervals_are(carry_out, repeats, rivals, note):
    html = render([carry_out(make_plan(repeats, rivals))])
    assert note in html
    assert ("±" in html) == (repeats > 1)


def test_report_names_failures(carry_out):
    engine = fake_core.FakeEngine(broken_seeds=(1,))
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    results = Session(SimBackend(engine), local(2), None).carry_out(make_plan(2))
    page = render([results])
    assert page.count("Run failed (") == 4
    assert "1 of 2 runs, 1 failed: link `bottleneck`: the queue is upside down" in page


def test_a_scenario_of_a_dictionary_is_the_one_of_the_file(tmp_path):
    text = Path("scenarios/parking-lot.toml").read_text("utf-8")
    from_file = jostle.load("scenarios/parking-lot.toml")
    from_text = jostle.Scenario.from_toml(text)
    from_dict = jostle.Scenario.from_dict(tomllib.loads(text))
    specs = [[p.spec for p in s.plan().runs] for s in (from_file, from_text, from_dict)]
    assert specs[0] == specs[1] == specs[2]
    assert from_dict.text == ""
    assert from_text.text == text


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "flows: missing"),
        ({"flows": [{"name": "a", "controler": "cubic"}]}, "controller"),
        ({"flows": Path("x")}, "made of texts, numbers, lists and dictionaries"),
    ],
)
def test_a_wrong_dictionary_says_where_without_a_line(document, why):
    with pytest.raises(jostle.scenario.ScenarioError, match=why) as raised:
        jostle.Scenario.from_dict(document, name="mine")
    assert not re.search(r"mine:\d", str(raised.value))


def nested(depth):
    """Return tables within tables."""
    found = 1
    for _ in range(depth):
        found = {"a": found}
    return found


def laughing():
    """Return ten million texts, which are one."""
    found = ["x" * 1000]
    for _ in range(7):
        found = [found] * 10
    return found


def endless():
    """Return a table that holds itself."""
    found = {}
    found["a"] = found
    return found


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"x": nested(400)}, "x: nested too deeply"),
        ({"x": nested(5000)}, "x: nested too deeply"),
        ({"x": endless()}, "x: nested too deeply"),
        ({"x": laughing()}, "x: here the scenario exceeds 1000000 characters"),
        ({"title": "x" * 50_000_000}, "title: here the scenario exceeds 1000000 characters"),
        ({"title": "x" * 5_000}, "title: 5000 characters — at most 1000"),
        ({"x" * 50_000_000: 1}, "xxx … .*here the scenario exceeds 1000000 characters"),
        ({"phases": {f"p{i}": ["0 s", "1 s"] for i in range(10**5)}}, "phases: 100000 keys"),
        ({"flows": [{"name": "a" * 256}]}, "a name of 256 characters — at most 255"),
        ({"seed": 10**10_000}, "seed: a number of more than 300 digits"),
        ({"sampling_interval": float("nan")}, "made of texts, numbers"),
        ({"title": "\ud800"}, "made of texts, numbers"),
        ([1], "made of texts, numbers, lists and dictionaries: this is a list"),
    ],
    ids=[
        *("deep", "deeper", "endless", "laughing", "title", "long title", "key", "phases", "name"),
        *("digits", "nan", "surrogate", "list"),
    ],
)
def test_a_large_dictionary_is_refused_at_once(document, why):
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(jostle.scenario.ScenarioError, match=why) as raised:
        jostle.Scenario.from_dict(document)
    assert len(str(raised.value)) < 5_000
    assert time.process_time() - started < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_values_are_set_one_after_the_other():
    scenario = jostle.load("scenarios/parking-lot.toml", {"flows.long.controller": "bbr"})
    assert scenario.grid == {}
    changed = scenario.set({"flows.long.rtt": "100 ms"}, repeats=2)
    specs = [run.spec for run in changed.plan().runs]
    assert len(specs) == 2
    assert specs[0]["flows"][0]["controller"]["name"] == "bbr"
    assert scenario.plan().runs[0].spec["flows"][0] != specs[0]["flows"][0]
    with pytest.raises(jostle.scenario.ScenarioError, match="repeats"):
        scenario.set(repeats=0)


def test_overrides_and_the_store_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.undo()
    folder = tmp_path / "mine"
    monkeypatch.setattr("jostle.store.default_store", lambda: str(folder))
    given = {"duration": "6 s", "phases": {}}
    results = jostle.run("scenarios/first.toml", overrides=given)
    assert results.results[0].run.run_id in Reader(folder).names()
    again = jostle.run(jostle.load("scenarios/first.toml"), overrides=given, store=False)
    assert again.to_dict() == results.to_dict()
    assert type(again.results[0].run) is not type(results.results[0].run)


def test_a_notebook_shows_the_report_in_a_frame():
    given = {"duration": "6 s", "phases": {}}
    results = jostle.run("scenarios/first.toml", overrides=given, store=False)
    shown = results._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert html.unescape(shown).count('class="charts-data"') == 1
    scenario = jostle.load("scenarios/parking-lot.toml")._repr_html_()
    assert "<li><code>flows.long.controller</code>: reno, cubic, bbr</li>" in scenario


def test_series_of_many_flows_are_one_tidy_frame():
    given = {"flows.long.controller": "bbr", "duration": "20 s", "phases": {}, "repeats": 2}
    results = jostle.run("scenarios/parking-lot.toml", overrides=given, store=False)
    tidy = results.series(["long", "short 1"], "rtt")
    assert tidy["flow"].unique(maintain_order=True).to_list() == ["long", "short 1"]
    wide = results.series("long", "rtt")
    one = tidy.filter((tidy["flow"] == "long") & (tidy["seed"] == 2))
    assert one["value"].to_list() == wide["seed_2"].to_list()
    queue = results.series("first hop", "queue_length")
    assert queue.equals(results.series("first hop", "queue_length_mean_bytes"))
    with pytest.raises(InputError, match="long"):
        results.series(["longer"], "rtt")
    frame = results.to_pandas("flows")
    assert list(frame.columns) == results.flows.columns
    with pytest.raises(InputError, match="flows"):
        results.to_pandas("flow")


def test_conditions_are_taken_by_the_grid():
    results = jostle.run("scenarios/parking-lot.toml", repeats=1, store=False)
    taken = results.where({"flows.long.controller": "bbr"})
    assert taken.labels == ("bbr",)
    assert taken.results[0].condition == 0
    assert taken.results[0].run is results.runs_of(2)[0].run
    with pytest.raises(InputError, match="did you mean"):
        results.where(controller="bbrr")
    with pytest.raises(InputError, match=r"flows\.long\.controller"):
        results.where(controlle="bbr")


def test_numbers_of_the_grid_are_numbers():
    scenario = jostle.load("scenarios/first.toml")
    scenario = scenario.set({"phases": {}, "grid": {
        "flows.incumbent.controller.beta": [512, 717],
        "bottleneck.rate": ["10 Mbit/s", "20 Mbit/s"],
        "flows.newcomer.ecn": [True, False],
    }})  # fmt: skip
    results = jostle.run(scenario, repeats=1, store=False)
    one = results.where(beta=512, rate="20 Mbit/s", ecn=True)
    assert [dict(condition) for condition in one.conditions] == [{
        "flows.incumbent.controller.beta": "512",
        "bottleneck.rate": "20 Mbit/s",
        "flows.newcomer.ecn": "true",
    }]  # fmt: skip
    assert len(results.where(beta=[512, 717.0], ecn="false").conditions) == 4
    with pytest.raises(InputError, match=r"value of .*beta `0.7`.*there is 512, 717"):
        results.where(beta=0.7)
    for frame in (results.flows, results.links, results.estimate("goodput")):
        assert frame["flows.incumbent.controller.beta"].to_list()[0] == 512
        assert frame["bottleneck.rate"].to_list()[0] == "10 Mbit/s"


@pytest.mark.parametrize("name", ["repeats", "seed", "jobs"])
@pytest.mark.parametrize("value", [1.5, "3", float("nan"), True])
def test_numbers_of_runs_are_whole(name, value):
    with pytest.raises(InputError, match=f"^{name}: {value!r} is not a whole number"):
        jostle.run(SCENARIO, store=False, **{name: value})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("backend", 3),
        ("jobs", 0),
        ("store", True),
        ("executor", "processes"),
        ("keep", "sumary"),
        ("shard", 3),
        ("overrides", 3),
        ("overrides", {3: "5 s"}),
        ("allow_code", "no"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused(argument, value):
    with pytest.raises(InputError, match=f"^{argument}: "):
        jostle.run(SCENARIO, **({"store": False} | {argument: value}))


@pytest.mark.parametrize(
    ("argument", "value"),
    [("paths", 3), ("paths", [3]), ("flows", 0), ("flows", "3"), ("interval", 3), ("store", 3)],
)
def test_captures_need_arguments_of_their_kinds(argument, value):
    with pytest.raises(InputError, match=f"^{argument}: "):
        jostle.analyze(**({"paths": "none.pcap"} | {argument: value}))


def test_scenarios_and_results_refuse_arguments_of_the_wrong_kind():
    with pytest.raises(InputError, match=r"^overrides: "):
        jostle.load(SCENARIO).set(3)
    with pytest.raises(InputError, match="text"):
        jostle.Scenario.from_toml(3)
    results = jostle.run(SCENARIO, store=False)
    with pytest.raises(InputError, match="no measure `3`"):
        results.estimate(3)
    with pytest.raises(InputError, match="no phase `3`"):
        results.estimate("goodput", 3)
    with pytest.raises(InputError, match="results"):
        results.compare(3)
    for condition in (99, -1):
        with pytest.raises(InputError, match="condition"):
            results.run_count(condition)


@pytest.mark.parametrize("values", [{"repeats": 0}, {"seed": -1}, {"repeats": 10**9}])
def test_numbers_of_runs_are_in_range(values):
    with pytest.raises(InputError, match=next(iter(values))):
        jostle.run(SCENARIO, store=False, **values)
