"""Frames that a ResultSet hands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError, unknown
from jostle.results.measures import SERIES_NAMES

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run


def one_series(run: Run, flow: str, quantity: str) -> pl.DataFrame:
    """Take a quantity of one flow out of a run: `time_s` and `value`.

    Raises
    ------
    InputError
        When it is neither a column of the series nor an internal quantity of the controller.
    """
    import polars as pl

    frame = run.flows
    column = SERIES_NAMES.get(quantity, quantity)
    not_measures = {"flow", "time_s", "mode"}
    if column in set(frame.columns) - not_measures:
        return frame.filter(pl.col("flow") == flow).select("time_s", value=column)
    internals = run.internals.filter(pl.col("flow") == flow)
    found = internals.filter(pl.col("quantity") == quantity).select("time_s", "value")
    if found.is_empty():
        known = [*SERIES_NAMES, *internals["quantity"].unique(maintain_order=True)]
        raise InputError(unknown("quantity", quantity, known))
    # A controller may report twice within one instant; what it said last stands.
    return found.unique("time_s", keep="last", maintain_order=True)


def table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], numbers: Sequence[str]
) -> pl.DataFrame:
    """Make a frame of rows; `numbers` are real numbers even where every value is absent."""
    import polars as pl

    numeric = {*numbers, "completion_s"}
    types = {"seed": pl.UInt64, "n": pl.UInt32}
    schema = {
        name: pl.Float64 if name in numeric else types.get(name, pl.String) for name in columns
    }
    return pl.DataFrame([[row[c] for c in columns] for row in rows], schema=schema, orient="row")
