"""The same packets in every form of captures: the same measures, and those of other readers."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jostle
import pytest
import rewritten
from jostle.backends import SimBackend
from jostle.errors import InputError
from jostle.scenario import load_text
from rewritten import Frame

SCENARIO = """
title = "One loses packets"
duration = "10 s"
seed = 3
capture = true
[[links]]
name = "link"
rate = "9.9 Mbit/s"
loss = "1 %"
queue = { kind = "drop_tail", limit = "50 kB" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
path = ["link"]
source = { kind = "fixed", size = "3 MB" }
"""


@pytest.fixture(scope="module")
def record():
    return SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)


@pytest.fixture(scope="module")
def frames(record) -> list[Frame]:
    return rewritten.frames(record.captures["one.sender"])


def measured(path: Path, content: bytes) -> dict[str, Any]:
    """Everything that is known of the only flow, but for its names."""
    path.write_bytes(content)
    (result,) = jostle.analyze(path).results
    (flow,) = result.run.summary["flows"]
    return {key: value for key, value in flow.items() if key not in ("name", "group")}


@pytest.fixture(scope="module")
def plain(frames, tmp_path_factory):
    return measured(tmp_path_factory.mktemp("plain") / "plain.pcap", rewritten.pcap(frames))


def test_the_packets_are_those_of_the_run(record, plain):
    (truth,) = record.summary["flows"]
    seen, ran = plain["phases"]["overall"], truth["phases"]["overall"]
    assert seen["sent_packets"] == ran["sent_packets"]
    assert seen["retransmitted_packets"] == ran["retransmitted_packets"] > 10
    assert plain["fast_retransmissions"] > 10


def zstd(content: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        pytest.skip("zstd is not installed")
    return subprocess.run(
        [program, "-q", "-c"], input=content, capture_output=True, check=True
    ).stdout


def pieces(content: bytes) -> bytes:
    """As programs write that compress what they append."""
    half = len(content) // 2
    return gzip.compress(content[:half]) + gzip.compress(content[half:])


PACKED = {"gzip": gzip.compress, "gzip, twice": pieces, "zstd": zstd}


@pytest.mark.parametrize("packed", PACKED)
def test_compressed_pcap(packed, frames, plain, tmp_path):
    assert measured(tmp_path / "packed", PACKED[packed](rewritten.pcap(frames))) == plain


@pytest.mark.parametrize("packed", PACKED)
def test_compressed_pcapng(packed, record, tmp_path):
    content = record.captures["one.sender"].read_bytes()
    expected = measured(tmp_path / "plain.pcapng", content)
    assert measured(tmp_path / "packed", PACKED[packed](content)) == expected


FORMS = {
    "big-endian": (lambda frame: frame, {"order": ">"}),
    "802.1Q": (rewritten.tagged(0x8100), {}),
    "QinQ": (rewritten.tagged(0x88A8, 0x8100), {}),
    "QinQ, as it was": (rewritten.tagged(0x9100, 0x8100), {}),
    "cooked": (rewritten.cooked, {"link": rewritten.SLL}),
    "cooked, version 2": (rewritten.cooked_2, {"link": rewritten.SLL2}),
    "raw": (rewritten.raw, {"link": rewritten.RAW}),
    "raw IPv4": (rewritten.raw, {"link": rewritten.IPV4}),
    "null": (rewritten.loopback("<"), {"link": rewritten.NULL}),
    "null of another machine": (rewritten.loopback(">"), {"link": rewritten.NULL}),
    "loop": (rewritten.loopback(">"), {"link": rewritten.LOOP}),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_frames(form, frames, plain, tmp_path):
    rewrite, options = FORMS[form]
    content = rewritten.pcap([rewrite(frame) for frame in frames], **options)
    # What is in front of IP is no part of what is measured, whatever it is.
    assert measured(tmp_path / "other.pcap", content) == plain


BELOW_IPV6 = {
    "Ethernet": (lambda frame: frame, {}),
    "802.1Q": (rewritten.tagged(0x8100), {}),
    "cooked": (rewritten.cooked, {"link": rewritten.SLL}),
    "cooked, version 2": (rewritten.cooked_2, {"link": rewritten.SLL2}),
    "raw": (rewritten.raw, {"link": rewritten.RAW}),
    "raw IPv6": (rewritten.raw, {"link": rewritten.IPV6}),
    "null": (rewritten.loopback("<"), {"link": rewritten.NULL}),
}


@pytest.mark.parametrize("below", BELOW_IPV6)
def test_ipv6(below, frames, plain, tmp_path):
    rewrite, options = BELOW_IPV6[below]
    content = rewritten.pcap([rewrite(rewritten.over_ipv6(frame)) for frame in frames], **options)
    path = tmp_path / "six.pcap"
    found = measured(path, content)
    assert jostle.analyze(path).flow_names(0) == [
        "[2001:db8::a01:1]:40000 > [2001:db8::a02:1]:5201"
    ]
    seen, before = found["phases"]["overall"], plain["phases"]["overall"]
    # Headers are 20 bytes longer, and nothing else is different.
    longer = ("sending_rate_bps", "throughput_bps", "goodput_ratio", "power_bits", "lead_bps",
              "segment_power_bits")  # fmt: skip
    assert {k: v for k, v in seen.items() if k not in longer} == {
        k: v for k, v in before.items() if k not in longer
    }
    lasted_s = frames[-1].time_ns / 1e9 - frames[0].time_ns / 1e9 + 1e-9
    more_bps = 20 * 8 * seen["sent_packets"] / lasted_s
    assert seen["sending_rate_bps"] - before["sending_rate_bps"] == pytest.approx(more_bps)
    assert {k: v for k, v in found.items() if k != "phases"} == {
        k: v for k, v in plain.items() if k != "phases"
    }


def test_both_byte_orders_and_clocks_of_pcapng(frames, plain, tmp_path):
    assert measured(tmp_path / "a.pcapng", rewritten.bigendian_pcapng(frames)) == plain


def test_microseconds(frames, plain, tmp_path):
    found = measured(tmp_path / "a.pcap", rewritten.pcap(frames, per_second=10**6))
    for key in ("fast_retransmissions", "rto_retransmissions", "loss_bursts"):
        assert found[key] == plain[key], key
    seen, before = found["phases"]["overall"], plain["phases"]["overall"]
    for key in ("sent_packets", "retransmitted_packets"):
        assert seen[key] == before[key], key
    for key in ("rtt_mean_s", "rtt_min_s", "segment_rtt_max_s"):
        assert seen[key] == pytest.approx(before[key], abs=1e-6), key
        assert seen[key] != before[key], "nanoseconds were read as such before"


# Ethernet, IPv4, TCP with time stamps and three SACK blocks: 14 + 20 + 20 + 12 + 28.
ALL_HEADERS = 94


@pytest.mark.parametrize("snap", [128, ALL_HEADERS])
def test_headers_are_enough(snap, frames, plain, tmp_path):
    assert measured(tmp_path / "a.pcap", rewritten.pcap(frames, snap=snap)) == plain


@pytest.mark.parametrize(("snap", "what"), [(66, "no SACKs"), (54, "no options")])
def test_short_snap_lengths(snap, what, frames, plain, tmp_path):
    found = measured(tmp_path / "a.pcap", rewritten.pcap(frames, snap=snap))
    seen, before = found["phases"]["overall"], plain["phases"]["overall"]
    # What is sent again is seen by its number, what is in order by the ACKs'.
    for key in ("sent_packets", "retransmitted_packets", "sending_rate_bps", "goodput_bps"):
        assert seen[key] == before[key], (what, key)
    assert seen["rtt_mean_s"] == pytest.approx(before["rtt_mean_s"], rel=0.05)
    assert found["handshake_s"] == plain["handshake_s"]


@pytest.mark.parametrize("snap", [53, 40, 20])
def test_shorter_ones_are_refused(snap, frames, tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(rewritten.pcap(frames, snap=snap))
    with pytest.raises(InputError, match=r"a\.pcap: no packet of TCP or UDP"):
        jostle.analyze(path)


def tcptrace(every: list[Frame], path: Path) -> dict[str, float]:
    """What tcptrace says of the sender's direction, by its words: milliseconds and packets."""
    program = shutil.which("tcptrace")
    if program is None:
        pytest.skip("tcptrace is not installed")
    # It reads neither pcapng nor nanoseconds, and takes the time 0 for none.
    later = [replace(frame, time_ns=frame.time_ns + 10**9) for frame in every]
    path.write_bytes(rewritten.pcap(later, per_second=10**6))
    # Long output, RTTs, no names of hosts.
    command = [program, "-lrn", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        for words, value in re.findall(r"(\S[^:]*):\s+(\d+(?:\.\d+)?)(?=\s|$)", line):
            found.setdefault(words, float(value))
    return found


def test_tcptrace_counts_the_same(frames, plain, tmp_path):
    found = tcptrace(frames, tmp_path / "a.pcap")
    seen = plain["phases"]["overall"]
    assert found["rexmt data pkts"] == seen["retransmitted_packets"]
    assert found["actual data pkts"] == seen["sent_packets"]
    lasted_s = (frames[-1].time_ns - frames[0].time_ns + 1) / 1e9
    assert found["unique bytes sent"] == pytest.approx(seen["goodput_bps"] / 8 * lasted_s)
    assert found["zero win adv"] == plain["zero_windows"]
    assert found["RTT from 3WHS"] == pytest.approx(plain["handshake_s"] * 1e3, abs=0.05)
    # It leaves out ACKs of several packets, and those that end a recovery.
    assert found["RTT avg"] == pytest.approx(seen["rtt_mean_s"] * 1e3, rel=0.01)


def test_tcptrace_takes_the_same_rtts(tmp_path):
    """Where nothing is lost, and every packet is acknowledged: what both take is the same."""
    text = SCENARIO.replace('loss = "1 %"\n', "").replace('"3 MB"', '"700 kB"')
    record = SimBackend().run(load_text(text).plan().runs[0].spec)
    every = rewritten.frames(record.captures["one.sender"])
    found = tcptrace(every, tmp_path / "a.pcap")
    plain = measured(tmp_path / "b.pcap", rewritten.pcap(every))
    seen = plain["phases"]["overall"]
    assert found["rexmt data pkts"] == seen["retransmitted_packets"] == 0
    # The SYN's is one of tcptrace's samples.
    samples = seen["sent_packets"]
    assert found["RTT samples"] == samples + 1
    mean_s = (samples * seen["rtt_mean_s"] + plain["handshake_s"]) / (samples + 1)
    assert found["RTT avg"] == pytest.approx(mean_s * 1e3, abs=0.051)
    assert found["RTT max"] == pytest.approx(seen["segment_rtt_max_s"] * 1e3, abs=0.051)
    assert found["RTT stdev"] == pytest.approx(seen["rtt_sd_s"] * 1e3, rel=0.02)
