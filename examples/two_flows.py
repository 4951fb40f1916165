"""Find out who gets how much when Cubic and Reno share a link.

Run it with `python examples/two_flows.py`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jostle
from jostle.backends import Backend

SCENARIO = """
title             = "Cubic and Reno share a link"
duration          = "30 s"
repeats           = 3
sampling_interval = "500 ms"

[phases]
steady = ["15 s", "30 s"]

[bottleneck]
rate  = "50 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name = "incumbent"
controller = "cubic"
rtt = "40 ms"

[[flows]]
name = "newcomer"
controller = "reno"
rtt = "40 ms"
start = "1 s"
start_jitter = "200 ms"
"""


def main(folder: Path, backend: str | Backend = "sim") -> None:
    """Run the scenario and leave a figure in `folder`."""
    path = folder / "two_flows.toml"
    path.write_text(SCENARIO)
    results = jostle.run(jostle.load(path), backend=backend, progress=True)

    goodput = results.estimate("goodput", phase="steady")
    for row in goodput.iter_rows(named=True):
        low, value, high = (row[key] / 1e6 for key in ("low", "value", "high"))
        print(f"{row['flow']}: {value:.1f} Mbit/s (95 % interval {low:.1f} … {high:.1f})")

    figure = folder / "two_flows.png"
    results.plot().savefig(figure)
    print(f"figure: {figure}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
