"""Measures the costs of a store: many small runs, lookups, queries over a million runs.

Run `python tools/results/measure_store.py WHAT`:

    measure_store.py sweep [RUNS]      # runs of 2 s, into a new store
    measure_store.py lookup [RUNS]     # the names of a store's runs, checked
    measure_store.py ask [RUNS]        # lazily opened, and grouped in SQL
    measure_store.py table [RUNS]      # every measure of as many conditions, as Parquet

CPU seconds depend on the load of the machine only through its caches. The stores of the last two
are synthetic: copies of 1,000 runs with other seeds, with summaries only.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jostle
import polars as pl
from jostle.backends.base import named
from jostle.results.tidy_frame import tidy
from jostle.store.maintenance.sql_question import ask
from jostle.store.segments import folder as folders
from jostle.store.store import Store

SCENARIO = """
title    = "Many small runs"
duration = "2 s"

[bottleneck]
rate  = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }

[[flows]]
name         = "one"
controller   = "cubic"
rtt          = "40 ms"
start_jitter = "20 ms"

[grid]
"bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s", "5 Mbit/s", "10 Mbit/s"]
"""
SEGMENT = 1_000


def measured(what: str, do: Callable[[], object]) -> None:
    """Call a function, and print its duration and memory."""
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    do()
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{what}: {cpu_s:.2f} s of CPU, {wall_s:.2f} s, peak {memory_mb:.0f} MB")


def sweep(root: Path, runs: int, keep: str = "series") -> None:
    """Run the scenario many times."""
    (root / "small.toml").write_text(SCENARIO, "utf-8")
    jostle.run(root / "small.toml", store=root / keep, repeats=runs // 4, keep=keep)


def write_synthetic_store(root: Path, runs: int) -> list[str]:
    """Write a store with a number of synthetic runs; return their names."""
    sweep(root, SEGMENT, "summary")
    store = Store(root / "summary")
    old = store.root / folders.FOLDER / "*"
    table, measures = (pl.read_parquet(old / f"{n}.parquet") for n in ("runs", "measures"))
    rows = measures.select(pl.col("run").replace_strict(table["run"], range(table.height)))["run"]
    names = []
    for first in range(0, runs, SEGMENT):
        seeds = [10**6 + first + at for at in range(table.height)]
        specs = [
            spec.replace(f'"seed":{before},', f'"seed":{seed},')
            for spec, before, seed in zip(table["spec"], table["seed"], seeds, strict=True)
        ]
        versions = zip(specs, table["backend"], table["backend_version"], strict=True)
        new = pl.Series("run", [named(*one) for one in versions])
        seed_column = pl.Series("seed", seeds, dtype=pl.UInt64)
        tables = {
            "runs": table.with_columns(new, seed_column, pl.Series("spec", specs)),
            "measures": measures.with_columns(new[rows].alias("run"), seed_column[rows]),
        }
        folders.write(store.root, tables)
        names += new.to_list()
    return names


def lookup(root: Path, runs: int) -> None:
    """Measure lookups of runs that all exist."""
    names = write_synthetic_store(root, runs)
    for when in ("first", "second"):
        store = Store(root / "summary")
        measured(
            f"{runs} finished runs looked up, {when} time", lambda s=store: check_lookup(s, names)
        )


def check_lookup(store: Store, names: list[str]) -> None:
    """Look up runs, all of which exist."""
    assert len(store.find(names, series=False)) == len(names)


def measure_queries(root: Path, runs: int) -> None:
    """Measure opening and querying a store."""
    write_synthetic_store(root, runs)
    files = str(root / "summary" / "segments" / "*" / "measures.parquet")
    measured("polars: opened", lambda: pl.scan_parquet(files).collect_schema())
    flows = pl.scan_parquet(files).filter(scope="flow").group_by(pl.col("seed") % 10)
    measured("polars: grouped", lambda: flows.agg(pl.mean("throughput_bps")).collect())
    measured("DuckDB: opened", lambda: ask(root / "summary", "SELECT run FROM measures LIMIT 1"))
    question = "SELECT seed % 10, avg(throughput_bps) FROM measures WHERE scope = 'flow' GROUP BY 1"
    measured("DuckDB: opened and grouped", lambda: ask(root / "summary", question))


def table(root: Path, runs: int) -> None:
    """Measure writing the table of all measures, with one run per condition."""
    rates = [f"{2 + 22 * at / runs:.4f} Mbit/s" for at in range(runs)]
    grid = "\n".join(["[grid]", f'"bottleneck.rate" = {rates}']).replace("'", '"')
    (root / "wide.toml").write_text(SCENARIO.partition("[grid]")[0] + grid, "utf-8")
    wide = {"store": root / "wide", "repeats": 1, "keep": "summary"}
    measured(f"{runs} conditions run", lambda: jostle.run(root / "wide.toml", **wide))
    found = jostle.run(root / "wide.toml", **wide)
    path = root / "table.parquet"
    measured("their table", lambda: tidy(found).write_parquet(path))
    print(f"{pl.scan_parquet(path).select(pl.len()).collect().item()} rows")


def main() -> None:
    """Run the requested measurement."""
    what = sys.argv[1] if len(sys.argv) > 1 else "sweep"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if what == "sweep":
            runs = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
            for keep in ("series", "summary"):
                measured(f"{runs} runs, {keep} kept", lambda k=keep: sweep(root, runs, k))
                size = sum(p.stat().st_size for p in (root / keep).rglob("*") if p.is_file())
                print(f"store: {size / 1e6:.1f} MB")
        elif what == "lookup":
            lookup(root, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000)
        elif what == "table":
            table(root, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
        else:
            measure_queries(root, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)


if __name__ == "__main__":
    main()
