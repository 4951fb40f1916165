"""Packing of runs into a segment's tables, which have the rows of many runs.

    runs.parquet       a row per run: its name, backend, specification and summary as JSON, and
                       its number of rows in each table of series
    measures.parquet   a row per run, phase, and flow, group, link or run: every measure
    flows.parquet, …   series as in `Run`, with the run's name; absent if they were not kept

Runs are in the order of their names, so that the same runs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from jostle.backends.base import named, text_of
from jostle.backends.record_tables import TABLES, Table, spelled
from jostle.results.measures import measures

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import RunRecord

Keep = Literal["series", "summary"]
"""Data of runs that are kept: everything, or the measures only."""

RUNS = "runs"
MEASURES = "measures"
SCOPES = ("flow", "group", "link", "run")


@dataclass(frozen=True)
class PackedRun:
    """A finished run, ready to be written together with others.

    Attributes
    ----------
    name
        Name of the run.
    spec, summary
        As canonical JSON.
    seed
        Seed of the specification.
    tables
        By name; empty if they are not kept.
    """

    name: str
    backend: str
    backend_version: str
    seed: int
    spec: str
    summary: str
    tables: Mapping[str, Table | pl.DataFrame]

    @property
    def size_bytes(self) -> int:
        """Approximate size in memory."""
        tables = sum(_size(table) for table in self.tables.values())
        # Its measures as columns take several times as much as their text.
        return len(self.spec) + 8 * len(self.summary) + tables

    @property
    def form(self) -> tuple[object, ...]:
        """Key that is equal for runs that can be in the same segment."""
        return tuple((name, _form(table)) for name, table in self.tables.items())


def packed(record: RunRecord, keep: Keep) -> PackedRun:
    """Pack a run; with `keep="summary"`, without its series."""
    spec = record.spec_text
    tables = {name: record.tables[name] for name in TABLES if name in record.tables}
    return PackedRun(
        name=named(spec, record.backend, record.backend_version),
        backend=record.backend,
        backend_version=record.backend_version,
        seed=record.spec["seed"],
        spec=spec,
        summary=text_of(record.summary),
        tables={} if keep == "summary" else tables,
    )


class SegmentTables(Mapping[str, "pl.DataFrame"]):
    """The tables of a segment by name, each made when it is asked for: one takes much memory.

    Parameters
    ----------
    runs
        Runs with equal tables of series.
    """

    def __init__(self, runs: Sequence[PackedRun]) -> None:
        self._runs = sorted(runs, key=lambda run: run.name)
        self._kinds = tuple(self._runs[0].tables)

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name == RUNS:
            return _runs(self._runs, self._kinds)
        return _measures(self._runs) if name == MEASURES else _series(self._runs, name)

    def __iter__(self) -> Iterator[str]:
        return iter((RUNS, MEASURES, *self._kinds))

    def __len__(self) -> int:
        return 2 + len(self._kinds)


def _runs(runs: Sequence[PackedRun], kinds: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    made = [
        pl.Series("run", [run.name for run in runs], dtype=pl.String),
        pl.Series("backend", [run.backend for run in runs], dtype=pl.String),
        pl.Series("backend_version", [run.backend_version for run in runs], dtype=pl.String),
        pl.Series("seed", [run.seed for run in runs], dtype=pl.UInt64),
        pl.Series("spec", [run.spec for run in runs], dtype=pl.String),
        pl.Series("summary", [run.summary for run in runs], dtype=pl.String),
    ]
    for kind in TABLES:
        rows = [_height(run.tables[kind]) if kind in kinds else None for run in runs]
        made.append(pl.Series(rows_of(kind), rows, dtype=pl.UInt32))
    return pl.DataFrame(made)


def rows_of(kind: str) -> str:
    """Return the column with the number of a run's rows in a table; its values may be null."""
    return f"{kind}_rows"


@cache
def _keys(scope: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the summary keys of measures per phase, and of measures of the complete run."""
    of = [m for m in measures().values() if m.scope == scope and m.key]
    within = tuple(dict.fromkeys(m.key for m in of if m.place in {"phases", "fairness", "totals"}))
    return within, tuple(dict.fromkeys(m.key for m in of if m.place in {"flow", "group"}))


def _measures(runs: Sequence[PackedRun]) -> pl.DataFrame:
    """Return all measures; a value of the complete run is repeated in the rows of all phases."""
    import polars as pl

    from jostle import _core

    every = dict.fromkeys(key for scope in SCOPES for keys in _keys(scope) for key in keys)
    names, seeds = (
        [run.name for run in runs],
        pl.Series([run.seed for run in runs], dtype=pl.UInt64),
    )
    texts = [run.summary for run in runs]
    parts = []
    columns = _core.measure_columns(texts, [(scope, *_keys(scope)) for scope in SCOPES])
    for scope, (heads, words, values) in zip(SCOPES, columns, strict=True):
        rows = len(heads["run"])
        made = [
            spelled("run", heads["run"], names),
            seeds.gather(heads["run"]).alias("seed"),
            pl.Series("scope", [scope]).new_from_index(0, rows),
            *(spelled(head, heads[head], words) for head in ("name", "controller", "phase")),
        ]
        for key in every:
            if key in values:
                made.append(pl.Series(key, values[key], dtype=pl.Float64, nan_to_null=True))
            else:
                made.append(pl.Series(key, [None], dtype=pl.Float64).new_from_index(0, rows))
        parts.append(pl.DataFrame(made))
    return pl.concat(parts)


def _series(runs: Sequence[PackedRun], kind: str) -> pl.DataFrame:
    """Combine one table of all runs."""
    import numpy as np
    import polars as pl

    tables = [run.tables[kind] for run in runs]
    heights = [_height(table) for table in tables]
    names = spelled("run", np.repeat(np.arange(len(runs)), heights), [run.name for run in runs])
    columns = [table for table in tables if isinstance(table, Table)]
    if len(columns) < len(tables):
        whole = pl.concat([table for table in tables if isinstance(table, pl.DataFrame)])
        return pl.DataFrame([names, *whole.get_columns()])
    made = [names]
    for name in columns[0].columns:
        pieces = [table.columns[name] for table in columns]
        if name in columns[0].words:
            made.append(_words(name, pieces, [table.words[name] for table in columns]))
        else:
            made.append(pl.Series(name, np.concatenate(pieces), nan_to_null=True))
    return pl.DataFrame(made)


def _words(name: str, codes: Sequence[Any], words: Sequence[Sequence[str]]) -> pl.Series:
    """Combine words with a separate dictionary encoding in each run into one column."""
    import numpy as np

    known: list[str] = []
    begins: dict[tuple[str, ...], int] = {}
    shifted = []
    for piece, meanings in zip(codes, words, strict=True):
        begin = begins.setdefault(tuple(meanings), len(known))
        if begin == len(known):
            known.extend(meanings)
        shifted.append(piece.astype(np.int64) + begin)
    return spelled(name, np.concatenate(shifted), known)


def _height(table: Table | pl.DataFrame) -> int:
    if isinstance(table, Table):
        return next((len(values) for values in table.columns.values()), 0)
    return table.height


def _size(table: Table | pl.DataFrame) -> int:
    return table.size_bytes if isinstance(table, Table) else int(table.estimated_size())


def _form(table: Table | pl.DataFrame) -> object:
    return table.form if isinstance(table, Table) else tuple(table.schema.items())
