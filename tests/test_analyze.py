"""Captures, measured: of runs whose truth is known, and of files that are none."""

from __future__ import annotations

import gzip
import json
import shutil
import socket
import struct
from pathlib import Path

import jostle
import pcapng
import pytest
from jostle.backends import RunRecord, SimBackend
from jostle.cli import status
from jostle.errors import InputError
from jostle.scenario import load_text

SCENARIO = """
title = "Two share a lossy link"
duration = "20 s"
sampling_interval = "1 s"
seed = 5
capture = true
[[links]]
name = "there"
rate = "10 Mbit/s"
queue = { kind = "codel", ecn = true }
loss = "1 %"
[[links]]
name = "back"
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "20 kB" }
[[flows]]
name = "long"
controller = "cubic"
rtt = "60 ms"
path = ["there"]
reverse_path = ["back"]
ecn = true
[[flows]]
name = "bbr"
controller = "bbr"
rtt = "30 ms"
path = ["there"]
start = "1 s"
"""
FLOWS = ("long", "bbr")


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)


def of_run(record: RunRecord, flow: str):
    flows = {one["name"]: one for one in record.summary["flows"]}
    return flows[flow]["phases"]["overall"]


def of_flow(results: jostle.ResultSet, flow: str):
    (one,) = [f for f in results.results[0].run.summary["flows"] if f["name"] == flow]
    return one, one["phases"]["overall"]


@pytest.mark.parametrize("flow", FLOWS)
def test_a_capture_at_the_sender_gives_what_the_run_measured(record, flow):
    results = jostle.analyze(record.captures[f"{flow}.sender"])
    _, seen = of_flow(results, flow)
    truth = of_run(record, flow)
    assert truth["retransmitted_packets"] > 0
    for exact in ("sent_packets", "retransmitted_packets", "sending_rate_bps"):
        assert seen[exact] == truth[exact], exact
    for percent in ("goodput_bps", "throughput_bps"):
        assert seen[percent] == pytest.approx(truth[percent], rel=0.005), percent
    for rtt in ("rtt_mean_s", "rtt_p50_s", "rtt_p95_s", "segment_rtt_mean_s"):
        assert seen[rtt] == pytest.approx(truth[rtt], rel=0.01), rtt
    # Where only what was sent again is acknowledged, a sender knows the time to a millisecond.
    assert seen["rtt_min_s"] == pytest.approx(truth["rtt_min_s"], abs=1e-3)


@pytest.mark.parametrize("flow", FLOWS)
def test_a_capture_at_the_receiver_gives_what_came(record, flow):
    results = jostle.analyze(record.captures[f"{flow}.receiver"])
    one, seen = of_flow(results, flow)
    truth = of_run(record, flow)
    assert seen["throughput_bps"] == pytest.approx(truth["throughput_bps"], rel=1e-9)
    assert seen["goodput_bps"] == pytest.approx(truth["goodput_bps"], rel=1e-9)
    assert seen["cwnd_mean_bytes"] is None
    assert seen["rtt_min_s"] == pytest.approx(truth["rtt_min_s"], rel=0.05)
    assert one["reordered_packets"] == 0


def test_all_captures_of_a_run_are_one_measurement(record):
    results = jostle.analyze(next(iter(record.captures.values())).parent)
    assert len(results.results) == 1
    assert results.flow_names(0) == list(FLOWS)
    for flow in FLOWS:
        one, seen = of_flow(results, flow)
        truth = of_run(record, flow)
        for exact in ("sent_packets", "retransmitted_packets"):
            assert seen[exact] == truth[exact], exact
        assert seen["goodput_bps"] == pytest.approx(truth["goodput_bps"], rel=1e-9)
        assert seen["one_way_delay_mean_s"] == pytest.approx(
            truth["one_way_delay_mean_s"], rel=0.01
        )
        lost = 1 - truth["throughput_bps"] / truth["sending_rate_bps"]
        # The run counts packets that were on their way at its end as not received.
        assert lost - 0.002 < one["path_loss"] <= lost + 1e-6
        assert lost > 0.01
        assert one["controller"] == {"long": "cubic"}.get(flow, flow)
        assert one["handshake_s"] >= 0.03
        assert one["initial_window_packets"] == 10
    assert of_flow(results, "long")[0]["marked_share"] > 0
    assert of_flow(results, "bbr")[0]["marked_share"] is None


