"""All that tables show, as one frame: a row per condition, phase, measure, and who has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle.results.frames import table
from jostle.results.measures import measures
from jostle.results.samples import Sample, grid_keys, samples

if TYPE_CHECKING:
    import polars as pl

    from jostle.results.finished import FinishedRuns

_NUMBERS = ("mean", "low", "high", "smallest", "largest")


def tidy(
    results: FinishedRuns,
    columns: Sequence[str] = (),
    phases: Sequence[str] | None = None,
    *,
    each: bool = False,
) -> pl.DataFrame:
    """Estimates of measures, unrounded and in the units of the summary.

    Percentiles of the completion of a single flow are those over its runs.

    Parameters
    ----------
    results
        The runs.
    columns
        Names of measures; all that need no parameter if empty.
    phases
        Names of phases; all if absent.
    each
        Whether every flow that `count` made stands for itself.

    Returns
    -------
    polars.DataFrame
        Grid keys, `phase` (empty for measures of a whole run), `flow` or group, `flows` (how many)
        and `controller`, or `link`, `measure`, `unit`, `mean`, `low`, `high` and `n` (runs with a
        value), and of groups `smallest` and `largest` flow, each a mean over runs.
    """
    names = columns or [name for name, m in measures().items() if m.tabled]
    keys = grid_keys(results)
    rows = [
        _row(sample, keys) for name in names for sample in samples(results, name, phases, each=each)
    ]
    header = [
        *keys, "phase", "flow", "flows", "controller", "link", "measure", "unit",
        "mean", "low", "high", "n", "smallest", "largest",
    ]  # fmt: skip
    return table(rows, header, _NUMBERS)


def _row(sample: Sample, keys: Sequence[str]) -> dict[str, Any]:
    wanted = sample.measure
    found = sample.estimate()
    smallest, largest = sample.spread or (None, None)
    return {
        **{key: sample.place.get(key) for key in keys},
        **{key: sample.place.get(key) for key in ("phase", "controller", "link")},
        "flow": sample.place.get("flow", sample.place.get("group")),
        "flows": len(sample.flows[0]) if wanted.scope == "flow" else None,
        "measure": wanted.name,
        "unit": wanted.unit,
        "mean": found.value,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "smallest": smallest,
        "largest": largest,
    }
