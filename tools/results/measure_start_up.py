"""Measures every slow start: the table and the figure of the page on start-ups.

    python tools/results/measure_start_up.py

Every method of the registry starts one Cubic flow on each path of `scenarios/start-up.toml`: with
100 kB, 1 MB and 10 MB, whose completion is timed, and as a bulk flow for 60 RTTs, which gives the
peak queue and the losses of slow start. Results are written to `start-up.csv`, tables to
`start-up.inc`, and the figure to `images/start-up.svg`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jostle
import matplotlib as mpl
import numpy as np
import polars as pl
from jostle import _core
from jostle.figures import save, style
from jostle.scenario.parsing.quantities import PACKET_BYTES
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
SCENARIO = DOCS.parent / "scenarios" / "start-up.toml"
RTTS_MS = (10, 50, 100, 600)
RATES_MBPS = (10, 100, 1000)
SIZES = {"100 kB": 0.1, "1 MB": 1.0, "10 MB": 10.0}
ENDLESS_ROUND_TRIPS = 60
SAMPLES_PER_RTT = 20
VARIANTS = {"search, delivered": '{ name = "search", compare = "delivered" }'}
"""Variants of methods in the registry, with other parameters."""

PACKET_BITS = 8 * PACKET_BYTES


@dataclass(frozen=True)
class Start:
    """Result of one method on one path.

    Attributes
    ----------
    over_s
        Time from the first data to the end of slow start; None if it exceeds 60 RTTs.
    peak_bdp
        Largest queue until two RTTs after that, in BDPs.
    lost_packets
        Packets dropped in the same time.
    completion_100_kb_s, completion_1_mb_s, completion_10_mb_s
        Time from the SYN until all data were acknowledged; None if it exceeds a minute.
    """

    method: str
    rtt_ms: int
    rate_mbps: int
    over_s: float | None
    peak_bdp: float
    lost_packets: int
    completion_100_kb_s: float | None
    completion_1_mb_s: float | None
    completion_10_mb_s: float | None

    @property
    def completions(self) -> dict[str, float | None]:
        """Completion times by the size of the download."""
        times = (self.completion_100_kb_s, self.completion_1_mb_s, self.completion_10_mb_s)
        return dict(zip(SIZES, times, strict=True))


def methods() -> dict[str, str]:
    """Return the methods by name, each as in a scenario."""
    rows = json.loads(_core.registry())["slow_starts"]
    return {row["name"]: f'"{row["name"]}"' for row in rows} | VARIANTS


def endless(method: str, rtt_ms: int, rate_mbps: int) -> tuple[float | None, float, int]:
    """Run a bulk flow; return the end of slow start, the peak queue in BDPs, packets lost."""
    rtt_us = rtt_ms * 1000
    overrides = {
        "flows.download.slow_start": method,
        "flows.download.rtt": f'"{rtt_ms} ms"',
        "bottleneck.rate": f'"{rate_mbps} Mbit/s"',
        "flows.download.size": '"1000 GB"',
        "duration": f'"{rtt_us * ENDLESS_ROUND_TRIPS} us"',
        "sampling_interval": f'"{rtt_us // SAMPLES_PER_RTT} us"',
    }
    run = jostle.run(jostle.load(SCENARIO, overrides), jobs=1).results[0].run
    left = run.flows.filter(pl.col("cwnd_bytes") >= pl.col("ssthresh_bytes"))
    links = run.links
    over_s = None
    if not left.is_empty():
        first = left.row(0, named=True)
        over_s = first["time_s"] - rtt_ms / 1e3
        links = links.filter(pl.col("time_s") <= first["time_s"] + 2 * first["srtt_s"])
    dropped = [column for column in links.columns if column.startswith("dropped_")]
    lost = int(links.select(pl.sum_horizontal(pl.col(dropped).sum())).item())
    bdp_bytes = rate_mbps * 1e6 / 8 * rtt_ms / 1e3
    return over_s, float(links["queue_bytes"].max()) / bdp_bytes, lost  # type: ignore[arg-type]


def completions(method: str, rtt_ms: int) -> dict[tuple[int, str], float | None]:
    """Return completion times of downloads by rate and size."""
    overrides = {
        "flows.download.slow_start": method,
        "flows.download.rtt": f'"{rtt_ms} ms"',
        "sampling_interval": '"60 s"',
    }
    results = jostle.run(jostle.load(SCENARIO, overrides))
    flows = results.flows.filter(pl.col("phase") == "overall")
    return {
        (int(row["bottleneck.rate"].split()[0]), row["flows.download.size"]): row[
            "completion_time_s"
        ]
        for row in flows.iter_rows(named=True)
    }


def measure() -> Iterator[Start]:
    """Measure every method on every path."""
    for name, method in methods().items():
        print(name, flush=True)
        for rtt_ms in RTTS_MS:
            times = completions(method, rtt_ms)
            for rate_mbps in RATES_MBPS:
                timed = [times[rate_mbps, size] for size in SIZES]
                yield Start(name, rtt_ms, rate_mbps, *endless(method, rtt_ms, rate_mbps), *timed)


def ideal_s(rtt_ms: int, rate_mbps: int, size_mb: float) -> float:
    """Return the time of the handshake, of sending at the path's rate, and of the last ACK."""
    return 2 * rtt_ms / 1e3 + size_mb * 8 / rate_mbps


