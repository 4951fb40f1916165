"""Logs of QUIC stacks, measured: ours give what the run measured, others what they say."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import jostle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jostle.backends import RunRecord, SimBackend
from jostle.cli import status
from jostle.errors import InputError
from jostle.scenario import load_text

SCENARIO = """
title = "Logs"
duration = "20 s"
sampling_interval = "1 s"
seed = 3
capture = { qlog = true }
[[links]]
name = "link"
rate = "10 Mbit/s"
loss = "1 %"
queue = { kind = "drop_tail", limit = "50 kB" }
[[flows]]
name = "one"
transport = "quic"
controller = "cubic"
rtt = "40 ms"
path = ["link"]
source = { kind = "fixed", size = "3 MB" }
[[flows]]
name = "two"
transport = "quic"
controller = "bbr"
rtt = "60 ms"
path = ["link"]
start = "1 s"
"""
FLOWS = ("one", "two")


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return SimBackend().run(load_text(SCENARIO).plan().runs[0].spec)


def of_run(record: RunRecord, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    (flow,) = [one for one in record.summary["flows"] if one["name"] == name]
    return flow, flow["phases"]["overall"]


def measured(path: Path) -> tuple[dict[str, Any], dict[str, Any], float]:
    """What is known of the only flow, and how long its log is."""
    (result,) = jostle.analyze(path).results
    (flow,) = result.run.summary["flows"]
    return flow, flow["phases"]["overall"], result.run.spec["duration_ns"] / 1e9


@pytest.mark.parametrize("name", FLOWS)
def test_a_senders_log_gives_what_the_run_measured(record, name):
    one, seen, lasted_s = measured(record.captures[f"{name}.sender.sqlog"])
    flow, truth = of_run(record, name)
    assert truth["retransmitted_packets"] > 20
    assert one["name"] == name
    for exact in ("sent_packets", "retransmitted_packets"):
        assert seen[exact] == truth[exact], exact
    # The log ends with its last event, the run later: bytes are the same.
    bytes_of = lambda rates, key, seconds: rates[key] / 8 * seconds  # noqa: E731
    assert bytes_of(seen, "sending_rate_bps", lasted_s) == pytest.approx(
        bytes_of(truth, "sending_rate_bps", 20), rel=1e-9
    )
    # What arrived and is not acknowledged at the end is in flight.
    assert bytes_of(seen, "goodput_bps", lasted_s) == pytest.approx(
        bytes_of(truth, "goodput_bps", 20), abs=100_000 * (name == "two") + 1
    )
    for rtt in ("rtt_mean_s", "rtt_p50_s", "rtt_p95_s"):
        assert seen[rtt] == pytest.approx(truth[rtt], rel=0.01), rtt
    assert one["start_s"] == flow["start_s"]
    assert one["completion_time_s"] == flow["completion_time_s"]
    assert (flow["completion_time_s"] is not None) == (name == "one")


def test_its_series_is_that_of_the_run(record):
    results = jostle.analyze(record.captures["two.sender.sqlog"])
    seen = results.series("two", "cwnd")["seed_0"].to_list()
    rows = record.flows.filter(record.flows["flow"] == "two")
    truth = rows["cwnd_bytes"].to_list()
    # Both are at the ends of intervals: of a second there, of a tenth here.
    pairs = list(zip(seen[9::10], truth, strict=False))[1:9]
    same = [abs(one - other) <= 2 * 1200 for one, other in pairs]
    assert len(same) == 8
    assert sum(same) >= 7
    modes = set(results.results[0].run.flows["mode"])
    assert {"startup", "probe_bw"} <= modes or len(modes) > 2


def test_a_receivers_log_gives_what_came(record):
    results = jostle.analyze(record.captures["one.receiver.sqlog"])
    assert any("received" in note for note in results.notes)
    _, seen, lasted_s = measured(record.captures["one.receiver.sqlog"])
    _, truth = of_run(record, "one")
    assert seen["goodput_bps"] * lasted_s / 8 == pytest.approx(3_000_000)
    assert seen["throughput_bps"] * lasted_s == pytest.approx(truth["throughput_bps"] * 20)
    assert seen["cwnd_mean_bytes"] is None
    assert seen["rtt_mean_s"] is None


def modern(path: Path, form: str) -> bytes:
    """The same log as the present drafts have it (main-schema-13, quic-events-14)."""
    lines = [json.loads(line.lstrip("\x1e")) for line in path.read_text().strip().split("\n")]
    events = lines[1:]
    now = 0.0
    for event in events:
        category, name = event["name"].split(":")
        event["name"] = f"quic:{'recovery_' * (name == 'metrics_updated')}{name}"
        assert category in ("transport", "recovery", "connectivity")
        for frame in event["data"].get("frames", ()):
            if frame["frame_type"] == "stream":
                frame["raw"] = {"payload_length": frame.pop("length")}
            for ends in frame.get("acked_ranges", ()):
                if ends[0] == ends[1]:
                    ends.pop()
        if form == "deltas":
            now, event["time"] = event["time"], event["time"] - now
    reference = {"clock_type": "monotonic", "epoch": "unknown"}
    time_format = "relative_to_previous_event" if form == "deltas" else "relative_to_epoch"
    common = {"time_format": time_format, "reference_time": reference, "group_id": "ab12"}
    trace = {
        "common_fields": common,
        "vantage_point": {"type": "client"},
        "event_schemas": ["urn:ietf:params:qlog:events:quic-14"],
    }
    if form == "contained":
        document = {
            "file_schema": "urn:ietf:params:qlog:file:contained",
            "serialization_format": "application/qlog+json",
            "traces": [{"error_description": "nothing"}, trace | {"events": events}],
        }
        return json.dumps(document, indent=1).encode()
    header = {
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "trace": trace,
    }
    return b"".join(b"\x1e" + json.dumps(one).encode() + b"\n" for one in (header, *events))


@pytest.mark.parametrize("form", ["sequential", "deltas", "contained"])
def test_the_present_drafts_say_the_same(form, record, tmp_path):
    path = record.captures["one.sender.sqlog"]
    one, seen, _ = measured(path)
    other = tmp_path / "one.qlog.gz"
    other.write_bytes(gzip.compress(modern(path, form)))
    again, found, _ = measured(other)
    if form != "deltas":
        assert found == seen
        assert again["completion_time_s"] == one["completion_time_s"]
        return
    # Sums of differences are no longer exact.
    for key, value in seen.items():
        assert found[key] == (value if value is None else pytest.approx(value, rel=1e-3)), key


def sequence(*events: object, **header: object) -> str:
    first = {"qlog_version": "0.3", "trace": {}} | header
    return "".join(f"\x1e{json.dumps(one)}\n" for one in (first, *events))


def sent(number: int, offset: int, length: int, **more: object) -> dict[str, Any]:
    """A packet of a stream's bytes, a second after the one before."""
    return {
        "time": 1000.0 * number,
        "name": "transport:packet_sent",
        "data": {
            "header": {"packet_type": "1RTT", "packet_number": number},
            "raw": {"length": length + 30},
            "frames": [
                {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}
            ],
        }
        | more,
    }


