"""CPU time of what users wait for around the engine: sweeps of small runs, grids, many flows.

    python tools/sweep_bench.py --times 5 --against ../before/python

prints user and system time of each command, the least of several, per run or condition, and its
largest resident memory. `--against` measures another checkout by turns with this one: on a busy
machine only ratios side by side mean something. Build both engines with the release profile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "python"
COMMAND = "import sys; from jostle.cli import main; sys.exit(main())"
SCENARIO = """
duration = "{duration}"
repeats = {repeats}
[bottleneck]
rate = "{rate}"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "bulk"
count = {count}
controller = "cubic"
rtt = "40 ms"
start_jitter = "40 ms"
{grid}
"""
SMALL = {"duration": "2 s", "rate": "5 Mbit/s", "count": 1, "repeats": 1, "grid": ""}
SUMMARIES = ("--store-level", "summary", "--jobs", "2")


def cases(runs: int) -> Mapping[str, tuple[dict[str, object], tuple[str, ...], bool, int]]:
    """Return values of the scenario, options, whether the store is empty, and the divisor."""
    rates = ", ".join(f'"{5_000 + number} kbit/s"' for number in range(runs))
    grid = SMALL | {"grid": f'[grid]\n"bottleneck.rate" = [{rates}]'}
    sweep = SMALL | {"repeats": runs}
    many = SMALL | {"duration": "1 s", "rate": "1 Gbit/s", "count": 10_000}
    return {
        f"{runs} runs": (sweep, SUMMARIES, True, runs),
        f"{runs} runs, found": (sweep, SUMMARIES, False, runs),
        f"{runs} conditions": (grid, ("--dry-run",), True, runs),
        "10,000 flows": (many, SUMMARIES, True, 1),
    }


def cpu_s(package: Path, arguments: list[str]) -> tuple[float, float]:
    """Run the command line of a package; return CPU time and resident memory in MB."""
    program = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
        "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", program, sys.executable, "-c", COMMAND, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    used_s, memory_mb = map(float, done.stdout.split())
    return used_s, memory_mb


def main() -> None:
    """Measure all commands, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3, help="measurements of each command")
    parser.add_argument("--runs", type=int, default=4_000, help="runs of a sweep")
    parser.add_argument("--against", type=Path, help="`python` folder of another checkout")
    given = parser.parse_args()
    packages = [HERE] if given.against is None else [given.against.resolve(), HERE]
    with tempfile.TemporaryDirectory() as scratch:
        for name, (values, options, empties, divisor) in cases(given.runs).items():
            file = Path(scratch) / "scenario.toml"
            file.write_text(SCENARIO.format(**values), "utf-8")
            used: dict[Path, list[tuple[float, float]]] = {package: [] for package in packages}
            for _ in range(given.times):
                for number, package in enumerate(packages):
                    store = Path(scratch) / f"store-{number}"
                    if empties:
                        shutil.rmtree(store, ignore_errors=True)
                    arguments = ["run", str(file), "--store", str(store), *options]
                    used[package].append(cpu_s(package, arguments))
            shown = [
                f"{min(s for s, _ in of):6.2f} s, {min(s for s, _ in of) / divisor * 1e6:9.0f} µs "
                f"each, {min(mb for _, mb in of):4.0f} MB"
                for of in used.values()
            ]
            print(f"{name:<20} " + "  →  ".join(shown), flush=True)


if __name__ == "__main__":
    main()
