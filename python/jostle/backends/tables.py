"""Tables of a run as the engine made them: columns, which become a frame when asked for."""

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
"""Names of all tables that a run may have."""


@dataclass(frozen=True)
class Table:
    """Columns of one length.

    A frame of a small run costs more than its simulation: many runs are put together as columns
    (see `running/segments/content.py`), and none of them is ever a frame.

    Attributes
    ----------
    columns
        By name; NaN where there is no value.
    words
        What the codes of some columns mean, by the column's name.
    """

    columns: Columns
    words: Mapping[str, Sequence[str]]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The table as a frame: codes are words, NaN is null."""
        import polars as pl

        # Column by column: an expression over a frame costs a small run more than its simulation.
        made = []
        for name, values in self.columns.items():
            meanings = self.words.get(name)
            if meanings is None:
                made.append(pl.Series(name, values, nan_to_null=True))
            else:
                made.append(spelled(name, values, meanings))
        return pl.DataFrame(made)

    @property
    def size_bytes(self) -> int:
        """Memory that the columns take."""
        return sum(values.nbytes for values in self.columns.values())

    @property
    def form(self) -> tuple[object, ...]:
        """What tables have in common that can be put together: names and types of columns."""
        return tuple((name, values.dtype.char) for name, values in self.columns.items())


def spelled(name: str, codes: Any, words: Sequence[str]) -> pl.Series:
    """Make a column of words of a column of codes."""
    import polars as pl

    known = pl.Series(name, list(words), dtype=pl.String)
    return known[codes] if len(codes) else known.clear()


def frame_of(table: Table | pl.DataFrame) -> pl.DataFrame:
    """Return a table as a frame, whichever it is."""
    return table.frame if isinstance(table, Table) else table
