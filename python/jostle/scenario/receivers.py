"""Receivers that do otherwise than Linux's TCP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields as f
from jostle.scenario.table import Table

__all__ = ["DividedAcks", "HiddenMarks", "OptimisticAcks", "Receiver", "RepeatedAcks", "Rledbat"]


class DividedAcks(Table):
    """Sends each ACK in pieces (ACK division, Savage et al. 1999, section 2.1)."""

    kind: Literal["divided_acks"]
    pieces: Annotated[int, Field(ge=2, le=100)] = 16


class RepeatedAcks(Table):
    """Sends each ACK several times (duplicate ACK spoofing, section 2.2)."""

    kind: Literal["repeated_acks"]
    copies: Annotated[int, Field(ge=1, le=100)] = 16
    """ACKs beside each one."""


class OptimisticAcks(Table):
    """Acknowledges what has not come (optimistic ACKing, section 2.3)."""

    kind: Literal["optimistic_acks"]
    lead: f.Probability = 0.5
    """How far ahead of what arrives, as a part of what arrives in a round trip; with 0 it only
    conceals what is lost."""


class HiddenMarks(Table):
    """Never tells the sender of marks (RFC 3540, section 1, has why a receiver would)."""

    kind: Literal["hidden_marks"]


class Rledbat(Table):
    """Runs LEDBAT++ and offers what it allows (rLEDBAT, RFC 9840)."""

    kind: Literal["rledbat"]
    target: f.PositiveSpan = 60_000_000
    """Queueing delay to hold."""
    constant: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Factor of the multiplicative decrease."""
    slowdowns: bool = True
    """Empty the queue now and then, to learn the base delay."""


Receiver = Annotated[
    Annotated[
        Rledbat | DividedAcks | RepeatedAcks | OptimisticAcks | HiddenMarks,
        Field(discriminator="kind"),
    ]
    | None,
    BeforeValidator(f.receiver_table),
]
