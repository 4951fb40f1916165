"""Runs and flows that did not finish: every output says how many a value lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.results import ResultSet, plot_data
from jostle.results.compare import compare
from jostle.results.pivot import pivot_tables
from jostle.results.plot_data import PlotSelection
from jostle.results.tables import View, phase_tables
from jostle.results.unfinished import FinishCount

# The start is random, so that 1 of 5 runs has too little time at 10 Mbit/s, and all at 2 Mbit/s.
SCENARIO = """
duration = "2.5 s"
repeats = 5
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "dl"
controller = "cubic"
rtt = "40 ms"
size = "1 MB"
start = "1 s"
start_jitter = "1 s"
"""
GRID = '[grid]\n"bottleneck.rate" = ["100 Mbit/s", "10 Mbit/s", "2 Mbit/s"]\n'
LONG = """
[[flows]]
name = "long"
controller = "cubic"
rtt = "40 ms"
size = "50 MB"
[[flows]]
name = "endless"
controller = "cubic"
rtt = "40 ms"
"""


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> ResultSet:
    file = tmp_path_factory.mktemp("unfinished") / "grid.toml"
    file.write_text(SCENARIO + GRID)
    return jostle.run(file, store=None)


def _jostle(capsys: Any, *arguments: str) -> tuple[int, str, str]:
    code = status(arguments, Environment(_core))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOSTLE_STORE", "none")
    return tmp_path


def test_the_first_line_says_how_many_runs_did_not_finish(folder: Path, capsys: Any) -> None:
    Path("one.toml").write_text(SCENARIO)
    _, out, _ = _jostle(capsys, "run", "one.toml", "--store", "none")
    first = out.splitlines()[0]
    assert " among those that finished; 1 of 5 runs did not finish; " in first
    Path("two.toml").write_text(SCENARIO + LONG)
    _, out, _ = _jostle(capsys, "run", "two.toml", "--store", "none", "--json")
    answer = json.loads(out)["answer"]
    assert "; 5 of 5 runs of dl and long did not finish; " in answer
    assert "endless" not in answer


def test_conditions_that_never_finish_are_named(folder: Path, capsys: Any) -> None:
    Path("grid.toml").write_text(SCENARIO + GRID)
    _, out, _ = _jostle(capsys, "run", "grid.toml", "--store", "none")
    first = out.splitlines()[0]
    assert "; 6 of 15 runs did not finish (10 Mbit/s; 2 Mbit/s); " in first


def test_a_comparison_with_unfinished_runs_is_not_judged(folder: Path, capsys: Any) -> None:
    Path("grid.toml").write_text(SCENARIO + GRID)
    asked = ("compare", "grid.toml", "--store", "none", "--measures", "completion_time")
    for slow, count in (("10", 1), ("2", 5)):
        vary = ("--vary", f"bottleneck.rate=100 Mbit/s,{slow} Mbit/s")
        code, out, _ = _jostle(capsys, *asked, *vary)
        assert code == 0
        note = f"{slow} Mbit/s: {count} of 5 runs did not finish"
        assert out.splitlines()[0] == f"1 value not judged ({note})"
        assert f"{note} (dl); their means are of the others" in " ".join(out.split())
        code, out, err = _jostle(
            capsys, *asked, *vary, "--fail-on", "completion_time of dl > 5 %", "--json"
        )
        assert code == 1
        assert f"not judged: {count} of 5 runs did not finish" in err
        (difference,) = json.loads(out)["comparisons"][0]["differences"]
        assert difference["incomplete_second"] == f"{count} of 5 runs did not finish"
        assert difference["incomplete_first"] is None
        assert difference["p"] is None


def test_a_distribution_ends_at_the_finished_share(grid: ResultSet) -> None:
    data = plot_data.cdf_data(grid, "completion_time")
    ends = {curve.label: curve.y[-1] for _, part in data.parts for curve in part.curves}
    assert ends == {"100 Mbit/s": 1.0, "10 Mbit/s": 0.8}
    assert "With a value: 0 to 5 of 5 runs each; the others, which count as the largest, did not " \
           "finish." in data.caption  # fmt: skip
    # A rate of what did not finish is lower than all others.
    data = plot_data.cdf_data(grid, "completion_rate")
    begins = {curve.label: curve.y[0] for _, part in data.parts for curve in part.curves}
    assert begins == pytest.approx({"100 Mbit/s": 0.2, "10 Mbit/s": 0.4})


def test_captions_give_the_number_of_values(grid: ResultSet) -> None:
    text = "With a value: 0 to 5 of 5 runs each; the others did not finish."
    assert text in plot_data.box_data(grid, "completion_time", "rate").caption
    assert text in plot_data.lines_data(grid, "rate", "completion_time").caption
    data = plot_data.heat_map_data(grid, "flow", "completion_time", ["rate"])
    assert text in data.caption
    ((_, table),) = data.parts
    # The row of the condition in which no run finished is there, without a value.
    assert table.rows == ("100", "10", "2")
    assert np.isnan(table.values).tolist() == [[False], [False], [True]]
    whole = plot_data.box_data(grid, "rtt", "rate", choice=PlotSelection())
    assert "With a value" not in whole.caption


def test_tables_of_means_say_that_runs_did_not_finish(grid: ResultSet) -> None:
    (table,) = pivot_tables(grid, "flow", "rate", "completion_time")
    where = "(10 Mbit/s; 2 Mbit/s)"
    assert table.notes == (f"6 of 15 runs did not finish {where}: the means are of the others.",)
    for whole in pivot_tables(grid, "flow", "rate", "rtt"):
        assert whole.notes == ()


def test_counts_of_several_kinds_add_up() -> None:
    assert FinishCount(1, 3, "run") + FinishCount(2, 3, "run") == FinishCount(3, 6, "run")
    assert str(FinishCount(1, 1, "run")) == "1 of 1 run did not finish"


def test_notes_name_the_condition_that_they_are_about(grid: ResultSet) -> None:
    (table, *_) = phase_tables(grid, grid.phases[0].name, View(columns=("completion_time",)))
    assert table.notes == ("Flow completion time: dl (10 Mbit/s) has one in 4 of 5 runs.",)
    compared = compare(grid, grid, ("completion_time",), names=("A", "B"))
    (note,) = [note for note in compared.alone if "A: 1 of 5 runs" in note]
    assert "(dl, rate 10 Mbit/s)" in note
