"""Draw the map of BBRv3's share in competition with Cubic: two figures and a table of the manual.

`jostle run docs/results/data/bbr3-map.toml --store-level summary --store MAP` runs 100,000
simulations. `python tools/results/draw_map.py MAP` queries that store for the shares and draws
them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl
from jostle.figures.save import save
from jostle.figures.scatter_map import log_ticks
from jostle.figures.style import GREY, RC
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from scipy import stats

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats
    from matplotlib.axes import Axes

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
SEEDS = 10
KEYS = ["rate", "rtt", "buffer"]
QUESTION = """
SELECT labels['bottleneck.rate'] AS rate, labels['flows.*.rtt'] AS rtt,
       labels['bottleneck.queue.limit'] AS buffer, share
FROM measures JOIN plans USING (run) WHERE scope = 'flow' AND name = 'bbr3' AND phase = 'steady'
"""
EVEN = 0.5
# Buffers that have their own map.
SHOWN_BDP = (0.25, 0.57, 1.0, 1.7, 3.0, 5.3, 9.2, 16.0)


def shares(store: str) -> tuple[list[Floats], Floats, Floats]:
    """Read BBRv3's share of the throughput of both flows.

    Returns
    -------
    axes
        Rates in Mbit/s, RTTs in ms, buffers in BDP.
    share
        Mean over the seeds; shape (rates, RTTs, buffers).
    interval
        Half of its 95 % confidence interval (Student t); same shape.
    """
    asked = subprocess.run(["jostle", "store", "sql", "--store", store, "--csv", QUESTION],
                           check=True, capture_output=True)  # fmt: skip
    table = (
        pl.read_csv(asked.stdout)
        .with_columns(pl.col(KEYS).str.extract(r"^(\S+)").cast(pl.Float64))
        .group_by(KEYS)
        .agg(pl.col("share").mean(), sd=pl.col("share").std(), n=pl.len())
        .sort(KEYS)
    )
    at = [table[key].unique().sort().to_numpy() for key in KEYS]
    shape = tuple(one.size for one in at)
    if table.height != np.prod(shape) or table["n"].unique().to_list() != [SEEDS]:
        raise SystemExit(f"{store}: runs are missing")
    half = float(stats.t.ppf(0.975, SEEDS - 1)) / np.sqrt(SEEDS) * table["sd"].to_numpy()
    return at, table["share"].to_numpy().reshape(shape), half.reshape(shape)


def even_buffer(buffers: Floats, share: Floats) -> Floats:
    """Return the buffer at which both flows have equal shares, interpolated; NaN if there is none.

    If there are several such buffers, the largest counts: with larger buffers Cubic always leads.
    """
    found = np.full(share.shape[:2], np.nan)
    logs = np.log(buffers)
    for place in np.ndindex(*found.shape):
        above = share[place] > EVEN
        falls = np.flatnonzero(above[:-1] & ~above[1:])
        if falls.size and not above[-1]:
            i = falls[-1]
            high, low = share[place][i], share[place][i + 1]
            found[place] = np.exp(logs[i] + (high - EVEN) / (high - low) * (logs[i + 1] - logs[i]))
    return found


def edges(points: Floats) -> Floats:
    """Return the edges of cells around points at even distances on a logarithmic axis."""
    logs = np.log(points)
    between = (logs[1:] + logs[:-1]) / 2
    ends = [2 * logs[0] - between[0], 2 * logs[-1] - between[-1]]
    whole: Floats = np.exp(np.concatenate([ends[:1], between, ends[1:]]))
    return whole


def plane(axis: Axes, rates: Floats, rtts: Floats) -> None:
    """Set up logarithmic axes of RTT and rate."""
    axis.set(xscale="log", yscale="log", xlim=(rates[0], rates[-1]), ylim=(rtts[0], rtts[-1]))
    axis.grid(visible=False)
    for one in (axis.xaxis, axis.yaxis):
        log_ticks(one)


def draw_shares(at: list[Floats], share: Floats) -> Figure:
    """Draw a map per buffer, with the boundary of equal shares."""
    rates, rtts, buffers = at
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        figure = Figure(figsize=(7.0, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(2, 4, sharex=True, sharey=True)
        colours: Any = None
        for axis, buffer in zip(panels.flat, SHOWN_BDP, strict=True):
            values = share[:, :, int(np.searchsorted(buffers, buffer))].T
            colours = axis.pcolormesh(edges(rates), edges(rtts), 100 * values, cmap="RdBu_r",
                                      norm=Normalize(0, 100), rasterized=True)  # fmt: skip
            axis.contour(rates, rtts, values, levels=[EVEN], colors="black", linewidths=1.2)
            axis.contour(rates, rtts, values, levels=[0.25, 0.75], colors="black",
                         linewidths=0.6, linestyles=["dotted", "dashed"])  # fmt: skip
            plane(axis, rates, rtts)
            axis.set_title(f"{buffer:g} BDP", color=GREY)
        for axis in panels[-1]:
            axis.set_xlabel("rate (Mbit/s)")
        for axis in panels[:, 0]:
            axis.set_ylabel("round-trip time (ms)")
        bar = figure.colorbar(
            colours, ax=panels, location="bottom", aspect=50, shrink=0.6, pad=0.02
        )
        bar.set_label(
            "share of BBRv3 next to Cubic (%); lines: 50 (solid), 75 (dashed), 25 (dotted)"
        )
        return figure


def draw_boundary(at: list[Floats], boundary: Floats) -> Figure:
    """Draw the buffer above which Cubic gets more than BBRv3."""
    rates, rtts, _ = at
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        figure = Figure(figsize=(3.6, 3.1), layout="constrained")
        FigureCanvasAgg(figure)
        axis = figure.subplots()
        axis.set_facecolor("#dddddd")
        low, high = np.nanmin(boundary), np.nanmax(boundary)
        mesh = axis.pcolormesh(edges(rates), edges(rtts), boundary.T, cmap="cividis",
                               norm=LogNorm(low, high), rasterized=True)  # fmt: skip
        plane(axis, rates, rtts)
        axis.set(xlabel="rate (Mbit/s)", ylabel="round-trip time (ms)")
        bar = figure.colorbar(mesh, ax=axis)
        bar.set_label("buffer at which both get the same (BDP)")
        log_ticks(bar.ax.yaxis)
        return figure


def table(at: list[Floats], share: Floats, interval: Floats, boundary: Floats) -> str:
    """Return the data of the maps as a table, a row per buffer."""
    buffers = at[2]
    lines = [
        "| buffer (BDP) | share of BBRv3, median | smallest | largest | more than half at |",
        "| --- | --- | --- | --- | --- |",
    ]
    for i, buffer in enumerate(buffers):
        here = 100 * share[:, :, i]
        cells = (*(f"{value:.0f} %" for value in (np.median(here), here.min(), here.max())),
                 f"{100 * (here > 100 * EVEN).mean():.0f} % of points")  # fmt: skip
        lines.append(f"| {buffer:g} | {' | '.join(cells)} |")
    known = boundary[~np.isnan(boundary)]
    low, middle, high = (f"{value:.2g}" for value in np.percentile(known, [5, 50, 95]))
    queue_ms = (boundary * at[1])[~np.isnan(boundary)]
    least, mid, longest = (f"{value:.0f}" for value in np.percentile(queue_ms, [10, 50, 90]))
    usual, most = 100 * np.median(interval), 100 * np.percentile(interval, 95)
    said = f"""Both get the same at {middle} BDP in the median, at {low} to {high} BDP in 90 % of
the {boundary.size} pairs of rate and round trip; at {boundary.size - known.size} of them no buffer
from {buffers[0]:g} to {buffers[-1]:g} BDP divides the two. As the time that the full
buffer takes to drain that is {mid} ms in the median, {least} to {longest} ms in 80 % of them.
Half of a share's 95 % interval over ten seeds is {usual:.1f} points in the median, {most:.1f} at
most in 95 % of the points."""
    lines += ["", said, ""]
    return "\n".join(lines)


def main() -> None:
    """Write both figures and the table."""
    at, share, interval = shares(sys.argv[1])
    boundary = even_buffer(at[2], share)
    for name, figure in (("bbr3-map", draw_shares(at, share)),
                         ("bbr3-boundary", draw_boundary(at, boundary))):  # fmt: skip
        save(figure, DOCS / "images" / name)
    (DATA / "bbr3-map.inc").write_text(table(at, share, interval, boundary))


if __name__ == "__main__":
    main()
