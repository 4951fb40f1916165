"""Receivers that deviate from Linux's TCP, and applications that read slowly."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable

__all__ = [
    "AckDivision",
    "DupAckSpoofing",
    "HiddenEcnMarks",
    "OptimisticAcking",
    "Pause",
    "Reader",
    "Receiver",
    "Rledbat",
]


class AckDivision(ScenarioTable):
    """Sends each ACK in several pieces (ACK division, Savage et al. 1999, section 2.1)."""

    kind: Literal["ack_division"]
    pieces: Annotated[int, Field(ge=2, le=100)] = 16


class DupAckSpoofing(ScenarioTable):
    """Sends each ACK several times (duplicate ACK spoofing, section 2.2)."""

    kind: Literal["dupack_spoofing"]
    copies: Annotated[int, Field(ge=1, le=100)] = 16
    """Number of additional copies of each ACK."""


class OptimisticAcking(ScenarioTable):
    """Acknowledges data that have not arrived (optimistic ACKing, section 2.3)."""

    kind: Literal["optimistic_acking"]
    lead_rtts: fields.Probability = 0.5
    """Acknowledged data beyond those that have arrived, as a share of the data that arrive per base
    RTT. With 0 the receiver only hides losses."""


class HiddenEcnMarks(ScenarioTable):
    """Hides ECN marks from the sender (RFC 3540 §1 explains the motive)."""

    kind: Literal["hidden_ecn_marks"]


class Rledbat(ScenarioTable):
    """Runs LEDBAT++ at the receiver and offers the resulting window (rLEDBAT, RFC 9840)."""

    kind: Literal["rledbat"]
    target: fields.PositiveSpan = 60_000_000
    """Target queueing delay."""
    constant: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Factor of the multiplicative decrease."""
    slowdowns: bool = True
    """Empty the queue periodically to measure the base delay."""


class Pause(ScenarioTable):
    """A time in which an application does not read."""

    at: fields.Span
    """Begin of the pause."""
    duration: fields.PositiveSpan
    """Length of the pause."""
    every: fields.PositiveSpan | None = None
    """Time from the begin of the pause to its repetition; without it, the pause does not repeat."""


class Reader(ScenarioTable):
    """A receiving application that reads, handles the data at its rate, and reads again."""

    rate: fields.PositiveRate | None = None
    """Rate at which the application handles data; without it, at once."""
    size: fields.PositiveSize = 65_536
    """Maximum amount of data of one read."""
    pauses: list[Pause] = Field(default_factory=list)
    """Times in which the application does not read: `[{ at = "5 s", duration = "3 s" }]`."""


Receiver = Annotated[
    Annotated[
        Rledbat | AckDivision | DupAckSpoofing | OptimisticAcking | HiddenEcnMarks,
        Field(discriminator="kind"),
    ]
    | None,
    BeforeValidator(fields.receiver_table),
]
