"""Tables of a run as columns of the engine, converted to a data frame on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Columns = Mapping[str, np.ndarray[Any, np.dtype[Any]]]

TABLES = ("flows", "links", "internals", "acks", "transfers")
"""Names of all tables of a run."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Building a frame for a small run costs more than its simulation. Therefore many runs are
    concatenated as columns (see `store/segments/packing.py`), without frames.

    Attributes
    ----------
    columns
        Columns by name, with NaN for missing values.
    words
        Names of the codes of some columns, by column name.
    """

    columns: Columns
    words: Mapping[str, Sequence[str]]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The table as a data frame, with names instead of codes and null instead of NaN."""
        import polars as pl

        # Column by column, because an expression over a frame would cost more than a small
        # simulation.
        series = []
        for name, values in self.columns.items():
            meanings = self.words.get(name)
            if meanings is None:
                series.append(pl.Series(name, values, nan_to_null=True))
            else:
                series.append(spelled(name, values, meanings))
        return pl.DataFrame(series)

    @property
    def size_bytes(self) -> int:
        """Memory of the columns in bytes."""
        return sum(values.nbytes for values in self.columns.values())

    @property
    def form(self) -> tuple[object, ...]:
        """Column names and types. Tables with equal form can be concatenated."""
        return tuple((name, values.dtype.char) for name, values in self.columns.items())


def spelled(name: str, codes: Any, words: Sequence[str | None]) -> pl.Series:
    """Convert a column of codes to a column of names; None is null."""
    import polars as pl

    known = pl.Series(name, list(words), dtype=pl.String)
    return known[codes] if len(codes) else known.clear()


def frame_of(table: Table | pl.DataFrame) -> pl.DataFrame:
    """Return a table as a data frame."""
    return table.frame if isinstance(table, Table) else table
