"""Means over runs as sentences quote them, all of one sentence from one phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jostle.results import ResultSet
from jostle.results.measures import Measure, measure
from jostle.results.number_format import decimals, with_interval
from jostle.stats import Estimate

SCOPES: Final = ("flow", "group", "link")


def estimate_text(results: ResultSet, wanted: Mapping[str, Any]) -> str:
    """Format a value of the results: mean, interval and unit.

    Parameters
    ----------
    results
        The runs.
    wanted
        `measure`, `phase`, `where` (the condition, or values by key), and the scope (`flow`,
        `group` or `link`).

    Raises
    ------
    ValueError
        When the results have not exactly one such value.
    """
    rows = results.estimate(wanted["measure"], wanted["phase"]).to_dicts()
    where = wanted.get("where", "")
    if isinstance(where, Mapping):
        index = results.condition_index({_key(results, key): value for key, value in where.items()})
        where = results.labels[index]
    chosen = [
        row
        for row in rows
        if row["condition"] == where
        and all(row.get(scope) == wanted[scope] for scope in SCOPES if scope in wanted)
    ]
    if len(chosen) != 1:
        raise ValueError(f"{len(chosen)} values of {wanted['measure']}, not one")
    return _written(chosen[0], measure(wanted["measure"]))


def _key(results: ResultSet, name: str) -> str:
    """Return the grid key that ends with a name."""
    keys = list(results.conditions[0])
    return next(key for key in keys if key == name or key.endswith(f".{name}"))


def _written(row: Mapping[str, Any], shown: Measure) -> str:
    """Format mean and interval as tables of results do."""
    found = Estimate(row["value"], row["low"], row["high"], row["n"], shown.unit, "")
    digits = decimals([found], shown)
    unit = f" {shown.display_unit}" if shown.display_unit else ""
    return with_interval(found, shown.factor, digits) + unit
