"""Receivers that deviate from Linux's TCP."""

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


Receiver = Annotated[
    Annotated[
        Rledbat | AckDivision | DupAckSpoofing | OptimisticAcking | HiddenEcnMarks,
        Field(discriminator="kind"),
    ]
    | None,
    BeforeValidator(fields.receiver_table),
]
