"""Statistics against numbers worked out by hand or published."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jostle.stats import (
    estimate,
    mann_whitney,
    mean,
    percentile,
    percentile_estimate,
    sd,
    series_band,
)

finite = st.floats(-1e9, 1e9)


def test_descriptive_statistics_by_hand():
    sample = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
    assert mean(sample) == 5.0
    assert sd(sample) == pytest.approx(math.sqrt(32 / 7))
    assert percentile(sample, 50) == 4.5
    assert percentile(sample, 95) == pytest.approx(7 + 0.65 * 2)


def test_what_is_absent_is_left_out():
    assert mean([None, 1.0, math.nan, 3.0]) == 2.0
    assert mean([None]) is None
    assert sd([1.0, None]) is None
    assert percentile([], 50) is None


def test_student_t_interval_by_the_table():
    # t(0.975; 4) = 2.776 in every table; s = sqrt(2.5) for 1 … 5.
    found = estimate([1, 2, 3, 4, 5], "Mbit/s")
    assert found.value == 3.0
    assert found.high is not None
    assert found.low is not None
    assert found.high - 3.0 == pytest.approx(2.7764 * math.sqrt(2.5 / 5), abs=1e-4)
    assert 3.0 - found.low == pytest.approx(found.high - 3.0)
    assert (found.n, found.unit) == (5, "Mbit/s")
    assert "Student t 95 %" in found.method


def test_interval_of_a_published_sample():
    # Fisher's iris (1936), sepal length of the first ten setosa: mean 4.86, s = 0.29136.
    sample = [5.1, 4.9, 4.7, 4.6, 5.0, 5.4, 4.6, 5.0, 4.4, 4.9]
    found = estimate(sample, "cm")
    assert found.value == pytest.approx(4.86)
    assert found.low == pytest.approx(4.86 - 2.26216 * 0.29136 / math.sqrt(10), abs=1e-4)


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_one_run_has_no_interval(method):
    found = estimate([7.0], "s", method)
    assert (found.value, found.low, found.high, found.n) == (7.0, None, None, 1)
    assert "no interval" in found.method
    assert estimate([None], "s", method).value is None


def test_bootstrap_is_repeatable_and_skewed_like_its_sample():
    sample = [1.0, 1.1, 1.2, 1.3, 1.4, 9.0]
    found = estimate(sample, "s", "bootstrap")
    assert found == estimate(sample, "s", "bootstrap")
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low >= min(sample)
    assert found.high - found.value > found.value - found.low
    assert estimate([2.0, 2.0], "s", "bootstrap").high == 2.0


def test_bootstrap_and_t_agree_on_a_large_normal_sample():
    sample = np.random.default_rng(3).normal(10, 2, 400)
    by_t, by_bootstrap = estimate(sample, "1"), estimate(sample, "1", "bootstrap")
    assert by_bootstrap.low == pytest.approx(by_t.low, abs=0.03)
    assert by_bootstrap.high == pytest.approx(by_t.high, abs=0.03)


def test_t_interval_covers_as_often_as_it_says():
    generator = np.random.default_rng(11)
    covered = 0
    for _ in range(2000):
        found = estimate(generator.normal(5, 3, 5), "1")
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 5 <= found.high
    # Standard error of the coverage is 0.5 percentage points.
    assert covered / 2000 == pytest.approx(0.95, abs=0.02)


def test_confidence_must_be_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        estimate([1, 2], "1", confidence=95)


@given(st.lists(finite, min_size=2, max_size=20))
def test_interval_contains_its_value(values):
    found = estimate(values, "1")
    assert found.low is not None
    assert found.high is not None
    assert found.value is not None
    assert found.low <= found.value <= found.high


def test_band_by_hand():
    nan = math.nan
    band = series_band(np.array([[1.0, 2.0, nan, nan], [3.0, 2.0, 5.0, nan]]))
    assert band.n.tolist() == [2, 2, 1, 0]
    assert band.mean[:3].tolist() == [2.0, 2.0, 5.0]
    assert math.isnan(band.mean[3])
    # t(0.975; 1) = 12.706; s = sqrt(2).
    assert band.high[0] - 2.0 == pytest.approx(12.7062, abs=1e-3)
    assert band.low[1] == band.high[1] == 2.0
    assert np.isnan(band.low[2:]).all()
    assert np.isnan(band.high[2:]).all()


@given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=2, max_size=6))
def test_band_is_the_estimate_of_every_bin(rows):
    values = np.array(rows)
    band = series_band(values)
    for column in range(3):
        found = estimate(values[:, column], "1")
        assert band.mean[column] == pytest.approx(found.value, abs=1e-5)
        assert band.low[column] == pytest.approx(found.low, abs=1e-4, rel=1e-9)


def test_band_needs_two_dimensions():
    with pytest.raises(ValueError, match="shape"):
        series_band(np.array([1.0, 2.0]))


def test_percentile_over_runs_covers_what_it_says():
    random = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        found = percentile_estimate(random.random(30), 50, "s")
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
    # Order statistics of 30 values: 95.7 %, and what 400 draws leave open.
    assert 0.93 <= held / 400 <= 0.985


@pytest.mark.parametrize(
    ("n", "percent", "has"), [(5, 50, 0), (6, 50, 1), (71, 95, 0), (72, 95, 1)]
)
def test_small_samples_have_no_interval_of_a_percentile(n, percent, has):
    found = percentile_estimate(range(n), percent, "s")
    assert found.value == pytest.approx(np.percentile(np.arange(n), percent))
    assert (found.low is not None) == bool(has)


def test_what_is_unfinished_counts_as_longest():
    found = percentile_estimate([1.0, None, 2.0, 3.0], 50, "s")
    assert (found.value, found.n) == (2.5, 4)
    assert percentile_estimate([1.0, None, None, None], 50, "s").value is None
    assert percentile_estimate([None, None], 50, "s").n == 0


@pytest.mark.parametrize(("m", "n"), [(2, 3), (4, 4), (6, 5)])
def test_mann_whitney_counts_the_orders_that_are_as_far_from_the_middle(m, n):
    random = np.random.default_rng([m, n])
    first, second = random.normal(size=m), random.normal(0.5, size=n)
    found = mann_whitney(first, second)
    assert found.u == sum(a > b for a in first for b in second)
    orders = [
        sum(place - at for at, place in enumerate(chosen))
        for chosen in itertools.combinations(range(m + n), m)
    ]
    far = [u for u in orders if abs(u - m * n / 2) >= abs(found.u - m * n / 2)]
    assert found.p == pytest.approx(len(far) / len(orders))


def test_mann_whitney_of_ties_is_a_normal_distribution():
    """1, 1, 2 and 1, 2, 2, 3: ranks 2, 2, 5 of the first, three and three values are tied."""
    found = mann_whitney([1.0, 1.0, 2.0], [1.0, 2.0, 2.0, 3.0])
    assert (found.u, found.exact) == (3.0, False)
    variance = 3 * 4 / 12 * (8 - 2 * (3**3 - 3) / (7 * 6))
    assert found.p == pytest.approx(math.erfc((6 - 3 - 0.5) / math.sqrt(2 * variance)))


def test_mann_whitney_needs_two_values_that_differ():
    assert mann_whitney([1.0, 1.0], [1.0, 1.0]) is None
    assert mann_whitney([1.0], [2.0, 3.0]) is None
