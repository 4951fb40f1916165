"""The rate of a bottleneck, estimated from captures: the interval contains the true rate."""

from __future__ import annotations

import functools
import gzip
import warnings
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import pytest
import rewritten
from jostle.backends import SimBackend
from jostle.errors import InputError
from jostle.inference import run_context
from jostle.inference.link_rate import LinkRate, estimate_rate
from jostle.inference.missing_evidence import bridged, of_network
from jostle.inference.network_source import find_network
from jostle.inference.observed_flow import ObservedFlow, observe
from jostle.scenario import load_text
from rewritten import Frame

SNAP54 = Path(__file__).parent / "logs" / "snap54-no-sack.pcap.gz"
SCENARIO = """
duration = "{seconds} s"
seed = 3
capture = true
[downlink]
rate = "{rate}"
queue = {queue}
[uplink]
rate = "{back}"
queue = {{ kind = "drop_tail", limit = "100 packets" }}
{thinning}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "{rtt_ms} ms"
mtu = "{mtu} B"
"""
DROP_TAIL = '{ kind = "drop_tail", limit = "%s" }'


@functools.cache
def captures(
    mbps: float, controller: str, rtt_ms: float, mtu: int = 1500, seconds: float = 20, **more: str
) -> tuple[list[Frame], list[Frame]]:
    """Packets at the sender and at the receiver of a download."""
    size = max(1.25e5 * mbps * rtt_ms / 1e3, 20e3)
    given = {
        "rate": f"{mbps} Mbit/s", "queue": DROP_TAIL % f"{size:.0f} B", "back": "1 Gbit/s",
        "thinning": "", "controller": controller, "rtt_ms": rtt_ms, "mtu": mtu,
        "seconds": seconds,
    }  # fmt: skip
    text = SCENARIO.format(**(given | more))
    record = SimBackend().run(load_text(text).plan().runs[0].spec)
    return tuple(rewritten.frames(record.captures[f"one.{end}"]) for end in ("sender", "receiver"))


def seen(frames: list[Frame], path: Path, snap: int = 65_535, interval: str = "100 ms") -> Any:
    path.write_bytes(rewritten.pcap(frames, snap=snap))
    return observe(jostle.analyze(path, interval=interval).results[0].run)


def check(rate: LinkRate | None, mbps: float, error: float) -> None:
    assert rate is not None
    assert rate.low_bps <= mbps * 1e6 <= rate.high_bps, f"{mbps}: {rate}"
    assert rate.relative_error <= error, str(rate)
    assert rate.is_constant


PATHS = [
    (0.5, "cubic", 40), (0.5, "bbr", 200), (1, "reno", 100), (1, "cubic", 200), (2, "cubic", 40),
    (2, "reno", 40), (5, "bbr", 40), (5, "reno", 200), (20, "cubic", 20), (20, "bbr", 100),
]  # fmt: skip


@pytest.mark.parametrize(("mbps", "controller", "rtt_ms"), PATHS)
def test_perfect_captures_at_either_end(mbps, controller, rtt_ms, tmp_path):
    for frames in captures(mbps, controller, rtt_ms):
        observed = seen(frames, tmp_path / "a.pcap")
        check(observed.link_rate, mbps, 0.02)
        (link,) = run_context.spec_from_estimate(observed)["links"]
        assert link["capacity"]["rate_bps"] == pytest.approx(mbps * 1e6, rel=0.011)


@pytest.mark.slow
@pytest.mark.parametrize("controller", ["cubic", "bbr", "reno"])
def test_perfect_captures_of_a_fast_link(controller, tmp_path):
    for frames in captures(100, controller, 40, seconds=8):
        check(seen(frames, tmp_path / "a.pcap").link_rate, 100, 0.01)


@pytest.mark.parametrize("interval", ["20 ms", "50 ms", "170 ms", "400 ms"])
def test_the_interval_of_the_series_does_not_matter(interval, tmp_path):
    sent, _ = captures(1, "cubic", 200)
    check(seen(sent, tmp_path / "a.pcap", interval=interval).link_rate, 1, 0.02)


@pytest.mark.parametrize(("mbps", "mtu"), [(1, 576), (5, 576), (2, 1280), (20, 9000)])
def test_other_sizes_of_packets(mbps, mtu, tmp_path):
    sent, _ = captures(mbps, "cubic", 60, mtu)
    check(seen(sent, tmp_path / "a.pcap").link_rate, mbps, 0.01)


