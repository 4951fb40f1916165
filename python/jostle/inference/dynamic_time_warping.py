"""Dynamic time warping: distance of two curves, with small shifts in time allowed.

Sawteeth of one controller on two stacks have the same shape, but their phase drifts. A
point-by-point distance would count that as a difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int_]

__all__ = ["warped_distances"]


def warped_distances(
    curve: Floats, others: Floats, band: int, lengths: Ints | None = None
) -> Floats:
    """Return the distances of a curve to others of the same length, per point.

    The cost of a warping path is the sum of the absolute differences of the matched points. The
    distance is the least cost divided by the number of points [Sakoe and Chiba 1978: symmetric form
    with steps of equal weight, and their band].

    Parameters
    ----------
    curve
        Shape (n,), or (k, n) for a curve for each other curve.
    others
        Shape (k, n).
    band
        Maximum number of points by which one curve may run ahead of the other.
    lengths
        Shape (k,): number of points of each pair that are compared, from the first; all by default.

    Returns
    -------
    Array of shape (k,), in the unit of the curves.

    Examples
    --------
    >>> import numpy as np
    >>> saw = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
    >>> late = np.array([0.0, 0.0, 1.0, 2.0, 0.0, 1.0])
    >>> warped_distances(saw, np.stack([saw, late]), band=0).round(2).tolist()
    [0.0, 1.0]
    >>> warped_distances(saw, np.stack([saw, late]), band=1).round(2).tolist()
    [0.0, 0.17]
    """
    length = curve.shape[-1]
    if others.ndim != 2 or others.shape[1] != length or length == 0 or band < 0:
        raise ValueError("curves of one length, with at least one point, and a band of 0 or more")
    if lengths is None:
        lengths = np.full(others.shape[0], length)
    # Along an anti-diagonal i + j = s of the cost table, cells do not depend on each other. Column
    # `band + 1 + d` contains the cell with i - j = d. Neighbouring columns, of the other parity,
    # contain cells of s - 1; the column itself contains the cell of s - 2 (diagonal step). One
    # column at each edge stays infinite.
    cost = np.full((others.shape[0], 2 * band + 3), np.inf)
    cost[:, band + 1] = np.abs(curve[..., 0] - others[:, 0])
    total = cost[:, band + 1].copy()
    for s in range(1, 2 * int(lengths.max()) - 1):
        widest = min(band, s, 2 * length - 2 - s)
        widest -= (widest - s) % 2
        if widest < 0:
            continue
        d = np.arange(-widest, widest + 1, 2)
        at = d + band + 1
        step = np.abs(curve[..., (s + d) // 2] - others[:, (s - d) // 2])
        before = np.minimum(np.minimum(cost[:, at - 1], cost[:, at + 1]), cost[:, at])
        cost[:, at] = before + step
        # No later cell has an effect on the last one of a shorter pair.
        ends = s == 2 * (lengths - 1)
        total[ends] = cost[ends, band + 1]
    return total / lengths
