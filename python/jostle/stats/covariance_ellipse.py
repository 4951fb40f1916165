"""The ellipse of one standard deviation around a cloud of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.stats.descriptive import Floats


@dataclass(frozen=True)
class Ellipse:
    """An ellipse, in the units of its points.

    Attributes
    ----------
    x, y
        Its centre: the means.
    outline_x, outline_y
        Shape (points,): its outline, closed.
    """

    x: float
    y: float
    outline_x: Floats
    outline_y: Floats


def sigma_ellipse(x: Floats, y: Floats, points: int = 73) -> Ellipse | None:
    """Ellipse of one standard deviation of a bivariate normal distribution, as Remy draws it.

    Its outline is where the squared Mahalanobis distance from the mean is 1, with the sample's
    covariance (n − 1): it holds 39 % of a normal cloud (Winstein and Balakrishnan, SIGCOMM 2013,
    figure 4, draw the same).

    Parameters
    ----------
    x, y
        Shape (n,) each; a pair that is not complete is left out.
    points
        Of the outline.

    Returns
    -------
    Ellipse or None
        None for fewer than two pairs; of pairs that do not vary in one direction it is a line.

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import sigma_ellipse
    >>> found = sigma_ellipse(np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.0, 2.0]))
    >>> (found.x, round(found.y, 3))
    (2.0, 1.333)

    Examples
    --------
    >>> import numpy as np
    >>> from jostle.stats import sigma_ellipse
    >>> ellipse = sigma_ellipse(np.array([1.0, 2.0, 3.0]), np.array([5.0, 9.0, 7.0]), points=4)
    >>> ellipse.x, ellipse.y, ellipse.outline_x.shape
    (2.0, 7.0, (4,))
    """
    present = ~(np.isnan(x) | np.isnan(y))
    if present.sum() < 2:
        return None
    pairs = np.stack([x[present], y[present]])
    centre = pairs.mean(axis=1)
    # Eigenvectors are the axes, roots of eigenvalues the deviations along them.
    values, vectors = np.linalg.eigh(np.cov(pairs, ddof=1))
    angle = np.linspace(0.0, 2 * np.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    outline = centre[:, np.newaxis] + vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * circle)
    return Ellipse(float(centre[0]), float(centre[1]), outline[0], outline[1])
