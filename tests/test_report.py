"""A report: the data of its charts are the results', the scenario in it gives the same page."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import pytest
from jostle.cli import status
from jostle.report import render
from jostle.report.chart_data import MOST_FLOWS, _traced_flows, charts
from jostle.report.topology_svg import MOST_LANES, topology
from jostle.results import ResultSet

SCENARIO = """\
# Does a newcomer take
# what the incumbent had?
#
# Four seconds tell.
title             = "A </script> & a $ title"
duration          = "4 s"
repeats           = 3
sampling_interval = "1 s"

[phases]
later = ["2 s", "4 s"]

[bottleneck]
rate  = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name         = "incumbent"
controller   = "cubic"
rtt          = "40 ms"
start_jitter = "10 ms"

[[flows]]
name       = "newcomer"
controller = "bbr"
rtt        = "40 ms"
start      = "1 s"

[grid]
"bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"]
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "question.toml"
    path.write_text(SCENARIO, "utf-8")
    return path


@pytest.fixture(scope="module")
def results(file: Path) -> ResultSet:
    return jostle.run(file)


def values_of(packed: dict[str, Any], values: str, panel: str, who: int) -> np.ndarray:
    """Rows of a trace of the first condition, as the page's script reads them."""
    condition = packed["conditions"][0]
    trace = condition["traces"][panel][who]
    steps = np.frombuffer(gzip.decompress(base64.b64decode(values)), "<u2")
    rows = steps[trace["at"] :][: trace["rows"] * condition["bins"]]
    rows = rows.reshape(trace["rows"], -1).astype(float)
    return np.where(rows == 65535, np.nan, trace["low"] + rows * trace["step"])


def test_charts_have_the_series_of_every_run(results: ResultSet) -> None:
    packed = charts(results)
    rows = values_of(packed.data, packed.values, "throughput", 0)
    series = results.series("incumbent", "throughput", 0).drop("time_s").to_numpy().T / 1e6
    assert rows.shape == (3 + 3, 4)
    np.testing.assert_allclose(rows[3:], series, atol=(series.max() - series.min()) / 65_000)
    np.testing.assert_allclose(rows[0], series.mean(axis=0), rtol=1e-3)
    assert packed.data["conditions"][0]["first_s"] == 0.5
    (note,) = packed.notes
    assert note.startswith("Lines: mean over 3 runs of each condition, with its 95 % interval.")


def test_a_window_is_drawn_while_the_flow_lives(results: ResultSet) -> None:
    packed = charts(results)
    rows = values_of(packed.data, packed.values, "cwnd", 1)
    assert np.isnan(rows[:, 0]).all(), "the newcomer starts at 1 s"
    assert not np.isnan(rows[0, 1:]).any()


def test_a_page_stays_small_and_says_how(results: ResultSet) -> None:
    every = len(charts(results).values)
    # Two conditions of four bins, with two flows and a link: mean and interval of each.
    means = 2 * 4 * 3 * 3 * len(charts(results).data["panels"])
    few = charts(results, most_values=means)
    assert few.notes[1:] == ("Single runs are left out to keep this page small.",)
    assert len(few.values) < every
    fewer = charts(results, most_values=200)
    assert len(fewer.notes) == 4
    assert re.search("A point summarizes . intervals", fewer.notes[3])
    rows = values_of(fewer.data, fewer.values, "goodput", 0)
    whole = values_of(charts(results).data, charts(results).values, "goodput", 0)
    together = 4 // fewer.data["conditions"][0]["bins"]
    assert together > 1
    np.testing.assert_allclose(rows[0], whole[0].reshape(-1, together).mean(axis=1), rtol=1e-3)


