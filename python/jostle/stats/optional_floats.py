"""Numbers of which some are missing, in an array, as a sequence of floats and None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from jostle.stats.descriptive import Floats

__all__ = ["OptionalFloats"]


class OptionalFloats(Sequence["float | None"]):
    """An array of shape (n,) whose NaN are None; a million numbers take 8 MB instead of 40.

    Parameters
    ----------
    array
        The numbers; not changed any more.
    """

    def __init__(self, array: Floats) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, at: int) -> float | None: ...

    @overload
    def __getitem__(self, at: slice) -> OptionalFloats: ...

    def __getitem__(self, at: int | slice) -> float | OptionalFloats | None:
        if isinstance(at, slice):
            return OptionalFloats(self._array[at])
        value = float(self._array[at])
        return None if isnan(value) else value

    def __iter__(self) -> Iterator[float | None]:
        return iter([None if value != value else value for value in self._array.tolist()])  # noqa: PLR0124

    @cached_property
    def present(self) -> Floats:
        """The numbers that are not missing, in their order."""
        import numpy as np

        return self._array[~np.isnan(self._array)]
