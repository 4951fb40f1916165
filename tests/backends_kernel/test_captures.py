"""Captures on real kernels."""

from __future__ import annotations

import errno
import itertools
import json
import os
import socket
import struct
import threading
import time
from pathlib import Path

import jostle
import pcapng
import pytest
from jostle import _core
from jostle.backends.capture_files import CaptureError
from jostle.backends.kernel import KernelBackend, captures, job
from jostle.backends.kernel.guest import capture, qdisc_check
from jostle.backends.kernel.guest.capture import Capture
from jostle.backends.kernel.guest.failure import GuestFailure
from jostle.backends.kernel.guest.namespaces import Host
from jostle.backends.kernel.guest.netlink import Device, Netlink
from jostle.kernel_images import Image
from jostle.results.time_sequence import read

from backends_kernel.kernel_specs import PARKING_LOT, SCENARIO, spec_of

PAIR = f"""capture = true
{SCENARIO.replace('"10 s"', '"5 s"').replace('["5 s", "5 s"]', '["3 s", "5 s"]')}
ecn = true
[[flows]]
name = "two"
controller = "reno"
rtt = "60 ms"
start = "500 ms"
"""


@pytest.fixture(scope="module")
def record(backend: KernelBackend):
    return backend.run(spec_of(PAIR, {"bottleneck.queue.limit": '"0.31 BDP"'}))


def overall(record, flow: int):
    return record.summary["flows"][flow]["phases"]["overall"]


@pytest.mark.parametrize(("name", "flow"), [("one", 0), ("two", 1)])
def test_packets_are_those_that_the_kernel_counted(record, name, flow):
    sender = pcapng.read(record.captures[f"{name}.sender"])
    assert sender.dropped == 0
    assert sender.received >= len(sender.packets)
    sent = [packet for packet in sender.of(1) if packet.payload]
    assert len(sent) == overall(record, flow)["sent_packets"]
    assert sender.retransmitted == overall(record, flow)["retransmitted_packets"] > 0
    assert sender.interface == f"{name}.sender"
    assert sender.system.startswith("Linux 6.")
    assert f"flow: {name}\n" in sender.comment
    assert "scenario: for the kernel\n" in sender.comment


@pytest.mark.parametrize(("name", "rtt_ms"), [("one", 40), ("two", 60)])
def test_packets_have_the_time_of_the_run(record, name, rtt_ms):
    sender = pcapng.read(record.captures[f"{name}.sender"])
    receiver = pcapng.read(record.captures[f"{name}.receiver"])
    syn, answer = sender.packets[0], sender.of(2)[0]
    # A few readings of the clock come between, each of which takes a microsecond.
    assert syn.time_ns == pytest.approx({"one": 0, "two": 500_000_000}[name], abs=20_000)
    # The quiet path, the sending time of a full packet, and for the second one a queue.
    assert (rtt_ms - 0.1) * 1e6 < answer.time_ns - syn.time_ns < (rtt_ms + 14) * 1e6
    # The receiver answers at once; what delays its packets lies behind it.
    there, back = receiver.packets[0], receiver.of(2)[0]
    assert back.time_ns - there.time_ns < 20_000
    assert answer.time_ns - back.time_ns > (rtt_ms - 1) * 1e6
    last_ns = max(packet.time_ns for packet in sender.packets)
    assert 4.8e9 < last_ns < 5e9


@pytest.mark.parametrize(("name", "flow"), [("one", 0), ("two", 1)])
def test_measured_anew_they_give_what_the_kernel_said(record, name, flow):
    truth = overall(record, flow)
    results = jostle.analyze(next(iter(record.captures.values())).parent)
    seen = results.results[0].run.summary["flows"][flow]
    assert seen["name"] == name
    measured = seen["phases"]["overall"]
    for exact in ("sent_packets", "retransmitted_packets"):
        assert measured[exact] == truth[exact], exact
    for near in ("goodput_bps", "throughput_bps", "sending_rate_bps"):
        assert measured[near] == pytest.approx(truth[near], rel=0.005), near
    # What a run has of the kernel is its smoothed RTT.
    smoothed = results.series(name, "srtt")["seed_0"].drop_nulls()
    assert smoothed.mean() == pytest.approx(truth["rtt_mean_s"], rel=0.01)
    assert seen["spurious_retransmissions"] <= measured["retransmitted_packets"]


