"""Draw the result of the learning example: the figure of the manual.

`python examples/learn/learn.py trained.policy --curve curve.csv` trains, and records the reward;
`python tools/results/draw_learning.py curve.csv [STORE]` runs the example's policy together with
Cubic, and draws both.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jostle
import matplotlib as mpl
import numpy as np
import polars as pl
from jostle.figures.save import save
from jostle.figures.style import COLOURS, DASHES, RC
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DOCS = Path(__file__).parents[2] / "docs"
SCENARIO = DOCS.parent / "examples" / "learn" / "beside-cubic.toml"
CONTROLLER, RATE, LIMIT = (
    "flows.first.controller", "bottleneck.rate", "bottleneck.queue.limit",
)  # fmt: skip
SHOWN = {RATE: "10 Mbit/s", LIMIT: "1 BDP"}


def draw_curve(axis: Axes, curve: Path) -> None:
    """Draw the reward over the generations."""
    table = pl.read_csv(curve)
    axis.plot(table["generation"], table["reward_per_s"], color=COLOURS[0], marker="o",
              markersize=2)  # fmt: skip
    axis.set(xlabel="generation", ylabel="reward per second", title="Training, unseen episodes")


def draw_run(axis: Axes, results: jostle.ResultSet, policy: str) -> None:
    """Draw both flows on one path over time, as mean over its runs."""
    condition = {CONTROLLER: policy, **SHOWN}
    for at, (flow, words) in enumerate((("first", "learned"), ("second", "Cubic"))):
        series = results.series(flow, "throughput", condition=condition)
        values = series.select(pl.exclude("time_s")).mean_horizontal().to_numpy()
        seconds = series["time_s"].to_numpy()
        # Means over seconds.
        whole = np.floor(seconds - 1e-9).astype(int)
        means = [values[whole == second].mean() / 1e6 for second in np.unique(whole)]
        axis.plot(np.unique(whole) + 0.5, means, linestyle=DASHES[at], color=COLOURS[at],
                  label=words)  # fmt: skip
    axis.legend(loc="center left")
    axis.set(xlabel="time (s)", ylabel="throughput (Mbit/s)", ylim=(0, None),
             title=f"{SHOWN[RATE]}, {SHOWN[LIMIT]}, {len(results.runs_of(0))} runs")  # fmt: skip


def draw_shares(axis: Axes, results: jostle.ResultSet) -> None:
    """Draw the share that each controller keeps on each path after a Cubic flow has started."""
    found = results.estimate("share", "together").filter(flow="first")
    controllers = list(dict.fromkeys(one[CONTROLLER] for one in results.conditions))
    paths = list(dict.fromkeys((one[RATE], one[LIMIT]) for one in results.conditions))
    label = dict(zip(results.labels, results.conditions, strict=True))
    for row in found.to_dicts():
        where = label[row["condition"]]
        which, path = controllers.index(where[CONTROLLER]), (where[RATE], where[LIMIT])
        x = which + (paths.index(path) - (len(paths) - 1) / 2) * 0.08
        value, low, high = (100 * row[key] for key in ("value", "low", "high"))
        axis.plot([x, x], [low, high], color=COLOURS[which], linewidth=0.8)
        axis.plot(x, value, "o", color=COLOURS[which], markersize=2.5)
    axis.axhline(50, color="#333333", linewidth=0.6)
    names = ["learned" if "learned" in name else name for name in controllers]
    axis.set_xticks(range(len(names)), names)
    axis.set(ylabel="share next to Cubic (%)", ylim=(0, 100), title="Nine paths, 95 % intervals")


def main() -> None:
    """Write the figure, and print its numbers."""
    store = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(".jostle")
    results = jostle.run(SCENARIO, store=store)
    policy = next(one[CONTROLLER] for one in results.conditions if "learned" in one[CONTROLLER])
    with mpl.rc_context(RC):  # type: ignore[arg-type]
        figure = Figure(figsize=(7.0, 2.3), layout="constrained")
        FigureCanvasAgg(figure)
        left, middle, right = figure.subplots(1, 3)
        draw_curve(left, Path(sys.argv[1]))
        draw_run(middle, results, policy)
        draw_shares(right, results)
        save(figure, DOCS / "images" / "learning")
    shares = results.estimate("share", "together").filter(flow="first")
    for name in dict.fromkeys(one[CONTROLLER] for one in results.conditions):
        mine = [label for label, one in zip(results.labels, results.conditions, strict=True)
                if one[CONTROLLER] == name]  # fmt: skip
        values = shares.filter(pl.col("condition").is_in(mine))["value"]
        print(f"{name}: {100 * values.min():.0f} to {100 * values.max():.0f} % next to Cubic")


if __name__ == "__main__":
    main()
