"""Paths that are assigned anew: what is drawn of them has the distributions that it was told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jostle import _core
from jostle.scenario import Registry, ScenarioError, load_text
from jostle.scenario.resolve.profiles import profiles

SCENARIO = """
duration = "{duration}"
seed     = {seed}
repeats  = {repeats}
[bottleneck]
{link}
[[flows]]
name = "download"
controller = "cubic"
"""
SLOTS = """
queue = "fq_codel"
delay = "5 ms"
[bottleneck.reassignment]
every = "15 s"
gap = "100 ms"
variance_share = {lasting}
variance_share_time = "100 s"
correlation = "5 s"
rate = {{ "0 %" = "0 bit/s", "100 %" = "100 Mbit/s" }}
delay = {{ "0 %" = "0 ms", "100 %" = "20 ms" }}
per_run_delay = {{ "0 %" = "1 ms", "100 %" = "3 ms" }}
"""


def links(
    registry: Registry, link: str, duration: str = "600 s", seed: int = 1, repeats: int = 1
) -> list[dict]:
    text = SCENARIO.format(link=link, duration=duration, seed=seed, repeats=repeats)
    if "profile" not in link:
        text += 'rtt = "60 ms"\n'
    return [run.spec["links"][0] for run in load_text(text, registry=registry).plan().runs]


def by_second(link: dict, seconds: int, every_ms: int = 1000) -> np.ndarray:
    """Rates in force in the middle of each span of `every_ms`, in Mbit/s."""
    steps = link["capacity"]["steps"]
    at_ns = np.array([step["at_ns"] for step in steps])
    rates = np.array([step["rate_bps"] for step in steps]) / 1e6
    moments = (np.arange(seconds * 1000 // every_ms) + 0.5) * every_ms * 1e6
    return rates[np.searchsorted(at_ns, moments, side="right") - 1]


def test_rates_and_delays_change_together_every_15_s(registry: Registry) -> None:
    (link,) = links(registry, SLOTS.format(lasting=0.5))
    stops = [s["at_ns"] for s in link["capacity"]["steps"] if s["rate_bps"] == 0]
    assert set(np.diff(stops)) == {15 * 10**9}
    delays = link["delay"]["steps"]
    assert [step["at_ns"] for step in delays[1:]] == stops
    resumed = {s["at_ns"] for s in link["capacity"]["steps"]}
    assert all(at + 10**8 in resumed for at in stops if at + 10**8 < 600 * 10**9)
    assert all(6e6 <= step["delay_ns"] <= 28e6 for step in delays)
    # A run has one place: what an assignment adds is uniform in 20 ms on top of it.
    values = [step["delay_ns"] / 1e6 for step in delays]
    assert 15 < max(values) - min(values) <= 20


def test_a_seed_has_its_own_rates_and_links_one_clock(registry: Registry) -> None:
    one, again, other = (
        links(registry, SLOTS.format(lasting=0.5), seed=seed)[0] for seed in (1, 1, 2)
    )
    assert one == again
    assert one["capacity"] != other["capacity"]
    text = """
    duration = "60 s"
    links = [
        { name = "down", profile = "starlink" },
        { name = "up", profile = "starlink-up" },
    ]
    flows = [{ name = "a", controller = "cubic", path = ["down"], reverse_path = ["up"] }]
    """
    (run,) = load_text(text, registry=registry).plan().runs
    stops = [
        [s["at_ns"] for s in link["capacity"]["steps"] if s["rate_bps"] == 0]
        for link in run.spec["links"]
    ]
    assert stops[0] == stops[1] != []


@pytest.mark.parametrize("lasting", [0.0, 0.5, 1.0])
def test_rates_have_the_told_distribution_and_memory(registry: Registry, lasting: float) -> None:
    found = links(registry, SLOTS.format(lasting=lasting), duration="900 s", repeats=60)
    rates = np.array([by_second(link, 900) for link in found])
    # Uniform from 0 to 100; of a run many seconds are alike.
    told = np.quantile(rates, [0.1, 0.5, 0.9])
    assert told == pytest.approx([10, 50, 90], abs=6)
    centred = rates - 50

    def correlation(lag: int) -> float:
        return float((centred[:, :-lag] * centred[:, lag:]).mean() / (centred**2).mean())

    # Within 1 s nearly all pairs are of one assignment; after 20 s none is.
    kept = lasting + (1 - lasting) * np.exp(-1 / 5)
    assert correlation(1) == pytest.approx(kept * 14 / 15 + lasting / 15, abs=0.05)
    assert correlation(20) == pytest.approx(lasting * np.exp(-20 / 100), abs=0.08)


def test_starlinks_rates_are_those_that_were_measured(registry: Registry) -> None:
    found = links(registry, 'profile = "starlink"', duration="300 s", repeats=60)
    rates = np.concatenate([by_second(link, 300) for link in found])
    for share, mbps in ((0.1, 152), (0.5, 301), (0.9, 395)):
        assert np.quantile(rates, share) == pytest.approx(mbps, rel=0.06)


def test_starlinks_pings_are_those_that_were_measured(registry: Registry) -> None:
    """Of 25 s each: means 58.3 ms, half of the longest above 106 ms, half without a loss."""
    text = """
    duration          = "126 s"
    sampling_interval = "63 s"
    repeats           = 120
    bottleneck = { profile = "starlink" }
    [[flows]]
    name = "pings"
    controller = "none"
    source = { kind = "ping", size = "56 B", period = "100 ms" }
    start = "100 s"
    stop = "125 s"
    """
    means, longest, lost = [], [], []
    for run in load_text(text, registry=registry).plan().runs:
        (flow,) = json.loads(_core.run(json.dumps(run.spec)).summary)["flows"]
        seen = np.array(flow["pings"]["echoes_by_ms"]).reshape(-1, 2)
        lost.append(flow["pings"]["lost"])
        if seen.size:
            means.append(np.average(seen[:, 0] + 0.5, weights=seen[:, 1]))
            longest.append(seen[:, 0].max())
    assert np.mean(means) == pytest.approx(58.3, rel=0.04)
    assert np.median(means) == pytest.approx(56.7, rel=0.05)
    assert np.median(longest) == pytest.approx(106, rel=0.12)
    assert np.mean(np.array(lost) == 0) == pytest.approx(0.51, abs=0.13)


def test_a_rate_beside_a_profile_takes_that_of_its_slots_out(registry: Registry) -> None:
    (link,) = links(registry, 'profile = "starlink"\nrate = "50 Mbit/s"')
    assert {step["rate_bps"] for step in link["capacity"]["steps"]} == {0, 50_000_000}
    assert len(link["delay"]["steps"]) > 30
    (calm,) = links(registry, 'profile = "starlink"\nrate = "50 Mbit/s"\nreassignment = "none"')
    assert calm["delay"]["steps"] == [{"at_ns": 0, "delay_ns": 20_000_000}]


OWN_RATE = """
queue = "fq_codel"
rate = {rate}
reassignment = {{ every = "1 s", gap = "250 ms" }}
"""


@pytest.mark.parametrize(
    ("rate", "in_force"),
    [
        ('"10 Mbit/s"', [(0, 10)]),
        ('[["0 s", "10 Mbit/s"], ["4100 ms", "4 Mbit/s"], ["8300 ms", "0 bit/s"]]',
         [(0, 10), (4100, 4), (8300, 0)]),
    ],
)  # fmt: skip
def test_a_gap_interrupts_the_rate_of_the_link(
    registry: Registry, rate: str, in_force: list[tuple[int, int]]
) -> None:
    gaps = set()
    for link in links(registry, OWN_RATE.format(rate=rate), duration="20 s", repeats=2):
        rates = by_second(link, 20, every_ms=1)
        own = np.zeros(20_000)
        for at_ms, value in in_force:
            own[at_ms:] = value
        silent = rates == 0
        assert np.array_equal(rates[~silent], own[~silent])
        # Gaps of 250 ms, 1 s apart; the first assignment starts before the run.
        starts = np.flatnonzero(np.diff(silent[:8000].astype(int)) == 1)
        assert set(np.diff(starts)) == {1000}
        assert silent[:8000].sum() in range(1750, 2001)
        gaps.add(int(starts[0]))
    assert len(gaps) == 2


def test_a_gap_takes_its_share_of_a_constant_rate(registry: Registry) -> None:
    text = SCENARIO.format(
        link=OWN_RATE.format(rate='"10 Mbit/s"'), duration="20 s", seed=1, repeats=1
    )
    text = text.replace(
        '"cubic"',
        '"none"\nsource = { kind = "cbr", rate = "20 Mbit/s", size = "1458 B" }\nrtt = "60 ms"',
    )
    (run,) = load_text(text, registry=registry).plan().runs
    (flow,) = json.loads(_core.run(json.dumps(run.spec)).summary)["flows"]
    assert flow["phases"]["overall"]["throughput_bps"] == pytest.approx(7.5e6, rel=0.02)


def test_handover_gaps_of_a_profile_are_kept_with_recorded_rates(
    registry: Registry, tmp_path: Path
) -> None:
    (tmp_path / "r.csv").write_text("time_s,rate_bps\n0,1000000\n7,2000000\n14,2000000\n")
    rate = 'rate = { file = "r.csv", column = "rate_bps" }'
    text = SCENARIO.format(link=f'profile = "starlink"\n{rate}', duration="60 s", seed=1, repeats=1)
    (run,) = load_text(text, registry=registry, name=str(tmp_path / "s.toml")).plan().runs
    values = [step["rate_bps"] for step in run.spec["links"][0]["capacity"]["steps"]]
    assert set(values) == {0, 1_000_000, 2_000_000}
    assert values.count(0) == 4


def test_a_gap_beside_a_trace_is_refused(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "t.mahi").write_text("1\n2\n3\n")
    name = str(tmp_path / "s.toml")
    traced = 'profile = "starlink"\ntrace = "t.mahi"\n'
    text = SCENARIO.format(link=traced, duration="60 s", seed=1, repeats=1)
    with pytest.raises(ScenarioError, match=r"gap: a gap interrupts .* or a trace"):
        load_text(text, registry=registry, name=name)
    traced += 'reassignment = { gap = "0 s" }'
    text = SCENARIO.format(link=traced, duration="60 s", seed=1, repeats=1)
    (run,) = load_text(text, registry=registry, name=name).plan().runs
    assert run.spec["links"][0]["capacity"]["kind"] == "trace"


@pytest.mark.parametrize(
    ("link", "said"),
    [
        (
            OWN_RATE.format(
                rate='{ mean = "9 Mbit/s", deviation = "1 Mbit/s", correlation = "1 s" }'
            ),
            "bottleneck.reassignment.gap: a gap interrupts a rate that is constant or has steps",
        ),
        (
            'rate = "1 Mbit/s"' + SLOTS.format(lasting=0.5),
            "bottleneck.reassignment.rate: there is another",
        ),
        (SLOTS.format(lasting=2), "bottleneck.reassignment.variance_share: 2 is out of range"),
        (
            SLOTS.format(lasting=0).replace("100 ms", "15 s"),
            "bottleneck.reassignment.gap: .* is not less",
        ),
        (
            SLOTS.format(lasting=0).replace("every", "evry"),
            'reassignment.evry: .*did you mean "every"',
        ),
        ('profile = "dsl"', "bottleneck.queue: missing"),
    ],
)
def test_mistakes_are_told(registry: Registry, link: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        links(registry, link)


@pytest.mark.parametrize("name", [name for name in profiles() if name != "viasat-2"])
def test_every_profile_carries_a_download(name: str) -> None:
    table = profiles()[name]
    queue = "" if "queue" in table else 'queue = { kind = "drop_tail", limit = "1 BDP" }'
    text = SCENARIO.format(link=f'profile = "{name}"\n{queue}', duration="2 s", seed=1, repeats=1)
    (run,) = load_text(text).plan().runs
    summary = json.loads(_core.run(json.dumps(run.spec)).summary)
    assert summary["flows"][0]["phases"]["overall"]["goodput_bps"] > 0
