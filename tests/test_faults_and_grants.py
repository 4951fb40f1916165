"""Faults of packets, habits of netem and capacity on demand: from the scenario to the result."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import link_extras
from jostle.report import topology_svg
from jostle.scenario import load_text

ROOT = Path(__file__).parents[1]
RETURN_CHANNEL = (ROOT / "scenarios/cookbook/return-channel.toml").read_text()
IDLE_RTT_S = 0.597

PAIR = """
duration = "6 s"
[downlink]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1000 packets" }
[uplink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
receive_window = "150 kB"
[[flows]]
name = "pair"
count = 2
controller = "cubic"
rtt = "40 ms"
size = "100 kB"
"""


def planned(text: str, overrides: dict[str, str] | None = None) -> Any:
    return load_text(text.partition("\n[grid")[0], overrides=overrides).plan(repeats=1).runs[0].spec


def run(text: str, overrides: dict[str, str] | None = None) -> Any:
    return SimBackend().run(planned(text, overrides)).summary


def overall(summary: Any, kind: str, position: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = summary[kind][position]["phases"]["overall"]
    return found


def test_ranges_and_flows_become_numbers():
    rule = '[{ flow = "pair", lose = [3, "5-7"], mark = 1, delay = ["2"], late = "20 ms" }]'
    spec = planned(PAIR, {"downlink.faults.packets": rule})
    rules = spec["links"][0]["faults"]["packets"]
    assert [rule["flow"] for rule in rules] == [1, 2]
    assert [rule["class"] for rule in rules] == ["data", "data"]
    kinds = [(it["number"], it["fault"]["kind"]) for it in rules[0]["faults"]]
    lost = [(number, "lose") for number in (3, 5, 6, 7)]
    assert kinds == [(1, "mark"), (2, "late"), *lost]
    assert rules[0]["faults"][1]["fault"]["by_ns"] == 20_000_000


def test_numbers_are_of_a_flow_a_direction_and_a_class():
    faults = {
        "downlink.faults.packets": '[{ flow = "pair", lose = [2] }]',
        "uplink.faults.packets": '[{ flow = "one", count = "acks", lose = ["10-19"] }]',
    }
    summary = run(PAIR, faults)
    down, up = overall(summary, "links", 0), overall(summary, "links", 1)
    assert (down["dropped_loss_packets"], up["dropped_loss_packets"]) == (2, 10)
    retransmitted = [overall(summary, "flows", n)["retransmitted_packets"] for n in range(3)]
    # Lost ACKs cost nothing: later ones confirm the same data.
    assert retransmitted == [0, 1, 1]
    handshake = '[{ flow = "one", count = "handshake", lose = [1] }]'
    delayed = run(PAIR, {"downlink.faults.packets": handshake})
    # A SYN is retransmitted after a second.
    ratio = delayed["flows"][0]["phases"]["overall"]["throughput_bps"]
    assert ratio == pytest.approx(overall(summary, "flows")["throughput_bps"] * 5 / 6, rel=0.03)


@pytest.mark.parametrize(
    ("fault", "counts", "retransmitted"),
    [
        ("{ lose = [3000] }", {"dropped_loss_packets": 1}, 1),
        ("{ corrupt = [3000] }", {"dropped_corruption_packets": 1}, 1),
        ("{ duplicate = [3000] }", {"duplicated_packets": 1}, 0),
        ('{ delay = [3000], late = "60 ms" }', {}, 1),
    ],
)
def test_a_sender_retransmits_what_is_lost_and_undoes_what_was_late(fault, counts, retransmitted):
    plain = overall(run(PAIR, {"flows.pair.count": "0"}), "flows")
    summary = run(PAIR, {"flows.pair.count": "0", "downlink.faults.packets": f"[{fault}]"})
    flow, link = overall(summary, "flows"), overall(summary, "links")
    assert {key: link[key] for key in counts} == counts
    assert flow["retransmitted_packets"] == retransmitted
    dropped = link["dropped_packets"]
    assert dropped == sum(n for key, n in counts.items() if key.startswith("dropped"))
    # A loss reduces cwnd; D-SACK shows that the retransmission of a late packet was spurious.
    ratio = flow["cwnd_mean_bytes"] / plain["cwnd_mean_bytes"]
    assert ratio < 0.97 if dropped else ratio > 0.98, ratio


def test_random_faults_have_their_probability_and_mark_only_what_is_capable():
    events = '{ duplicate = "2 %", corrupt = { probability = "1 %" }, reorder = "5 %" }'
    summary = run(PAIR, {"downlink.faults": events, "flows.pair.count": "0"})
    link, sent = overall(summary, "links"), overall(summary, "flows")["sent_packets"]
    assert link["duplicated_packets"] == pytest.approx(0.02 * sent, rel=0.5)
    assert link["dropped_corruption_packets"] == pytest.approx(0.01 * sent, rel=0.5)
    marks = '[{ mark = ["1-50"] }]'
    for ecn, marked in (("true", 50), ("false", 0)):
        given = {"downlink.faults.packets": marks, "flows.pair.count": "0", "flows.one.ecn": ecn}
        assert overall(run(PAIR, given), "links")["marked_fault_packets"] == marked


def test_netems_limit_explains_a_throughput():
    """1,000 packets in 50 ms are 242 Mbit/s, whatever the rate of the link is."""
    given = {
        "downlink.rate": '"1 Gbit/s"',
        "downlink.queue": '{ kind = "drop_tail", limit = "64 MB" }',
        "downlink.delay": '"50 ms"',
        "downlink.netem": "{}",
        "flows.pair.count": "0",
        "flows.one.rtt": '"60 ms"',
        "flows.pair.rtt": '"60 ms"',
        "flows.one.receive_window": '"64 MB"',
        "flows.one.controller": '"bbr"',
    }
    summary = run(PAIR, given)
    assert overall(summary, "links")["dropped_delay_queue_packets"] > 100
    assert overall(summary, "flows")["throughput_bps"] < 250e6
    unlimited = run(PAIR, {**given, "downlink.netem": '{ limit = "none" }'})
    assert overall(unlimited, "links")["dropped_packets"] == 0
    assert overall(unlimited, "flows")["throughput_bps"] > 500e6


def test_a_growing_download_waits_for_grants_and_a_steady_one_does_not():
    """Claypool, Chung and Claypool (PAM 2021): Cubic +160 ms while it grows, PCC at most +88 ms."""
    cubic = run(RETURN_CHANNEL)
    assert cubic["flows"][0]["completion_time_s"] == pytest.approx(25.7, abs=0.5)
    assert overall(cubic, "flows")["rtt_mean_s"] - IDLE_RTT_S == pytest.approx(0.160, abs=0.02)
    # The wait is for slots, and no queue of the forward link.
    assert overall(cubic, "links", 0)["queueing_delay_mean_s"] < 0.002
    assert overall(cubic, "links", 1)["queueing_delay_mean_s"] > 0.15
    pcc = {
        "flows.download.controller": '{ name = "vivace", form = "satellite" }',
        "flows.download.size": '"4 GB"',
        "duration": '"90 s"',
        "phases": '{ steady = ["60 s", "90 s"] }',
    }
    steady = run(RETURN_CHANNEL, pcc)["flows"][0]["phases"]["steady"]
    assert steady["throughput_bps"] > 90e6
    assert steady["rtt_mean_s"] - IDLE_RTT_S < 0.088


def test_the_kernel_gets_the_same_numbers():
    faults = '{ duplicate = { probability = "50 %", correlation = "25 %" }, reorder = { gap = 5 } }'
    rules = '[{ flow = "pair", count = "acks", corrupt = [7] }, { lose = ["1-3000"] }]'
    given = {"downlink.faults": faults, "downlink.netem": '{ limit_covers = "queue and delay" }'}
    spec = planned(PAIR, given)
    link = {**spec["links"][0], "faults": {**spec["links"][0]["faults"]}}
    link["faults"]["packets"] = planned(PAIR, {"uplink.faults.packets": rules})["links"][1][
        "faults"
    ]["packets"]
    seeds = {"duplicate": 11, "corrupt": 12, "reorder": 13}
    messages = list(link_extras.messages(link, {"seeds": seeds}))

    def content(message: bytes) -> tuple[int, bytes]:
        length, number = struct.unpack_from("=HH", message)
        return number, message[4:length]

    half, quarter = int(0.5 * (2**32 - 1)), int(0.25 * (2**32 - 1))
    assert content(messages[0]) == (18, struct.pack("=6Q", 11, 1 << 52, half, quarter, 0, 0))
    assert content(messages[1]) == (20, struct.pack("=6Q", 13, 1 << 53, 2**32 - 1, 0, 5, 0))
    # A rule for each of the two flows, then one whose numbers need two messages.
    rules_found = [content(message) for message in messages[2:6]]
    hosts = [found[:4] for number, found in rules_found if number == 21]
    assert hosts == [socket.inet_aton("10.2.0.2"), socket.inet_aton("10.2.0.3"), b"\0" * 4]
    assert [number for number, _ in rules_found] == [21, 21, 21, 22]
    assert content(messages[-1]) == (23, struct.pack("=3Q", 1000, 1, 0))


def test_the_drawing_of_the_network_names_faults_and_grants():
    spec = planned(RETURN_CHANNEL)
    plain = planned(PAIR)
    faulty = planned(PAIR, {"downlink.faults": '{ duplicate = "1 %" }'})
    texts = [topology_svg.topology(each) for each in (spec, plain, faulty)]
    assert ["on demand" in text for text in texts] == [True, False, False]
    assert ["faults" in text for text in texts] == [False, False, True]
