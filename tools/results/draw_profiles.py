"""Compare the Starlink profile with measurements: a figure and a table of the manual.

Run `python tools/results/draw_profiles.py FOLDER`, where FOLDER contains both tables of Starlink on
the Road (its README names the source).
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
from jostle import _core
from jostle.figures.save import save
from jostle.figures.trace_figure import RecordedPanel, Steps, recorded
from jostle.scenario import load_text
from jostle.scenario.traces.trace_summary import distribution, ks_distance

RUNS = 300
SECONDS = 25
DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
PINGS = {
    "ping_best": ("shortest round trip", "ms"),
    "ping_avg": ("mean round trip", "ms"),
    "ping_worst": ("longest round trip", "ms"),
    "ping_stddev": ("deviation of round trips", "ms"),
    "packet_loss": ("lost", "%"),
}
RATES = {"download_mbps": ("rate down", "starlink"), "upload_mbps": ("rate up", "starlink-up")}


def rows(path: Path) -> list[dict[str, str]]:
    """Return rows of a parked car; only pings with a reply."""
    with path.open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["average_speed"]]
    return [r for r in found if float(r["average_speed"]) == 0 and r.get("ping_best") != "0"]


def pings() -> np.ndarray:
    """Return the RTTs of 250 pings in 25 s of each run; shape (runs, PINGS)."""
    scenario = load_text(f"""
duration = "126 s"
sampling_interval = "63 s"
repeats  = {RUNS}
bottleneck = {{ profile = "starlink" }}
[[flows]]
name = "pings"
controller = "none"
source = {{ kind = "ping", size = "56 B", period = "100 ms" }}
start = "100 s" # the first outage may have begun
stop = "125 s"
""")
    found = []
    for run in scenario.plan().runs:
        summary = json.loads(_core.run(json.dumps(run.spec)).summary)
        seen = summary["flows"][0]["pings"]
        by_ms = np.array(seen["echoes_by_ms"], dtype=np.int64).reshape(-1, 2)
        rtt_ms = np.repeat(by_ms[:, 0] + 0.5, by_ms[:, 1])
        if rtt_ms.size:
            lost = 100 * seen["lost"] / seen["sent"]
            found.append((rtt_ms.min(), rtt_ms.mean(), rtt_ms.max(), rtt_ms.std(), lost))
    return np.array(found)


def rates(profile: str) -> np.ndarray:
    """Return the capacity of the link in each second, in Mbit/s."""
    scenario = load_text(f"""
duration = "{SECONDS} s"
repeats  = {RUNS}
bottleneck = {{ profile = "{profile}" }}
flows = [{{ name = "flow", controller = "cubic" }}]
""")
    found = []
    for run in scenario.plan().runs:
        steps = run.spec["links"][0]["capacity"]["steps"]
        at_s = np.array([step["at_ns"] for step in steps]) / 1e9
        mbps = np.array([step["rate_bps"] for step in steps]) / 1e6
        carried = np.concatenate(([0.0], np.cumsum(np.diff(np.append(at_s, SECONDS)) * mbps)))
        edges = np.append(at_s, SECONDS)
        found.append(np.diff(np.interp(np.arange(SECONDS + 1), edges, carried)))
    return np.concatenate(found)


def main(folder: Path) -> None:
    """Write `images/profile-starlink.png` and `profile-starlink.inc`."""
    measured = rows(folder / "starlink-on-the-road-ping.csv")
    seconds = rows(folder / "starlink-on-the-road-iperf.csv")
    pairs = []
    for column, (name, profile) in RATES.items():
        given = np.array([float(row[column]) for row in seconds if row[column]])
        pairs.append((name, "Mbit/s", given, rates(profile)))
    simulated = pings()
    for at, (column, (name, unit)) in enumerate(PINGS.items()):
        given = np.array([float(row[column]) for row in measured])
        pairs.append((name, unit, given, simulated[:, at]))
    lines = ["| | measured: 5 %, median, 95 % | profile | mean | profile | distance |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    panels = []
    for name, unit, given, ours in pairs:
        shown = [
            ", ".join(f"{v:.3g}" for v in np.percentile(x, [5, 50, 95])) for x in (given, ours)
        ]
        distance = ks_distance(given, ours, np.ones(given.size), np.ones(ours.size))
        lines.append(
            f"| {name} ({unit}) | {shown[0]} | {shown[1]} | {given.mean():.3g} | "
            f"{ours.mean():.3g} | {distance:.3f} |"
        )
        both = [("measured", given), ("profile", ours)]
        shares = tuple(Steps(whose, *distribution(x, np.ones(x.size))) for whose, x in both)
        some = tuple(Steps(whose, np.arange(120.0), x[:120]) for whose, x in both)
        panels.append(RecordedPanel(f"{name} ({unit})", some, shares))
    (DATA / "profile-starlink.inc").write_text("\n".join(lines) + "\n")
    save(recorded(panels), DOCS / "images" / "profile-starlink")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
