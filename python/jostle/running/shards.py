"""A shard: the part of a plan that one of several commands carries out, which share a store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

from jostle.errors import InputError

__all__ = ["Shard"]

S = TypeVar("S", range, list[Any])

MOST_SHARDS = 1_000_000
"""As many as a plan may have runs."""
_WRITTEN = re.compile(r"([0-9]{1,7})/([0-9]{1,7})")


@dataclass(frozen=True)
class Shard:
    """One of equal parts of a plan.

    The plan alone says what is in it, not what a store already has, so that commands that begin at
    different times leave nothing out and do nothing twice.

    Attributes
    ----------
    number
        Which, from 1 to `of`.
    of
        How many there are.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `I/N`.

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

    def part(self, things: S) -> S:
        """Take what is in the shard: every `of`-th, since neighbours often last equally long."""
        return things[self.number - 1 :: self.of]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