def test_of_many_flows_the_extremes_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    path.write_text(
        'duration = "2 s"\n[bottleneck]\nrate = "20 Mbit/s"\nqueue = { kind = "drop_tail", '
        'limit = "2 BDP" }\n[[flows]]\nname = "web"\ncount = 40\ncontroller = "reno"\n'
        'rtt = "40 ms"\nstart_jitter = "1 s"\n',
        "utf-8",
    )
    several = jostle.run(path)
    condition = charts(several).data["conditions"][0]
    names = [one["name"] for one in condition["flow"]]
    assert len(names) == 3
    assert condition["flow"][2]["label"] == "web ×40: mean and range"
    packed = charts(several)
    crowd = values_of(packed.data, packed.values, "throughput", 2)
    every = several.series(None, "throughput")["value"].to_numpy().reshape(40, -1) / 1e6
    for row, expected in zip(crowd, (every.mean(0), every.min(0), every.max(0)), strict=True):
        np.testing.assert_allclose(row, expected, atol=1e-3)
    got = several.flows.filter(several.flows["phase"] == "overall").sort("throughput_bps")["flow"]
    assert names[:2] == [got[0], got[-1]]
    spec = several.results[0].run.spec
    apart = [{**flow, "group": None} for flow in several.results[0].run.summary["flows"]]
    kept, more = _traced_flows(apart)
    assert (len(kept), more) == (MOST_FLOWS, 40 - MOST_FLOWS)
    drawing = topology(spec)
    assert "web × 40 (reno)" in drawing
    assert drawing.count('class="lane"') == 1


def test_a_network_is_drawn_with_what_crosses_what() -> None:
    spec = jostle.load("scenarios/parking-lot.toml").plan().runs[0].spec
    drawing = topology(spec)
    assert drawing.count('class="link"') == 3
    assert drawing.count('class="lane"') == 4
    assert drawing.count('class="crossed"') == 6
    assert "50 Mbit/s" in drawing
    assert "RTT 60 ms" in drawing
    many = [dict(spec["flows"][0], name=f"flow {'abcdefghijklmnop'[at]}") for at in range(16)]
    assert f"and {16 - MOST_LANES + 1} more" in topology({**spec, "flows": many})  # type: ignore[typeddict-item]


def test_what_goes_over_quic_says_so_in_the_drawing() -> None:
    scenario = jostle.load("scenarios/quic-beside-tcp.toml")
    spec = scenario.plan().runs[0].spec
    drawing = topology(spec)
    over = {flow["name"]: flow["transport"] for flow in spec["flows"]}
    assert set(over.values()) == {"tcp", "quic"}
    assert drawing.count(" over QUIC)") == list(over.values()).count("quic")
    assert "over TCP" not in drawing
    quic = spec["flows"][list(over).index(next(n for n in over if over[n] == "quic"))]
    commands = {"server": ["a"], "client": ["b"]}
    other = {**quic["quic"], "implementation": {"name": "ngtcp2", "commands": commands}}  # type: ignore[dict-item]
    drawing = topology({**spec, "flows": [{**quic, "quic": other}]})  # type: ignore[typeddict-item]
    assert "over QUIC (ngtcp2)" in drawing


def test_the_answer_precedes_the_tables(file: Path, results: ResultSet) -> None:
    page = render([results], [str(file)], answers=["The newcomer gets <most>."])
    sentence = page.index("The newcomer gets &lt;most&gt;.")
    assert page.index('id="answer-1"') < sentence < page.index("<details")


def test_the_question_comes_first(file: Path, results: ResultSet) -> None:
    page = render([results], [str(file)])
    assert '<p class="question">Does a newcomer take what the incumbent had?</p>' in page
    assert '<p class="question">Four seconds tell.</p>' in page
    answer, over_time = page.index('id="answer-1"'), page.index('id="over-time-1"')
    assert page.index("Does a newcomer") < answer < over_time < page.index('id="scenario-of-1"')
    # A text of the results ends no element of the page.
    assert "A </script>" not in page
    (block,) = re.findall(r'class="charts-data"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert json.loads(block)["data"]["keys"] == ["bottleneck.rate"]


def test_the_scenario_in_a_page_gives_the_same_page(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["--repeats", "2", "--set", "flows.newcomer.start=2 s"]
    assert status(["run", str(file), *given, "--store", "first", "-o", "report.html"]) == 0
    page = Path("report.html").read_text("utf-8")
    (source,) = re.findall(r'<pre id="scenario-1">(.*?)</pre>', page, re.DOTALL)
    Path("again").mkdir()
    Path("again/question.toml").write_text(html.unescape(source), "utf-8")
    assert Path("again/question.toml").read_text("utf-8") == SCENARIO
    (command,) = re.findall(r"<pre>(jostle run .*?)</pre>", page)
    monkeypatch.chdir("again")
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", html.unescape(command))]
    assert status([*words[1:], "--store", "second"]) == 0
    assert Path("report.html").read_bytes() == Path("../report.html").read_bytes()