def tables(starts: Sequence[Start]) -> Iterator[str]:
    """Yield the lines of a table for each path."""
    for rtt_ms in RTTS_MS:
        yield f"### {rtt_ms} ms\n"
        for rate_mbps in RATES_MBPS:
            times = [ideal_s(rtt_ms, rate_mbps, size) for size in SIZES.values()]
            yield f"| {rate_mbps} Mbit/s | over after | peak queue | lost | " + (
                " | ".join(SIZES) + " |"
            )
            yield "| --- " + "| ---: " * 6 + "|"
            yield "| *ideal* | – | – | – | " + " | ".join(_seconds(time) for time in times) + " |"
            for start in starts:
                if (start.rtt_ms, start.rate_mbps) == (rtt_ms, rate_mbps):
                    yield _row(start)
            yield ""


def _row(start: Start) -> str:
    over = "–" if start.over_s is None else f"{start.over_s * 1e3 / start.rtt_ms:.1f} RTT"
    cells = (
        f"`{start.method}`" if start.method not in VARIANTS else start.method,
        over,
        f"{start.peak_bdp:.2f} BDP",
        f"{start.lost_packets}",
        *(_seconds(time) for time in start.completions.values()),
    )
    return "| " + " | ".join(cells) + " |"


def _seconds(time_s: float | None) -> str:
    if time_s is None:
        return "> 60 s"
    return f"{time_s * 1e3:.0f} ms" if time_s < 10 else f"{time_s:.1f} s"


def draw(starts: Sequence[Start]) -> Figure:
    """Draw the costs and benefits: a panel per quantity, a cell per method and path."""
    names = list(dict.fromkeys(start.method for start in starts))
    paths = [(rtt_ms, rate_mbps) for rtt_ms in RTTS_MS for rate_mbps in RATES_MBPS]
    with mpl.rc_context(style.RC):  # type: ignore[arg-type]
        height_in = len(PANELS) * (len(names) * 0.155 + 0.3) + 0.5
        figure = Figure(figsize=(2 * style.COLUMN_IN, height_in), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(len(PANELS), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (title, quantity) in zip(axes, PANELS.items(), strict=True):
            values = np.full((len(names), len(paths)), np.nan)
            for start in starts:
                at = names.index(start.method), paths.index((start.rtt_ms, start.rate_mbps))
                values[at] = quantity(start)
            _heat_map(axis, values)
            axis.set_title(title, loc="left", pad=3)
            axis.set_yticks(range(len(names)), names)
        labels = [f"{rtt_ms} ms\n{rate_mbps}" for rtt_ms, rate_mbps in paths]
        axes[-1].set_xticks(range(len(paths)), labels)
        axes[-1].set_xlabel("RTT, rate in Mbit/s")
        return figure


def _heat_map(axis: Axes, values: NDArray[np.float64]) -> None:
    """Colour cells by their logarithm and write the values into them."""
    shown = np.log10(np.maximum(values, 0.01))
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    axis.imshow(shown, aspect="auto", cmap="YlOrBr")
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for spine in axis.spines.values():
        spine.set_visible(False)
    for (row, column), value in np.ndenumerate(values):
        text = "> 60 s" if np.isnan(value) else f"{value:.2f}" if value else "0"
        dark = shown[row, column] > low + 0.65 * (high - low)
        axis.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=5.5,
            color="white" if dark and high > low else "black",
        )


def _lost_bdp(start: Start) -> float:
    return start.lost_packets * PACKET_BITS / (start.rate_mbps * start.rtt_ms * 1e3)


def _relative(size: str) -> Callable[[Start], float]:
    """Return the completion time of a download, relative to the ideal."""

    def relative(start: Start) -> float:
        time_s = start.completions[size]
        ideal = ideal_s(start.rtt_ms, start.rate_mbps, SIZES[size])
        return math.nan if time_s is None else time_s / ideal

    return relative


PANELS: dict[str, Callable[[Start], float]] = {
    "Peak queue (BDP)": lambda start: start.peak_bdp,
    "Lost (BDP)": _lost_bdp,
    **{f"Completion of {size} ÷ ideal": _relative(size) for size in SIZES},
}


def main() -> None:
    """Measure, and write table and figure."""
    starts = list(measure())
    pl.DataFrame([asdict(start) for start in starts]).write_csv(
        DATA / "start-up.csv", float_precision=4
    )
    (DATA / "start-up.inc").write_text("\n".join(tables(starts)), "utf-8")
    save.save(draw(starts), DOCS / "images" / "start-up", ("svg",))


if __name__ == "__main__":
    main()
