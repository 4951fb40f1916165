"""Lengths of time that applications draw: the same as the simulator's in a run of the same seed.

What depends on how long the network takes cannot be equal, but a flow that is on for 1.7 s and off
for 0.4 s in the simulator is that on the kernel, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from jostle.run_spec import FlowSpec

_MASK = 2**64 - 1

# A source that acts again at the same instant would never let time pass.
_LEAST_NS = 1_000
# Beyond that the same come again: a source with a thousand turns per second for 20 minutes.
_MOST = 1 << 20


class Stream:
    """A named random stream, as `jostle_units::Stream`: Xoshiro256++ (Blackman, Vigna 2019).

    Parameters
    ----------
    seed
        The run's.
    name
        Of the component that it drives.
    """

    def __init__(self, seed: int, name: str) -> None:
        state = (seed * 0x9E3779B97F4A7C15 & _MASK) ^ _fnv1a(name.encode())
        self._state = list(islice(_splitmix64(state), 4))

    def bits(self) -> int:
        """Draw 64 bits."""
        s = self._state
        drawn = (_rotated(s[0] + s[3] & _MASK, 23) + s[0]) & _MASK
        shifted = s[1] << 17 & _MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = _rotated(s[3], 45)
        return drawn

    def uniform(self) -> float:
        """Draw from 0 up to 1."""
        return (self.bits() >> 11) / 2**53

    def exponential(self, mean: float) -> float:
        """Draw from an exponential distribution."""
        return -mean * math.log(1.0 - self.uniform())


def spans_ns(seed: int, flow: FlowSpec, duration_ns: int) -> list[int]:
    """List the lengths that a flow's source uses one after the other, and then again.

    On and off times of a source that takes turns, think times of one that answers; none of others.
    """
    source = flow["source"]
    match source["kind"]:
        case "on_off":
            means_ns = [source["on_ns"], source["off_ns"]]
        case "request_response":
            means_ns = [source["think_ns"]]
        case _:
            return []
    if not source["exponential"]:
        return [max(_LEAST_NS, mean_ns) for mean_ns in means_ns]
    stream = Stream(seed, f"flow/{flow['name']}/source")
    drawn: list[int] = []
    total_ns = 0
    while total_ns <= duration_ns and len(drawn) < _MOST:
        for mean_ns in means_ns:
            drawn.append(max(_LEAST_NS, round(stream.exponential(mean_ns))))
            total_ns += drawn[-1]
    return drawn


def factors(seed: int, flow: FlowSpec, duration_ns: int) -> list[float]:
    """List by which factors segments of a flow's video are larger than their mean.

    As many as a run can have that lasts so long; none of other sources.
    """
    source = flow["source"]
    if source["kind"] != "video":
        return []
    variation = source["variation"]
    if not variation:
        return [1.0]
    stream = Stream(seed, f"flow/{flow['name']}/source")
    segments = (duration_ns + source["buffer_ns"]) // source["segment_ns"] + 2
    return [1.0 + variation * (2.0 * stream.uniform() - 1.0) for _ in range(min(segments, _MOST))]


def _fnv1a(name: bytes) -> int:
    digest = 0xCBF29CE484222325
    for byte in name:
        digest = (digest ^ byte) * 0x100000001B3 & _MASK
    return digest


def _splitmix64(state: int) -> Iterator[int]:
    while True:
        state = state + 0x9E3779B97F4A7C15 & _MASK
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        yield mixed ^ mixed >> 31


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK
