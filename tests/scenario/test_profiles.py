"""The satellite profile against the measurements it stands for (one week of pings)."""

import itertools
import json

import numpy as np
import pytest
from jostle import _core
from jostle.scenario import Registry, load_text

BASE_MS = 564.0
PING_MS = 200.0
WEEK_S = 7 * 86_400


def table(points: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([p["probability"] for p in points]),
        np.array([p["value_ns"] for p in points]) / 1e6,
    )


@pytest.mark.parametrize("every_ms", [200, pytest.param(20, marks=pytest.mark.slow)])
def test_the_quiet_round_trip_has_the_published_distribution(
    registry: Registry, every_ms: int
) -> None:
    """Packets closer together than the published pings see the same."""
    text = f"""
    duration = "20000 s"
    repeats = 2
    [bottleneck]
    profile = "viasat-2"
    [[flows]]
    name = "pings"
    controller = "none"
    source = {{ kind = "ping", size = "20 B", period = "{every_ms} ms" }}
    """
    counts: dict[int, int] = {}
    for run in load_text(text, registry=registry).plan().runs:
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


FADES = ["200 ms", "10 ms", "0.77 ms"]


def with_fades(registry: Registry, fade: str, **keys: str) -> dict:
    """The specification of a run with pings over the profile's link, whose fades have a length."""
    text = f"""
    duration = "{keys.get("duration", "1 s")}"
    seed = {keys.get("seed", "1")}
    sampling_interval = "1 s"
    [bottleneck]
    profile = "viasat-2"
    outage = {{ fade = "{fade}" }}
    {keys.get("link", "")}
    [[flows]]
    name = "pings"
    controller = "none"
    source = {{ kind = "ping", size = "20 B", period = "200 ms" }}
    """
    return load_text(text, registry=registry).plan().runs[0].spec


@pytest.mark.parametrize("fade", FADES)
def test_the_outages_lose_the_published_pings(registry: Registry, fade: str) -> None:
    outages = with_fades(registry, fade)["links"][0]["outages"]
    p, ms = table(outages["durations"])
    # So many of each kind that rare long ones are there in their share.
    points = np.concatenate([np.linspace(a, b, 200_001)[:-1] for a, b in itertools.pairwise(p)])
    weight = np.repeat(np.diff(p) / 200_000, 200_000)
    durations = np.interp(points, p, ms)
    per_week = WEEK_S / (outages["mean_interval_ns"] / 1e9 + np.sum(weight * durations) / 1e3)
    # An outage of length k·200 ms + f hits k or k + 1 pings, the latter with chance f / 200 ms.
    whole, rest = np.divmod(durations / PING_MS, 1)
    none = np.sum(weight * np.where(whole == 0, 1 - rest, 0))
    alone = np.where(whole == 1, 1 - rest, 0) + np.where(whole == 0, rest, 0)
    single = np.sum(weight * alone)
    assert per_week * single == pytest.approx(465, rel=0.02)
    assert per_week * (1 - single - none) == pytest.approx(44, rel=0.05)
    assert per_week * np.sum(weight * durations) / PING_MS == pytest.approx(604, rel=0.02)
    assert np.max(ms) == 2200


@pytest.mark.parametrize(
    "fade", [FADES[0], *(pytest.param(fade, marks=pytest.mark.slow) for fade in FADES[1:])]
)
def test_pings_over_the_link_are_lost_as_published(registry: Registry, fade: str) -> None:
    """Four weeks of them; without jitter, which loses none."""
    single = several = lost = 0
    for seed in "1234":
        keys = {"duration": "168 h", "seed": seed, "link": 'jitter = "none"'}
        spec = with_fades(registry, fade, **keys)
        spec["interval_ns"] = 3_600_000_000_000
        pings = json.loads(_core.run(json.dumps(spec)).summary)["flows"][0]["pings"]
        lost += pings["lost"]
        for length, times in pings["losses_by_length"]:
            single += times if length == 1 else 0
            several += times if length > 1 else 0
    # Counts of independent events, three standard deviations around four times the published.
    assert abs(single - 4 * 465) < 3 * np.sqrt(4 * 465)
    assert abs(several - 4 * 44) < 3 * np.sqrt(4 * 44)
    assert abs(lost - 4 * 604) < 4 * 604 * 0.1


def test_fades_take_the_same_share_of_the_time_whatever_their_length(registry: Registry) -> None:
    def lost(fade: str) -> tuple[float, float]:
        outages = with_fades(registry, fade)["links"][0]["outages"]
        p, ms = table(outages["durations"])
        level = p[np.flatnonzero(ms == ms[0])[-1]]
        mean = np.sum(np.diff(p) * (ms[1:] + ms[:-1]) / 2)
        per_gap = 1e6 / outages["mean_interval_ns"]
        return level * ms[0] * per_gap, (mean - level * ms[0]) * per_gap

    written = lost("200 ms")
    assert written[0] == pytest.approx(0.9 * 200 / 1_188_000)
    for fade in FADES:
        assert lost(fade) == pytest.approx(written, rel=1e-6)
    short = with_fades(registry, "0.77 ms")["links"][0]["outages"]
    assert short["mean_interval_ns"] / 1e9 == pytest.approx(5.1, abs=0.05)
