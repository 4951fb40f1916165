"""Student's t and the binomial distribution, compared with SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from jostle.stats.student_t import binomial_ranks, t_probability, t_quantile
from scipy.special import bdtr, stdtr, stdtrit

FREEDOMS = [0.5, 1, 1.3, 2, 2.7, 3, 4, 7.3, 19, 29.9, 39.5, 40, 41, 99, 250.7, 1e3, 1e4, 1e5, 1e6]


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_quantiles_and_probabilities_are_those_of_scipy(freedom: float) -> None:
    for probability in (1e-9, 1e-4, 0.005, 0.025, 0.05, 0.1, 0.25, 0.4, 0.6, 0.9, 0.975, 0.9999):
        expected = stdtrit(freedom, probability)
        assert t_quantile(freedom, probability) == pytest.approx(expected, rel=1e-10, abs=0)
    for t in (-50.0, -8.0, -3.0, -1.0, -0.1, -1e-5, 1e-3, 0.5, 2.0, 10.0):
        assert t_probability(t, freedom) == pytest.approx(stdtr(freedom, t), rel=1e-10, abs=1e-300)


def test_the_ends_of_the_distribution() -> None:
    assert t_quantile(7, 0.5) == 0.0
    assert t_quantile(7, 0.75) == -t_quantile(7, 0.25)
    assert all(math.isnan(t_quantile(*outside)) for outside in ((7, 0.0), (7, 1.0), (0, 0.5)))
    assert [t_probability(end, 3) for end in (-math.inf, 0.0, math.inf)] == [0.0, 0.5, 1.0]
    assert math.isnan(t_probability(math.nan, 3))


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 50, 71, 72, 1000, 20_000])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0])
@pytest.mark.parametrize("tail", [0.005, 0.025, 0.05])
def test_ranks_are_those_of_scipy(n: int, p: float, tail: float) -> None:
    up_to = bdtr(np.arange(n, dtype=np.float64), n, p)
    expected = (np.searchsorted(up_to, tail, "right"), np.searchsorted(up_to, 1 - tail, "left"))
    assert binomial_ranks(n, p, tail) == expected
