"""Captures of the simulator: what is in the files, and what becomes of them."""

from __future__ import annotations

import gc
import json
import tempfile
from itertools import pairwise
from pathlib import Path

import fake_core
import pcapng
import pytest
from jostle import _core
from jostle.backends import CaptureError, RunRecord, SimBackend
from jostle.cli import status
from jostle.scenario import ScenarioError, load_text
from jostle.store.store import Store

SCENARIO = """
title = "Two share a lossy link"
duration = "8 s"
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
name = "long (one)"
controller = "cubic"
rtt = "60 ms"
path = ["there"]
reverse_path = ["back"]
ecn = true
[[flows]]
name = "short"
controller = "bbr"
rtt = "30 ms"
path = ["there"]
start = "1 s"
source = { kind = "request_response", size = "70 kB", think_time = "50 ms" }
"""


def run(text: str = SCENARIO) -> RunRecord:
    return SimBackend().run(load_text(text).plan().runs[0].spec)


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return run()


def measures(record: RunRecord, flow: int):
    return record.summary["flows"][flow]["phases"]["overall"]


def test_there_is_a_file_for_each_end(record):
    hosts = ["long (one).receiver", "long (one).sender", "short.receiver", "short.sender"]
    assert list(record.captures) == hosts
    capture = pcapng.read(record.captures["short.sender"])
    assert capture.interface == "short.sender"
    assert capture.system == "jostle's simulator"
    for word in ("Two share a lossy link", "flow: short", "controller: bbr", "seed: 5"):
        assert word in capture.comment
    assert (capture.received, capture.dropped) == (len(capture.packets), 0)
    # Time 0 is that of the run.
    assert capture.packets[0].time_ns == 10**9
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(capture.packets))


@pytest.mark.parametrize(("name", "flow"), [("long (one)", 0), ("short", 1)])
def test_packets_are_those_that_were_counted(record, name, flow):
    sender = pcapng.read(record.captures[f"{name}.sender"])
    receiver = pcapng.read(record.captures[f"{name}.receiver"])
    sent = [packet for packet in sender.of(1) if packet.payload]
    assert len(sent) == measures(record, flow)["sent_packets"]
    assert sum(packet.size for packet in sent) * 8 / 8 == measures(record, flow)["sending_rate_bps"]
    assert sender.retransmitted == measures(record, flow)["retransmitted_packets"] > 0
    assert receiver.of(1) != sender.of(1)
    # Nothing is skipped: every byte up to the highest was sent.
    covered, end = set(), 1
    for packet in sorted(sent, key=lambda p: p.sequence):
        assert packet.sequence <= end
        end = max(end, packet.sequence + packet.payload)
        covered.add(packet.sequence)
    acknowledged = max(packet.acknowledgment for packet in sender.of(2))
    assert acknowledged in covered | {end}


def test_marks_losses_and_stamps_are_in_the_headers(record):
    sender = pcapng.read(record.captures["long (one).sender"])
    receiver = pcapng.read(record.captures["long (one).receiver"])
    syn, answer = sender.packets[0], sender.of(2)[0]
    assert syn.flags == pcapng.SYN | pcapng.ECE | pcapng.CWR
    assert answer.flags == pcapng.SYN | pcapng.ACK | pcapng.ECE
    # Congestion experienced there, echoed back, answered by a smaller window.
    assert any(p.ecn == 3 for p in receiver.of(1))
    assert not any(p.ecn == 3 for p in sender.of(1))
    assert any(p.flags & pcapng.ECE for p in sender.of(2)[1:])
    assert any(p.flags & pcapng.CWR for p in receiver.of(1)[1:])
    assert any(len(p.blocks) >= 2 for p in sender.of(2))
    for packet in sender.of(1):
        assert packet.stamps[0] == packet.time_ns // 10**6 + 1
    # The round trip as a sender finds it by RFC 7323.
    rtts = [p.time_ns / 1e6 - p.stamps[1] + 1 for p in sender.of(2) if not p.blocks]
    assert min(rtts) == pytest.approx(measures(record, 0)["rtt_min_s"] * 1e3, abs=1.1)


@pytest.mark.parametrize("name", ["long (one)", "short"])
def test_wireshark_agrees(record, name):
    for end in ("sender", "receiver"):
        path = record.captures[f"{name}.{end}"]
        checks = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE")
        bad = f"{pcapng.MALFORMED} || tcp.checksum.status == 0"
        assert pcapng.tshark(path, *checks, "-Y", bad) == []
    sender = record.captures[f"{name}.sender"]
    again = pcapng.tshark(sender, "-Y", pcapng.RETRANSMITTED)
    flow = ["long (one)", "short"].index(name)
    assert len(again) == measures(record, flow)["retransmitted_packets"]


