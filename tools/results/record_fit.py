"""Writes the tables of the page on fitting: known networks, and what is found of them.

    python tools/results/record_fit.py STORE

runs Cubic and BBR over each network, in the simulator and on the kernel in virtual time (as far as
STORE has not), fits another network's description to both, and writes `fit-results.inc`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jostle
from jostle.backends import SimBackend, load_engine
from jostle.inference.fit import Experiment, Fit, fit
from jostle.inference.free_keys import free_keys
from jostle.runner.executors import local
from jostle.runner.session import Session

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from downloads import document

TARGET = Path(__file__).parents[2] / "docs" / "results" / "data" / "fit-results.inc"
NETWORKS = (
    ("20 Mbit/s", "40 ms", "120 kB", "0.05 %"),
    ("10 Mbit/s", "80 ms", "150 kB", "0.1 %"),
    ("50 Mbit/s", "25 ms", "100 kB", "0.05 %"),
)
"""Rate, RTT, drop-tail queue, random loss."""
GUESS = ("30 Mbit/s", "60 ms", "250 kB", "0.3 %")
FREE = (
    "bottleneck.rate",
    "flows.download.rtt",
    "bottleneck.queue.limit",
    "bottleneck.loss=0.005..3 %",
)


def main() -> None:
    """Run, fit, write."""
    session = Session(SimBackend(load_engine()), local(), None)
    rows = []
    for network in NETWORKS:
        for backend in ("sim", "kernel"):
            measured = jostle.run(scenario(network), backend=backend, store=sys.argv[1])
            experiments = [Experiment(one.condition, one.run) for one in measured.results]
            guess = scenario(GUESS)
            found = fit(guess, experiments, free_keys(guess.document, FREE), session)
            rows.append((network, backend, found))
            # A line at a time: the whole takes a quarter of an hour.
            TARGET.write_text("\n".join(lines(rows)) + "\n", "utf-8")


def scenario(network: tuple[str, str, str, str]) -> jostle.Scenario:
    """One download, by Cubic and by BBR."""
    return jostle.Scenario.from_dict(document(*network, duration="30 s"))


def lines(rows: list[tuple[tuple[str, str, str, str], str, Fit]]) -> Iterator[str]:
    """Write the table: each key's truth, what was found, and its interval."""
    yield "| network | runs by | rate | RTT | queue | loss | misfit |"
    yield "| --- | --- | --- | --- | --- | --- | ---: |"
    for network, backend, found in rows:
        cells = []
        for one in found.parameters:
            low, high = (str(one.key.written(end)).split()[0] for end in (one.low, one.high))
            number, unit = str(one.key.written(one.value)).split()
            low, high, number = (f"{float(text):.4g}" for text in (low, high, number))
            cells.append(f"{number} {unit} ({low}–{high})")
        by = {"sim": "the simulator", "kernel": "Linux"}[backend]
        yield f"| {', '.join(network)} | {by} | {' | '.join(cells)} | {found.misfit:.2g} |"


if __name__ == "__main__":
    main()
