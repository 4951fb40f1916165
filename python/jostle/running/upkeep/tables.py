"""The tables of a whole store: asked in SQL, or written into one file.

Files are read as they are, without holding them against their digests: that would read all of a
store, and a question needs some columns of it. `check` does.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jostle.backends.tables import TABLES
from jostle.errors import InputError, StoreError, brief, unknown
from jostle.foreign_files import STORED_BYTES, read_bytes
from jostle.replaced_files import replaced
from jostle.running.plans import plan_names, read_plan
from jostle.running.segments import folder as folders
from jostle.running.segments.content import MEASURES, RUNS
from jostle.running.upkeep.merge import each_once, whole_segments

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from jostle.running.store import Store

NAMES = (RUNS, MEASURES, *TABLES)
"""Tables that segments have."""
PLANS = "plans"
_ASKS_FOR_PLANS: Final = (PLANS, "show", "schema", "duckdb_", "pragma", "pg_", "sqlite_")
"""Words of a question that names that table, or wants to know which tables there are."""


def files_of(root: Path, table: str) -> list[Path]:
    """Files of a table, in the order of their segments."""
    paths = (root / folders.FOLDER / name / f"{table}.parquet" for name in folders.names(root))
    return [path for path in paths if path.is_file()]


def write_table(store: Store, table: str, path: Path) -> int:
    """Write a table of all segments of a store into one file, in the order of runs' names.

    The same runs give the same bytes, whichever segments they are in. What is damaged is moved
    aside.

    Parameters
    ----------
    store
        The store.
    table
        Its name.
    path
        Where to: ``.parquet`` or ``.csv``.

    Returns
    -------
    int
        How many rows it has.

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
    segments = whole_segments(store)
    kept = each_once(segments)
    parts = [
        pl.scan_parquet(segment.folder / f"{table}.parquet").filter(
            pl.col("run").is_in(list(kept[segment.name]))
        )
        for segment in segments
        if kept[segment.name] and (table in segment.begins or table in {RUNS, MEASURES})
    ]
    if not parts:
        raise InputError(f"no run of the store {store.root} has a table `{table}`")
    together = pl.concat(parts, how="diagonal")
    whole = together.sort("run", maintain_order=True)
    try:
        with replaced(path) as partial:
            if path.suffix == ".csv":
                whole.sink_csv(partial)
            else:
                whole.sink_parquet(partial, compression="zstd")
        return int(together.select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        raise InputError(f"cannot write {path}: {brief(str(error))}") from error


def plans_frame(root: Path) -> pl.DataFrame:
    """Which runs belong together: a row per plan and run.

    Returns
    -------
    polars.DataFrame
        `plan` (its file), `title`, `backend`, `backend_version`, `condition` (its position),
        `seed`, `run`, and `labels`: key and value of the grid, each.
    """
    import polars as pl

    pair = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    types: dict[str, Any] = {
        "plan": pl.String, "title": pl.String, "backend": pl.String, "backend_version": pl.String,
        "condition": pl.UInt32, "seed": pl.UInt64, "run": pl.String, "labels": pair,
    }  # fmt: skip
    frames = [pl.DataFrame(schema=types)]
    for name, _ in plan_names(root):
        plan = read_plan(root, name)
        conditions, seeds, runs = zip(*plan.runs, strict=True) if plan.runs else ((), (), ())
        of_runs = pl.DataFrame(
            {"condition": conditions, "seed": seeds, "run": runs},
            schema={key: types[key] for key in ("condition", "seed", "run")},
        )
        # Once for each condition: a plan may have a million runs of a few.
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


def ask(root: Path, question: str) -> pl.DataFrame:
    """Answer a question in SQL.

    Tables are those of segments, by name, and `plans`; labels of a condition are a map, so that
    ``labels['bottleneck.rate']`` is one.

    Raises
    ------
    InputError
        When DuckDB is not installed, or does not understand the question.
    """
    try:
        import duckdb
    except ImportError as error:
        raise InputError('DuckDB is not installed: pip install "jostle[sql]"') from error
    import polars as pl

    with tempfile.TemporaryDirectory(prefix="jostle-sql-") as folder, duckdb.connect() as database:
        # To read the plans of a large store takes longer than most answers.
        asked = any(word in question.lower() for word in _ASKS_FOR_PLANS)
        _views(database, root, Path(folder), with_plans=asked)
        try:
            answer = database.execute(question)
            if answer.description is None:
                return pl.DataFrame()
            names = [column[0] for column in answer.description]
            rows = answer.fetchall()
        except duckdb.Error as error:
            raise InputError(f"SQL: {brief(str(error))}") from error
    columns = zip(*rows, strict=True) if rows else [[] for _ in names]
    unique = [name if names.index(name) == at else f"{name}_{at}" for at, name in enumerate(names)]
    made = [pl.Series(n, list(v), strict=False) for n, v in zip(unique, columns, strict=True)]
    return pl.DataFrame(made)


def _views(
    database: duckdb.DuckDBPyConnection, root: Path, folder: Path, *, with_plans: bool
) -> None:
    for name in NAMES:
        paths = files_of(root, name)
        if paths:
            listed = ", ".join(_quoted(str(path)) for path in paths)
            more = ", union_by_name = true" if _differ(paths) else ""
            database.execute(f"CREATE VIEW {name} AS FROM read_parquet([{listed}]{more})")
    if not with_plans:
        return
    try:
        plans = plans_frame(root)
    except StoreError as error:
        raise InputError(f"{error}: remove that file") from error
    plans.write_parquet(folder / "plans.parquet")
    path = _quoted(str(folder / "plans.parquet"))
    database.execute(
        f"CREATE TABLE {PLANS} AS SELECT * REPLACE (map_from_entries(labels) AS labels) "
        f"FROM read_parquet({path})"
    )


def _differ(paths: list[Path]) -> bool:
    """Whether segments of several versions are there: their measures may be others."""
    versions = set()
    for path in paths:
        told = json.loads(read_bytes(path.with_name("manifest.json"), STORED_BYTES))
        versions.add(json.dumps(told.get("versions"), sort_keys=True))
    return len(versions) > 1


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
