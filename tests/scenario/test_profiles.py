"""The satellite profile against the measurements it stands for (one week of pings)."""

import numpy as np
import pytest
from jostle.scenario import Registry, loads

BASE_MS = 564.0
PING_MS = 200.0
WEEK_S = 7 * 86_400


@pytest.fixture
def link(registry: Registry) -> dict:
    text = """
    duration = "1 s"
    [bottleneck]
    profile = "viasat-2"
    [[flows]]
    name = "x"
    controller = "reno"
    """
    return loads(text, registry=registry).plan().runs[0].spec["links"][0]


def table(points: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([p["probability"] for p in points]),
        np.array([p["value_ns"] for p in points]) / 1e6,
    )


def test_the_quiet_round_trip_has_the_published_distribution(link: dict) -> None:
    p, extra = table(link["delay"]["jitter"]["quantiles"])
    # Moments of a quantile function that is linear between its points.
    low, high, weight = extra[:-1], extra[1:], np.diff(p)
    mean = np.sum(weight * (low + high) / 2)
    square = np.sum(weight * (low**2 + low * high + high**2) / 3)
    assert mean + BASE_MS == pytest.approx(597.5, abs=0.5)
    assert np.sqrt(square - mean**2) == pytest.approx(16.9, rel=0.03)
    assert np.interp(0.5, p, extra) + BASE_MS == 597
    assert (extra[0] + BASE_MS, extra[-1] + BASE_MS) == (564, 2174)

    def share(above_ms: float, to_ms: float) -> float:
        # Jumps of the distribution would need care here; between these bounds there are none.
        below = np.interp([above_ms - BASE_MS, to_ms - BASE_MS], extra, p)
        return below[1] - below[0]

    assert share(560, 625) >= 0.99
    assert share(625, 1500) == pytest.approx(0.001, rel=0.01)
    assert share(1700, 2200) == pytest.approx(0.00001, rel=0.15)


def test_the_outages_lose_the_published_pings(link: dict) -> None:
    outages = link["outages"]
    per_week = WEEK_S / (outages["mean_interval_ns"] / 1e9)
    p, ms = table(outages["durations"])
    durations = np.interp((np.arange(1_000_000) + 0.5) / 1_000_000, p, ms)
    # An outage of k·200 ms + f hits k or k + 1 pings, the latter with probability f / 200 ms.
    whole, rest = np.divmod(durations / PING_MS, 1)
    none = np.mean(np.where(whole == 0, 1 - rest, 0))
    single = np.mean(np.where(whole == 1, 1 - rest, 0) + np.where(whole == 0, rest, 0))
    assert per_week * single == pytest.approx(465, rel=0.02)
    assert per_week * (1 - single - none) == pytest.approx(44, rel=0.05)
    assert per_week * np.mean(durations) / PING_MS == pytest.approx(604, rel=0.02)
    assert np.max(ms) == 2200
