"""Tables of a link for faults of packets, habits of netem, and capacity on demand."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable

__all__ = [
    "Contention",
    "Faults",
    "Grants",
    "Netem",
    "NumberedFaults",
    "Occurrence",
    "RateBased",
    "Reordering",
]

_MOST_NUMBERS = 100_000


def _numbers(given: Any) -> tuple[int, ...]:
    """Return the packet numbers of a list of numbers and ranges, in increasing order."""

    def wrong(message: str) -> PydanticCustomError:
        return PydanticCustomError("jostle", "{message}", {"message": message, "at": []})

    found: set[int] = set()
    for item in given if isinstance(given, list) else [given]:
        first, dash, last = str(item).partition("-")
        ends = (first, last) if dash else (first, first)
        if isinstance(item, bool) or not all(end.strip().isdecimal() for end in ends):
            raise wrong(f'{item!r} is not a packet number — write for example [100, "200-210"]')
        low, high = (int(end) for end in ends)
        if not 1 <= low <= high:
            raise wrong(f'"{item}": packets count from 1, and a range ends after its start')
        if high - low + len(found) >= _MOST_NUMBERS:
            raise wrong(f"more than {_MOST_NUMBERS} packets")
        found.update(range(low, high + 1))
    return tuple(sorted(found))


_NUMBER = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}
Numbers = Annotated[
    tuple[int, ...],
    PlainValidator(_numbers),
    WithJsonSchema({"anyOf": [*_NUMBER["anyOf"], {"type": "array", "items": _NUMBER}]}),
]


def probability_table(given: Any) -> Any:
    """Convert a probability to a table, and "none" to None."""
    return given if given == "none" or isinstance(given, dict) else {"probability": given}


class Occurrence(ScenarioTable):
    """A random event per packet."""

    probability: fields.Probability
    """Probability of the event for each packet."""
    correlation: fields.Probability = 0.0
    """Correlation as in netem: part of the previous random number in the next one. As in netem, it
    makes rare events rarer."""


class Reordering(Occurrence):
    """Reordering of single packets."""

    probability: fields.Probability = 1.0
    """Probability that the packet at the end of a gap is reordered."""
    gap: Annotated[int, Field(ge=1, le=2**32 - 1)] = 1
    """Smallest distance of two reordered packets: with 5 and a probability of 100 %, every fifth
    packet is reordered."""
    late: fields.PositiveSpan | None = None
    """Time by which reordered packets are late, so that later packets overtake them. By default
    they skip the link's `delay` and overtake the packets in it, as in netem."""


class NumberedFaults(ScenarioTable):
    """Faults of packets with given numbers: `[3, "10-12"]`."""

    flow: fields.Name | None = None
    """Flow of the packets; each copy of a flow counts separately. By default the packets of all
    flows are counted together."""
    count: Literal["data", "acks", "handshake", "all"] = "data"
    """Packets that are counted, from 1: `"data"` (TCP segments with data, retransmissions included,
    and all packets of other protocols), `"acks"` (TCP segments without data), `"handshake"` (SYN
    and SYN-ACK) or `"all"`."""
    lose: Numbers = ()
    """Packets to lose."""
    mark: Numbers = ()
    """Packets to mark with ECN CE, if they are ECN-capable."""
    corrupt: Numbers = ()
    """Packets to corrupt."""
    duplicate: Numbers = ()
    """Packets to duplicate."""
    delay: Numbers = ()
    """Packets to delay by `late`, without delaying others."""
    late: fields.PositiveSpan | None = None
    """Time by which the packets of `delay` are late."""


class Faults(ScenarioTable):
    """Faults of packets after their transmission."""

    duplicate: Annotated[
        Occurrence | None, BeforeValidator(fields.absent), BeforeValidator(probability_table)
    ] = None
    """Random duplication: a probability, or `{ probability = "1 %", correlation = "25 %" }`."""
    corrupt: Annotated[
        Occurrence | None, BeforeValidator(fields.absent), BeforeValidator(probability_table)
    ] = None
    """Random corruption, written as `duplicate`. The packet uses all links of its path. Its
    receiver drops it, because the checksum is wrong."""
    reorder: Annotated[
        Reordering | None, BeforeValidator(fields.absent), BeforeValidator(probability_table)
    ] = None
    """Random reordering: a probability, or `{ probability = "25 %", gap = 5 }`."""
    packets: list[NumberedFaults] = Field(default_factory=list)
    """Faults by packet number: `[{ flow = "download", lose = [100, "200-203"] }]`."""


class Netem(ScenarioTable):
    """Habits of netem, which explain results of other testbeds."""

    limit: Annotated[
        Annotated[int, Field(ge=1, le=2**32 - 1)] | None, BeforeValidator(fields.absent)
    ] = 1000
    """Largest number of packets in the delay, or `"none"`. Others are dropped."""
    limit_covers: Literal["delay", "queue and delay"] = "delay"
    """Packets that count towards the limit. `"queue and delay"` is netem with a `rate`."""
    jitter_per_batch: bool = False
    """Whether the packets that a host sent at one instant, up to 64 KiB, have one random delay: for
    netem they are one socket buffer (GSO)."""


class RateBased(ScenarioTable):
    """Rate-based dynamic capacity (RBDC)."""

    over_estimation: Annotated[float, Field(ge=0, le=10)] = 1.1
    """Requested rate ÷ rate that arrived since the last request."""
    gain: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Part of the backlog that a request adds to the rate."""
    persistence: fields.PositiveSpan = 500_000_000
    """Time after which a granted rate expires if no request renews it."""


class Contention(ScenarioTable):
    """Contention slots (slotted ALOHA) for a backlog without dynamic capacity."""

    size: fields.PositiveSize
    """Data that fits into the contention slots of a superframe."""
    collision: fields.Probability = 0.0
    """Probability that an attempt collides."""
    backoff: Annotated[int, Field(ge=1, le=1000)] = 4
    """After a collision, the terminal waits for `latency` and a random number of superframes from 1
    to this."""


class Grants(ScenarioTable):
    """Capacity that a gateway assigns on demand. The link's `rate` is the most that it grants."""

    superframe: fields.PositiveSpan
    """Length of a superframe, in which slots are assigned."""
    latency: fields.PositiveSpan
    """Time from a request to the first slot that it may get: about one more round trip."""
    request_every: fields.PositiveSpan = 100_000_000
    """Time between two request opportunities."""
    constant: fields.Rate = 0
    """Constant rate assignment (CRA), without requests."""
    rate_based: Annotated[RateBased | None, BeforeValidator(fields.absent)] = RateBased()
    """Rate-based dynamic capacity (RBDC), or `"none"`."""
    volume_based: bool = False
    """Whether the terminal requests capacity for its backlog by volume (VBDC)."""
    free: fields.Rate = 0
    """Largest free capacity assignment (FCA): each superframe has a random part of it."""
    quantum: fields.PositiveRate = 8_000
    """Requested rates are rounded up to a multiple of it."""
    contention: Annotated[Contention | None, BeforeValidator(fields.absent)] = None
    """Contention slots."""
    request_loss: fields.Probability = 0.0
    """Probability that a request is lost."""
    slots: Literal["together", "spread"] = "together"
    """Slots of a superframe: `"together"` at its start, or `"spread"` over it."""