@pytest.mark.parametrize("snap", [54, 60, 66, 70, 74, 78, 82, 86, 90, 94, 96])
@pytest.mark.parametrize(("mbps", "controller"), [(1, "cubic"), (5, "reno")])
def test_cut_options_are_detected_and_do_not_change_the_rate(snap, mbps, controller, tmp_path):
    sent, _ = captures(mbps, controller, 100)
    observed = seen(sent, tmp_path / "a.pcap", snap)
    check(observed.link_rate, mbps, 0.03)
    whole = seen(sent, tmp_path / "b.pcap")
    said = " ".join(observed.missing)
    notes = " ".join(jostle.analyze(tmp_path / "a.pcap").said)
    assert ("TCP options are cut" in said) == ("cut the TCP options" in notes) == (snap < 94)
    assert ("Time stamps are missing" in said) == (snap < 66)
    # What arrived beyond a gap is not in flight, although only SACK blocks say so.
    assert np.percentile(observed.in_flight_bytes, 95) <= 1.1 * np.max(whole.in_flight_bytes)
    assert not any("options" in one for one in whole.missing)


@pytest.mark.parametrize("most", [4, 16, 64])
def test_thinned_acks(most, tmp_path):
    thinning = f'ack_thinning = {{ max_acks = {most}, max_delay = "20 ms" }}'
    for mbps in (2, 20):
        sent, _ = captures(mbps, "cubic", 60, thinning=thinning)
        check(seen(sent, tmp_path / "a.pcap").link_rate, mbps, 0.03)


def test_candidates_get_acks_as_thinned_as_those_of_the_capture(tmp_path):
    thinning = 'ack_thinning = { max_acks = 1024, max_delay = "20 ms" }'
    sent, received = captures(5, "cubic", 60, thinning=thinning)
    observed = seen(sent, tmp_path / "a.pcap")
    # 20 ms are 8.3 packets, after the one whose ACK waits.
    assert observed.packets_per_ack == pytest.approx(9.3, abs=0.3)
    around = run_context.spec_from_estimate(observed)
    _, uplink = around["links"]
    assert uplink["ack_thinning"] == {"most": 1024, "hold_ns": pytest.approx(20e6, rel=0.05)}
    (flow,) = around["flows"]
    assert flow["base_delay_ns"] == pytest.approx(60e6, rel=0.03)
    # Near the receiver, ACKs are not thinned yet; without thinning, there is no such link.
    assert seen(received, tmp_path / "b.pcap").packets_per_ack is None
    sent, _ = captures(5, "reno", 100)
    assert seen(sent, tmp_path / "c.pcap").packets_per_ack is None


def test_advice_says_that_thinned_acks_are_left_out(tmp_path):
    thinning = 'ack_thinning = { max_acks = 1024, max_delay = "20 ms" }'
    sent, _ = captures(5, "cubic", 60, thinning=thinning)
    (tmp_path / "a.pcap").write_bytes(rewritten.pcap(sent))
    network = find_network(str(tmp_path / "a.pcap"), tmp_path)
    assert "Left out: the path thins ACKs." in network.assumptions


@pytest.mark.parametrize("mbps", [1, 10])
def test_the_rate_of_a_shaper_is_that_of_its_bucket(mbps, tmp_path):
    queue = f'{{ kind = "tbf", rate = "{mbps} Mbit/s", burst = "5 kB", limit = "60 kB" }}'
    sent, _ = captures(mbps, "cubic", 50, rate="100 Mbit/s", queue=queue)
    check(seen(sent, tmp_path / "a.pcap").link_rate, mbps, 0.03)


def test_a_capture_without_sack_blocks_says_so_and_warns_of_nothing_else():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = jostle.analyze(SNAP54)
        observed = observe(results.results[0].run)
        check(observed.link_rate, 1, 0.02)
        around = run_context.spec_from_estimate(observed)
    assert around["links"][0]["capacity"]["rate_bps"] == pytest.approx(1e6, rel=0.005)
    assert any("cut the TCP options" in note for note in results.said)
    # The window scale was cut off the SYN: nobody knows what the receive window limits.
    assert "receiver_limited" not in set(results.results[0].run.flows["mode"])
    assert any(one.startswith("SACK blocks are missing") for one in observed.missing)


def test_the_interval_reaches_advice(tmp_path):
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(rewritten.pcap(captures(2, "reno", 40)[0])))
    network = find_network(str(path), tmp_path)
    rate = network.to_dict()["interval"]["rate"]
    assert rate["low"] <= 2e6 <= rate["high"]
    drawn = {network.drawn(number)[0]["bottleneck"]["rate"] for number in range(5)}
    values = [float(one.split()[0]) for one in drawn]
    assert len(drawn) == 5
    assert all(rate["low"] - 1 <= one <= rate["high"] + 1 for one in values)


