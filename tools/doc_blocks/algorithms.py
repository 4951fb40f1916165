"""Facts of an algorithm's page, and its figure of runs made here.

The simulator's curves come from the installed engine. The kernel's are recorded by
`tools/results/record_kernel.py`, since a kernel is not at hand wherever pages are written.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import jostle
import numpy as np
import polars as pl
from jostle.backends.kernel.packet_sizes import PAYLOAD_BYTES
from jostle.figures import PanelData, StackedData, draw, family_tree, save
from jostle.figures.data import Line

from doc_blocks.tables import algorithm_row, facts, parameters, registry, sentence

DOCS: Final = Path(__file__).parents[2] / "docs"
_SCENARIOS: Final = {
    "controllers": "controller.toml",
    "slow_starts": "slow-start.toml",
    "peer_caches": "memory.toml",
}
_KEYS: Final = {
    "controllers": "flows.flow.controller",
    "slow_starts": "flows.flow.slow_start",
    "peer_caches": "flows.flow.peer_cache",
}


def pages_folder(docs: Path = DOCS) -> Path:
    """Return the folder of the algorithms' pages, which has the scenarios of their figures."""
    found = next(
        docs.glob("**/algorithms/controller.toml"), docs / "algorithms" / "controller.toml"
    )
    return found.parent


def file_stem(name: str) -> str:
    """Return the name of an algorithm's picture without its ending."""
    return name.replace("+", "-plus")


def scenario_file(name: str) -> Path:
    """Return the scenario of an algorithm's figure."""
    return pages_folder() / _SCENARIOS[algorithm_row(name)[0]]


def recorded_file(name: str) -> Path:
    """Return the file of the kernel's curves, whether or not it exists."""
    return pages_folder() / "recorded" / f"{name}.csv"


def algorithm_run(name: str) -> jostle.ResultSet:
    """Run the scenario of an algorithm's figure."""
    key = _KEYS[algorithm_row(name)[0]]
    with warnings.catch_warnings():
        # That DCTCP answers losses alone on such a link is what its figure shows.
        warnings.simplefilter("ignore", UserWarning)
        return jostle.run(jostle.load(scenario_file(name), {key: f'"{name}"'}), jobs=1)


def algorithm_facts(name: str, results: jostle.ResultSet) -> Iterator[str]:
    """Yield what the registry says, and the state that a run shows."""
    kind, row = algorithm_row(name)
    yield f"{sentence(row['summary'])}\n"
    yield from facts(row)
    yield from parameters(row)
    if kind != "slow_starts":
        internals = results.results[0].run.internals
        if observed := sorted(set(internals["quantity"])):
            yield f"**State that a run shows:** {', '.join(f'`{q}`' for q in observed)}\n"


def draw_algorithm(name: str, results: jostle.ResultSet, stem: Path) -> None:
    """Draw window and RTT of the simulator and, where it is recorded, of the kernel."""
    save.save(draw.stacked(_overlay(name, results)), stem, ("svg",))


def draw_family_tree(stem: Path) -> None:
    """Draw the controllers by group, with an arrow from each to those that build on it."""
    data = family_tree.family_tree(registry()["controllers"])
    save.save(draw.family(data), stem, ("svg",))


def alt_text(name: str) -> str:
    """Return the alternative text of the figure."""
    role = {"controllers": "", "slow_starts": " as its slow start", "peer_caches": " as its memory"}
    kind = algorithm_row(name)[0]
    return f"Window and RTT over time of one flow with {name}{role[kind]}"


def caption(name: str) -> str:
    """Return the caption of the figure."""
    kind = algorithm_row(name)[0]
    if kind == "slow_starts":
        return "*One Reno flow with this slow start: 50 Mbit/s, 100 ms, a buffer of one BDP.*\n"
    if kind == "peer_caches":
        return (
            "*The third of three Cubic flows to one peer: 50 Mbit/s, 100 ms, one BDP of buffer.*\n"
        )
    linux = ", and the same flow on Linux 6.1" if recorded_file(name).exists() else ""
    return f"*One flow alone: 20 Mbit/s, 50 ms, a buffer of one BDP{linux}.*\n"


def _overlay(name: str, results: jostle.ResultSet) -> StackedData:
    # Of flows that follow each other, the last one.
    series = results.condition_series(0).filter(pl.col("flow") == results.flow_names(0)[-1])
    times = series["time_s"].to_numpy()
    windows = series["cwnd_bytes"].to_numpy() / PAYLOAD_BYTES
    sides = [("simulator", times, windows, series["rtt_mean_s"].to_numpy() * 1e3)]
    if recorded_file(name).exists():
        with recorded_file(name).open(newline="") as file:
            rows = [[float(cell or "nan") for cell in row] for row in list(csv.reader(file))[1:]]
        times, windows, rtts = np.array(rows).T
        sides.append(("Linux 6.1", times, windows, rtts))
    panels = []
    for quantity, unit, at in (("cwnd", "packets", 2), ("RTT", "ms", 3)):
        lines = []
        for side in sides:
            none = np.full(len(side[1]), np.nan)
            lines.append(Line(side[0], side[1], side[at], none, none))
        panels.append(PanelData(quantity, unit, tuple(lines)))
    return StackedData("", tuple(panels), (), 1)