def both_directions() -> RunRecord:
    """Two flows of data in one direction, and another one in the opposite direction."""
    link = {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "30 kB"}}
    directions = {"down": "down", "up": "up", "other": "down"}
    flows = [
        {"name": name, "controller": "cubic", "rtt": "40 ms", "direction": direction}
        for name, direction in directions.items()
    ]
    document = {
        "duration": "5 s", "capture": True, "downlink": link,
        "uplink": {**link, "rate": "1 Mbit/s"}, "flows": flows,
    }  # fmt: skip
    return SimBackend().run(jostle.Scenario.from_dict(document).plan().runs[0].spec)


def test_a_flow_in_the_opposite_direction_has_no_part_in_shares():
    truth = both_directions()
    results = jostle.analyze(next(iter(truth.captures.values())).parent)
    shares = {name: of_flow(results, name)[1]["share"] for name in ("down", "up", "other")}
    assert shares["up"] == 1
    for name, share in shares.items():
        assert share == pytest.approx(of_run(truth, name)["share"], abs=0.001)
    assert of_flow(results, "up")[1]["lead_bps"] > 0


Transfer = tuple[str, str, int]
"""Addresses of sender and receiver, and number of packets of data."""


def write_transfers(path: Path, *transfers: Transfer) -> Path:
    """Write a capture of complete TCP connections, one packet of each in turn."""
    fin, syn, push, ack = 1, 2, 8, 16
    packets = []
    for port, (sender, receiver, count) in enumerate(transfers, 40_000):
        there = (socket.inet_aton(sender) + socket.inet_aton(receiver), (port, 5201))
        back = (socket.inet_aton(receiver) + socket.inet_aton(sender), (5201, port))
        last, start_s = 1 + 1000 * count, (port - 40_000) / 1000
        packets += [(start_s, there, 0, 0, syn, 0), (start_s + 0.02, back, 0, 1, syn | ack, 0)]
        for at in range(count):
            data = 1 + 1000 * at
            packets.append((start_s + 0.021 + at / 100, there, data, 1, push | ack, 1000))
            packets.append((start_s + 0.041 + at / 100, back, 1, data + 1000, ack, 0))
        packets.append((10.0, there, last, 1, fin | ack, 0))
        packets.append((10.02, back, 1, last + 1, fin | ack, 0))
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101)
    for time_s, (addresses, ports), sequence, acknowledgment, flags, size in sorted(packets):
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + size, 0, 0, 64, 6, 0) + addresses
        tcp = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledgment, 80, flags, 9999, 0, 0)
        time = (int(time_s), round(time_s % 1 * 1e6))
        content += struct.pack("<IIII", *time, 40, 40 + size) + ip + tcp
    path.write_bytes(content)
    return path


def shares(results: jostle.ResultSet) -> list[float]:
    return [of_flow(results, name)[1]["share"] for name in results.flow_names(0)]


def test_a_capture_of_one_host_shows_directions(tmp_path):
    transfers = ("10.0.0.1", "10.0.0.2", 50), ("10.0.0.3", "10.0.0.1", 50)
    results = jostle.analyze(write_transfers(tmp_path / "host.pcap", *transfers))
    assert shares(results) == [1, 1]
    assert results.said == ()
    transfers = ("10.0.0.1", "10.0.0.2", 50), ("10.0.0.1", "10.0.0.3", 50)
    results = jostle.analyze(write_transfers(tmp_path / "host.pcap", *transfers))
    assert shares(results) == [0.5, 0.5]


def test_captures_that_do_not_show_directions_say_so(tmp_path):
    transfers = ("10.0.0.1", "10.0.0.2", 50), ("10.0.0.3", "10.0.0.4", 50)
    results = jostle.analyze(write_transfers(tmp_path / "router.pcap", *transfers))
    assert shares(results) == [0.5, 0.5]
    (note,) = results.said
    assert note.startswith("shares are of all flows")


