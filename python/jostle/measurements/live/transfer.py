"""One transfer of a measurement, independent of the program that carries it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from jostle.errors import JostleError
from jostle.measurements.live.tcp_info import Sample

__all__ = ["MARGIN_S", "Direction", "Step", "Tick", "TransferRefusedError", "TransferResult"]

Direction = Literal["down", "up"]
Tick = Callable[[], object]
"""Called regularly during a transfer; if it raises, the transfer ends."""
MARGIN_S: Final = 25.0
"""Largest time that a transfer may take in addition to its duration."""


@dataclass(frozen=True)
class Step:
    """A transfer of a measurement.

    Attributes
    ----------
    direction
        `down` to this host, `up` from it.
    controller
        Controller of the sender; None for the server's default.
    seconds
        Duration.
    """

    direction: Direction
    controller: str | None
    seconds: int

    @property
    def name(self) -> str:
        """Prefix of its file names."""
        return f"{self.direction}-{self.controller}" if self.controller else self.direction


@dataclass(frozen=True)
class TransferResult:
    """Result of a transfer.

    Attributes
    ----------
    samples
        TCP_INFO of its connection at this host.
    command
        Equivalent shell command.
    document
        Output of the program; empty if it wrote nothing.
    notes
        Remarks for the user.
    """

    samples: list[Sample]
    command: str
    document: str = ""
    notes: list[str] = field(default_factory=list)


class TransferRefusedError(JostleError):
    """The server does not support a request; the rest of the measurement can continue."""
