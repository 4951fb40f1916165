"""Flows that are many connections, from the scenario to the tables."""

from __future__ import annotations

from pathlib import Path

import jostle
import polars as pl
import pytest
from jostle.backends.kernel.capabilities import _flow_problems
from jostle.scenario import ScenarioError, load, load_text

SCENARIO = """
title = "arrivals"
duration = "20 s"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "web"
controller = "cubic"
rtt = "20 ms"
size = { distribution = "exponential", mean = "20 kB" }
arrivals = { load = "60 %" }
"""


def with_flow(*lines: str) -> str:
    """Return the scenario with other keys than `bytes` and `arrivals`."""
    return "\n".join([*SCENARIO.splitlines()[:-2], *lines, ""])


def spec(text: str, folder: Path) -> dict[str, object]:
    (folder / "scenario.toml").write_text(text)
    return dict(load(folder / "scenario.toml").plan().runs[0].spec["flows"][0])


def test_transfers_are_a_table_that_survives_the_store(tmp_path: Path) -> None:
    run = jostle.run(load_text(SCENARIO), store=tmp_path).results[0].run
    table = run.transfers
    assert table is not None
    assert table.columns == [
        "time_s", "flow", "connection", "bytes", "completion_time_s", "slowdown",
        "retransmitted_packets",
    ]  # fmt: skip
    assert set(table["flow"]) == {"web"}
    wire = (table["bytes"] + (table["bytes"] + 1447) // 1448 * 66).sum()
    # Some 1400 exponential sizes: √(2 ⁄ 1400) = 4 % of 0.6.
    assert wire * 8 / (20e6 * 20) == pytest.approx(0.6, rel=0.12)
    (group,) = run.summary["groups"]
    assert group["transfers"] == len(table)
    over = table.filter(pl.col("completion_time_s").is_not_null())
    assert group["transfers_finished"] == len(over)
    assert group["unfinished"] == len(table) - len(over)
    assert group["slowdown_mean"] == pytest.approx(over["slowdown"].mean())
    assert over["slowdown"].min() >= 0.999
    small = over.filter(pl.col("bytes") <= 100_000)
    assert group["small_completion_time_mean_s"] == pytest.approx(small["completion_time_s"].mean())


def test_without_arrivals_there_is_no_table(tmp_path: Path) -> None:
    run = jostle.run(load_text(with_flow('size = "1 MB"')), store=tmp_path).results[0].run
    assert run.transfers is None
    assert "transfers" not in run.summary["groups"][0]


def test_how_arrivals_are_written(tmp_path: Path) -> None:
    (tmp_path / "flows.txt").write_text("# seconds, bytes\n0.5, 1000\n0.5, 20\n2 3e6\n")
    (tmp_path / "times.txt").write_text("0\n1.5\n")

    def of(*lines: str) -> dict[str, object]:
        return spec(with_flow(*lines), tmp_path)

    assert of('size = "1 kB"', 'arrivals = { rate = "5 /s" }')["arrivals"] == {
        "kind": "poisson", "rate_per_s": 5.0,
    }  # fmt: skip
    listed = of('arrivals = { file = "flows.txt" }')
    assert listed["arrivals"] == {
        "kind": "listed",
        "at_ns": [500_000_000, 500_000_000, 2_000_000_000],
        "bytes": [1000, 20, 3_000_000],
    }
    timed = of('size = "1 kB"', 'arrivals = { file = "times.txt" }')
    assert timed["arrivals"] == {"kind": "listed", "at_ns": [0, 1_500_000_000], "bytes": None}
    sessions = of(
        'source = { kind = "sessions", load = "85 %", size = "1 kB", think_time = "1 s", '
        "count = 5 }"
    )
    assert sessions["arrivals"] == {"kind": "load", "share": 0.85, "link": 0}
    assert sessions["source"] == {
        "kind": "request_response", "bytes": 1000, "think_ns": 10**9, "count": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['arrivals = { load = "60 %" }'], r"arrivals: cannot be there — expected .* have to end"),
        (['size = "1 kB"', "arrivals = {}"], "none is there"),
        (['size = "1 kB"', 'arrivals = { rate = "5" }'], "not a number per second"),
        (['size = "1 kB"', 'arrivals = { rate = "5 /s", load = "1 %" }'], "say the same"),
        (['size = "1 kB"', 'arrivals = { load = "60" }'], "not a share"),
        (
            ['size = "1 kB"', 'arrivals = { load = "6 %", load_link = "up" }'],
            'crosses no link "up"',
        ),
        (['size = "1 kB"', 'arrivals = { rate = "90000 /s" }'], "at most 1000000 connections"),
        (['size = "1 kB"', 'arrivals = { file = "none.txt" }'], "no such file"),
        (
            [
                'size = { distribution = "pareto", scale = "1 kB", shape = 0.9 }',
                'arrivals = { load = "60 %" }',
            ],
            "with a finite mean",
        ),
    ],
)
def test_what_cannot_come(lines: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load_text(with_flow(*lines)).plan()


def test_the_kernel_has_them_over_tcp_alone() -> None:
    flow = load_text(SCENARIO).plan().runs[0].spec["flows"][0]
    assert list(_flow_problems(flow)) == []
    quic = load_text(SCENARIO + 'transport = "quic"').plan().runs[0].spec["flows"][0]
    problems = list(_flow_problems(quic))
    assert any("many connections" in str(problem) for problem in problems)