def acked(at_ms: float, *ranges: list[int], kind: str = "1RTT") -> dict[str, Any]:
    return {
        "time": at_ms,
        "name": "transport:packet_received",
        "data": {
            "header": {"packet_type": kind, "packet_number": 0},
            "raw": {"length": 30},
            "frames": [{"frame_type": "ack", "acked_ranges": ranges}],
        },
    }


def test_what_is_acknowledged_counts_in_its_order(tmp_path):
    path = tmp_path / "a.sqlog"
    # The second is lost and sent again; of what is sent twice one is acknowledged late.
    path.write_text(
        sequence(
            sent(0, 0, 1000), sent(1, 1000, 1000), sent(2, 2000, 1000),
            acked(2100.0, [0], [2]), sent(3, 1000, 1000), acked(3500.0, [2, 3]),
            acked(3600.0, [0, 3], kind="handshake"), acked(4000.0, [0, 3]),
        )
    )  # fmt: skip
    results = jostle.analyze(path)
    _, seen, lasted_s = measured(path)
    assert seen["sent_packets"] == 4
    assert seen["retransmitted_packets"] == 1
    assert seen["sending_rate_bps"] * lasted_s / 8 == pytest.approx(4 * (1000 + 30 + 42))
    assert seen["goodput_bps"] * lasted_s / 8 == pytest.approx(3000)
    (flow,) = results.flow_names(0)
    goodput = results.series(flow, "goodput")
    bytes_by = (goodput["seed_0"] / 80).cum_sum().round().to_list()
    assert [bytes_by[at] for at in (20, 33, 34)] == [1000, 1000, 3000]


