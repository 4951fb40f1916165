"""Every output says how many runs failed and why, and none judges the remaining runs alone."""

from __future__ import annotations

import html
import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Xml

import jostle
import polars as pl
import pytest
from fake_core import FakeEngine
from jostle import _core
from jostle.backends import SimBackend
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.fidelity import compare as compare_backends
from jostle.fidelity.document import document as fidelity_document
from jostle.fidelity.markdown import page as fidelity_page
from jostle.results import ResultSet
from jostle.results.plots import KINDS, data_of
from jostle.results.run_count import RunCount
from small_study import copy_study, leave_first_figure

NETWORK = """
duration = "2 s"
repeats = 3
[bottleneck]
rate = "8 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
start_jitter = "20 ms"
rtt = "20 ms"
[[flows]]
name = "two"
controller = "cubic"
rtt = "20 ms"
"""
SCENARIO = f"""
title = "Two controllers on two paths"
{NETWORK}[phases]
late = ["1 s", "2 s"]
[grid]
"flows.one.controller" = ["cubic", "reno"]
"flows.*.rtt" = ["20 ms", "40 ms"]
"""
SAMPLED = f"""
title = "Where a share ends"
{NETWORK}[sample]
points = 4
"bottleneck.rate" = {{ from = "2 Mbit/s", to = "20 Mbit/s", scale = "log" }}
"bottleneck.queue.limit" = {{ from = "0.5 BDP", to = "2 BDP" }}
"""
REASON = "link bottleneck: the queue is upside down"
FAILED = re.compile(rf"2 of 3 runs, 1 failed: {re.escape(REASON)}")
SOME_FAILED = re.compile(rf"(\d) of (?!\1)\d runs, \d failed: {re.escape(REASON)}")
HERE = Path(__file__).parent

Command = Callable[..., tuple[int, str, str]]
"""Runs a command with an engine in which seed 2 fails; returns status, stdout and stderr."""


def plain(text: str) -> str:
    """Remove escapes of HTML, marks of code and line breaks within a sentence."""
    return " ".join(html.unescape(text).replace("`", "").split())


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOSTLE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "400")
    Path("grid.toml").write_text(SCENARIO)
    Path("sample.toml").write_text(SAMPLED)
    shutil.copytree(HERE / "suites" / "small", "suites/small")
    leave_first_figure(copy_study(Path("studies")))

    def run(*words: str) -> tuple[int, str, str]:
        code = status(words, Environment(FakeEngine(broken_seeds=(2,))))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


