"""Jitter of a poor Wi-Fi link, as used in tests of QUIC congestion control.

Each packet is delayed by the sum of two terms, and never overtakes its predecessor:

- contention: N₁ ms with N₁ from a Poisson distribution of mean 1, minus a uniform time in
  0 … 1 ms if N₁ > 0;
- a pause of the radio, with a probability x that follows from the average: N₂ · 7.5 ms with N₂
  from a Poisson distribution of mean 12, minus a uniform time in 0 … 7.5 ms if N₂ > 1.

The test plan of C4 (draft-huitema-ccwg-c4-test) sets x = (average − 1 ms) ⁄ 90 ms, with a mean of
1 ms for contention and 90 ms for a pause. picoquic's simulator (`sim_link.c`), the source of the
uniform term of pauses, divides by 84 ms. With the uniform terms, contention has a mean of 0.68 ms
and a pause 86 ms, so the mean delay is slightly below the requested average.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Final

__all__ = ["jitter_quantiles"]

_CONTENTION_MS: Final = 1.0
_PAUSE_MS: Final = 7.5
_MEAN_PAUSES: Final = 12
_LARGEST_CONTENTION: Final = 12
_LARGEST_PAUSES: Final = 40
"""A Poisson number of mean 12 exceeds this value with a probability below 10⁻⁹."""
_STEP_MS: Final = 0.5


def jitter_quantiles(average_ms: float) -> list[list[Any]]:
    """Return the distribution of a packet's delay as a table of quantiles.

    Parameters
    ----------
    average_ms
        Nominal average of the model, 1 to 91 ms.

    Returns
    -------
    list
        Pairs of a probability and a time with its unit, at multiples of 0.5 ms at which the
        probability changes.
    """
    chance = (average_ms - _CONTENTION_MS) / (_MEAN_PAUSES * _PAUSE_MS)
    last_ms = _LARGEST_CONTENTION * _CONTENTION_MS
    last_ms += _LARGEST_PAUSES * _PAUSE_MS if chance > 0 else 0.0
    table: list[list[Any]] = [[0.0, "0 ns"]]
    steps = round(last_ms / _STEP_MS)
    for step in range(steps + 1):
        at_ms = step * _STEP_MS
        probability = 1.0 if step == steps else round(_below(at_ms, chance), 9)
        if probability > table[-1][0]:
            table.append([probability, f"{round(at_ms * 1e6)} ns"])
        if probability == 1.0:
            break
    return table


def _below(at_ms: float, chance: float) -> float:
    """Return the probability of a delay up to a time."""
    found = (1 - chance) * _contention(at_ms)
    for pauses in range(_LARGEST_PAUSES + 1) if chance > 0 else ():
        weight = chance * _poisson(pauses, _MEAN_PAUSES)
        if pauses < 2:
            found += weight * _contention(at_ms - pauses * _PAUSE_MS)
        else:
            ends = (at_ms - (pauses - 1) * _PAUSE_MS, at_ms - pauses * _PAUSE_MS)
            found += weight * (_contention_sum(ends[0]) - _contention_sum(ends[1])) / _PAUSE_MS
    return min(found, 1.0)


def _contention(at_ms: float) -> float:
    """Return the probability of a contention delay up to a time; linear in each millisecond."""
    if at_ms < 0:
        return 0.0
    if at_ms >= _LARGEST_CONTENTION:
        return 1.0
    whole = math.floor(at_ms)
    below = sum(_poisson(number, 1) for number in range(whole + 1))
    return below + (at_ms - whole) * _poisson(whole + 1, 1)


def _contention_sum(at_ms: float) -> float:
    """Return the integral of `_contention` up to a time, in ms."""
    beyond_ms = max(0.0, at_ms - _LARGEST_CONTENTION)
    return beyond_ms + _sum_within(at_ms - beyond_ms) if at_ms > 0 else 0.0


@functools.cache
def _sum_within(at_ms: float) -> float:
    """Return the same integral, limited to the largest contention delay."""
    edges: list[float] = [*map(float, range(math.floor(at_ms) + 1)), at_ms]
    heights = [_contention(edge) for edge in edges]
    pairs = zip(itertools.pairwise(edges), itertools.pairwise(heights), strict=True)
    return math.fsum((low + high) / 2 * (to - start) for (start, to), (low, high) in pairs)


@functools.cache
def _poisson(number: int, mean: float) -> float:
    return math.exp(-mean) * math.pow(mean, number) / math.factorial(number)
