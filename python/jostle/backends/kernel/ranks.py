"""Means and quantiles as the engine takes them of what is ranked."""

from __future__ import annotations

from collections.abc import Sequence


def mean(values: Sequence[float]) -> float | None:
    """Give the arithmetic mean; None of nothing."""
    return sum(values) / len(values) if values else None


def ranked(known: Sequence[float], larger: int, share: float) -> float | None:
    """Give a quantile on the line between ranks, as `ranked` of `measures/group.rs`.

    Parameters
    ----------
    known
        Values, beside `larger` others that are larger than all of them.
    """
    rank = share * (len(known) + larger - 1)
    below = int(max(rank, 0))
    part = rank - below
    if below + (part > 0) >= len(known):
        return None
    ordered = sorted(known)
    low = ordered[below]
    return low if part == 0 else low + (ordered[below + 1] - low) * part
