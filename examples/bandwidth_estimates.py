"""Compare what three estimators think of a link after flows of growing size.

Run it with `python examples/bandwidth_estimates.py [FOLDER]`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jostle
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LINK_BPS = 100e6
SIZES_KB = [4 * 2**n for n in range(12)]
NAMES = {"gcbe": "GCBE", "westwood": "Westwood+", "bbr": "BBR"}
SCENARIO = f"""
title    = "What a flow knows of the link when it ends"
duration = "4 s"
sampling_interval = "20 ms"

[bottleneck]
rate  = "100 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}

[[flows]]
name = "download"
controller = "cubic"
peer_cache = {{ name = "stateful", estimator = "gcbe" }}
size = "4 kB"
rtt = "50 ms"

[grid]
"flows.download.peer_cache.estimator" = {list(NAMES)}
"flows.download.size" = {[f"{kb} kB" for kb in SIZES_KB]}
"""


def estimates(folder: Path) -> dict[str, list[float]]:
    """Run the grid; the estimates in bit/s, by estimator and in order of size."""
    path = folder / "bandwidth_estimates.toml"
    path.write_text(SCENARIO)
    results = jostle.run(jostle.load(path), progress=True)
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    for number, condition in enumerate(results.conditions):
        series = results.series("download", "estimate_bps", number)
        found[condition["flows.download.peer_cache.estimator"]].append(series["seed_1"][-1])
    return found


def main(folder: Path) -> None:
    """Print the estimates and leave a figure in `folder`."""
    found = estimates(folder)
    print("size      " + "".join(f"{NAMES[name]:>12}" for name in found))
    for row, kb in enumerate(SIZES_KB):
        values = "".join(f"{found[name][row] / 1e6:>12.1f}" for name in found)
        print(f"{kb:>6} kB {values}")

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name, values in found.items():
        axes.plot(SIZES_KB, [value / 1e6 for value in values], marker="o", label=NAMES[name])
    axes.axhline(LINK_BPS / 1e6, color="0.6", linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel="flow size (kB)", ylabel="estimate at its end (Mbit/s)", ylim=0)
    axes.legend(frameon=False)
    path = folder / "bandwidth-estimates.png"
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