def test_captures_of_a_run_are_known_by_their_comments(record, tmp_path):
    for folder, end in (("a", "sender"), ("b", "receiver")):
        (tmp_path / folder).mkdir()
        shutil.copy(record.captures[f"bbr.{end}"], tmp_path / folder)
    results = jostle.analyze([tmp_path / "a", tmp_path / "b"])
    assert len(results.results) == 1
    assert of_flow(results, "bbr")[0]["path_loss"] > 0.01
    other = SimBackend().run(
        load_text(SCENARIO).set({"flows.bbr.rtt": "40 ms"}).plan().runs[0].spec
    )
    shutil.copy(other.captures["long.sender"], tmp_path / "a")
    assert len(jostle.analyze([tmp_path / "a", tmp_path / "b"]).results) == 2


def test_a_copy_of_a_capture_is_no_other_flow(record, tmp_path):
    shutil.copy(record.captures["bbr.sender"], tmp_path / "bbr.sender.pcapng")
    shutil.copy(record.captures["bbr.sender"], tmp_path / "copy.pcapng")
    results = jostle.analyze(tmp_path)
    assert [
        one.run.summary["flows"][0]["phases"]["overall"]["share"] for one in results.results
    ] == [1, 1]
    (note,) = results.said
    assert "the same connections, at the same end" in note


def test_a_measurement_without_a_flow_is_no_proof_that_it_was_absent(record, tmp_path):
    every = next(iter(record.captures.values())).parent
    shutil.copy(record.captures["bbr.sender"], tmp_path / "copy.pcapng")
    results = jostle.analyze([every, tmp_path / "copy.pcapng"])
    assert [len(results.flow_names(at)) for at in range(2)] == [2, 1]
    assert "harm" not in json.dumps(results.to_dict())


def test_the_answer_is_about_the_flow_with_the_most_data(tmp_path, capsys):
    # The first one is a control connection, such as that of iperf3.
    transfers = ("10.0.0.2", "10.0.0.1", 2), ("10.0.0.1", "10.0.0.2", 50)
    file = write_transfers(tmp_path / "iperf3.pcap", *transfers)
    assert status(["analyze", str(file)]) == 0
    assert capsys.readouterr().out.startswith("10.0.0.1:40001 > 10.0.0.2:5201")


def test_the_series_is_that_of_the_run(record):
    results = jostle.analyze(record.captures["long.sender"], interval="1 s")
    seen = results.series("long", "sending_rate")
    truth = record.flows.filter(record.flows["flow"] == "long")["sending_rate_bps"]
    assert seen["seed_0"].to_list() == truth.to_list()
    assert results.series("long", "receive_window_bytes").height > 0
    in_flight = record.flows.filter(record.flows["flow"] == "long")["in_flight_bytes"]
    pairs = zip(results.series("long", "in_flight")["seed_0"], in_flight, strict=True)
    same = [abs(one - other) <= 2 * 1448 for one, other in pairs]
    assert sum(same) >= 0.9 * len(same)


def test_compressed_captures_and_stores(record, tmp_path):
    path = record.captures["long.sender"]
    packed = tmp_path / "long.pcapng.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain = jostle.analyze(path)
    results = jostle.analyze(packed, store=tmp_path / "store")
    assert results.results[0].run.summary == plain.results[0].run.summary
    again = jostle.analyze(packed, store=tmp_path / "store")
    assert again.results[0].run.run_id == results.results[0].run.run_id
    assert (tmp_path / "store" / again.results[0].run.run_id).is_dir()