@pytest.mark.parametrize(("name", "flow"), [("one", 0), ("two", 1)])
def test_a_diagram_has_every_packet(record, name, flow):
    (found,) = read([record.captures[f"{name}.sender"]])
    packets = pcapng.read(record.captures[f"{name}.sender"])
    counted = overall(record, flow)
    assert found.packets.time_s.size == counted["sent_packets"]
    again = ~found.packets.of("sent")
    assert again.sum() == counted["retransmitted_packets"]
    # A hole is SACKed above before it is filled, but for what a timeout sends again.
    assert found.sacks.time_s.size > 0
    assert found.answers.time_s.size == len(packets.of(2)) - 1


def test_headers_are_the_kernels(record):
    one, two = (pcapng.read(record.captures[f"{name}.sender"]) for name in ("one", "two"))
    assert one.packets[0].flags == pcapng.SYN | pcapng.ECE | pcapng.CWR
    assert two.packets[0].flags == pcapng.SYN
    assert {packet.ecn for packet in one.of(1) if packet.payload} == {0, 2}
    assert any(packet.blocks for packet in two.of(2))
    for path in record.captures.values():
        assert pcapng.tshark(path, "-Y", pcapng.MALFORMED) == []
    again = pcapng.tshark(record.captures["two.sender"], "-Y", pcapng.RETRANSMITTED)
    assert len(again) == overall(record, 1)["retransmitted_packets"]


def test_a_capture_changes_nothing(backend, record):
    # Neither of these controllers asks for random numbers, and a capture takes no time.
    spec = {**spec_of(PAIR, {"bottleneck.queue.limit": '"0.31 BDP"'}), "capture": None}
    without = backend.run(spec)
    assert without.captures == {}
    for flow in (0, 1):
        captured, plain = overall(record, flow), overall(without, flow)
        assert captured["goodput_bps"] == pytest.approx(plain["goodput_bps"], rel=0.01)
        counts = captured["retransmitted_packets"], plain["retransmitted_packets"]
        assert counts[0] == pytest.approx(counts[1], abs=3)
        assert captured["rtt_min_s"] == pytest.approx(plain["rtt_min_s"], abs=10e-6)


def test_reading_sends_no_acks(backend):
    """Every second segment is acknowledged, whenever the application reads."""
    # Nothing is lost, and after 8 s the receiver's window grows no more, which has ACKs of its own.
    long = {"flows.one.controller": '"vegas"', "bottleneck.queue.limit": '"4 BDP"'}
    made = backend.run(spec_of(overrides={**long, "capture": "true"}))
    assert overall(made, 0)["retransmitted_packets"] == 0
    numbers = [
        packet.acknowledgment
        for packet in pcapng.read(made.captures["one.receiver"]).of(2)
        if packet.time_ns > 8e9
    ]
    steps = [b - a for a, b in itertools.pairwise(numbers)]
    assert len(steps) > 1_000
    assert set(steps) == {2 * 1448}


def test_a_congested_way_back_and_a_changing_rate(backend):
    spec = spec_of(f"capture = true\n{PARKING_LOT}", {"duration": '"3 s"'})
    made = backend.run(spec)
    sender = pcapng.read(made.captures["long.sender"])
    assert sender.retransmitted == overall(made, 0)["retransmitted_packets"]
    rate = '[["0 s", "20 Mbit/s"], ["2 s", "5 Mbit/s"]]'
    overrides = {"bottleneck.rate": rate, "bottleneck.queue.limit": '"60 kB"'}
    made = backend.run(spec_of(PAIR, overrides))
    one = pcapng.read(made.captures["one.sender"])
    assert one.retransmitted == overall(made, 0)["retransmitted_packets"]


def test_what_is_wanted_is_in_the_job(kernel, defaults):
    spec = spec_of(PAIR)
    asked = job.build(spec, kernel, defaults)
    assert asked["captures"] == {
        host: (f"{host}.ring", 128) for host in ("s0", "r0", "s1", "r1")
    }  # fmt: skip
    names = {host["name"] for host in asked["hosts"]}
    assert {"h0", "h1"} <= names
    without = {**spec, "capture": None}
    plain = job.build(without, kernel, defaults)
    assert plain["captures"] == {}
    assert names - {host["name"] for host in plain["hosts"]} == {"h0", "h1"}
    assert job.memory_mb(spec) == job.memory_mb(without) + 8


IMAGE = Image("virtual", Path("/kernel"), "6.1.99")


