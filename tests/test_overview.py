"""A sweep at a glance, and names of axes that fit."""

from __future__ import annotations

from pathlib import Path

import jostle
import pytest
from jostle.figures.style import LETTER_IN, wrapped
from jostle.report import render
from jostle.results.sweep_overview import overview

DOWNLOAD = """
duration = "8 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "2 BDP" }
[[flows]]
name = "download"
controller = "cubic"
rtt = "20 ms"
size = "100 kB"
"""
SWEEP = """
[grid]
"flows.download.controller" = ["cubic", "bbr"]
"flows.download.rtt" = ["10 ms", "20 ms", "40 ms", "80 ms"]
"bottleneck.rate" = ["10 Mbit/s", "20 Mbit/s"]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> jostle.ResultSet:
    file = tmp_path_factory.mktemp("sweep") / "sweep.toml"
    file.write_text(DOWNLOAD + SWEEP)
    return jostle.run(file)


def test_what_is_compared_stands_beside_each_other(results: jostle.ResultSet) -> None:
    table = overview(results)
    assert table is not None
    assert table.title == "Flow completion time (s) by controller"
    assert table.header == ("rtt", "rate", "cubic", "bbr")
    assert [row[:2] for row in table.rows[:3]] == [
        ("10 ms", "10 Mbit/s"), ("10 ms", "20 Mbit/s"), ("20 ms", "10 Mbit/s"),
    ]  # fmt: skip
    assert table.groups == (0, 2, 4, 6)
    where = {"controller": "bbr", "flows.download.rtt": "40 ms", "rate": "20 Mbit/s"}
    (value,) = results.where(**where).estimate("completion_time")["value"]
    assert float(table.rows[5][3]) == pytest.approx(value, abs=0.001)


def test_it_is_there_where_all_measures_would_fill_the_screen(results: jostle.ResultSet) -> None:
    page = render([results])
    assert page.index("Flow completion time (s) by controller") < page.index("<details")
    assert "<details><summary><strong>overall" in page


def test_what_has_no_end_is_shown_by_what_it_gets(tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    more = '[[flows]]\nname = "bulk"\ncontroller = "cubic"\nrtt = "20 ms"\n'
    file.write_text(DOWNLOAD + more + SWEEP)
    table = overview(jostle.run(file))
    assert table is not None
    assert table.title == "Goodput (Mbit/s) by controller"
    assert {row[2] for row in table.rows} == {"download", "bulk"}


def test_one_key_needs_no_overview(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text(DOWNLOAD + '[grid]\n"flows.download.controller" = ["cubic", "bbr"]\n')
    assert overview(jostle.run(file)) is None


@pytest.mark.parametrize(
    ("label", "letters", "lines"),
    [
        ("RTT (ms)", 20, ["RTT (ms)"]),
        ("95th percentile of the RTT (ms)", 20, ["95th percentile of", "the RTT (ms)"]),
        ("95th percentile of the delay (ms)", 20, ["95th percentile of", "the delay (ms)"]),
        ("Responses on time and whole (ms)", 28, ["Responses on time and whole", "(ms)"]),
        ("Jain's index", 40, ["Jain's index"]),
        ("", 40, [""]),
    ],
)
def test_names_of_axes_are_broken_and_units_are_not(
    label: str, letters: int, lines: list[str]
) -> None:
    assert wrapped(label, letters * LETTER_IN + 0.001).split("\n") == lines
