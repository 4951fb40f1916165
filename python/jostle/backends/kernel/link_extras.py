"""Faults, habits of netem and grants of a link, as options of `jostle_link`."""

from __future__ import annotations

import math
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jostle.backends.kernel import addresses
from jostle.backends.kernel.guest.netlink import attribute
from jostle.run_spec import LinkSpec

__all__ = ["chance", "keys", "messages"]

# jostle_link.h
_DUPLICATE, _CORRUPT, _REORDERING, _RULE, _NUMBERS, _NETEM, _GRANTS = 18, 19, 20, 21, 22, 23, 24
_CLASSES: Final = {"data": 1, "acks": 2, "handshake": 3}
_FAULTS: Final = {"lose": 0, "mark": 1, "corrupt": 2, "duplicate": 3, "late": 4}

_DRAWS: Final = 1 << 53
_LARGEST_WORD: Final = 2**32 - 1
# Faults in a message: their attribute is shorter than 60,000 bytes.
_PART: Final = 2_000


def keys(link: LinkSpec) -> list[str]:
    """Return the keys of a link for faults, habits of netem and grants that it has."""
    return [key for key in ("faults", "netem", "grants") if link.get(key) is not None]


def chance(probability: float) -> int:
    """Convert a probability to a count out of 2⁵³, like the engine's `chance`."""
    return min(math.ceil(probability * _DRAWS), _DRAWS)


def messages(link: LinkSpec, drawn: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the options as messages. Each rule for packet numbers begins a new message."""
    seeds, faults = drawn["seeds"], link.get("faults")
    if faults is not None:
        for key, number, event in (
            ("duplicate", _DUPLICATE, faults.get("duplicate")),
            ("corrupt", _CORRUPT, faults.get("corrupt")),
        ):
            if event is not None:
                yield attribute(number, _event(event, seeds[key], 0, 0))
        reorder = faults.get("reorder")
        if reorder is not None:
            gap, late_ns = reorder["gap"], reorder.get("late_ns") or 0
            content = _event(reorder["occurrence"], seeds["reorder"], gap, late_ns)
            yield attribute(_REORDERING, content)
        for rule in faults.get("packets", ()):
            yield from _rule(rule)
    netem = link.get("netem")
    if netem is not None:
        limit = netem.get("limit_packets") or 0
        habits = (limit, netem["limit_includes_queue"], netem["jitter_per_batch"])
        yield attribute(_NETEM, struct.pack("=3Q", *habits))
    grants = link.get("grants")
    if grants is not None:
        yield attribute(_GRANTS, _grants(link, grants, seeds))


def _event(event: Mapping[str, Any], seed: int, gap: int, late_ns: int) -> bytes:
    probability, correlation = event["probability"], event["correlation"]
    words = (int(probability * _LARGEST_WORD), int(correlation * _LARGEST_WORD))
    return struct.pack("=6Q", seed, chance(probability), *words, gap, late_ns)


def _rule(rule: Mapping[str, Any]) -> Iterator[bytes]:
    flow = rule.get("flow")
    host = b"\0" * 4 if flow is None else socket.inet_aton(addresses.receiver_address(flow))
    of = _CLASSES.get(rule.get("class") or "", 0)
    begin = attribute(_RULE, host + struct.pack("=I", of))
    numbers = [
        struct.pack("=3Q", it["number"], _FAULTS[it["fault"]["kind"]], it["fault"].get("by_ns", 0))
        for it in rule["faults"]
    ]
    for first in range(0, len(numbers), _PART):
        yield begin + attribute(_NUMBERS, b"".join(numbers[first : first + _PART]))
        begin = b""


def _grants(link: LinkSpec, grants: Mapping[str, Any], seeds: Mapping[str, int]) -> bytes:
    capacity = link["capacity"]
    assert capacity["kind"] == "constant"
    rate_based = grants.get("rate_based") or {}
    contention = grants.get("contention") or {}
    return struct.pack(
        "=20Q",
        grants["superframe_ns"],
        grants["latency_ns"],
        grants["request_interval_ns"],
        grants["constant_bps"],
        bool(rate_based),
        rate_based.get("over_per_mille", 0),
        rate_based.get("gain_per_mille", 0),
        rate_based.get("persistence_ns", 0),
        grants["volume_based"],
        grants["free_bps"],
        grants["quantum_bps"],
        capacity["rate_bps"],
        contention.get("bytes", 0),
        chance(contention.get("collision", 0.0)),
        contention.get("backoff_superframes", 1),
        chance(grants["request_loss"]),
        grants["spread"],
        seeds["grants/free"],
        seeds["grants/collisions"],
        seeds["grants/requests"],
    )
