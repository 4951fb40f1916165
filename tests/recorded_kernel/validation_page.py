"""The numbers of docs/results/validation.md, as rows of its tables."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from kernel_runs import FlowRun

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
ALONE = DATA / "validation-alone.inc"
PAIRS = DATA / "validation-pairs.inc"

_HEADS = {
    ALONE: (
        "| | goodput, Linux (Mbit/s) | jostle | SRTT, Linux (ms) | jostle "
        "| retransmitted, Linux | jostle |\n| --- | --- | --- | --- | --- | --- | --- |"
    ),
    PAIRS: "| beside | Linux (%) | jostle (%) |\n| --- | --- | --- |",
}


def alone_row(name: str, kernel: FlowRun, ours: FlowRun, duration_s: float) -> str:
    """A flow alone: goodput and smoothed RTT of the second half, retransmissions of all of it."""
    both, half_s = (kernel, ours), duration_s / 2
    cells = [
        *(f"{run.goodput_mbps(half_s, duration_s):.2f}" for run in both),
        *(f"{run.mean_srtt_ms(half_s):.1f}" for run in both),
        *(f"{run.retransmitted[-1]:.0f}" for run in both),
    ]
    return f"| {name} | {' | '.join(cells)} |"


def pair_row(name: str, kernel: np.ndarray, ours: np.ndarray) -> str:
    """Shares of the first of two flows: mean and standard deviation over starts."""
    cells = [f"{shares.mean():.1f} ± {shares.std(ddof=1):.1f}" for shares in (kernel, ours)]
    return f"| {name.partition('-')[2]} | {' | '.join(cells)} |"


def write(path: Path, rows: Iterable[str]) -> None:
    """Write a table of the page."""
    path.write_text("\n".join([_HEADS[path], *rows]) + "\n", "utf-8")