GRID = ("run", "grid.toml")
BETWEEN = ("compare", "grid.toml", "--vary", "controller=cubic,reno")
ENVELOPES = (
    "compare", "--method", "envelope", "grid.toml", "--vary", "controller=cubic,reno",
    "--set", "sampling_interval=100 ms",
)  # fmt: skip
BOUNDARY = ("search", "boundary", "sample.toml", "--claim", "share of one <= 50 %", "--points", "4")
SUITE = ("suite", "run", "./suites/small", "--controller", "reno", "--repeats", "3")
SCORECARD = ("suite", "scorecard", "reno", "cubic", "--suite", "./suites/small", "--repeats", "3")
STUDY = ("study", "run", "./studies/small", "-o", "pages/")


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (GRID, ()),
        ((*GRID, "--measures", "jain", "--phase", "late"), ()),
        ((*GRID, "--max-rows", "2"), ()),
        ((*GRID, "--pivot", "controller:rtt", "--measures", "throughput"), ()),
        ((*GRID, "--json", "-o", "report.html"), ("report.html",)),
        ((*GRID, "--csv", "-o", "runs.parquet"), ("runs.parquet",)),
        ((*GRID, "--set", "repeat_until=throughput of one ± 1 %"), ()),
        ((*BETWEEN, "-o", "both.parquet"), ("both.parquet",)),
        ((*BETWEEN, "--csv"), ()),
        ((*ENVELOPES, "-o", "both.parquet"), ("both.parquet",)),
        ((*ENVELOPES, "--json"), ()),
        (BOUNDARY, ()),
        ((*BOUNDARY, "--json"), ()),
        ((*SUITE, "-o", "suite.xml"), ("suite.xml",)),
        ((*SUITE, "--json"), ()),
        pytest.param(
            (*SCORECARD, "--json", "-o", "card.html"), ("card.html",), marks=pytest.mark.slow
        ),
        ((*STUDY, "-o", "study.parquet"), ("study.parquet",)),
        pytest.param((*STUDY, "--json"), ("pages/small.html",), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_every_output_counts_failed_runs_and_says_why(
    command: Command, words: tuple[str, ...], files: tuple[str, ...]
) -> None:
    code, out, err = command(*words)
    assert code == 1, err
    read = (
        pl.read_parquet(file).write_csv() if file.endswith(".parquet") else Path(file).read_text()
        for file in files
    )
    for text in (out, *read):
        assert SOME_FAILED.search(plain(text)), text


def test_adaptive_repeats_end_where_a_run_failed(command: Command) -> None:
    _, out, _ = command(*GRID, "--set", "repeat_until=throughput of one ± 1 %")
    assert "4 conditions with failed runs got no more repeats" in plain(out)


def test_a_sweep_says_why_runs_failed(command: Command) -> None:
    command(*GRID)
    _, out, _ = command("sweep", "status")
    assert f"4 failed ({REASON})" in plain(out)
    _, out, _ = command("sweep", "status", "--json")
    assert f'"failure": "{REASON}"' in plain(out)


def test_an_index_needs_all_runs(command: Command) -> None:
    words = ("search", "sensitivity", "sample.toml", "--measure", "share of one", "--points", "4")
    code, _, err = command(*words)
    assert code == 1
    assert f"32 of 48 runs, 16 failed: {REASON}" in plain(err)


def test_stored_results_without_some_runs_are_incomplete(command: Command) -> None:
    command(*GRID, "--store", "first")
    command(*GRID, "--store", "second")
    code, out, _ = command("compare", "first", "second")
    assert code == 1
    assert "A: each of 4 conditions: 2 of 3 runs, 1 failed: not in the store" in plain(out)


def test_comparisons_give_no_verdict(command: Command) -> None:
    _, out, _ = command(*BETWEEN, "-o", "differences.csv")
    frame = pl.read_csv("differences.csv", infer_schema_length=None)
    assert frame.height > 0
    assert frame["p"].null_count() == frame["p_corrected"].null_count() == frame.height
    assert "(runs failed)" in out
    assert "no verdict on the remaining runs" in plain(out)


def test_a_boundary_judges_no_point(command: Command) -> None:
    code, out, _ = command(*BOUNDARY, "--json")
    points = json.loads(out)["points"]
    assert code == 1
    assert [one["holds"] for one in points] == [None] * 4
    assert all(FAILED.fullmatch(plain(one["incomplete"])) for one in points)


def test_a_suite_judges_no_criterion(command: Command) -> None:
    _, out, _ = command(*SUITE, "--json", "-o", "suite.xml")
    rows = [row for row in json.loads(out)["criteria"] if row["incomplete"]]
    assert {row["verdict"] for row in rows} == {"unknown"}
    assert len(rows) == 3
    cases = Xml.parse("suite.xml").getroot().iter("testcase")
    assert all(case.find("skipped") is not None for case in cases)


def test_a_study_judges_no_claim(command: Command) -> None:
    _, out, _ = command(*STUDY, "--json")
    (study,) = json.loads(out)["studies"]
    rows = [row for row in (*study["claims"], *study["numbers"]) if row["incomplete"]]
    assert len(rows) > 3
    assert all(row["holds"] is None for row in rows)


@pytest.fixture(scope="module")
def results() -> ResultSet:
    """Results in which seed 2 of each condition is absent."""
    scenario = jostle.Scenario.from_toml(SCENARIO).set({"sampling_interval": "100 ms"})
    backend = SimBackend(FakeEngine(broken_seeds=(2,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return jostle.run(scenario, backend, store=False)


GIVEN = {
    "lines": {"x": "rtt", "y": "throughput"},
    "heatmap": {"x": "rtt", "y": "throughput", "by": "controller"},
    "cdf": {"y": "rtt"},
    "box": {"y": "throughput"},
    "series": {"condition": 1},
    "phase": {"condition": 1},
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("rrul", "time-sequence")])
def test_every_figure_counts_failed_runs(results: ResultSet, kind: str) -> None:
    data = data_of(results, kind, GIVEN.get(kind, {}))  # type: ignore[arg-type]
    assert FAILED.search(plain(data.caption))
    drawn = getattr(results.plot, kind)(**GIVEN.get(kind, {}))
    assert FAILED.search(plain(drawn.get_supxlabel()))


def test_figures_in_files_count_failed_runs(results: ResultSet) -> None:
    from jostle.results.figure_files import all_figures

    figures = {name: draw() for name, draw in all_figures(results).items()}
    assert len(figures) == 4 + 2
    for name, figure in figures.items():
        assert FAILED.search(plain(figure.get_supxlabel())), name


def test_results_count_failed_runs(results: ResultSet) -> None:
    assert FAILED.fullmatch(plain(str(results.run_count(0))))
    assert plain(str(results.run_counts)) == f"8 of 12 runs, 4 failed: {REASON}"
    assert results.failure_notes == (f"each of 4 conditions: {results.run_count(0)}",)
    assert set(results.failure_notes) <= set(results.notes)
    assert all(FAILED.fullmatch(plain(one)) for one in results.estimate("throughput")["incomplete"])
    assert all(
        FAILED.fullmatch(plain(one["incomplete"])) for one in results.to_dict()["conditions"]
    )
    assert FAILED.search(plain(results._repr_html_()))


def test_a_condition_without_any_run_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(SCENARIO)
    engine = Environment(FakeEngine(broken_seeds=(1, 2, 3)))
    for words in ((), ("--csv",), ("--json",), ("-o", "report.html")):
        assert status(["run", "grid.toml", "--store", "none", *words], engine) == 1
        out = capsys.readouterr().out
        text = Path("report.html").read_text() if "-o" in words else out
        assert f"0 of 3 runs, 3 failed: {REASON}" in plain(text), words


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "all.toml", "all.toml", "--fail-on", "goodput < -5 %"),
        ("compare", "grid.toml", "--vary", "controller=cubic,reno"),
        ("compare", "--method", "envelope", "all.toml", "all.toml"),
        *(("plot", "all.toml", "--kind", kind) for kind in ("series", "events", "phase", "rrul")),
        ("plot", "all.toml", "--kind", "time-sequence"),
        ("plot", "all.toml", "--kind", "box", "--y", "goodput", "-o", "box.csv"),
        ("plot", "grid.toml", "--kind", "heatmap", "--x", "rtt",
         "--group-by", "one.controller", "--y", "goodput"),
        ("search", "sensitivity", "sample.toml", "--points", "2", "--measure", "goodput of one"),
        ("search", "tune", "all.toml", "--vary", 'bottleneck.queue.limit=["1 BDP", "2 BDP"]',
         "--maximize", "goodput of one", "--trials", "1"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_without_any_run_say_why_and_end_with_1(
    command: Command, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    Path("all.toml").write_text(f'title = "All"\n{NETWORK}')
    engine = Environment(FakeEngine(broken_seeds=tuple(range(1, 1000))))
    code = status([*words, "--store", "none"], engine)
    err = capsys.readouterr().err
    assert code == 1, err
    assert re.search(rf"error: .*0 of (\d+) runs?, \1 failed: {re.escape(REASON)}", plain(err))


def test_complete_results_say_nothing(results: ResultSet) -> None:
    whole = jostle.run(jostle.Scenario.from_toml(SCENARIO), SimBackend(_core), store=False)
    assert whole.failure_notes == ()
    assert "failed" not in whole.to_json().replace('"failures": []', "")
    assert whole.estimate("throughput")["incomplete"].null_count() == 8
    found = whole.compare(results)
    assert found["incomplete_first"].null_count() == found.height
    assert found["incomplete_second"].null_count() == 0


def test_the_kernel_is_not_compared_with_survivors(results: ResultSet) -> None:
    whole = jostle.run(jostle.Scenario.from_toml(SCENARIO), SimBackend(_core), store=False)
    compared = compare_backends("grid", results, whole)
    assert compared.within == 0
    texts = [
        fidelity_page([compared], [], "jostle validate"),
        json.dumps(fidelity_document([compared])),
    ]
    assert all(FAILED.search(plain(text)) for text in texts)


def test_reasons_are_counted() -> None:
    errors = ("a", "b", "a", "c", "d\n  e", "f")
    assert RunCount(1, errors).reason == "a (2), b (1), c (1), other reasons (2)"
    assert str(RunCount(1)) == "1 run"
    several = RunCount.sum_of([RunCount(1, ("a",)), RunCount(2, ("a",))])
    assert several.incomplete == "3 of 5 runs, 2 failed: a"
