"""Records the kernel's curves of the figures on the controllers' pages.

    python tools/results/record_kernel.py [NAME...]

Every controller that Linux has, or those that are named, runs alone on the link of
`reference/algorithms/controller.toml` on the virtual-time kernel; window and RTT over time go to
`reference/algorithms/recorded/NAME.csv`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jostle
import polars as pl
from jostle.backends.kernel.controllers import NAMES
from jostle.backends.kernel.packet_sizes import PAYLOAD_BYTES

FOLDER = next((Path(__file__).parents[2] / "docs").glob("**/algorithms/controller.toml")).parent


def record(name: str) -> pl.DataFrame:
    """Run a controller: time_s, cwnd_packets, rtt_ms."""
    scenario = jostle.load(FOLDER / "controller.toml", {"flows.flow.controller": f'"{name}"'})
    results = jostle.run(scenario, backend="kernel", jobs=1)
    return results.condition_series(0).select(
        pl.col("time_s").round(3),
        cwnd_packets=(pl.col("cwnd_bytes") / PAYLOAD_BYTES).round(1),
        rtt_ms=(pl.col("rtt_mean_s") * 1e3).round(2),
    )


def main() -> None:
    """Record all, or those that the command line names."""
    folder = FOLDER / "recorded"
    folder.mkdir(exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        print(name, flush=True)
        record(name).write_csv(folder / f"{name}.csv")


if __name__ == "__main__":
    main()