def test_connections_of_one_log_are_flows(tmp_path):
    path = tmp_path / "server.qlog"
    both = [{**sent(at, 1000 * at, 1000), "group_id": group} for at in range(3) for group in "ab"]
    path.write_text(sequence(*both))
    results = jostle.analyze(path)
    assert results.flow_names(0) == ["server", "server #2"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1: no qlog"),
        ("{}", "no version, schema or trace"),
        ("[1]", "not an object"),
        (sequence(), "no packet and no metric"),
        (sequence() + "\x1e{packet_sent}\n", "line 2: no qlog"),
        (
            sequence({"name": "transport:packet_sent"}),
            "line 2: no event of qlog .`time` is missing",
        ),
        (sequence({"time": "x", "name": "packet_sent"}), "line 2: no event of qlog"),
        (sequence({"time": 0, "name": "packet_sent", "data": 7}), "is no object"),
        (sequence(sent(0, 0, -5)), "with -5 bytes"),
        (sequence(sent(0, 0, 10, raw={"length": 10**9})), "a packet of 1000000000 bytes"),
        (sequence(acked(0.0, [])), "is not as qlog has it"),
        (sequence(sent(0, 0, 10), {**sent(1, 0, 10), "time": 1e18}), "longer than a year"),
        (
            sequence({"time": 0, "name": "metrics_updated", "data": {"latest_rtt": -1}}),
            "latest_rtt of -1",
        ),
    ],
)
def test_what_is_no_qlog_is_refused(content, words, tmp_path, capsys):
    path = tmp_path / "a.qlog"
    path.write_text(content)
    with pytest.raises(InputError, match=words):
        jostle.analyze(path)
    assert status(["analyze", str(path)]) == 2
    assert "a.qlog" in capsys.readouterr().err


def test_a_log_that_was_cut_off_counts_up_to_there(record, tmp_path):
    whole = record.captures["one.sender.sqlog"].read_bytes()
    path = tmp_path / "cut.sqlog"
    path.write_bytes(whole[: len(whole) // 2])
    _, seen, _ = measured(path)
    _, all_of_it, _ = measured(record.captures["one.sender.sqlog"])
    assert 500 < seen["sent_packets"] < all_of_it["sent_packets"]


_WORDS_LIST = (
    "time", "name", "data", "header", "packet_type", "packet_number", "raw", "length", "frames",
    "frame_type", "stream_id", "offset", "acked_ranges", "latest_rtt", "group_id", "fin",
)  # fmt: skip
_WORDS = st.sampled_from(_WORDS_LIST)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=8,
)


def changed(inside: Any, changes: dict[str, Any]) -> Any:
    """Put other values in the place of some, wherever their keys stand."""
    if isinstance(inside, list):
        return [changed(one, changes) for one in inside]
    if isinstance(inside, dict):
        return {key: changes.get(key, changed(one, changes)) for key, one in inside.items()}
    return inside


@given(changes=st.dictionaries(_WORDS, _ANYTHING, max_size=3), which=st.integers(0, 2))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_stands_in_an_event_is_measured_or_refused(changes, which, tmp_path_factory):
    metrics = {"time": 60.0, "name": "metrics_updated", "data": {"latest_rtt": 50}}
    events = [sent(0, 0, 1000), acked(50.0, [0]), metrics]
    events[which] = changed(events[which], changes)
    path = tmp_path_factory.mktemp("any") / "a.qlog"
    path.write_text(sequence(*events))
    # A refusal is one that the user reads; whatever else is raised fails here.
    with contextlib.suppress(InputError):
        (flow, *_) = jostle.analyze(path).results[0].run.summary["flows"]
        assert flow["phases"]["overall"]["sent_packets"] in (0, 1)
