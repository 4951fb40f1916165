"""LEDBAT++ among others: what its draft promises, in the simulator."""

from __future__ import annotations

from pathlib import Path

import jostle
import pytest
from jostle.results import ResultSet

SCENARIO = """
duration = "120 s"
sampling_interval = "100 ms"
[phases]
steady = ["60 s", "120 s"]
[bottleneck]
rate = "20 Mbit/s"
queue = {{ kind = "drop_tail", limit = "{limit}" }}
[[flows]]
name = "first"
controller = "{first}"
rtt = "40 ms"
[[flows]]
name = "late"
controller = "{late}"
rtt = "40 ms"
start = "20 s"
"""


def run(folder: Path, first: str, late: str, limit: str) -> ResultSet:
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(first=first, late=late, limit=limit), "utf-8")
    return jostle.run(path)


def steady(results: ResultSet) -> list[float]:
    """Goodput in Mbit/s of the first and of the late flow."""
    flows = results.flows
    return [bps / 1e6 for bps in flows.filter(flows["phase"] == "steady")["goodput_bps"]]


def test_a_latecomer_learns_the_paths_own_delay(tmp_path: Path) -> None:
    """After its first slowdown it is off by less than 5 ms, and shares equally."""
    results = run(tmp_path, "ledbat++", "ledbat++", "200 kB")
    internals = results.results[0].run.internals
    wanted = (internals["flow"] == "late") & (internals["quantity"] == "base_rtt_s")
    late = internals.filter(wanted & (internals["time_s"] > 22.0))
    # The packet's own time on the link is part of it.
    path_s = 0.040 + 1514 * 8 / 20e6
    assert max(late["value"].to_list()) == pytest.approx(path_s, abs=0.005)
    first, second = steady(results)
    assert 0.9 < second / first < 1.1


@pytest.mark.parametrize("scavenger", ["ledbat", "ledbat++"])
def test_cubic_keeps_what_it_had(tmp_path: Path, scavenger: str) -> None:
    """Where the queue outgrows the target: 200 ms of buffer, targets of 60 and 100 ms."""
    first, cubic = steady(run(tmp_path, scavenger, "cubic", "500 kB"))
    assert cubic / (first + cubic) > 0.9