@pytest.mark.parametrize("name", ["long (one)", "short"])
def test_the_rtts_of_acks_are_those_of_wireshark(name):
    """Recovery included: a segment that was sent again counts from its first transmission."""
    record = run('record = "acks"\n' + SCENARIO)
    fields = ("frame.time_epoch", "tcp.analysis.ack_rtt")
    words = [word for field in fields for word in ("-e", field)]
    # The receiver's, but for the one that ends the handshake.
    wanted = "tcp.analysis.ack_rtt && tcp.flags.syn == 0 && tcp.len == 0 && tcp.srcport == 5201"
    lines = pcapng.tshark(record.captures[f"{name}.sender"], "-Y", wanted, "-T", "fields", *words)
    seen = [tuple(float(value) for value in line.split()) for line in lines]
    acks = record.acks.filter(flow=name).drop_nulls("segment_rtt_s")
    ours = acks.select("time_s", "segment_rtt_s").rows()
    assert len(seen) > 1_000
    assert [time_s for time_s, _ in ours] == pytest.approx([time_s for time_s, _ in seen])
    assert [rtt_s for _, rtt_s in ours] == pytest.approx([rtt_s for _, rtt_s in seen], abs=1e-9)
    # Samples of the transport leave out what was sent again.
    found = measures(record, ["long (one)", "short"].index(name))
    rtts = acks["segment_rtt_s"]
    assert found["segment_rtt_mean_s"] == pytest.approx(rtts.mean())
    assert found["segment_rtt_max_s"] == rtts.max() > acks["rtt_s"].max()
    assert found["segment_rtt_p50_s"] == pytest.approx(rtts.median(), rel=0.016)
    power = found["throughput_bps"] / found["segment_rtt_mean_s"]
    assert found["segment_power_bits"] == pytest.approx(power)
    assert found["segment_rtt_p95_s"] == pytest.approx(rtts.quantile(0.95), rel=0.02)
    series = record.flows.filter(flow=name)
    assert series["segment_rtt_samples"].sum() == len(rtts)


def test_the_run_is_the_same_without(record):
    without = run(SCENARIO.replace("capture = true", ""))
    assert without.captures == {}
    assert without.summary == record.summary
    assert without.run_id != record.run_id


def test_the_same_run_has_the_same_files(record):
    again = run()
    for host, path in record.captures.items():
        assert path.read_bytes() == again.captures[host].read_bytes()


def test_files_last_as_long_as_the_record():
    made = run()
    folder = next(iter(made.captures.values())).parent
    assert folder.is_dir()
    del made
    gc.collect()
    assert not folder.exists()


def test_the_store_takes_them_over(tmp_path):
    made = run()
    temporary = next(iter(made.captures.values())).parent
    stored = Store(tmp_path).put(made)
    assert list(temporary.iterdir()) == []
    found = Store(tmp_path).get(made.run_id)
    assert found is not None
    for host, path in found.captures.items():
        assert path == stored.folder / "captures" / f"{host}.pcapng"
        assert pcapng.read(path).interface == host
    manifest = json.loads((stored.folder / "manifest.json").read_bytes())
    assert "captures/short.sender.pcapng" in manifest["sha256"]


def test_a_damaged_file_damages_the_run(tmp_path):
    spec = fake_core.spec(capture=True)
    made = SimBackend(fake_core.FakeEngine()).run(spec)
    told: list[str] = []
    store = Store(tmp_path, warn=told.append)
    stored = store.put(made)
    assert len(stored.captures) == 4
    next(iter(stored.captures.values())).write_text("other packets")
    assert store.get(made.run_id) is None
    assert "captures/incumbent.receiver.pcapng is not what was written" in told[0]


def test_a_full_disk_is_named(small_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(CaptureError, match=r"No space left on device .*free some space"):
        run(SCENARIO.replace('"8 s"', '"100000 s"'))
    gc.collect()
    assert list(small_disk.iterdir()) == []


def test_the_engine_needs_a_folder_that_can_be_written(tmp_path):
    spec = json.dumps(dict(load_text(SCENARIO).plan().runs[0].spec))
    with pytest.raises(ValueError, match="`capture` needs a folder"):
        _core.run(spec)
    with pytest.raises(OSError, match="No such file"):
        _core.run(spec, None, tmp_path / "missing")


def test_too_many_flows_are_refused():
    with pytest.raises(ScenarioError, match=r"capture: cannot be set with 102 flows"):
        load_text(SCENARIO.replace('start = "1 s"', 'start = "1 s"\ncount = 101'))


def scenario_file(folder: Path) -> str:
    path = folder / "captured.toml"
    path.write_text(SCENARIO.replace('title = "Two share a lossy link"', ""))
    return str(path)


def test_the_command_says_where_they_are(tmp_path, capsys):
    store = tmp_path / "store"
    assert status(["run", scenario_file(tmp_path), "--store", str(store)]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "captures" in line]
    (folder,) = store.glob("*/captures")
    assert told == [f"captures: {folder} (4 files)"]
    # A scenario without a title is called after its file.
    comment = pcapng.read(folder / "short.sender.pcapng").comment
    assert comment.startswith("scenario: captured\n")


def test_files_that_nobody_could_find_are_refused(tmp_path, capsys):
    assert status(["run", scenario_file(tmp_path), "--store", "none"]) == 2
    assert "capture: its files are kept in the store" in capsys.readouterr().err
