"""Export of a store's tables: paths of their files, single files, and a table of plans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.record_tables import TABLES
from jostle.errors import InputError, StoreError, brief, unknown
from jostle.safe_io.atomic_write import atomic_writer
from jostle.store import parquet_files
from jostle.store.maintenance.compaction import each_once, intact_segments
from jostle.store.maintenance.convert import runs_with_captures
from jostle.store.segments import folder
from jostle.store.segments.packing import MEASURES, RUNS
from jostle.store.stored_plans import PLANS as PLANS_FOLDER
from jostle.store.stored_plans import plan_names, read_plan

if TYPE_CHECKING:
    import polars as pl

    from jostle.store.store import Store

NAMES = (RUNS, MEASURES, *TABLES)
"""Tables of segments."""
PLANS = "plans"
_MOST_LABELS = 20_000_000
"""Largest number of labels in a store's plans; a million runs with five keys have five million."""


def files_of(root: Path, table: str) -> list[Path]:
    """Return the files of a table, in the order of their segments."""
    paths = (root / folder.FOLDER / name / f"{table}.parquet" for name in folder.names(root))
    return [path for path in paths if path.is_file()]


def write_table(store: Store, table: str, path: Path) -> int:
    """Write a table of all runs of a store into one file, in the order of the runs' names.

    The same runs give the same bytes, independent of their segments. Damaged segments are moved
    aside.

    Parameters
    ----------
    store
        The store.
    table
        Name of the table.
    path
        Output file: ``.parquet`` or ``.csv``.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InputError
        When there is no such table, or the file cannot be written.
    """
    import polars as pl

    if table not in NAMES:
        raise InputError(unknown("table", table, NAMES))
    if path.suffix not in {".parquet", ".csv"}:
        raise InputError(f"{path}: a table is written as .parquet or .csv")
    segments = intact_segments(store)
    kept = each_once(segments)
    sources = {
        segment.path(table): list(kept[segment.name])
        for segment in segments
        if kept[segment.name] and (table in segment.begins or table in {RUNS, MEASURES})
    }
    parts = [_scan(source).filter(pl.col("run").is_in(runs)) for source, runs in sources.items()]
    parts += [made[table].lazy() for made in runs_with_captures(store) if table in made]
    if not parts:
        raise InputError(f"no run of the store {store.root} has a table `{table}`")
    together = pl.concat(parts, how="diagonal")
    whole = together.sort("run", maintain_order=True)
    try:
        # Polars opens a path twice, which breaks pipes, and interprets some paths as URLs.
        with atomic_writer(path) as partial, partial.open("wb") as file:
            if path.suffix == ".csv":
                whole.sink_csv(file)
            else:
                whole.sink_parquet(file, compression="zstd")
        return int(together.select(pl.len()).collect().item())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        for source in sources:
            with name_damaged(source):
                parquet_files.read(source)
        message = f"{store.root}: cannot write {path}: {brief(str(error))}"
        raise InputError(message) from error


@contextlib.contextmanager
def name_damaged(path: Path) -> Iterator[None]:
    """Name the file of a segment that cannot be read."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {brief(str(error))}: see `jostle store check`") from error


def _scan(path: Path) -> pl.LazyFrame:
    with name_damaged(path):
        return parquet_files.scan(path)


def plans_frame(root: Path) -> pl.DataFrame:
    """Return the runs of plans: a row per plan and run.

    Returns
    -------
    polars.DataFrame
        `plan` (its file), `title`, `backend`, `backend_version`, `condition` (its position),
        `seed`, `run`, and `labels`: key and value of the grid, each.

    Raises
    ------
    StoreError
        When a plan cannot be read, or has too many labels.
    """
    import polars as pl

    pair = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    types: dict[str, Any] = {
        "plan": pl.String, "title": pl.String, "backend": pl.String, "backend_version": pl.String,
        "condition": pl.UInt32, "seed": pl.UInt64, "run": pl.String, "labels": pair,
    }  # fmt: skip
    frames = [pl.DataFrame(schema=types)]
    total = 0
    for name, _ in plan_names(root):
        plan = read_plan(root, name)
        total += sum(len(plan.conditions[at]) for at, _, _ in plan.runs)
        if total > _MOST_LABELS:
            raise StoreError(f"{root / PLANS_FOLDER / name}: its runs have too many labels")
        conditions, seeds, runs = zip(*plan.runs, strict=True) if plan.runs else ((), (), ())
        of_runs = pl.DataFrame(
            {"condition": conditions, "seed": seeds, "run": runs},
            schema={key: types[key] for key in ("condition", "seed", "run")},
        )
        # Once for each condition: a plan may have a million runs of a few conditions.
        labels = [[{"key": k, "value": v} for k, v in one.items()] for one in plan.conditions]
        made = pl.Series("labels", labels, dtype=pair)
        about = {
            "plan": name, "title": plan.title, "backend": plan.backend,
            "backend_version": plan.backend_version,
        }  # fmt: skip
        frames.append(
            of_runs.with_columns(
                *(pl.lit(value, pl.String).alias(key) for key, value in about.items()),
                made.gather(of_runs["condition"]),
            ).select(list(types))
        )
    return pl.concat(frames)
