"""The player of a video in the guest: it chooses as the simulator's does."""

from __future__ import annotations

import numpy as np
import pytest
from jostle.backends.kernel.guest.video_player import VideoPlayer, by_buffer
from jostle.backends.kernel.traffic_draws import factors

S = 10**9
LADDER = [1_000_000, 2_000_000, 4_000_000, 5_000_000]


def source(choice, **changes):
    return {
        "kind": "video",
        "bitrates_bps": LADDER,
        "segment_ns": 4 * S,
        "segments": None,
        "variation": 0.0,
        "choice": choice,
        "startup_ns": 4 * S,
        "buffer_ns": 20 * S,
        **changes,
    }


@pytest.mark.parametrize(
    ("last", "above", "chosen"),
    # Those of `the_buffer_chooses_as_in_algorithm_1` in crates/traffic/src/video_player.rs.
    [
        (3, 0.0, 0),
        (0, 1.0, 3),
        (0, 0.24, 0),
        (0, 0.3, 1),
        (0, 0.25, 0),
        (0, 0.85, 2),
        (2, 0.26, 2),
        (2, 0.2, 1),
        (3, 0.76, 3),
        (3, 0.7, 2),
    ],
)
def test_the_buffer_chooses_as_in_algorithm_1(last, above, chosen):
    assert by_buffer(LADDER, last, above) == chosen


def test_throughputs_have_a_harmonic_mean():
    player = VideoPlayer(source({"kind": "throughput", "samples": 2, "safety": 0.5}), [1.0])
    player.open(0)
    assert player.bytes == 500_000
    assert player.loaded(S * 4 // 10) == 0
    assert player.bytes == 2_500_000
    player.loaded(S * 54 // 10)
    assert player.bytes == 1_000_000
    assert player.segments == [(S * 4 // 10, 1_000_000), (S * 54 // 10, 5_000_000)]


def test_a_full_buffer_makes_the_player_wait():
    choice = {"kind": "buffer", "reservoir_ns": 6 * S, "cushion_ns": 10 * S}
    player = VideoPlayer(source(choice), [1.0])
    player.open(0)
    pauses = [player.loaded(n * S // 2) for n in range(1, 6)]
    assert pauses == [0, 0, 0, 0, 2 * S]
    assert player.bytes == 2_500_000


def test_a_film_ends():
    choice = {"kind": "throughput", "samples": 20, "safety": 0.85}
    player = VideoPlayer(source(choice, segments=2), [1.0])
    player.open(0)
    assert player.loaded(S // 10) == 0
    assert player.loaded(S // 5) is None


def test_factors_vary_about_one_and_are_as_many_as_a_run_can_need():
    flow = {"name": "film", "source": source({}, variation=0.5)}
    drawn = factors(1, flow, 40_000 * S)
    assert len(drawn) == 10_007
    assert min(drawn) >= 0.5
    assert max(drawn) < 1.5
    assert np.mean(drawn) == pytest.approx(1, abs=0.01)
    assert factors(1, {"name": "bulk", "source": {"kind": "bulk"}}, S) == []
