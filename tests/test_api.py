"""The Python interface."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import fake_core
import jostle
import pytest
from fake_plan import make_plan
from jostle.backends import SimBackend, create
from jostle.errors import InputError, close_to
from jostle.report import render

EXAMPLE = Path(__file__).parents[1] / "examples" / "two_flows.py"


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
    with pytest.raises(InputError, match=r"not a dict: jostle.scenario.loads reads TOML"):
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
    assert "jostle report 'a b.toml'" in html.replace("&#39;", "'")
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
    from jostle.running.executors import local
    from jostle.running.session import Session

    results = Session(SimBackend(engine), local(2), None).carry_out(make_plan(2))
    assert render([results]).count("upside down") == 4
