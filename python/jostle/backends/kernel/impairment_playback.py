"""Links as options of jostle's own queueing disciplines.

`jostle_link` implements capacity, delay and loss of a link, with any queueing discipline as its
queue. `jostle_queue` implements a queue with random drops. Both are built into the virtual-time
kernel (`jostle/kernel_images/module`; the options are documented in `jostle_link.h`). They play
back the impairments that the engine drew with the run's seed, so that simulator and kernel have the
same outages and delays and, for the same packets, the same losses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jostle.backends.base import Spec
from jostle.backends.kernel import link_extras
from jostle.backends.kernel.guest.netlink import attribute
from jostle.run_spec import LinkSpec

LINK, QUEUE = "jostle_link", "jostle_queue"

JITTER_POINTS = 1 << 22
"""Maximum number of jitter values of a run: 32 MB."""
_CORRELATION_CELLS = 16

# The length field of a netlink attribute has 16 bits, so lists are split over several messages.
_PART_BYTES = 60_000

# jostle_link.h
_RATES, _OPPORTUNITIES, _OPPORTUNITY_BYTES, _DELAYS, _REORDER = 2, 3, 4, 5, 6
_JITTER_STEP, _JITTER, _JITTER_SEED, _QUANTILES, _OUTAGES, _LOSS = 7, 8, 9, 10, 11, 12
_LOSS_STEPS_SEED, _LOSS_STEPS, _CONTENTION, _FRAMES, _ACK_THINNING = 13, 14, 15, 16, 17
_FRAMING = 25
_CELLS = {"none": 0, "atm": 1, "ptm": 2}
_QUEUE_PARAMETERS = 1
_NO_LIMIT = 2**64 - 1

DrawnImpairments = Mapping[str, Any]
"""Random impairments of a link; see `jostle._core.draw_impairments`."""


def own_queue(link: LinkSpec) -> bool:
    """Return whether a link's queue is not available in Linux."""
    return bool(link["queue"]["kind"] == "occupancy_drop")