def test_the_command_shows_what_a_run_shows(record, tmp_path, capsys):
    path = str(record.captures["long.sender"])
    page = tmp_path / "page.html"
    assert status(["analyze", path, "-o", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "long" in shown
    assert "retransmission" in shown
    assert "links" not in shown, "a capture has none"
    assert "long.sender.pcapng" in page.read_text()
    assert status(["analyze", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (run,) = document["conditions"][0]["runs"]
    assert run["flows"][0]["fast_retransmissions"] > 0


def pcap(*packets: bytes, magic: int = 0xA1B2C3D4, link: int = 1) -> bytes:
    header = struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    frames = (struct.pack("<IIII", 1, at, len(p), len(p)) + p for at, p in enumerate(packets))
    return header + b"".join(frames)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"hello, world", "neither pcap nor pcapng"),
        (pcap(), "no packets"),
        (pcap(b"\0" * 60), "no packet of TCP or UDP"),
        (pcap(b"\0" * 60, link=147), "link type 147"),
        (pcap()[:10], "within its header"),
        (b"\x1f\x8b" + b"\0" * 40, "long.pcap"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 40, "zstd"),
    ],
)
def test_what_is_no_capture_is_refused(content, words, tmp_path, capsys):
    path = tmp_path / "long.pcap"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)
    assert status(["analyze", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        jostle.analyze(tmp_path / "none.pcap")
    with pytest.raises(InputError, match="no capture"):
        jostle.analyze(tmp_path)


def test_a_file_that_was_cut_off_is_measured_up_to_there(record, tmp_path):
    whole = Path(record.captures["long.sender"]).read_bytes()
    path = tmp_path / "cut.pcapng"
    path.write_bytes(whole[: len(whole) // 2 + 1])
    results = jostle.analyze(path)
    assert results.notes == ("cut.pcapng ends in the middle of a packet",)
    assert results.flow_names(0) == ["long"]


OWN = b"time 0 is the start of the run"


QUIET = """
duration = "3 s"
capture = true
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name = "tcp"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "quic"
controller = "cubic"
rtt = "40 ms"
transport = "quic"
size = "1 MB"
"""


def test_both_ends_without_losses_give_what_the_run_measured() -> None:
    run = SimBackend().run(load_text(QUIET).plan().runs[0].spec)
    results = jostle.analyze(next(iter(run.captures.values())).parent)
    # Datagrams count once although both ends have captured them.
    _, seen = of_flow(results, "quic")
    truth = of_run(run, "quic")
    for near in ("throughput_bps", "sending_rate_bps", "sent_packets"):
        assert seen[near] == pytest.approx(truth[near], rel=0.02), near
    # No packet was dropped; those in the queue at the end are not lost.
    one, seen = of_flow(results, "tcp")
    assert of_run(run, "tcp")["throughput_bps"] < of_run(run, "tcp")["sending_rate_bps"]
    assert one["path_loss"] == 0


def foreign(path: Path, into: Path) -> Path:
    """Copy a capture as one that is not of ours: its clock and its ends are not known."""
    whole = path.read_bytes()
    assert whole.count(OWN) == 1
    into.write_bytes(whole.replace(OWN, OWN[::-1]))
    return into


def test_both_ends_of_a_foreign_capture_find_each_other(record, tmp_path):
    ends = [
        foreign(Path(record.captures[f"bbr.{end}"]), tmp_path / f"{end}.pcapng")
        for end in ("receiver", "sender")
    ]
    results = jostle.analyze(ends)
    (name,) = results.flow_names(0)
    assert name == "10.1.0.2:40000 > 10.2.0.2:5201"
    one, seen = of_flow(results, name)
    truth = of_run(record, "bbr")
    assert one["controller"] == "unknown"
    assert one["start_s"] == 0
    assert seen["retransmitted_packets"] == truth["retransmitted_packets"]
    assert seen["rtt_mean_s"] == pytest.approx(truth["rtt_mean_s"], rel=0.01)
    assert seen["one_way_delay_mean_s"] == pytest.approx(truth["one_way_delay_mean_s"], rel=0.01)
    assert one["path_loss"] > 0.01
    # What is not of one connection is measured by itself.
    other = foreign(Path(record.captures["long.sender"]), tmp_path / "other.pcapng")
    apart = jostle.analyze([*ends, other])
    assert [c["capture"] for c in apart.conditions] == [
        "receiver.pcapng + sender.pcapng",
        "other.pcapng",
    ]


@pytest.mark.parametrize("flow", FLOWS)
def test_wireshark_agrees(record, flow):
    path = record.captures[f"{flow}.sender"]
    one, seen = of_flow(jostle.analyze(path), flow)
    assert len(pcapng.tshark(path, "-Y", pcapng.RETRANSMITTED)) == seen["retransmitted_packets"]
    sent = pcapng.tshark(path, "-Y", "tcp.srcport == 40000 && tcp.len > 0")
    assert len(sent) == seen["sent_packets"]
    # The receiver's, but for the one that ends the handshake.
    wanted = "tcp.analysis.ack_rtt && tcp.flags.syn == 0 && tcp.len == 0 && tcp.srcport == 5201"
    fields = ("-T", "fields", "-e", "tcp.analysis.ack_rtt")
    rtts = [float(line) for line in pcapng.tshark(path, "-Y", wanted, *fields)]
    assert seen["segment_rtt_mean_s"] == pytest.approx(sum(rtts) / len(rtts), rel=1e-6)
    assert seen["segment_rtt_max_s"] == pytest.approx(max(rtts), rel=1e-6)
    initial = ("-T", "fields", "-e", "tcp.analysis.initial_rtt")
    if flow == "long":
        return  # Of connections that ask for ECN Wireshark knows no initial RTT.
    (handshake_s,) = set(pcapng.tshark(path, "-Y", "tcp.analysis.initial_rtt", *initial))
    assert one["handshake_s"] == pytest.approx(float(handshake_s), abs=1e-9)


def iperf3(seconds: int = 10) -> dict:
    """What iperf3 3.x writes with --json for a single stream, as far as it is read."""
    intervals = [
        {
            "streams": [
                {
                    "socket": 5,
                    "start": at,
                    "end": at + 1,
                    "seconds": 1,
                    "bytes": 1_448_000 * (1 + at % 2),
                    "bits_per_second": 8.0 * 1_448_000 * (1 + at % 2),
                    "retransmits": 3 if at == 4 else 0,
                    "snd_cwnd": 144_800,
                    "rtt": 20_000 + 1_000 * at,
                    "omitted": False,
                }
            ]
        }
        for at in range(seconds)
    ]
    return {
        "start": {
            "connected": [{"socket": 5, "local_host": "192.0.2.1", "remote_host": "192.0.2.2"}],
            "test_start": {"protocol": "TCP", "num_streams": 1},
            "tcp_mss_default": 1448,
        },
        "intervals": intervals,
        "end": {"sender_tcp_congestion": "cubic"},
    }


def test_what_iperf3_wrote_is_measured(tmp_path):
    path = tmp_path / "test.json"
    path.write_text(json.dumps(iperf3()))
    results = jostle.analyze(path)
    one, seen = of_flow(results, "iperf3")
    assert one["controller"] == "cubic"
    assert seen["goodput_bps"] == pytest.approx(8 * 1_448_000 * 1.5)
    assert seen["retransmitted_packets"] == 3
    assert seen["sent_packets"] == 15_003
    assert seen["rtt_mean_s"] == pytest.approx(0.0245)
    assert seen["cwnd_mean_bytes"] == pytest.approx(144_800)
    rates = results.series("iperf3", "goodput")["seed_0"].to_list()
    assert rates == pytest.approx([8 * 1_448_000 * (1 + at % 2) for at in range(10)])


PING = """PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.
64 bytes from 192.0.2.2: icmp_seq=1 ttl=57 time=10.0 ms
64 bytes from 192.0.2.2: icmp_seq=2 ttl=57 time=30.0 ms
64 bytes from 192.0.2.2: icmp_seq=2 ttl=57 time=31.0 ms (DUP!)
64 bytes from 192.0.2.2: icmp_seq=4 ttl=57 time=20 ms

--- 192.0.2.2 ping statistics ---
5 packets transmitted, 3 received, +1 duplicates, 40% packet loss, time 4005ms
"""


@pytest.mark.parametrize(
    ("said", "host"),
    [
        ("192.0.2.2: icmp_seq=1 ttl=57", "192.0.2.2"),
        ("2001:db8::2: icmp_seq=1 ttl=57", "2001:db8::2"),
        ("2001:db8::2, icmp_seq=1 hlim=57", "2001:db8::2"),
        ("host.example (2001:db8::2): icmp_seq=1 ttl=57", "host.example"),
        ("::1: seq=1 ttl=57", "::1"),
    ],
)
def test_pings_are_named_after_whom_they_went_to(said, host, tmp_path):
    path = tmp_path / "ping.txt"
    path.write_text("".join(f"64 bytes from {said} time={ms} ms\n" for ms in (10, 20)))
    (flow,) = jostle.analyze(path).results[0].run.summary["flows"]
    assert flow["name"] == f"ping {host}"


def test_the_lines_of_ping_are_measured(tmp_path):
    path = tmp_path / "ping.txt"
    path.write_text(PING)
    one, seen = of_flow(jostle.analyze(path), "ping 192.0.2.2")
    assert seen["rtt_mean_s"] == pytest.approx(0.020)
    assert seen["rtt_min_s"] == pytest.approx(0.010)
    assert seen["sent_packets"] == 5
    assert one["pings"]["sent"] == 5
    assert one["pings"]["lost"] == 2
    # What came back, of the payload of 56 bytes that went there.
    seconds = jostle.analyze(path).results[0].run.spec["duration_ns"] / 1e9
    assert seen["goodput_bps"] == pytest.approx(3 * 8 * 56 / seconds)
    # Beside a capture, each is a condition.
    other = tmp_path / "test.json"
    other.write_text(json.dumps(iperf3()))
    both = jostle.analyze([path, other])
    assert [c["capture"] for c in both.conditions] == ["ping.txt", "test.json"]


def irtt(lost: int = 3) -> dict:
    """What `irtt client -o` writes of ten packets, as far as it is read."""
    trips = [
        {
            "seqno": at,
            "lost": "true_down" if at == lost else "false",
            "timestamps": {"client": {"send": {"wall": 1_700_000_000 * 10**9 + at * 20_000_000}}},
            "delay": {} if at == lost else {"rtt": 30_000_000 + at * 1_000_000},
        }
        for at in range(10)
    ]
    params = {"interval": 20_000_000, "length": 172}
    return {"config": {"host": "192.0.2.9", "params": params}, "round_trips": trips}


@pytest.mark.parametrize("packed", [False, True])
def test_round_trips_of_irtt_are_measured(packed, tmp_path):
    path = tmp_path / ("irtt.json.gz" if packed else "irtt.json")
    content = json.dumps(irtt()).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    one, seen = of_flow(jostle.analyze(path), "irtt 192.0.2.9")
    assert one["pings"]["sent"] == 10
    assert one["pings"]["lost"] == 1
    assert seen["rtt_min_s"] == pytest.approx(0.030)
    assert seen["rtt_mean_s"] == pytest.approx((sum(range(30, 40)) - 33) / 9 / 1e3)


def changed(document: dict, **trip: object) -> str:
    """Tell a document of irtt's whose last round trip is another."""
    document["round_trips"][-1] |= trip
    return json.dumps(document)


def claiming(**numbers: float) -> str:
    """Tell a document of iperf3's whose last interval claims these numbers."""
    document = iperf3()
    document["intervals"][-1]["streams"][0] |= numbers
    return json.dumps(document)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", "{", "no JSON"),
        ("a.json", claiming(bytes=1e300), r"sent_bytes of 1\.\d+e\+300: 0 to 9.01e\+15 are"),
        ("a.json", claiming(bytes=1e16), r"sent_bytes of 1\.\d+e\+16: 0 to"),
        ("a.json", claiming(bytes=-1e12), r"sent_bytes of -1\.\d+e\+12: 0 to"),
        ("a.json", claiming(snd_cwnd=1e300), "cwnd_bytes of 1e"),
        ("a.json", claiming(rtt=1e300), "rtt_s of 1e"),
        ("a.json", json.dumps({**irtt(), "round_trips": []}), "no round trips"),
        ("a.json", changed(irtt(), seqno=0), "repeat"),
        ("a.json", changed(irtt(), seqno="x"), "irtt client -o"),
        ("a.json", changed(irtt(), delay={"rtt": -1}), "of -1 ns"),
        ("a.json", changed(irtt(), delay={"rtt": 1e400}), "irtt client -o"),
        ("a.json", changed(irtt(), timestamps={"client": {"send": {"wall": 0}}}), "left before"),
        ("a.json", changed(irtt(), timestamps={"client": {"send": {"wall": 10**19}}}), "apart"),
        ("a.json", '{"round_trips": 7}', "irtt client -o"),
        (
            "a.txt",
            PING.replace("icmp_seq=4", "icmp_seq=99999999"),
            "at most 1000000",
        ),
        ("a.json", "{}", "iperf3"),
        ("a.json", json.dumps({**iperf3(), "intervals": []}), "no intervals"),
        ("a.json", json.dumps(iperf3()).replace('"socket": 5', '"socket": 6', 1), "`6` is missing"),
        ("a.txt", PING.replace("64 bytes", "99999999999 bytes"), "not what can be measured"),
        ("a.json", json.dumps({**iperf3(), "intervals": iperf3()["intervals"][::-1]}), "decrease"),
        ("a.log", "nothing", "neither JSON of iperf3, irtt or flent nor the lines"),
    ],
)
def test_logs_that_are_none_are_refused(name, content, words, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (gzip.compress(b"x" * 40_000_000), "larger than 32 MB"),
        (gzip.compress(json.dumps(irtt()).encode())[:-20], "ends in the middle"),
        (b"\x1f\x8bnothing", "a.json.gz"),
    ],
    ids=["bomb", "cut", "broken"],
)
def test_damaged_logs_are_refused(packed, words, tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(packed)
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)


SS = """{at}
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      0          192.0.2.1:40962    192.0.2.2:5201
\t ts sack cubic wscale:7,7 rto:240 rtt:{rtt}/3 mss:1448 pmtu:1500 advmss:1448 cwnd:{cwnd} \
ssthresh:20 bytes_sent:{sent} bytes_retrans:1448 bytes_acked:{acked} segs_out:99 segs_in:9 \
data_segs_out:{packets} send 11.6Mbps pacing_rate 23.2Mbps delivery_rate 9Mbps unacked:10 \
retrans:1/{again} lost:3 sacked:2 minrtt:38
ESTAB 0      0          192.0.2.1:22       192.0.2.3:50000
\t cubic wscale:7,7 rto:204 rtt:1/1 mss:1448 cwnd:10 segs_in:4
---
"""


def ss(times: int = 6) -> str:
    """What `ss -tin` prints each half second, with `date +%s.%N` before it."""
    return "".join(
        SS.format(
            at=f"{1_700_000_000 + at / 2:.9f}",
            rtt=40 + at,
            cwnd=20,
            sent=1_448 * (1_000 + 100 * at),
            acked=1_448 * (900 + 100 * at) + 1,
            packets=1_000 + 100 * at,
            again=7 + at,
        )
        for at in range(times)
    )


@pytest.mark.parametrize("time_is_after", [False, True])
def test_what_ss_printed_is_measured(time_is_after, tmp_path):
    path = tmp_path / "ss.log"
    text = ss()
    if time_is_after:
        # As flent's script has it.
        blocks = [block.split("\n", 1) for block in text.split("---\n") if block]
        text = "".join(f"{rest}Time: {at}\n---\n" for at, rest in blocks)
    path.write_text(text)
    results = jostle.analyze(path)
    assert results.flow_names(0) == ["192.0.2.1:40962 > 192.0.2.2:5201"]
    one, seen = of_flow(results, "192.0.2.1:40962 > 192.0.2.2:5201")
    assert one["controller"] == "cubic"
    # What was sent before the first look counts for nothing.
    assert seen["sent_packets"] == 500
    assert seen["retransmitted_packets"] == 5
    assert seen["goodput_bps"] == pytest.approx(8 * 1_448 * 500 / 2.5)
    assert seen["rtt_mean_s"] == pytest.approx(0.0425, abs=0.001)
    assert seen["cwnd_mean_bytes"] == pytest.approx(20 * 1_448)
    flight = results.series("192.0.2.1:40962 > 192.0.2.2:5201", "in_flight")["seed_0"]
    assert flight.to_list() == [6 * 1_448] * 5


@pytest.mark.parametrize("cut", ["bytes_acked:202", "data_segs_out:1500"])
def test_a_log_of_ss_is_measured_up_to_where_it_was_cut_off(cut, tmp_path):
    path = tmp_path / "ss.log"
    text = ss()
    path.write_text(text[: text.rindex(cut) + len(cut)])
    results = jostle.analyze(path)
    assert results.said == ("ss.log: it ends in the middle of a line (measured up to there)",)
    (name,) = results.flow_names(0)
    assert of_flow(results, name)[1]["sent_packets"] == 400


@pytest.mark.parametrize("end", ["minrtt:38", "minrtt:39", "Time: 1700000002.500000000", "---"])
def test_a_log_of_ss_without_a_last_newline_is_complete(end, tmp_path):
    text = ss()
    if end.startswith("Time"):
        blocks = [block.split("\n", 1) for block in text.split("---\n") if block]
        text = "".join(f"{rest}Time: {at}\n---\n" for at, rest in blocks)
    if end.startswith("minrtt"):
        text = text[: text.rindex(" minrtt:38")] + " " + end
    else:
        text = text[: text.rindex(end) + len(end)]
    path = tmp_path / "ss.log"
    path.write_text(text)
    results = jostle.analyze(path)
    assert results.said == ()
    _, seen = of_flow(results, "192.0.2.1:40962 > 192.0.2.2:5201")
    assert seen["sent_packets"] == 500


@pytest.mark.parametrize(
    "end", ["1700000002.5", "\n\t cubic wscale:7,7 rto:204 rtt:1/1 mss:1448 cw"]
)
def test_a_cut_time_or_record_of_ss_is_left_out(end, tmp_path):
    path = tmp_path / "ss.log"
    path.write_text(ss(5) + end)
    results = jostle.analyze(path)
    assert results.said == ("ss.log: it ends in the middle of a line (measured up to there)",)
    assert of_flow(results, results.flow_names(0)[0])[1]["sent_packets"] == 400


def test_logs_of_one_host_show_directions(tmp_path):
    path = tmp_path / "ss.log"
    received = "ESTAB 0 0 192.0.2.1:22 192.0.2.3:50000\n\t cubic rtt:1/1 mss:1448 cwnd:10"
    blocks = ss().split("ESTAB 0      0          192.0.2.1:22       192.0.2.3:50000\n")
    for at in range(1, len(blocks)):
        blocks[at] = f"{received} rcvmss:1448 bytes_received:{10**6 * at}\n" + blocks[at]
    path.write_text("".join(blocks))
    assert shares(jostle.analyze(path)) == [1, 1]
    document = iperf3()
    document["start"]["connected"].append({"socket": 6})
    for interval in document["intervals"]:
        interval["streams"].append({**interval["streams"][0], "socket": 6, "sender": False})
    path = tmp_path / "bidir.json"
    path.write_text(json.dumps(document))
    assert shares(jostle.analyze(path)) == [1, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ss(1), "fewer than two times"),
        (ss(2) + ss(2), "decrease"),
        (ss().replace("bytes_sent", "x").replace("bytes_acked", "x"), "sends or receives"),
        (ss().replace("mss:1448", "mss:99999999"), "a segment of 99999999 bytes"),
        ("1700000000\n1700000001\n cwnd:1\n", "sends or receives"),
        ("cwnd:1", "fewer than two times"),
        (ss() + "0 0 a:1 b:2\n" + " cwnd:1\n" * 2_000, "more than 10000 characters"),
    ],
)
def test_logs_that_ss_did_not_print_are_refused(text, words, tmp_path):
    path = tmp_path / "ss.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)
