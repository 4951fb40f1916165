"""A shard: the part of a plan that one of several commands carries out in a shared store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from jostle.errors import InputError

__all__ = ["Shard"]

S = TypeVar("S", range, list[Any])

MOST_SHARDS = 1_000_000
"""Largest number of shards, which is the largest number of runs of a plan."""
_WRITTEN = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


@dataclass(frozen=True)
class Shard:
    """One of equal parts of a plan.

    Its contents depend on the plan only, and not on the store. So commands that start at different
    times omit nothing and do nothing twice.

    Attributes
    ----------
    number
        Number of the shard, from 1 to `of`.
    of
        Number of shards.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse `I/N`.

        Raises
        ------
        InputError
            When it is not from 1/N to N/N.
        """
        written = _WRITTEN.fullmatch(text)
        if written is not None:
            number, of = int(written[1]), int(written[2])
            if 1 <= number <= of <= MOST_SHARDS:
                return cls(number, of)
        raise InputError(f"shard {text}: write it as I/N, from 1/N to N/N, such as 3/40")

    def select(self, things: S) -> S:
        """Return every `of`-th element, because neighbouring runs often have similar durations."""
        return things[self.number - 1 :: self.of]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
