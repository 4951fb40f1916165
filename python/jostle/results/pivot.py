"""Pivot tables of a measure: values of one key are rows, values of another are columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostle.errors import InputError
from jostle.results.condition_names import short_names
from jostle.results.measure_samples import OWN_KEYS, MeasureSample, grid_keys, key_of, samples
from jostle.results.measures import measure
from jostle.results.number_format import ABSENT, decimals, with_interval
from jostle.results.text_table import Table
from jostle.results.unfinished import means_notes

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns


def facets(
    found: Sequence[MeasureSample], taken: Sequence[str]
) -> list[tuple[dict[str, str], list[MeasureSample]]]:
    """Group samples by the keys in which they differ, except `taken`, so that none are pooled.

    A key whose value follows from other keys, such as the controller of a flow, is ignored.
    """
    fixed = list(taken)
    parting = []
    for key in dict.fromkeys(key for sample in found for key in sample.place):
        if key in taken:
            continue
        values: dict[tuple[str, ...], str] = {}
        for sample in found:
            value = sample.place.get(key, "")
            if values.setdefault(tuple(sample.place.get(k, "") for k in fixed), value) != value:
                parting.append(key)
                fixed.append(key)
                break
    parts: dict[tuple[str, ...], list[MeasureSample]] = {}
    for sample in found:
        parts.setdefault(tuple(sample.place.get(key, "") for key in parting), []).append(sample)
    return [(dict(zip(parting, values, strict=True)), part) for values, part in parts.items()]


def facet_title(place: dict[str, str]) -> str:
    """Return the title of a facet: flows and phases by name, other values with their key."""
    names = short_names([*dict.fromkeys((*place, *OWN_KEYS))])
    return ", ".join(
        value if key in ("flow", "link", "phase") else f"{names[key]} {value}"
        for key, value in place.items()
    )


def pivot_tables(
    results: FinishedRuns,
    row: str,
    column: str,
    name: str,
    phases: Sequence[str] | None = None,
    *,
    each: bool = False,
) -> list[Table]:
    """Return tables of a measure; one for every flow (or link), phase and value of other keys.

    Parameters
    ----------
    results
        The runs.
    row, column
        Keys: of the grid, or `flow`, `link`, `controller`, `phase`.
    name
        The measure.
    phases
        Names of phases; all if absent.
    each
        Whether each flow of an entry with `count` is shown separately.

    Raises
    ------
    InputError
        When a key, the measure or a phase is not known, or the measure does not have the key.
    """
    wanted = measure(name)
    found = samples(results, wanted, phases, each=each)
    keys = (key_of(results, found, row), key_of(results, found, column))
    if keys[0] == keys[1]:
        raise InputError(f"rows and columns are both `{keys[0]}`: choose two keys")
    return [_pivot(results, keys, place, part) for place, part in facets(found, keys)]


def _pivot(
    results: FinishedRuns,
    keys: tuple[str, str],
    place: dict[str, str],
    found: Sequence[MeasureSample],
) -> Table:
    wanted = found[0].measure
    row_key, column_key = keys
    rows, columns = (
        list(dict.fromkeys(sample.place.get(key, "") for sample in found)) for key in keys
    )
    at = {
        (sample.place.get(row_key, ""), sample.place.get(column_key, "")): sample.estimate()
        for sample in found
    }
    places = decimals(at.values(), wanted)
    lines = [
        (
            one,
            *(
                with_interval(cell, wanted.factor, places) if cell else ABSENT
                for cell in (at.get((one, other)) for other in columns)
            ),
        )
        for one in rows
    ]
    short = short_names(grid_keys(results))
    corner = f"{short.get(row_key, row_key)} \\ {short.get(column_key, column_key)}"
    where = facet_title(place)
    title = wanted.axis + (f", {where}" if where else "")
    notes = (
        *results.failure_notes,
        *means_notes(results, ((one.condition, one.finish) for one in found)),
    )
    return Table((corner, *columns), tuple(lines), (), 1, title, notes=notes)
