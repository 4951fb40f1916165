"""The satellite profile against the measurements it stands for (one week of pings)."""

import json

import numpy as np
import pytest
from jostle import _core
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


@pytest.mark.parametrize("every_ms", [20, 200])
def test_the_quiet_round_trip_has_the_published_distribution(
    registry: Registry, every_ms: int
) -> None:
    """Packets closer together than the published pings see the same."""
    text = f"""
    duration = "20000 s"
    repeats = 6
    [bottleneck]
    profile = "viasat-2"
    [[flows]]
    name = "pings"
    controller = "none"
    source = {{ kind = "ping", bytes = "20 B", every = "{every_ms} ms" }}
    """
    counts: dict[int, int] = {}
    for run in loads(text, registry=registry).plan().runs:
        (flow,) = json.loads(_core.run(json.dumps(run.spec)).summary)["flows"]
        for ms, count in flow["pings"]["echoes_by_ms"]:
            counts[ms] = counts.get(ms, 0) + count
    ms = np.array(sorted(counts)) + 0.5
    weight = np.array([counts[int(value)] for value in ms])
    weight = weight / np.sum(weight)
    mean = np.sum(weight * ms)
    assert mean == pytest.approx(597.5, abs=0.7)
    assert np.sqrt(np.sum(weight * (ms - mean) ** 2)) == pytest.approx(16.9, rel=0.1)
    assert ms[np.searchsorted(np.cumsum(weight), 0.5)] == pytest.approx(597, abs=1)
    assert ms[0] == pytest.approx(564, abs=1)
    assert 1700 < ms[-1] < 2174
    assert np.sum(weight[ms < 625]) >= 0.99
    assert np.sum(weight[(ms > 625) & (ms < 1500)]) == pytest.approx(0.001, rel=0.3)
    # A few spikes of six in 28 hours: an order of magnitude.
    assert 2e-6 < np.sum(weight[ms > 1700]) < 5e-5


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