def test_candidates_span_the_interval():
    spec = run_context.spec_from_estimate(observe(jostle.analyze(SNAP54).results[0].run))
    rates = [
        run_context.with_perturbed_links(spec, number, 0.05)["links"][0]["capacity"]["rate_bps"]
        for number in range(3)
    ]
    assert rates[1] == pytest.approx(1.05 * rates[0], rel=1e-5)
    assert rates[2] == pytest.approx(0.95 * rates[0], rel=1e-5)
    slowest = run_context.with_perturbed_links(spec, 98, 0.05)["links"][0]["capacity"]["rate_bps"]
    assert 0 < slowest < rates[2]


RANDOM = np.random.default_rng(7)


def curve(rate_bps: np.ndarray) -> ObservedFlow:
    rtt_s = 0.05 + 0.02 * np.abs(np.sin(np.arange(rate_bps.size) / 9))
    return ObservedFlow("f", 0.0, 0.1, rtt_s, np.full(rate_bps.size, 3e4), rate_bps)


def test_a_rate_that_varies_is_no_constant():
    levels = np.repeat(RANDOM.uniform(2e6, 2e7, 40), 10)
    rate = curve(levels).link_rate
    assert rate is not None
    assert not rate.is_constant
    assert rate.low_bps < 5e6
    assert rate.high_bps > 1.5e7
    (said,) = of_network(rate)
    assert "not constant" in said


def test_an_estimate_that_is_rough_says_so():
    # Six seconds in which a quarter of a megabyte may be late.
    late = 0.1 * RANDOM.random(61)
    rate = curve(5e6 * (1 - np.diff(late) / 0.1)).link_rate
    assert rate is not None
    assert rate.relative_error > 0.01
    (said,) = of_network(rate)
    assert "known to ±" in said


def test_nothing_delivered_gives_no_rate():
    assert curve(np.zeros(100)).link_rate is None
    assert estimate_rate(np.zeros(1), np.zeros(1), np.ones(1, dtype=bool), 0.1) is None
    with pytest.raises(InputError, match="delivered too little"):
        run_context.spec_from_estimate(curve(np.zeros(100)))


def test_without_queue_there_is_no_bottleneck():
    flat = ObservedFlow("f", 0.0, 0.1, np.full(90, 0.04), np.full(90, 3e4), np.full(90, 6e6))
    with pytest.raises(InputError, match="by 0 ms at most, less than a packet takes at 6 Mbit/s"):
        run_context.spec_from_estimate(flat)


def test_long_series_take_little_time():
    # Hostile: many intervals, none like the one before. Twice the time for twice as many.
    noise = 1e9 * RANDOM.random(200_000)
    assert curve(noise).link_rate is not None


def test_what_waits_behind_a_gap_is_spread_over_the_stall():
    throughput, in_flight = bridged(
        8e5 * np.array([1, 1, 0.5, 0, 0, 3.5, 1]), 1e4 * np.array([5, 5, 5.5, 6.5, 7.5, 5, 5]), 0.1
    )
    assert throughput == pytest.approx(8e5)
    assert in_flight == pytest.approx(1e4 * np.array([5, 5, 5, 5, 5, 5, 5]))


def test_near_the_receiver_rtts_need_time_stamps(tmp_path):
    _, received = captures(5, "reno", 200)
    with pytest.raises(InputError, match="has no RTT: a capture near the receiver needs TCP time"):
        seen(received, tmp_path / "a.pcap", 54)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.7])
def test_the_path_before_the_capture_point_is_added(share, tmp_path):
    sent, _ = captures(5, "reno", 100)
    at_sender = seen(sent, tmp_path / "a.pcap")
    moved = rewritten.in_the_middle(sent, round(share * 0.1e9))
    between = seen(moved, tmp_path / "b.pcap")
    assert not any("capture point" in one for one in at_sender.missing)
    (said,) = [one for one in between.missing if "capture point" in one]
    # The base RTT includes the transmission of a full packet.
    part = round(100 * share * 0.1 / at_sender.least_full_rtt_s)
    assert f"{part} % of the base RTT" in said
    assert between.least_rtt_s == pytest.approx(at_sender.least_rtt_s, rel=0.02)
    median = np.nanmedian(at_sender.rtt_s)
    assert np.nanmedian(between.rtt_s) == pytest.approx(median, rel=0.02)
    most = np.percentile(at_sender.in_flight_bytes, 95)
    assert np.percentile(between.in_flight_bytes, 95) == pytest.approx(most, rel=0.1)
    check(between.link_rate, 5, 0.02)