def first_rate_bps(link: LinkSpec) -> int:
    """Return the initial rate of a link; for traces and random rates, the mean."""
    capacity = link["capacity"]
    match capacity["kind"]:
        case "constant":
            return int(capacity["rate_bps"])
        case "steps":
            return int(capacity["steps"][0]["rate_bps"])
        case "autoregressive":
            return int(capacity["mean_bps"])
        case "trace":
            moments = capacity["opportunities_ms"]
            return int(len(moments) * capacity["opportunity_bytes"] * 8_000 // moments[-1])
    raise ValueError("a tunnel has no rate of its own")


def peak_bps(link: LinkSpec) -> int:
    """Return the maximum rate of a link; for a trace, the mean."""
    capacity = link["capacity"]
    if capacity["kind"] == "steps":
        return max(step["rate_bps"] for step in capacity["steps"])
    if capacity["kind"] == "autoregressive":
        return int(capacity["max_bps"])
    return first_rate_bps(link)


def too_fine(link: LinkSpec, duration_ns: int) -> bool:
    """Return whether jitter has so short a correlation time that its values exceed the memory."""
    jitter = link["delay"]["jitter"]
    if jitter is None or jitter["correlation_ns"] == 0:
        return False
    return bool(duration_ns * _CORRELATION_CELLS > JITTER_POINTS * jitter["correlation_ns"])


def files(spec: Spec, draw: Callable[[int], DrawnImpairments]) -> dict[str, bytes]:
    """Return the option files of all links, by name."""
    found: dict[str, bytes] = {}
    for number, link in enumerate(spec["links"]):
        drawn = draw(number)
        messages = (*_link_messages(link, drawn), *link_extras.messages(link, drawn))
        found[file_name(LINK, number)] = _packed(messages)
        if own_queue(link):
            found[file_name(QUEUE, number)] = _packed(
                [_queue_message(link["queue"]["parameters"], drawn)]
            )
    return found


def file_name(kind: str, link: int) -> str:
    """Return the name of the option file of a link's discipline."""
    return f"{kind}-{link}"


@dataclass(frozen=True)
class _Option:
    """A netlink option: a value, or a list of items of `item_bytes` that can be split."""

    number: int
    content: bytes
    item_bytes: int | None = None

    def split_into_attributes(self) -> Iterator[bytes]:
        if self.item_bytes is None:
            yield attribute(self.number, self.content)
            return
        step = _PART_BYTES // self.item_bytes * self.item_bytes
        for start in range(0, len(self.content), step):
            yield attribute(self.number, self.content[start : start + step])


def _link_messages(link: LinkSpec, drawn: DrawnImpairments) -> Iterator[bytes]:
    """Yield the options of `jostle_link` as messages of bounded size."""
    message = b""
    for option in (
        *_capacity(link["capacity"], drawn),
        *_delay(link["delay"], drawn),
        *_losses(link, drawn),
        *_sending(link, drawn),
    ):
        for encoded in option.split_into_attributes():
            if message and len(message) + len(encoded) > _PART_BYTES:
                yield message
                message = b""
            message += encoded
    yield message


def _capacity(capacity: Mapping[str, Any], drawn: DrawnImpairments) -> Iterator[_Option]:
    match capacity["kind"]:
        case "constant":
            yield _steps(_RATES, [(0, capacity["rate_bps"])])
        case "steps":
            yield _steps(_RATES, [(step["at_ns"], step["rate_bps"]) for step in capacity["steps"]])
        case "autoregressive":
            yield _Option(_RATES, drawn["rate_steps"].tobytes(), 16)
        case "trace":
            moments = capacity["opportunities_ms"]
            yield _Option(_OPPORTUNITY_BYTES, struct.pack("=I", capacity["opportunity_bytes"]))
            yield _Option(_OPPORTUNITIES, struct.pack(f"={len(moments)}I", *moments), 4)


def _delay(delay: Mapping[str, Any], drawn: DrawnImpairments) -> Iterator[_Option]:
    yield _steps(_DELAYS, [(step["at_ns"], step["delay_ns"]) for step in delay["steps"]])
    jitter = delay["jitter"]
    if jitter is None:
        return
    if jitter["reorder"]:
        yield _Option(_REORDER, b"")
    if jitter["correlation_ns"] > 0:
        yield _Option(_JITTER_STEP, struct.pack("=Q", drawn["jitter_step_ns"]))
        yield _Option(_JITTER, drawn["jitter_ns"].tobytes(), 8)
    else:
        yield _Option(_JITTER_SEED, struct.pack("=Q", drawn["jitter_seed"]))
        yield _quantiles(_QUANTILES, jitter["quantiles"])


def _losses(link: LinkSpec, drawn: DrawnImpairments) -> Iterator[_Option]:
    if len(drawn["outages_ns"]):
        yield _Option(_OUTAGES, drawn["outages_ns"].tobytes(), 16)
    steps = link.get("loss_steps", ())
    if steps:
        chances_at = [(step["at_ns"], link_extras.chance(step["probability"])) for step in steps]
        yield _Option(_LOSS_STEPS_SEED, struct.pack("=Q", drawn["loss_steps_seed"]))
        yield _steps(_LOSS_STEPS, chances_at)
    loss = link["loss"]
    if loss is None:
        return
    given: Mapping[str, Any] = loss["parameters"]
    if loss["kind"] == "independent":
        chances = [0.0, 0.0, given["probability"], 0.0]
    else:
        names = ("good_to_bad", "bad_to_good", "loss_good", "loss_bad")
        chances = [given[name] for name in names]
    state = struct.pack("=QQ", drawn["loss_seed"], drawn["loss_drawn"])
    state += struct.pack("=4Q", *map(link_extras.chance, chances))
    yield _Option(_LOSS, state + struct.pack("=Q", drawn["loss_bad"]))


def _sending(link: LinkSpec, drawn: DrawnImpairments) -> Iterator[_Option]:
    """Yield the options for framing, frame aggregation and ACK thinning."""
    framing = link.get("framing")
    if framing is not None:
        sizes = (framing["overhead_bytes"], framing["mpu_bytes"], _CELLS[framing["cells"]])
        yield _Option(_FRAMING, struct.pack("=qQQ", *sizes))
    frames = link.get("frames")
    if frames is not None:
        yield _quantiles(_CONTENTION, frames["contention"])
        limits = (drawn["contention_seed"], frames["packets"], frames["bytes"])
        yield _Option(_FRAMES, struct.pack("=QQQ", *limits))
    thinning = link.get("ack_thinning")
    if thinning is not None:
        yield _Option(_ACK_THINNING, struct.pack("=QQ", thinning["most"], thinning["hold_ns"]))


def _queue_message(queue: Mapping[str, Any], drawn: DrawnImpairments) -> bytes:
    """Return the options of `jostle_queue` for a queue's parameters."""
    limit = queue["limit"]
    values = (
        limit.get("bytes", _NO_LIMIT),
        limit.get("packets", _NO_LIMIT),
        queue["threshold"],
        link_extras.chance(queue["probability"]),
        drawn["queue_seed"],
    )
    return attribute(_QUEUE_PARAMETERS, struct.pack("=5Q", *values))


def _steps(number: int, steps: Sequence[tuple[int, int]]) -> _Option:
    return _Option(number, _pairs(steps), 16)


def _quantiles(number: int, points: Iterable[Mapping[str, Any]]) -> _Option:
    pairs = [(link_extras.chance(point["probability"]), point["value_ns"]) for point in points]
    return _Option(number, _pairs(pairs), 16)


def _pairs(pairs: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack("=QQ", *pair) for pair in pairs)


def _packed(messages: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack("=I", len(message)) + message for message in messages)
