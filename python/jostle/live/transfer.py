"""One transfer of a measurement, whoever carries it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from jostle.errors import JostleError
from jostle.live.tcp_info import Sample

__all__ = ["MARGIN_S", "Carried", "Direction", "RefusedError", "Step", "Tick"]

Direction = Literal["down", "up"]
Tick = Callable[[], object]
"""Called now and then while a transfer lasts; an exception of it ends the transfer."""
MARGIN_S: Final = 25.0
"""Limit of the time that a transfer takes beyond its own, for any behaviour of the server."""


@dataclass(frozen=True)
class Step:
    """A transfer that is to be made.

    Attributes
    ----------
    direction
        `down` to this host, `up` from it.
    controller
        Of its sender; None for what the server has.
    seconds
        How long.
    """

    direction: Direction
    controller: str | None
    seconds: int

    @property
    def name(self) -> str:
        """What its files begin with."""
        return f"{self.direction}-{self.controller}" if self.controller else self.direction


@dataclass(frozen=True)
class Carried:
    """What came of a transfer.

    Attributes
    ----------
    samples
        Of its connection at this host.
    command
        What was done, as one would write it.
    document
        What the program itself wrote; empty if it wrote nothing.
    notes
        What a reader has to know.
    """

    samples: list[Sample]
    command: str
    document: str = ""
    notes: list[str] = field(default_factory=list)


class RefusedError(JostleError):
    """The other end does not have what was asked for: without it the rest can be measured."""
