"""Directives of the algorithms' pages: facts from the registry, and figures of runs made here.

The simulator's curves come from the engine that the documentation is built with. The kernel's are
recorded, by `docs/record_kernel.py`, since a kernel is not at hand wherever the pages are built.
"""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import polars as pl
from jostle import _core
from jostle.backends.kernel.packet_sizes import PAYLOAD_BYTES
from jostle.figures import PanelData, StackedData, draw, family_tree, save
from jostle.figures.data import Line
from jostle_reference import _facts, _Markdown, _parameters, _plain
from sphinx.application import Sphinx

HERE = Path(__file__).parents[1] / "algorithms"
RECORDED = HERE / "recorded"
_LINKS = {
    "controllers": "controller.toml",
    "slow_starts": "slow-start.toml",
    "peer_caches": "memory.toml",
}
_KEYS = {
    "controllers": "flows.flow.controller",
    "slow_starts": "flows.flow.slow_start",
    "peer_caches": "flows.flow.peer_cache",
}


class Algorithm(_Markdown):
    """A controller, slow start or memory: what the registry and a run of it say."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        name = self.arguments[0]
        kind, row = _row(name)
        yield f"{_plain(row['summary'][0].upper() + row['summary'][1:])}.\n"
        yield from _facts(row)
        yield from _parameters(row)
        results = _results(kind, name)
        internals = results.results[0].run.internals
        observed = sorted(set(internals["quantity"])) if kind != "slow_starts" else []
        if observed:
            yield f"**State that a run shows:** {', '.join(f'`{q}`' for q in observed)}\n"
        stem = self._figure(kind, name, results)
        yield f"```{{image}} {stem}\n:width: 440px\n:align: center\n:alt: {_alt(kind, name)}\n```\n"
        yield _caption(kind, name)

    def _figure(self, kind: str, name: str, results: jostle.ResultSet) -> str:
        stem = Path(self.env.srcdir) / "_build" / "figures" / name.replace("+", "-plus")
        for source in (HERE / _LINKS[kind], _recorded_path(name)):
            self.env.note_dependency(str(source))
        save.save(draw.stacked(_overlay(name, results)), stem, ("svg",))
        return f"/_build/figures/{stem.name}.svg"


class AlgorithmTable(_Markdown):
    """All controllers, slow starts or peer caches, with links to their pages."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        rows = json.loads(_core.registry())[self.arguments[0]]
        yield "| Name | Class | What it is |\n| --- | --- | --- |"
        for row in sorted(rows, key=lambda row: (row["class"], row["name"])):
            link = f"[`{row['name']}`](algorithms/{row['name']}.md)"
            yield f"| {link} | {row['class']} | {_plain(row['summary'])} |"
        yield ""


class FamilyTree(_Markdown):
    """The controllers by group, with an arrow from each to those that build on it."""

    def _markdown(self) -> Iterator[str]:
        stem = Path(self.env.srcdir) / "_build" / "figures" / "family-tree"
        data = family_tree.family_tree(json.loads(_core.registry())["controllers"])
        save.save(draw.family(data), stem, ("svg",))
        yield "```{image} /_build/figures/family-tree.svg\n:width: 100%\n:alt: Family tree\n```\n"


def _row(name: str) -> tuple[str, Mapping[str, Any]]:
    registry = json.loads(_core.registry())
    return next((kind, row) for kind in _KEYS for row in registry[kind] if row["name"] == name)


def _results(kind: str, name: str) -> jostle.ResultSet:
    with warnings.catch_warnings():
        # That DCTCP answers losses alone on such a link is what its figure shows.
        warnings.simplefilter("ignore", UserWarning)
        return jostle.run(jostle.load(HERE / _LINKS[kind], {_KEYS[kind]: f'"{name}"'}), jobs=1)


def _recorded_path(name: str) -> Path:
    return RECORDED / f"{name}.csv"


def _overlay(name: str, results: jostle.ResultSet) -> StackedData:
    """Window and RTT of the simulator and, where it is recorded, of the kernel."""
    # Of flows that follow each other, the last one.
    series = results.condition_series(0).filter(pl.col("flow") == results.flow_names(0)[-1])
    times = series["time_s"].to_numpy()
    windows = series["cwnd_bytes"].to_numpy() / PAYLOAD_BYTES
    sides = [("simulator", times, windows, series["rtt_mean_s"].to_numpy() * 1e3)]
    if _recorded_path(name).exists():
        with _recorded_path(name).open(newline="") as file:
            rows = [[float(cell or "nan") for cell in row] for row in list(csv.reader(file))[1:]]
        columns = np.array(rows).T
        sides.append(("Linux 6.1", *columns))
    panels = [("cwnd", "packets", 2), ("RTT", "ms", 3)]
    return StackedData(
        "",
        tuple(
            PanelData(
                quantity,
                unit,
                tuple(
                    Line(
                        side[0],
                        side[1],
                        side[at],
                        nothing := np.full(len(side[1]), np.nan),
                        nothing,
                    )
                    for side in sides
                ),
            )
            for quantity, unit, at in panels
        ),
        (),
        1,
    )


def _alt(kind: str, name: str) -> str:
    role = {"controllers": "", "slow_starts": " as its slow start", "peer_caches": " as its memory"}
    return f"Window and RTT over time of one flow with {name}{role[kind]}"


def _caption(kind: str, name: str) -> str:
    if kind == "slow_starts":
        return "*One Reno flow with this slow start: 50 Mbit/s, 100 ms, a buffer of one BDP.*\n"
    if kind == "peer_caches":
        return (
            "*The third of three Cubic flows to one peer: 50 Mbit/s, 100 ms, one BDP of buffer.*\n"
        )
    beside = ", beside the same flow on Linux 6.1" if _recorded_path(name).exists() else ""
    return f"*One flow alone: 20 Mbit/s, 50 ms, a buffer of one BDP{beside}.*\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("algorithm", Algorithm)
    app.add_directive("algorithm-table", AlgorithmTable)
    app.add_directive("family-tree", FamilyTree)
    return {"parallel_read_safe": True}
