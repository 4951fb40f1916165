"""Smallest and largest value of a link's queue in each sampling interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats

_LENGTH: Final = "queue_length_mean_bytes"
_ESTIMATE: Final = "queue_delay_estimate_mean_s"
_SMALLEST: Final = "queue_length_min_bytes"
_LARGEST: Final = "queue_length_max_bytes"


def has_range(shown: str, columns: list[str]) -> bool:
    """Return whether a series has the smallest and largest values of a column.

    Series that an earlier version stored have means only.
    """
    return shown in (_LENGTH, _ESTIMATE) and _SMALLEST in columns and _LARGEST in columns


def value_range(shown: str, read: Callable[[str], Floats]) -> tuple[Floats, Floats]:
    """Return the smallest and largest values of a column, in its unit and of its shape.

    Parameters
    ----------
    shown
        Column for which `has_range` is true.
    read
        Returns the values of a column.
    """
    low, high = read(_SMALLEST), read(_LARGEST)
    if shown == _ESTIMATE:
        mean, estimate = read(_LENGTH), read(_ESTIMATE)
        # An interval has one rate at which the queue empties. An empty queue has no delay.
        seconds = np.divide(estimate, mean, out=np.where(np.isnan(estimate), np.nan, 0.0),
                            where=mean > 0)  # fmt: skip
        low, high = low * seconds, high * seconds
    return low, high
