"""Every number of `jostle.stats` against a hand-computed one, or against scipy's definition."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from jostle import stats
from jostle.stats import Envelope, envelope
from jostle.stats.mean_estimate import half_widths
from jostle.stats.student_t import t_quantile
from scipy.stats import bootstrap, ttest_ind
from scipy.stats import t as student

NAN = math.nan
# Variances 1 and 20/3; squared standard errors 1/3 and 5/3.
FIRST, SECOND = [1.0, None, 2.0, 3.0], [4.0, 6.0, NAN, 8.0, 10.0]
# 2² / ((1/3)² / 2 + (5/3)² / 3)
FREEDOM = 216 / 53
NO_VALUE = (None, None, None, 0)


def ends(found: stats.Estimate) -> tuple[float | None, float | None, float | None, int]:
    return found.value, found.low, found.high, found.n


def test_welch_test_by_hand() -> None:
    found = stats.welch_test(FIRST, SECOND)
    assert found is not None
    assert found.t == pytest.approx(-5 / math.sqrt(2))
    assert found.freedom == 4
    assert found.d == pytest.approx(-5 / math.sqrt(23 / 6))
    expected = ttest_ind([1, 2, 3], [4, 6, 8, 10], equal_var=False)
    assert found.p == pytest.approx(expected.pvalue)
    swapped = stats.welch_test(SECOND, FIRST)
    assert swapped is not None
    assert (swapped.t, swapped.p, swapped.d) == (-found.t, found.p, -found.d)


def test_welch_test_needs_two_values_that_vary() -> None:
    assert stats.welch_test([1.0], [2.0, 3.0]) is None
    assert stats.welch_test([2.0, 3.0], [1.0]) is None
    assert stats.welch_test([1.0, 1.0], [2.0, 2.0]) is None
    found = stats.welch_test([1.0, 2.0], [3.0, 3.0])
    assert found is not None
    assert (found.t, found.freedom, found.d) == pytest.approx((-3.0, 1, -3.0))


CONSTANTS = [value for scale in (1, 1e6) for value in (0.1 * scale, 7.305 / 3 * scale)]


@pytest.mark.parametrize("n", [3, 6, 7, 8, 10, 23])
def test_equal_values_have_no_rounding_error(n: int) -> None:
    """Deterministic runs are copies of one outcome: nothing to test, and an exact mean."""
    for value in CONSTANTS:
        first, second = [value] * n, [value * 1.3] * (n + 1)
        for test in (stats.t_test, stats.welch_test, stats.mann_whitney):
            assert test(first, second) is None
            assert test(first, [*second, value]) is not None
        assert ends(stats.estimate(first, "s")) == (value, value, value, n)
        assert stats.difference(first, [value] * (n + 1), "s").value == 0.0
        assert ends(stats.difference(first, second, "s"))[:3] == (value - value * 1.3,) * 3
        ratio = stats.ratio(second, first)
        assert ratio.low == ratio.value == ratio.high
        many = stats.estimates(np.array(first + second), np.array([n, n + 1]))
        assert many.low.tolist() == many.value.tolist() == [value, value * 1.3]
        band = stats.series_band(np.array([first]).T)
        assert (band.low, band.mean, band.high) == (value, value, value)
        assert (stats.mean(first), stats.sd(first)) == (value, 0.0)


@pytest.mark.parametrize(("confidence", "words"), [(0.95, "95"), (0.9, "90")])
def test_difference_by_hand(confidence: float, words: str) -> None:
    half = student.ppf(0.5 + confidence / 2, FREEDOM) * math.sqrt(2)
    found = stats.difference(FIRST, SECOND, "ms", confidence)
    assert ends(found) == pytest.approx((-5.0, -5 - half, -5 + half, 3))
    assert (found.unit, found.method) == ("ms", f"difference of means, Welch {words} % interval")
    if confidence == 0.95:
        assert stats.difference(FIRST, SECOND, "ms") == found


def test_difference_of_few_or_constant_values() -> None:
    none = stats.difference([None], [1.0], "s")
    assert none == stats.Estimate(*NO_VALUE, "s", "no value on one side")
    one = stats.difference([5.0], [1.0, 2.0], "s")
    assert one == stats.Estimate(3.5, None, None, 1, "s", "one run on one side, no interval")
    words = "difference of means, Welch 95 % interval"
    constant = stats.difference([2.0, 2.0], [5.0, 5.0, 5.0], "s")
    assert constant == stats.Estimate(-3.0, -3.0, -3.0, 2, "s", words)
    # Other units change the numbers by their factor only.
    assert ends(stats.difference([10.0, 20.0, 30.0], [40.0, 60.0, 80.0, 100.0], "s"))[:3] == (
        pytest.approx([10 * end for end in ends(stats.difference(FIRST, SECOND, "s"))[:3]])
    )


def test_ellipse_by_hand() -> None:
    """Variances 1 and 4, covariance 1: the outline has the squared Mahalanobis distance 1."""
    x, y = np.array([1.0, 2.0, NAN, 3.0, 7.0]), np.array([5.0, 9.0, 1.0, 7.0, NAN])
    found = stats.sigma_ellipse(x, y)
    assert found is not None
    assert (found.x, found.y, found.outline_x.shape) == (2.0, 7.0, (73,))
    dx, dy = found.outline_x - 2, found.outline_y - 7
    assert (4 * dx**2 - 2 * dx * dy + dy**2) / 3 == pytest.approx(1.0)
    assert (dx[-1], dy[-1]) == pytest.approx((dx[0], dy[0]))
    # The outline is passed once: opposite points are half the points apart.
    assert dx[:37] == pytest.approx(-dx[36:])
    assert np.abs(dx).max() == pytest.approx(1.0, abs=2e-3)
    assert np.abs(dy).max() == pytest.approx(2.0, abs=4e-3)


def test_ellipse_starts_on_its_minor_axis() -> None:
    found = stats.sigma_ellipse(np.array([-3.0, 3.0, 0, 0]), np.array([0, 0, -6.0, 6.0]), 5)
    assert found is not None
    root = math.sqrt(6)
    assert np.abs(found.outline_x) == pytest.approx([root, 0, root, 0, root])
    assert np.abs(found.outline_y) == pytest.approx([0, 2 * root, 0, 2 * root, 0])


def test_ellipse_of_a_line_and_of_one_pair() -> None:
    found = stats.sigma_ellipse(np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    assert found is not None
    assert found.outline_y == pytest.approx(2 * found.outline_x, abs=1e-7)
    assert stats.sigma_ellipse(np.array([1.0, NAN]), np.array([1.0, 2.0])) is None


def test_estimate_names_its_method() -> None:
    none = stats.estimate([None], "s")
    assert none == stats.Estimate(*NO_VALUE, "s", "no value in any run")
    one = stats.estimate([4.0, NAN], "s")
    assert one == stats.Estimate(4.0, None, None, 1, "s", "one run, no interval")
    half = student.ppf(0.95, 2) / math.sqrt(3)
    found = stats.estimate([1.0, 2.0, 3.0], "s", confidence=0.9)
    assert ends(found) == pytest.approx((2.0, 2 - half, 2 + half, 3))
    assert (found.unit, found.method) == ("s", "mean, Student t 90 % interval")


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_confidence_excludes_its_ends(confidence: float) -> None:
    with pytest.raises(ValueError, match=r"^confidence must lie between 0 and 1$"):
        stats.estimate([1.0, 2.0], "s", confidence=confidence)


def test_estimate_is_cut_at_its_bounds() -> None:
    half = student.ppf(0.975, 1) * 0.5
    words = "mean, Student t 95 % interval, cut at its bounds"
    low = stats.estimate([1.0, 2.0], "s", bounds=(0.0, None))
    assert ends(low) == pytest.approx((1.5, 0.0, 1.5 + half, 2))
    high = stats.estimate([1.0, 2.0], "s", bounds=(None, 3.0))
    assert ends(high) == pytest.approx((1.5, 1.5 - half, 3.0, 2))
    assert low.method == high.method == words
    wide = stats.estimate([1.0, 2.0], "s", bounds=(-99.0, 99.0))
    assert wide.method == "mean, Student t 95 % interval"


@pytest.mark.parametrize("seed", [0, 5])
def test_bootstrap_is_that_of_scipy(seed: int) -> None:
    sample = [1.0, 1.1, 1.2, 1.3, 1.4, 9.0]
    found = stats.estimate(sample, "s", "bootstrap", 0.9, seed=seed)
    expected = bootstrap(
        (sample,), np.mean, confidence_level=0.9, rng=np.random.default_rng(seed)
    ).confidence_interval
    assert ends(found) == (pytest.approx(2.5), expected.low, expected.high, 6)
    assert found.unit == "s"
    assert found.method == "mean, BCa bootstrap 90 % interval (9999 resamples)"
    if seed == 0:
        assert stats.estimate(sample, "s", "bootstrap", 0.9) == found


def test_estimates_are_those_of_single_samples() -> None:
    samples = [[1.0, 2.0, NAN], [NAN], [5.0], [3.0, 3.5, 5.0], [0.5, 0.25], []]
    flat = np.array([value for sample in samples for value in sample])
    sizes = np.array([len(sample) for sample in samples])
    for least, most, confidence in ((None, None, 0.95), (0.0, 4.5, 0.95), (None, None, 0.8)):
        with warnings.catch_warnings(action="error"):
            found = stats.estimates(flat, sizes, least, most, confidence)
        for at, sample in enumerate(samples):
            one = stats.estimate(sample, "s", confidence=confidence, bounds=(least, most))
            row = [found.value[at], found.low[at], found.high[at], found.n[at]]
            expected = [NAN if end is None else end for end in ends(one)]
            assert row == pytest.approx(expected, nan_ok=True)
    by_default = stats.estimates(flat, sizes)
    half = student.ppf(0.975, 1) * 0.5
    assert by_default.low[0] == pytest.approx(1.5 - half)
    assert by_default.high[0] == pytest.approx(1.5 + half)
    each = stats.estimates(flat, sizes, np.array([0.0, 0, 0, 3, 0, 0]), np.full(6, 4.0))
    assert each.low[[0, 3, 4]].tolist() == [0.0, 3.0, 0.0]
    assert each.high[[0, 3]].tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("end", "value", "least", "most", "expected"),
    [
        (-2.0, 1.0, 0.0, None, 0.0),
        (-2.0, -1.0, 0.0, None, -1.0),
        (9.0, 1.0, None, 4.0, 4.0),
        (9.0, 5.0, None, 4.0, 5.0),
        (2.0, 1.0, 0.0, 4.0, 2.0),
        (-2.0, 1.0, None, None, -2.0),
    ],
)
def test_ends_stay_within_bounds_and_values(
    end: float, value: float, least: float | None, most: float | None, expected: float
) -> None:
    assert stats.within(end, value, least, most) == expected
    assert stats.within(int(end), value, None, None).dtype == np.float64


def test_half_widths_by_the_table() -> None:
    # t(0.975; 2) = 4.3027; s = 1 and 2.
    found = half_widths(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
    assert found == pytest.approx([4.3027 / math.sqrt(3), 8.6054 / math.sqrt(3)], abs=1e-4)


def test_mann_whitney_is_exact_up_to_twenty_values() -> None:
    for size, exact in ((20, True), (21, False)):
        found = stats.mann_whitney(np.arange(size) + 0.5, np.arange(size) * 1.0)
        assert found is not None
        assert found.exact is exact
    tied = stats.mann_whitney([1.0, 2.0], [1.0, 2.0])
    assert tied == stats.MannWhitneyResult(2.0, 1.0, exact=False)


def test_holm_and_effect_size_at_their_limits() -> None:
    assert stats.holm([]) == []
    assert stats.holm([0.01]) == [0.01]
    assert stats.holm([0.9, 0.6]) == [1.0, 1.0]
    assert stats.holm([0.02, 0.03, 0.02]) == pytest.approx([0.06, 0.06, 0.06])
    sizes = [stats.effect_size(d) for d in (0.19, -0.2, 0.5, 0.51, -0.8, 0.81)]
    assert sizes == ["small", "medium", "medium", "large", "large", "very large"]


def test_deviation_of_two_values() -> None:
    assert stats.sd([1.0, 3.0]) == pytest.approx(math.sqrt(2))


def test_percentile_estimates_by_hand() -> None:
    none = stats.percentile_estimate([None, NAN], 50, "s")
    assert none == stats.Estimate(*NO_VALUE, "s", "no value in any run")
    few = stats.percentile_estimate([1, 2, 4], 50, "s")
    words = "50 % percentile over runs"
    assert few == stats.Estimate(2.0, None, None, 3, "s", f"{words}, no interval")
    found = stats.percentile_estimate(range(1, 8), 50, "s", 0.9)
    # Binomial(7, 1/2): P(0) = 1/128 and P(≤ 1) = 8/128 > 5 %, so the ends are the outermost.
    words = f"{words}, order statistics 90 % interval"
    assert found == stats.Estimate(4.0, 1.0, 7.0, 7, "s", words)
    # Binomial(2, 1/2): P(0) is exactly the tail of a 50 % interval.
    assert ends(stats.percentile_estimate([1.0, 2.0], 50, "s", 0.5)) == (1.5, 1.0, 2.0, 2)
    # The values up to the median are finite; the next one is not.
    assert stats.percentile_estimate([1.0, 2.0, None], 50, "s").value == 2.0
    assert stats.percentile_estimate([1.0, 2.0, 3.0], 100, "s").value == 3.0


def test_whiskers_reach_values_at_their_limit() -> None:
    # Quartiles 2 and 4: whiskers of one range reach 0 and 6.
    found = stats.box([0.0, 2.0, 3.0, 4.0, 6.0], reach_iqr=1.0)
    assert found is not None
    assert (found.low, found.high, found.outliers.size) == (0.0, 6.0, 0)


def test_distribution_of_one_value() -> None:
    assert stats.ecdf([3.0])[1].tolist() == [1.0]
    assert stats.ecdf([3])[0].dtype == np.float64


def test_bins_without_values_stay_empty_without_a_warning() -> None:
    with pytest.raises(ValueError, match=r"^values must have the shape \(runs, bins\)$"):
        stats.series_band(np.zeros(2))
    with np.errstate(all="raise"):
        band = stats.series_band(np.array([[1.0, NAN, NAN], [3.0, 4.0, NAN], [NAN, NAN, NAN]]))
    # Student's t(0.975; 1) · √2 / √2: the missing third run adds nothing.
    assert band.high[0] - 2 == pytest.approx(student.ppf(0.975, 1))
    assert np.isnan(band.high[1:]).all()


def square(size: float) -> Envelope:
    found = envelope(np.array([0, size, size, 0.0]), np.array([0, 0, size, size]), keep=1)
    assert found is not None
    return found


@pytest.mark.parametrize("size", [10.0, 0.01])
def test_tolerance_is_relative_to_the_envelope(size: float) -> None:
    found, near, far = square(size), 0.5e-9 * size, 2e-9 * size
    middle = size / 2
    for off, inside in ((near, 4), (far, 0)):
        sides = [[-off, middle], [size + off, middle], [middle, -off], [middle, size + off]]
        assert found.count_inside(np.array(sides)) == inside


def test_tolerance_across_slanted_edges() -> None:
    found = envelope(np.array([0.0, 5.0, 0.0, -5.0]), np.array([-5.0, 0.0, 5.0, 0.0]), keep=1)
    assert found is not None
    for off, inside in ((0.5e-8, 4), (2e-8, 0)):
        side = 2.5 + off / math.sqrt(2)
        sides = np.array([[side, side], [-side, side], [-side, -side], [side, -side]])
        assert found.count_inside(sides) == inside


@pytest.mark.parametrize(("value", "scale"), [(0.0, 1.0), (4.0, 4.0), (-4.0, 4.0)])
def test_tolerance_around_one_point(value: float, scale: float) -> None:
    found = envelope(np.full(3, value), np.full(3, value))
    assert found is not None
    points = np.array([[value + 0.5e-9 * scale, value], [value, value + 2e-9 * scale]])
    assert found.count_inside(points) == 1


def test_tolerance_includes_its_ends() -> None:
    found = envelope(np.zeros(3), np.zeros(3))
    assert found is not None
    assert found.count_inside(np.array([[-1e-9, 0.0], [1e-9, 0.0]])) == 2


def test_envelope_by_hand() -> None:
    x, y = np.arange(20.0), np.zeros(20)
    found = envelope(x, y)
    assert found is not None
    assert (found.x, found.y, len(found.kept)) == (9.5, 0.0, 19)
    # The first of two equally distant points is kept: the order is stable.
    assert found.corners.tolist() == [[0.0, 0.0], [18.0, 0.0]]
    assert found.outline_x.tolist() == [0.0, 18.0, 0.0]
    hundred = envelope(np.arange(100.0), np.arange(100.0), keep=0.29)
    smallest = envelope(x[:3], y[:3] + 1, keep=0.01)
    assert hundred is not None
    assert smallest is not None
    # 100 · 0.29 is 28.999999999999996.
    assert (len(hundred.kept), smallest.kept.tolist()) == (29, [[1.0, 1.0]])
    assert envelope(x[:2], y[:2]) is None


def test_envelope_keeps_the_first_of_equally_distant_points() -> None:
    x, y = np.tile([3.0, 0.0, -3.0, 0.0], 10), np.tile([0.0, 1.0, 0.0, -1.0], 10)
    found = envelope(x, y, keep=0.6)
    assert found is not None
    near = [[0.0, 1.0], [0.0, -1.0]] * 10
    assert found.kept.tolist() == near + [[3.0, 0.0], [-3.0, 0.0]] * 2


@pytest.mark.parametrize("keep", [0.0, 1.01])
def test_envelope_keeps_a_share(keep: float) -> None:
    with pytest.raises(ValueError, match=r"^keep must lie above 0 and not beyond 1$"):
        envelope(np.arange(3.0), np.arange(3.0), keep)


@pytest.mark.parametrize("n", range(2, 12))
def test_means_of_few_values_are_those_of_numpy(n: int) -> None:
    for seed in range(200):
        sample = np.random.default_rng(seed).normal(1e6, 10.0 ** (seed % 9), n)
        found = stats.estimate(sample.tolist(), "s")
        assert found.value == sample.mean()
        half = t_quantile(n - 1, 0.975) * sample.std(ddof=1) / np.sqrt(n)
        assert (found.low, found.high) == (found.value - half, found.value + half)


def test_a_ratio_of_means_by_hand() -> None:
    first, second = [9.0, 11.0, 10.0], [5.0, 4.0, 6.0]
    # Variances of the means 1/3 and 1/3.
    freedom = (1 + 2**2) ** 2 / (1 / 2 + 2**4 / 2)
    t = student.ppf(0.975, freedom)
    low, high = sorted(np.roots([25 - t**2 / 3, -2 * 10 * 5, 100 - t**2 / 3]))
    assert ends(stats.ratio(first, second)) == pytest.approx((2.0, low, high, 3))
    t = student.ppf(0.975, 2)
    # The covariance of the means is −1/6.
    low, high = sorted(np.roots([25 - t**2 / 3, -2 * (50 + t**2 / 6), 100 - t**2 / 3]))
    assert ends(stats.ratio(first, second, paired=True)) == pytest.approx((2.0, low, high, 3))
    assert ends(stats.ratio([3.0, 3.0], [2.0, 2.0])) == (1.5, 1.5, 1.5, 2)
    assert ends(stats.ratio([3.0], [2.0, 2.0])) == (1.5, None, None, 1)
    assert ends(stats.ratio([], [2.0])) == NO_VALUE
    assert ends(stats.ratio([1.0, 2.0], [0.0, 0.0])) == (None, None, None, 2)


def test_a_ratio_to_what_may_be_0_has_an_infinite_end() -> None:
    found = stats.ratio([90.0, 91.0, 92.0], [1.0, 9.0, 20.0], least=0.0)
    assert (found.low > 1.0, found.high) == (True, math.inf), "it is certainly above 1"
    assert found.interval == [found.low, None]
    both = stats.ratio([1.0, 9.0, 20.0], [1.0, 9.0, 21.0])
    assert (both.low, both.high) == (-math.inf, math.inf)
    assert stats.ratio([1.0, 9.0, 20.0], [1.0, 9.0, 21.0], least=0.0).low == 0.0


@pytest.mark.parametrize("n", [2, 3, 5, 10])
@pytest.mark.parametrize("correlation", [-0.9, 0.0, 0.9])
def test_intervals_of_ratios_cover_the_ratio(n: int, correlation: float) -> None:
    """In 95 % of cases, as the name says: percentiles of resamples did in 66 % with two runs."""
    random = np.random.default_rng(1)
    covariance = [[1.0, correlation], [correlation, 1.0]]
    cases = random.multivariate_normal([10.0, 20.0], covariance, (1000, n))
    found = [stats.ratio(*case.T, paired=correlation != 0.0) for case in cases]
    assert 0.93 <= sum(one.low <= 0.5 <= one.high for one in found) / len(cases) <= 0.99
