"""The Performance Envelope, its conformance and its deviation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jostle.stats import Envelope, conformance, deviation, envelope

# A grid of points gives duplicates, points on one line and points on an outline.
COORDINATES = st.one_of(
    st.integers(-8, 8).map(float),
    st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False, width=32),
)
CLOUDS = st.integers(3, 60).flatmap(lambda n: arrays(np.float64, (n, 2), elements=COORDINATES))


def around(points: np.ndarray, keep: float = 0.95) -> Envelope:
    found = envelope(points[:, 0], points[:, 1], keep)
    assert found is not None
    return found


@given(CLOUDS)
@settings(max_examples=100)
def test_a_flow_conforms_to_itself(cloud: np.ndarray) -> None:
    one = around(cloud)
    assert conformance(one, around(cloud.copy())) == 1.0
    assert deviation(one, around(cloud.copy())) == 0.0


@given(CLOUDS, CLOUDS)
@settings(max_examples=80)
def test_it_is_symmetric_and_a_share(first: np.ndarray, second: np.ndarray) -> None:
    one, other = around(first), around(second)
    assert 0.0 <= conformance(one, other) <= 1.0
    assert conformance(one, other) == conformance(other, one)
    assert deviation(one, other) == deviation(other, one)


@given(CLOUDS, CLOUDS)
@settings(max_examples=100)
def test_clouds_apart_share_nothing(first: np.ndarray, second: np.ndarray) -> None:
    apart = np.array([first[:, 0].max() - second[:, 0].min() + 1.0, 0.0])
    assert conformance(around(first), around(second + apart)) == 0.0


@given(CLOUDS)
@settings(max_examples=80)
def test_the_hull_is_convex_and_holds_what_was_kept(cloud: np.ndarray) -> None:
    found = around(cloud)
    assert found.count_inside(found.kept) == len(found.kept)
    corners = found.corners
    if len(corners) > 2:
        before, after = np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0)
        into, out = corners - before, after - corners
        assert (into[:, 0] * out[:, 1] - into[:, 1] * out[:, 0] > 0).all()


@given(CLOUDS, st.floats(0.25, 4.0), st.integers(-5, 5))
@settings(max_examples=100)
def test_the_area_is_that_of_qhull(cloud: np.ndarray, scale: float, shift: int) -> None:
    from scipy.spatial import ConvexHull, QhullError

    found = around(cloud * scale + shift)
    try:
        expected = ConvexHull(found.kept).volume
    except QhullError:
        return
    x, y = found.corners[:, 0], found.corners[:, 1]
    area = 0.5 * abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))
    assert area == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_the_farthest_twentieth_is_left_out() -> None:
    """Of 40 points 38 are kept, `int(len * 0.95)`; the mean is of all of them."""
    x = np.append(np.arange(38.0), [1e3, -1e3])
    found = envelope(x, np.zeros(40))
    assert found is not None
    assert found.kept.shape == (38, 2)
    assert np.abs(found.kept).max() < 1e3
    assert found.x == pytest.approx(x.mean())


def test_it_is_what_quicbench_computes() -> None:
    """By hand from its definition: squares of side 4 that overlap by a quarter of their points."""
    square = np.array([[x, y] for x in range(5) for y in range(5)], dtype=float)
    one, other = around(square, 1.0), around(square + 2.0, 1.0)
    # 3 × 3 of 25 points of each lie inside or on the outline of the other.
    assert conformance(one, other) == 18 / 50
    assert deviation(one, other) == pytest.approx(np.sqrt(8))


def test_flows_that_never_vary_conform_only_if_they_are_the_same() -> None:
    still = around(np.ones((5, 2)))
    line = around(np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]), 1.0)
    assert conformance(still, around(np.ones((9, 2)))) == 1.0
    assert conformance(still, around(np.full((5, 2), 1.5))) == 0.0
    # (1, 1) lies on the line; the line's ends do not lie on (1, 1).
    assert conformance(still, line) == (4 + 1) / (4 + 3)
    assert conformance(around(np.array([[0.0, 2.0]] * 3)), line) == 0.0


def test_incomplete_pairs_are_left_out() -> None:
    x = np.array([0.0, 1.0, np.nan, 0.0, 1.0])
    found = envelope(x, np.array([0.0, 0.0, 5.0, 1.0, 1.0]), 1.0)
    assert found is not None
    assert len(found.points) == 4
    assert envelope(x[:3], np.zeros(3)) is None
    with pytest.raises(ValueError, match="keep"):
        envelope(x, x, 0.0)