def left(folder: Path, blocks: bytes) -> None:
    """What a guest leaves of a flow whose hosts saw nothing else."""
    hosts = {"s0": [3, 1], "r0": [0, 0]}
    told = {"captures": {"start_ns": 10**18, "hosts": hosts}}
    (folder / "events.json").write_text(json.dumps(told))
    for host in hosts:
        (folder / f"{host}.ring").write_bytes(blocks)


def test_rings_become_files(tmp_path):
    left(tmp_path, b"")
    spec = spec_of(f"capture = true\n{SCENARIO}")
    made = captures.read_captures(spec, tmp_path, IMAGE, _core)
    assert made is not None
    sender = pcapng.read(made.files["one.sender"])
    assert (sender.packets, sender.received, sender.dropped) == ([], 3, 1)
    assert sender.system == "Linux 6.1.99 (virtual)"
    assert not (tmp_path / "s0.ring").exists()


def test_what_is_no_ring_is_told(tmp_path):
    left(tmp_path, b"packets, packets, packets, packets, packets, packets")
    spec = spec_of(f"capture = true\n{SCENARIO}")
    with pytest.raises(ValueError, match="something else where a block should begin"):
        captures.read_captures(spec, tmp_path, IMAGE, _core)
    (tmp_path / "s0.ring").unlink()
    with pytest.raises(CaptureError, match="No such file"):
        captures.read_captures(spec, tmp_path, IMAGE, _core)


@pytest.fixture
def wire():
    """Two hosts of this machine and a wire between them."""
    try:
        hosts = {name: Host(name) for name in ("s0", "r0")}
    except PermissionError:
        pytest.skip("only root makes network namespaces")
    a, b = hosts["s0"], hosts["r0"]
    Netlink().add_veth("out", a.descriptor, "in", b.descriptor, bytes.fromhex("020000000001"))
    for number, (host, name) in enumerate([(a, "out"), (b, "in")], start=1):
        with host.entered():
            device = Device(name)
        device.add_address(f"10.{number}.0.1")
        device.enable()
        device.route(f"10.{3 - number}.0.1")
        device.close()
    yield hosts
    for host in hosts.values():
        os.close(host.descriptor)


def talk(hosts: dict[str, Host], size: int) -> None:
    """Send so many bytes from one host to the other."""
    ready, port = threading.Event(), 5201

    def receive() -> None:
        hosts["r0"].enter()
        with socket.create_server(("10.2.0.1", port)) as listener:
            ready.set()
            connection, _ = listener.accept()
            with connection:
                while connection.recv(1 << 16):
                    pass

    receiver = threading.Thread(target=receive)
    receiver.start()
    ready.wait()
    with hosts["s0"].entered(), socket.create_connection(("10.2.0.1", port)) as sender:
        sender.sendall(bytes(size))
    receiver.join()


def test_the_ring_of_this_machines_own_kernel(wire, tmp_path):
    """More than a ring holds at once, read while it comes."""
    size = 20_000_000
    try:
        taken = Capture({"s0": ("s0.ring", 128), "r0": ("r0.ring", 128)}, wire, tmp_path)
    except GuestFailure as failure:
        if "lacks af_packet" not in str(failure):
            raise
        pytest.skip(str(failure))
    start_ns = time.monotonic_ns()
    talk(wire, size)
    told = taken.finish(start_ns)
    spec = spec_of(f"capture = true\n{SCENARIO}")
    (tmp_path / "events.json").write_text(json.dumps({"captures": told}))
    made = captures.read_captures(spec, tmp_path, IMAGE, _core)
    assert made is not None
    for end in ("sender", "receiver"):
        seen = pcapng.read(made.files[f"one.{end}"])
        assert seen.received == len(seen.packets) + seen.dropped
        if seen.dropped == 0:
            # Sequence numbers begin anywhere, and wrap.
            first = seen.packets[0].sequence
            ends = [(p.sequence + p.payload - first) % 2**32 for p in seen.of(1)]
            assert max(ends) >= size
        assert all(packet.stamps for packet in seen.packets if not packet.flags & 4)


