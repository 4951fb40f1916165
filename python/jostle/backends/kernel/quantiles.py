"""Means and quantiles as the engine computes them."""

from __future__ import annotations

from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean; None if there are no values."""
    return sum(values) / len(values) if values else None


def ranked(known: Sequence[float], larger: int, share: float) -> float | None:
    """Return a quantile by linear interpolation of ranks, as `ranked` of `measures/group.rs`.

    Parameters
    ----------
    known
        Known values. There are `larger` further values, which exceed all of them.
    """
    rank = share * (len(known) + larger - 1)
    below = int(max(rank, 0))
    part = rank - below
    if below + (part > 0) >= len(known):
        return None
    ordered = sorted(known)
    low = ordered[below]
    return low if part == 0 else low + (ordered[below + 1] - low) * part
