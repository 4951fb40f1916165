"""Measures of transfers: how close to the ideal one came, how long flows took to share fairly."""

from __future__ import annotations

import numpy as np

from jostle.stats.describe import Floats


def minimum_completion_s(size_bytes: float, capacity_bps: float, rtt_s: float) -> float:
    """Least time from a client's SYN to the last byte: 1.5 d + S ÷ C + 0.5 d, in s.

    One and a half round trips pass until the request has arrived, half a one until the last byte
    has (Guo and Lee, IEEE Access 2020).

    Parameters
    ----------
    size_bytes
        Size S of the object.
    capacity_bps
        Capacity C of the bottleneck, bit/s.
    rtt_s
        Two-way propagation delay d, s.
    """
    return 1.5 * rtt_s + size_bytes * 8 / capacity_bps + 0.5 * rtt_s


def fct_efficiency(
    completion_s: float, size_bytes: float, capacity_bps: float, rtt_s: float
) -> float:
    """Least completion time ÷ the one that was measured; 1 is ideal.

    Units and symbols are those of `minimum_completion_s`.
    """
    return minimum_completion_s(size_bytes, capacity_bps, rtt_s) / completion_s


def convergence_s(
    time_s: Floats, rates: Floats, tolerance: float = 0.25, hold_s: float = 5.0
) -> float | None:
    """Time at which all flows come to their fair share and stay there for a while.

    Fair is within `tolerance` of the mean of all flows, in every bin of the next `hold_s`. Studies
    that speak of convergence rarely define it; this is ours.

    Parameters
    ----------
    time_s
        Shape (bins,): ends of the bins, equally far apart.
    rates
        Shape (flows, bins): what each flow got, in any unit; NaN while a flow is not there, which
        counts as not converged.
    tolerance
        Largest deviation from the mean, relative to it.
    hold_s
        How long it must last.

    Returns
    -------
    float or None
        Start of the first bin of such a stretch; None if there is none.
    """
    if rates.ndim != 2 or rates.shape[1] != time_s.size:
        raise ValueError("rates must have the shape (flows, bins)")
    if time_s.size < 2:
        return None
    bin_s = float(time_s[1] - time_s[0])
    needed = max(1, round(hold_s / bin_s))
    mean = rates.mean(axis=0)
    with np.errstate(invalid="ignore"):
        fair = (np.abs(rates - mean) <= tolerance * mean).all(axis=0) & (mean > 0)
    run = 0
    for at, good in enumerate(fair):
        run = run + 1 if good else 0
        if run == needed:
            return float(time_s[at - needed + 1]) - bin_s
    return None
