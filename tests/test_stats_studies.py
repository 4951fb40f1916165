"""The statistics of the studies, against published or hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest
from jostle import stats

# "Student", The probable error of a mean, Biometrika 6 (1908): additional hours of sleep by two
# soporifics. R's documentation of t.test gives t = −1.8608 with pooled variance on 18 degrees of
# freedom, p = 0.07919.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_t_test_of_student() -> None:
    found = stats.t_test(SLEEP_1, SLEEP_2)
    assert found is not None
    assert found.t == pytest.approx(-1.8608, abs=5e-5)
    assert found.freedom == 18
    assert found.p == pytest.approx(0.07919, abs=5e-6)
    # d = t · √(2/n) for samples of one size.
    assert found.d == pytest.approx(-1.8608 * (2 / 10) ** 0.5, abs=5e-5)


def test_t_and_d_from_the_published_moments() -> None:
    """PAM 2021: Hybla 130.1 ± 17.2 and Cubic 123.3 ± 17.0 over 80 runs: t(158) = 2.51, d = 0.4."""

    def sample(mean: float, sd: float) -> list[float]:
        z = np.linspace(-1, 1, 80)
        return list(mean + sd * z / z.std(ddof=1))

    found = stats.t_test(sample(130.1, 17.2), sample(123.3, 17.0))
    assert found is not None
    assert (found.t, found.freedom) == (pytest.approx(2.51, abs=0.01), 158)
    assert found.p == pytest.approx(0.0129, abs=0.0005)
    assert found.d == pytest.approx(0.4, abs=0.01)
    assert stats.effect_size(found.d) == "medium"


def test_what_cannot_be_tested() -> None:
    assert stats.t_test([1.0], [1.0, 2.0]) is None
    assert stats.t_test([1.0, 1.0], [2.0, 2.0]) is None
    assert stats.t_test([1.0, None, 2.0], [float("nan"), 3.0, 5.0]) is not None


def test_holm() -> None:
    # R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # Never smaller than a smaller p-value's, never above 1.
    assert stats.holm([0.02, 0.011, 0.9]) == pytest.approx([0.04, 0.033, 0.9])
    assert stats.holm([0.5, 0.6]) == [1.0, 1.0]
    assert stats.holm([]) == []


@pytest.mark.parametrize(
    ("d", "words"),
    [(0.1, "small"), (-0.4, "medium"), (0.6, "large"), (0.8, "large"), (-12, "very large")],
)
def test_effect_sizes_in_words(d: float, words: str) -> None:
    assert stats.effect_size(d) == words


def test_box_by_hand() -> None:
    # Quartiles 2, 3, 4; whiskers reach 1.4 · 2 = 2.8: to −0.8 and 6.8.
    box = stats.box([1, 2, 3, 4, 10, None])
    assert box is not None
    assert (box.q1, box.median, box.q3, box.mean) == (2, 3, 4, 4)
    assert (box.low, box.high) == (1, 4)
    assert box.outliers.tolist() == [10]
    assert stats.box([]) is None


def test_ecdf_by_hand() -> None:
    x, share = stats.ecdf([3.0, 1.0, float("nan"), 2.0, 2.0])
    assert x.tolist() == [1, 2, 2, 3]
    assert share.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert stats.ecdf([])[0].size == 0
