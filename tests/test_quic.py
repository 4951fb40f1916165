"""Flows over QUIC: their captures and qlogs, and where they are named."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from itertools import pairwise
from typing import Any

import jostle
import pcapng
import pytest
from jostle.backends import RunRecord, SimBackend
from jostle.backends.kernel import qlog_reader
from jostle.cli import status
from jostle.errors import InputError
from jostle.scenario import ScenarioError, load_text

SCENARIO = """
title = "Over QUIC"
duration = "4 s"
sampling_interval = "400 ms"
seed = 5
capture = { qlog = true }
[[links]]
name = "there"
rate = "10 Mbit/s"
queue = { kind = "codel", ecn = true }
loss = "0.5 %"
[[links]]
name = "back"
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "20 kB" }
[[flows]]
name = "plain"
controller = "cubic"
rtt = "60 ms"
path = ["there"]
reverse_path = ["back"]
ecn = true
transport = "quic"
[[flows]]
name = "tcp"
controller = "reno"
rtt = "60 ms"
path = ["there"]
"""
TLS = SCENARIO.replace('transport = "quic"', 'transport = { kind = "quic", crypto = "tls" }')
CHECKS = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
WRONG = "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0"


def run(text: str) -> RunRecord:
    return SimBackend().run(load_text(text).plan().runs[0].spec)


@pytest.fixture(scope="module")
def plain() -> RunRecord:
    return run(SCENARIO)


@pytest.fixture(scope="module")
def protected() -> RunRecord:
    return run(TLS)


def overall(record: RunRecord) -> dict[str, Any]:
    measures: dict[str, Any] = record.summary["flows"][0]["phases"]["overall"]
    return measures


def test_there_is_a_file_of_packets_and_one_of_events_for_each_end(plain):
    hosts = ["plain.receiver", "plain.sender", "tcp.receiver", "tcp.sender"]
    assert list(plain.captures) == [*hosts, "plain.receiver.sqlog", "plain.sender.sqlog"]
    assert (
        "flow: plain\ncontroller: cubic\n"
        in pcapng.read_datagrams(plain.captures["plain.sender"]).comment
    )


@pytest.mark.parametrize("fixture", ["plain", "protected"])
def test_datagrams_are_those_that_were_counted(fixture, request):
    record = request.getfixturevalue(fixture)
    sender, receiver = (
        pcapng.read_datagrams(record.captures[f"plain.{end}"]) for end in ("sender", "receiver")
    )
    measures = overall(record)
    assert len(sender.of(1)) == measures["sent_packets"]
    assert sum(p.size for p in sender.of(1)) * 8 / 4 == pytest.approx(measures["sending_rate_bps"])
    assert sum(p.size for p in receiver.of(1)) * 8 / 4 == pytest.approx(measures["throughput_bps"])
    assert {p.ports for p in sender.of(1)} == {(40_000, 4433)}
    assert {p.ports for p in sender.of(2)} == {(4433, 40_000)}
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(sender.packets))
    # ECT(0) there, marked on the way by CoDel.
    assert {p.ecn for p in sender.of(1)} == {2}
    assert {p.ecn for p in receiver.of(1)} == {2, 3}
    sent = {p.payload for p in sender.of(1)}
    assert all(p.payload in sent for p in receiver.of(1))


def test_in_the_clear_the_beginning_is_kept_and_of_what_is_protected_all(plain, protected):
    beginning = pcapng.read_datagrams(plain.captures["plain.sender"])
    assert beginning.snap_bytes == 128
    assert max(len(p.payload) for p in beginning.packets) == 128 - 42
    assert beginning.secrets == []
    whole = pcapng.read_datagrams(protected.captures["plain.sender"])
    assert whole.snap_bytes == 65_549
    assert all(len(p.payload) == p.size - 42 for p in whole.packets)
    labels = sorted(line.split()[0] for line in whole.secrets)
    assert labels == [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0", "EXPORTER_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0",
    ]  # fmt: skip


def test_protection_changes_no_number(plain, protected):
    assert protected.summary == plain.summary
    assert protected.flows.equals(plain.flows)


def test_the_same_run_has_the_same_files(protected):
    again = run(TLS)
    for host, path in protected.captures.items():
        assert path.read_bytes() == again.captures[host].read_bytes(), host


def test_a_capture_changes_nothing(plain):
    without = run(SCENARIO.replace("capture = { qlog = true }", ""))
    assert without.captures == {}
    assert without.summary == plain.summary


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_wireshark_dissects_what_is_in_the_clear_up_to_its_protection(plain, end):
    path = plain.captures[f"plain.{end}"]
    assert pcapng.tshark(path, *CHECKS, "-Y", WRONG) == []
    seen = pcapng.tshark(path, "-Y", "quic")
    assert len(seen) == len(pcapng.read_datagrams(path).packets)
    assert len(pcapng.tshark(path, "-Y", "quic.long.packet_type == 0")) >= 2


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_wireshark_decrypts_every_packet_with_the_secrets_in_the_file(protected, end):
    path = protected.captures[f"plain.{end}"]
    assert pcapng.tshark(path, *CHECKS, "-Y", WRONG) == []
    assert pcapng.tshark(path, "-Y", "quic.decryption_failed") == []
    frames = pcapng.tshark(path, "-Y", "quic.frame", "-T", "fields", "-e", "quic.frame_type")
    assert len(frames) == len(pcapng.read_datagrams(path).packets)
    kinds = {int(kind) for line in frames for kind in re.split("[,]", line)}
    # CRYPTO, ACK that counts marks, streams, and HANDSHAKE_DONE.
    assert {0x06, 0x03, 0x1E} <= kinds
    assert kinds & set(range(0x08, 0x10))


def records(record: RunRecord, end: str) -> list[dict[str, Any]]:
    text = record.captures[f"plain.{end}.sqlog"].read_text()
    parts = text.split("\x1e")
    # RFC 7464: each begins with the separator and ends with a line.
    assert parts[0] == ""
    assert all(part.endswith("\n") for part in parts[1:])
    return [json.loads(part) for part in parts[1:]]


@pytest.mark.parametrize(("end", "kind"), [("sender", "client"), ("receiver", "server")])
def test_a_qlog_has_what_its_draft_requires(plain, end, kind):
    """draft-ietf-quic-qlog-main-schema-03, -quic-events-03; what qvis asks for."""
    header, *events = records(plain, end)
    assert header["qlog_version"] == "0.3"
    assert header["qlog_format"] == "JSON-SEQ"
    assert header["title"] == "Over QUIC: plain, cubic, seed 5"
    trace = header["trace"]
    assert trace["vantage_point"]["type"] == kind
    common = {"protocol_type": ["QUIC"], "time_format": "relative", "reference_time": 0}
    assert trace["common_fields"] == common
    assert all(a["time"] <= b["time"] for a, b in pairwise(events))
    for event in events:
        assert set(event) == {"time", "name", "data"}
        check(event["name"], event["data"])
    named = {event["name"] for event in events}
    expected = {"transport:packet_sent", "transport:packet_received", "transport:parameters_set"}
    of_senders = {
        "recovery:metrics_updated", "recovery:packet_lost", "recovery:congestion_state_updated",
        "recovery:parameters_set", "connectivity:mtu_updated",
    }  # fmt: skip
    assert named == expected | (of_senders if kind == "client" else set())


TYPES = {"initial", "handshake", "0RTT", "1RTT"}
METRICS = {
    "min_rtt", "smoothed_rtt", "latest_rtt", "congestion_window", "bytes_in_flight", "ssthresh",
    "pacing_rate",
}  # fmt: skip
FRAMES = {
    "padding": {"payload_length"},
    "ping": set(),
    "ack": {"ack_delay", "acked_ranges"},
    "crypto": {"offset", "length"},
    "stream": {"stream_id", "offset", "length"},
    "new_connection_id": {"sequence_number", "retire_prior_to", "connection_id"},
    "retire_connection_id": {"sequence_number"},
    "handshake_done": set(),
    "max_data": {"maximum"},
    "max_stream_data": {"stream_id", "maximum"},
    "max_streams": {"stream_type", "maximum"},
    "ack_frequency": {"sequence_number"},
    "immediate_ack": set(),
}


def check(name: str, data: dict[str, Any]) -> None:
    """Hold an event to its definition."""
    match name:
        case "transport:packet_sent" | "transport:packet_received":
            assert data["header"]["packet_type"] in TYPES
            assert isinstance(data["header"]["packet_number"], int)
            assert data["raw"]["length"] > data["raw"]["payload_length"] > 0
            for frame in data["frames"]:
                assert FRAMES[frame["frame_type"]] <= set(frame), frame
        case "recovery:packet_lost":
            assert set(data["header"]) == {"packet_type", "packet_number"}
        case "recovery:metrics_updated":
            assert data
            assert set(data) <= METRICS
        case "recovery:congestion_state_updated" | "connectivity:mtu_updated":
            assert "new" in data
        case "transport:parameters_set":
            assert data["owner"] == "local"
        case _:
            assert name == "recovery:parameters_set"
            assert data["reordering_threshold"] == 3


def test_events_are_those_that_were_counted(plain):
    _, *events = records(plain, "sender")
    measures = overall(plain)
    sent = [e["data"] for e in events if e["name"] == "transport:packet_sent"]
    # Handshake packets travel with others in one datagram.
    data = [packet for packet in sent if packet["header"]["packet_type"] == "1RTT"]
    assert measures["sent_packets"] - 5 <= len(data) <= measures["sent_packets"]
    numbers = [packet["header"]["packet_number"] for packet in data]
    assert numbers == sorted(set(numbers))
    lost = {
        e["data"]["header"]["packet_number"] for e in events if e["name"] == "recovery:packet_lost"
    }
    assert lost <= set(numbers)
    assert len(lost) > 3
    # At the end of an interval the sender stands as was logged last.
    times, windows = zip(
        *(
            (e["time"] / 1e3, e["data"]["congestion_window"])
            for e in events
            if "congestion_window" in e["data"]
        ),
        strict=True,
    )
    series = plain.flows.filter(flow="plain").select("time_s", "cwnd_bytes").rows()
    assert len(series) == 10
    for end_s, cwnd_bytes in series:
        assert windows[bisect_right(times, end_s) - 1] == cwnd_bytes


def test_a_qlog_is_read_as_those_of_others_are(plain, tmp_path):
    """By what measures other implementations."""
    path = plain.captures["plain.sender.sqlog"]
    (tmp_path / "log.sqlog").write_bytes(path.read_bytes())
    log = qlog_reader.read(tmp_path)
    assert log is not None
    assert not log.since_1970
    assert 3.9 < log.time_s[-1] <= 4.0
    assert log.values["rtt_min_s"][-1] == pytest.approx(overall(plain)["rtt_min_s"], rel=0.01)
    assert {"slow_start", "recovery"} <= set(log.mode)


def test_the_command_says_where_they_are(tmp_path, capsys):
    scenario = tmp_path / "captured.toml"
    scenario.write_text(SCENARIO)
    assert status(["run", str(scenario), "--store", str(tmp_path / "store")]) == 0
    lines = capsys.readouterr().out.splitlines()
    # The transport stands beside the controller where one is not TCP.
    rows = [line.split()[:3] for line in lines]
    assert ["plain", "cubic", "QUIC"] in rows
    assert ["tcp", "reno", "TCP"] in rows
    told = [line for line in lines if "captures" in line]
    (folder,) = (tmp_path / "store").glob("*/captures")
    assert told == [f"captures: {folder} (6 files)"]


def test_a_qlog_is_for_quic():
    with pytest.raises(ScenarioError, match=r"capture\.qlog: no flow is one over QUIC"):
        load_text(SCENARIO.replace('transport = "quic"', ""))


@pytest.mark.parametrize(
    ("transport", "text"),
    [
        (
            '{ kind = "quic", implementation = "ngtcp2" }',
            'flows.plain.transport.implementation: "ngtcp2": programs need a kernel',
        ),
        (
            '{ kind = "quic", implementation = '
            '{ name = "mine", server = ["/a"], client = ["/b"] } }',
            'flows.plain.transport.implementation: "mine": programs need a kernel',
        ),
    ],
)
def test_the_simulator_names_what_of_quic_it_cannot(transport, text):
    """`SimBackend.check`: everything of QUIC but the programs of others."""
    document = SCENARIO.replace('"quic"', transport)
    spec = load_text(document, allow_code=True).plan().runs[0].spec
    with pytest.raises(InputError, match=re.escape(text)):
        SimBackend().check(spec)
    SimBackend().check(load_text(TLS).plan().runs[0].spec)


@pytest.mark.parametrize("controller", ["cubic", "noq:cubic"])
def test_a_slow_start_that_leaves_thousands_of_gaps_ends_no_connection(controller):
    # noq closes a connection with more than 1,024 pieces in a stream that it puts in order.
    document = {
        "duration": "3 s",
        "bottleneck": {"rate": "200 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [
            {"name": "dl", "controller": controller, "rtt": "80 ms", "transport": "quic"},
        ],
    }
    results = jostle.run(jostle.Scenario.from_dict(document), store=False)
    assert results.failures == ()
    (flow,) = results.results[0].run.summary["flows"]
    assert flow["phases"]["overall"]["goodput_bps"] > 120e6
    assert flow["phases"]["overall"]["retransmission_ratio"] > 0.001