def test_a_full_disk_ends_the_capture_with_a_message(wire, tmp_path, monkeypatch):
    def full(_tap: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(capture._HostCapture, "drain", full)
    taken = Capture({"s0": ("s0.ring", 128)}, wire, tmp_path)
    talk(wire, 1000)
    with pytest.raises(GuestFailure, match="the capture failed: No space left on device"):
        taken.finish(0)


def test_a_capture_that_is_killed_is_told(wire, tmp_path):
    taken = Capture({"s0": ("s0.ring", 128)}, wire, tmp_path)
    os.kill(taken._process, 9)
    with pytest.raises(GuestFailure, match="it ended early"):
        taken.finish(0)


def test_the_filter_keeps_headers_of_tcp_and_the_beginning_of_datagrams(wire, tmp_path):
    taken = Capture({"s0": ("s0.ring", 128)}, wire, tmp_path)
    with wire["s0"].entered():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(b"x" * 1000, ("10.2.0.1", 9))
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
            raw.sendto(b"\x08\0" + b"y" * 50, ("10.2.0.1", 0))
    talk(wire, 1000)
    (received, dropped) = taken.finish(0)["hosts"]["s0"]
    assert dropped == 0
    content = (tmp_path / "s0.ring").read_bytes()
    # What is left of 128 bytes behind the headers of Ethernet, IPv4 and UDP.
    assert b"x" * 86 in content
    assert b"x" * 87 not in content
    assert b"y" * 10 not in content
    # The datagram; a handshake of three, data and their ACK, and the end.
    assert 7 <= received <= 13
    assert struct.unpack_from("=I", content, 12) == (received,)


def test_disciplines_that_are_lacking_are_named_together(monkeypatch):
    hosts = [
        {"tc": ["qdisc add dev q root handle 1: htb default 10", "class add dev q parent 1: htb"]},
        {"tc": ["qdisc add dev q parent 1:10 handle 10: codel limit 7"]},
        {"delays_us": {"back": 4}},
        {"tc": ["qdisc add dev q parent 1:10 handle 10: bfifo limit 7"]},
    ]
    hosts = [{"tc": [], "delays_us": {}} | host for host in hosts]
    asked = []

    def knows(device: Device, kind: str) -> bool:
        asked.append(kind)
        return kind == "htb"

    monkeypatch.setattr(Device, "knows", knows)
    try:
        with pytest.raises(GuestFailure) as told:
            qdisc_check.check(hosts)
    except PermissionError:
        pytest.skip("only root makes network namespaces")
    assert asked == ["codel", "htb", "netem"]
    assert "disciplines codel, netem (modules sch_codel, sch_netem)" in str(told.value)


def test_the_kernel_is_asked_for_disciplines():
    try:
        with Host("probe").entered():
            assert not Device("lo").knows("nonesuch")
    except PermissionError:
        pytest.skip("only root makes network namespaces")


OVER_QUIC = PAIR.replace("capture = true", "capture = { qlog = true }", 1).replace(
    'name = "two"',
    'name = "two"\ntransport = { kind = "quic", crypto = "tls" }',
)


@pytest.fixture(scope="module")
def over_quic(backend: KernelBackend):
    return backend.run(spec_of(OVER_QUIC))


def test_datagrams_are_those_that_the_ends_counted(over_quic):
    sender = pcapng.read_datagrams(over_quic.captures["two.sender"])
    receiver = pcapng.read_datagrams(over_quic.captures["two.receiver"])
    sent = sender.of(1)
    assert len(sent) == pytest.approx(overall(over_quic, 1)["sent_packets"], abs=3)
    assert all(packet.ports[1] == 4433 for packet in sent)
    assert sent[0].time_ns == pytest.approx(500_000_000, abs=20_000_000)
    assert len(receiver.of(1)) <= len(sent)
    # Whole, with what opens them.
    assert all(len(packet.payload) == packet.size - 42 for packet in sender.packets)
    assert len(sender.secrets) == len(receiver.secrets) == 5
    # TCP beside them is captured as ever.
    assert pcapng.read(over_quic.captures["one.sender"]).of(1)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_wireshark_opens_every_datagram(over_quic, end):
    path = over_quic.captures[f"two.{end}"]
    assert pcapng.tshark(path, "-Y", "quic.decryption_failed || _ws.malformed") == []
    opened = pcapng.tshark(path, "-Y", "quic.frame")
    assert len(opened) == len(pcapng.read_datagrams(path).packets)


def test_ends_write_their_logs(over_quic):
    logs = {name for name in over_quic.captures if name.endswith(".sqlog")}
    assert logs == {"two.sender.sqlog", "two.receiver.sqlog"}
    text = over_quic.captures["two.sender.sqlog"].read_text()
    header, *events = [json.loads(record) for record in text.split("\x1e")[1:]]
    assert header["trace"]["vantage_point"]["type"] == "client"
    sent = [event for event in events if event["name"] == "transport:packet_sent"]
    measured = overall(over_quic, 1)["sent_packets"]
    assert len(sent) == pytest.approx(measured, abs=8)
    assert 500 <= events[0]["time"] <= 520
