"""Data frames of a ResultSet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError, unknown
from jostle.results.measures import Scope, measures

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Run


def series_frame(run: Run, who: str, quantity: str) -> pl.DataFrame:
    """Return a quantity of one flow or link of a run as `time_s` and `value`.

    Raises
    ------
    InputError
        When it is neither a column of the series nor an internal quantity of the controller.
    """
    import polars as pl

    kind: Scope = "flow" if who in [f["name"] for f in run.summary["flows"]] else "link"
    frame = run.flows if kind == "flow" else run.links
    if kind == "flow" and quantity == "mode":
        states = frame.filter(pl.col(kind) == who)
        return states.select("time_s", value=pl.col("mode").cast(pl.String))
    names = _names(frame.columns, kind)
    column = names.get(quantity, quantity)
    if column in names.values():
        value = pl.col(column)
        if column == "cwnd_bytes" and "lived_s" in frame.columns:
            # Before its start and after its end a flow has no window.
            value = pl.when(pl.col("lived_s") > 0).then(value)
        return frame.filter(pl.col(kind) == who).select("time_s", value=value)
    if kind == "link":
        raise InputError(unknown("quantity of a link", quantity, names))
    internals = run.internals.filter(pl.col("flow") == who)
    found = internals.filter(pl.col("quantity") == quantity).select("time_s", "value")
    if found.is_empty():
        known = [*names, "mode", *internals["quantity"].unique(maintain_order=True)]
        raise InputError(unknown("quantity", quantity, known))
    # A controller may report a quantity twice at the same time; the last value is valid.
    return found.unique("time_s", keep="last", maintain_order=True)


def _names(columns: Sequence[str], kind: Scope) -> dict[str, str]:
    """Return short names of a series' columns: names of measures, or names without the unit."""
    shown = {m.name: m.column for m in measures().values() if m.scope == kind and m.column}
    others = [c for c in columns if c not in {kind, "time_s", "mode", *shown.values()}]
    units = ("_bps", "_s", "_bytes", "_packets")
    plain = {
        next((c.removesuffix(unit) for unit in units if c.endswith(unit)), c): c for c in others
    }
    return {**plain, **shown}


def table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    numbers: Sequence[str],
    grid: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> pl.DataFrame:
    """Return a frame of rows.

    Parameters
    ----------
    rows, columns
        Values by column; the order of the columns.
    numbers
        Columns that are real numbers even if every value is absent.
    grid
        Values of grid keys, which give the types of their columns.
    """
    import polars as pl

    numeric = set(numbers)
    types: dict[str, Any] = {"seed": pl.UInt64, "n": pl.UInt32, "flows": pl.UInt32}
    types |= dict.fromkeys(("n_first", "n_second"), pl.UInt32)
    types |= {key: grid_column(key, values).dtype for key, values in grid.items()}
    schema = {
        name: pl.Float64 if name in numeric else types.get(name, pl.String) for name in columns
    }
    return pl.DataFrame([[row[c] for c in columns] for row in rows], schema=schema, orient="row")


def grid_column(key: str, values: Sequence[Any]) -> pl.Series:
    """Return a column of grid values; text if there are none."""
    import polars as pl

    column = pl.Series(key, values)
    return column.cast(pl.String) if column.dtype == pl.Null else column
