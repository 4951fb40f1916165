"""A measure over two keys that were sampled: points of a plane, not the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from jostle.figures.data import MapData
from jostle.results.grid_axis import Axis

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns
    from jostle.results.measures import Measure

_FULL: Final = 0.5
"""Part of a table's cells from which on two keys make a table."""


def scattered(axes: tuple[Axis, Axis], pairs: set[tuple[str, str]]) -> bool:
    """Whether conditions lie at points of a plane: numbers whose combinations were not all run.

    Parameters
    ----------
    axes
        Of both keys.
    pairs
        Values of both keys, each combination that was run.
    """
    cells = len(axes[0].places) * len(axes[1].places)
    return not any(axis.names for axis in axes) and len(pairs) < _FULL * cells


def map_data(
    axes: tuple[Axis, Axis],
    wanted: Measure,
    found: Mapping[tuple[str, str], float],
    scale: tuple[float, float, bool],
) -> MapData:
    """Show values of a measure at the points where they were found.

    Parameters
    ----------
    axes
        From left to right, and from below upwards.
    wanted
        The measure.
    found
        Values, in the unit that is read, by the values of both keys.
    scale
        Ends of the colours, and whether 0 is their middle.
    """
    x, y = axes
    return MapData(
        x.label, y.label,
        np.array([x.places[one] for one, _ in found]),
        np.array([y.places[one] for _, one in found]),
        np.array(list(found.values())),
        wanted.heading, wanted.display_unit, *scale, x.log, y.log,
    )  # fmt: skip


def axes_of(results: FinishedRuns, keys: Sequence[str], values: Sequence[Sequence[str]]) -> tuple[
    Axis, Axis
]:  # fmt: skip
    """Find where the values of two keys stand."""
    x, y = (Axis.of(results, key, each) for key, each in zip(keys, values, strict=True))
    return x, y
