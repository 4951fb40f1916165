"""Samples as a record: every number from samples that are known by heart."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from jostle import _core
from jostle.backends import SimBackend
from jostle.backends.kernel import guest_samples, run_record
from jostle.backends.kernel.guest import sample_format, sampling

from backends_kernel.kernel_specs import spec_of

record = functools.partial(run_record.record, engine=_core)
STEP_NS = 10_000_000
INFO = np.dtype(
    {
        "names": list(guest_samples._TCP_INFO),
        "formats": [kind for kind, _ in guest_samples._TCP_INFO.values()],
        "offsets": [offset for _, offset in guest_samples._TCP_INFO.values()],
        "itemsize": sample_format.TCP_INFO_BYTES,
    }
)
ESTABLISHED, SYN_SENT = 1, 2


def written(folder: Path, infos, queues, *, details=None, events=None, late_ns: int = 0) -> Path:
    """Write what the guest would have written: a sample every 10 ms of one link, and of one flow,
    or as many that are alike as there are `events` in a list.
    """
    of_flows = events if isinstance(events, list) else [events or {"opened_ns": 0}]
    with (folder / "samples").open("wb") as file:
        for number, ((sender, receiver), queue) in enumerate(zip(infos, queues, strict=True)):
            file.write(np.int64(number * STEP_NS + late_ns).tobytes())
            for _ in of_flows:
                file.write(info(sender))
                file.write((details or b"").ljust(sample_format.DETAILS_BYTES, b"\0"))
                file.write(info(receiver))
            file.write(
                sample_format.QUEUE.pack(
                    queue.get("bytes", 0),
                    queue.get("packets", 0),
                    queue.get("backlog", 0),
                    0,
                    queue.get("drops", 0),
                    0,
                    np.array(queue.get("xstats", []), "u4").tobytes(),
                    queue.get("losses", 0),
                    queue.get("outages", 0),
                    queue.get("thinned", 0),
                    queue.get("held_bytes", 0),
                    queue.get("corrupted", 0),
                    queue.get("duplicated", 0),
                    queue.get("delay_full", 0),
                    queue.get("rejected", 0),
                    queue.get("marked", 0),
                )
            )
    (folder / "events.json").write_text(json.dumps({"flows": of_flows}))
    return folder


def info(fields) -> bytes:
    made = np.zeros((), INFO)
    for name, value in fields.items():
        made[name] = value
    return made.tobytes()


def steady(number: int) -> tuple[dict[str, int], dict[str, int]]:
    """A sender and its receiver after `number` steps: 10 packets each, of which 1 is lost."""
    sender = {
        "state": ESTABLISHED if number else SYN_SENT,
        "snd_mss": 1448,
        "unacked": 20,
        "sacked": 3,
        "lost": 2,
        "retrans": 1,
        "rtt_us": 40_000 + 10 * number,
        "min_rtt_us": 39_000,
        "ssthresh": 0x7FFFFFFF if number < 100 else 50,
        "cwnd": 30,
        "total_retrans": number,
        "pacing_rate": 10**6,
        "bytes_acked": 7_000 * number,
        "data_segs_out": 10 * number,
        "bytes_sent": 14480 * number,
    }
    receiver = {
        "state": ESTABLISHED,
        "data_segs_in": 9 * number,
        "bytes_received": 9 * 1448 * number,
    }
    return sender, receiver


def queue_after(number: int) -> dict[str, int]:
    return {"bytes": 1514 * 10 * number, "packets": 10 * number, "backlog": 3000, "drops": number}


@pytest.fixture
def spec():
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'}
    return spec_of(overrides=overrides | {"sampling_interval": '"200 ms"'})


@pytest.fixture
def steady_record(spec, tmp_path):
    infos = [steady(n) for n in range(201)]
    queues = [queue_after(n) for n in range(201)]
    return record(spec, written(tmp_path, infos, queues), "kernel", "1", 0.5)


def test_measures_of_a_flow(steady_record):
    (flow,) = steady_record.summary["flows"]
    late = flow["phases"]["late"]
    assert flow["completion_time_s"] is None
    assert late["sent_packets"] == 1000
    assert late["retransmitted_packets"] == 100
    assert late["retransmission_ratio"] == pytest.approx(0.1)
    assert late["sending_rate_bps"] == pytest.approx(1000 * 1514 * 8)
    assert late["throughput_bps"] == pytest.approx(900 * 1514 * 8)
    assert late["goodput_bps"] == pytest.approx(900 * 1448 * 8)
    assert late["goodput_ratio"] == pytest.approx(900 * 1448 / (1000 * 1514))
    assert late["rtt_mean_s"] == pytest.approx((40_000 + 10 * 150.5) / 1e6)
    assert late["rtt_p50_s"] == pytest.approx((40_000 + 10 * 150.5) / 1e6, rel=1 / 64)
    assert late["cwnd_mean_bytes"] == 30 * 1448
    assert late["power_bits"] == pytest.approx(late["throughput_bps"] / late["rtt_mean_s"])


def test_the_smallest_rtt_is_the_kernels_where_it_fell_in_the_phase(steady_record):
    (flow,) = steady_record.summary["flows"]
    assert flow["phases"]["overall"]["rtt_min_s"] == pytest.approx(0.039)
    # Later only the smoothed RTT is known.
    assert flow["phases"]["late"]["rtt_min_s"] == pytest.approx((40_000 + 10 * 101) / 1e6)


def test_measures_of_a_link(steady_record):
    (link,) = steady_record.summary["links"]
    late = link["phases"]["late"]
    assert late["utilisation"] == pytest.approx(1000 * 1514 * 8 / 20e6)
    assert late["queue_length_mean_bytes"] == 3000
    assert late["queue_length_p95_bytes"] == pytest.approx(3000, rel=1 / 64)
    assert (late["dropped_packets"], late["marked_packets"]) == (100, 0)


def test_series(steady_record):
    flows, links = steady_record.flows, steady_record.links
    assert flows["time_s"].to_list() == [0.2 * n for n in range(1, 11)] or len(flows) == 10
    assert flows["sent_packets"].sum() == 2000
    assert flows["in_flight_bytes"].unique().to_list() == [16 * 1448]
    assert flows["ssthresh_bytes"].to_list()[:4] == [None] * 4
    assert flows["ssthresh_bytes"].to_list()[-1] == 50 * 1448
    assert flows["pacing_rate_bps"].null_count() == len(flows)
    assert flows["mode"].to_list()[0] == "slow_start"
    assert links["dropped_overflow"].sum() == 200
    assert links["queue_bytes"].unique().to_list() == [3000]


def test_frames_are_those_of_the_simulator(spec, steady_record):
    simulated = SimBackend(_core).run(spec)
    assert steady_record.flows.schema == simulated.flows.schema
    assert steady_record.links.schema == simulated.links.schema
    assert steady_record.internals.schema == simulated.internals.schema
    assert steady_record.flows["time_s"].to_list() == simulated.flows["time_s"].to_list()
    for part in ("flows", "links"):
        ours, theirs = steady_record.summary[part][0], simulated.summary[part][0]
        assert ours.keys() == theirs.keys()
        assert ours["phases"]["late"].keys() == theirs["phases"]["late"].keys()
    assert steady_record.summary["fairness"].keys() == simulated.summary["fairness"].keys()


def test_a_flow_that_never_connected_has_no_measures(spec, tmp_path):
    infos = [({"state": SYN_SENT, "cwnd": 1, "bytes_acked": 0}, {})] * 201
    made = record(spec, written(tmp_path, infos, [{}] * 201), "kernel", "1", 0.5)
    overall = made.summary["flows"][0]["phases"]["overall"]
    assert overall["goodput_bps"] == 0
    known = {name for name, value in overall.items() if value is not None}
    # Everything else is of packets that came, or of ACKs.
    assert known == {
        "goodput_bps", "lead_bps", "retransmitted_packets", "sending_rate_bps", "sent_packets",
        "throughput_bps",
    }  # fmt: skip
    assert made.summary["fairness"]["overall"]["jain"] is None
    assert set(made.flows["mode"]) == {"handshake"}
    assert set(made.flows["cwnd_bytes"]) == {14480}
    assert made.flows["srtt_s"].null_count() == len(made.flows)


def test_idle_times_say_nothing_about_the_rtt(spec, tmp_path):
    infos = [steady(min(n, 50)) for n in range(201)]
    made = record(spec, written(tmp_path, infos, [{}] * 201), "kernel", "1", 0.5)
    phases = made.summary["flows"][0]["phases"]
    assert phases["late"]["rtt_mean_s"] is None
    assert phases["overall"]["rtt_mean_s"] == pytest.approx((40_000 + 10 * 25.5) / 1e6)
    assert made.flows["rtt_last_s"].to_list()[-1] is None
    assert made.flows["srtt_s"].to_list()[-1] == pytest.approx(0.0405)


def test_late_samples_are_taken_for_what_they_are(spec, tmp_path):
    on_time = [steady(n) for n in range(201)]
    folder = written(tmp_path, on_time, [queue_after(n) for n in range(201)], late_ns=1_000_000)
    late = record(spec, folder, "kernel", "1", 0.5).summary["flows"][0]["phases"]["late"]
    assert late["sending_rate_bps"] == pytest.approx(1000 * 1514 * 8, rel=2e-3)


def test_completion_counts_from_the_start_of_the_flow(spec, tmp_path):
    spec["flows"][0]["start_ns"] = 500_000_000
    infos = [steady(n) for n in range(201)]
    events = {"opened_ns": 500_000_000, "completed_ns": 1_250_000_000}
    folder = written(tmp_path, infos, [{}] * 201, events=events)
    assert record(spec, folder, "kernel", "1", 0.5).summary["flows"][0]["completion_time_s"] == 0.75


def waiting(spec):
    """The same with a second flow that waits for the first and 0.1 s more."""
    (first,) = spec["flows"]
    first = {**first, "source": {"kind": "fixed", "bytes": 1000}}
    second = {**first, "name": "second", "after": 0, "start_ns": 100_000_000}
    return {**spec, "flows": [first, second]}


def test_a_flow_that_waits_starts_when_it_is_due(spec, tmp_path):
    infos = [steady(n) for n in range(201)]
    second = {"due_ns": 600_000_000, "opened_ns": 600_020_000, "completed_ns": 1_250_000_000}
    events = [{"opened_ns": 0, "completed_ns": 500_000_000}, second]
    folder = written(tmp_path, infos, [{}] * 201, events=events)
    summary = record(waiting(spec), folder, "kernel", "1", 0.5).summary
    assert [flow["start_s"] for flow in summary["flows"]] == [0, 0.6]
    assert [flow["completion_time_s"] for flow in summary["flows"]] == [0.5, 0.65]
    # The first was gone when the late phase began.
    assert summary["fairness"]["late"]["jain"] == 1
    assert summary["fairness"]["overall"]["jain"] == 1


def test_a_flow_that_waits_to_the_end_has_no_share(spec, tmp_path):
    (tmp_path / "idle").mkdir()
    events = [{"opened_ns": 0}, {"broken": "never"}]
    folder = written(tmp_path / "idle", [({}, {})] * 201, [{}] * 201, events=events)
    summary = record(waiting(spec), folder, "kernel", "1", 0.5).summary
    second = summary["flows"][1]
    assert (second["start_s"], second["completion_time_s"]) == (None, None)
    assert summary["fairness"]["overall"]["jain"] is None


@pytest.mark.parametrize(
    ("gains", "mode"),
    [
        ((739, 739), "startup"),
        ((88, 739), "drain"),
        ((320, 512), "probe_bw"),
        ((256, 256), "probe_rtt"),
    ],
)
def test_modes_and_internals_of_bbr(gains, mode, tmp_path):
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'}
    spec = spec_of(overrides={**overrides, "flows.one.controller": '"bbr"'})
    details = np.array([5_000_000, 0, 40_000, *gains], "u4").tobytes()
    infos = [steady(n) for n in range(201)]
    made = record(spec, written(tmp_path, infos, [{}] * 201, details=details), "kernel", "1", 0.5)
    assert set(made.flows["mode"]) == {mode}
    assert set(made.flows["pacing_rate_bps"]) == {8e6}
    last = dict(made.internals.tail(4).select("quantity", "value").iter_rows())
    assert last == {
        "bottleneck_bps": 40e6,
        "min_rtt_s": 0.04,
        "pacing_gain": gains[0] / 256,
        "cwnd_gain": gains[1] / 256,
    }


@pytest.mark.parametrize(
    ("ca_state", "mode"), [(2, "cwr"), (3, "recovery"), (4, "timeout"), (1, "avoidance")]
)
def test_recovery_hides_the_mode(spec, ca_state, mode, tmp_path):
    sender, receiver = steady(200)
    infos = [({**sender, "ca_state": ca_state, "ssthresh": 10}, receiver)] * 201
    made = record(spec, written(tmp_path, infos, [{}] * 201), "kernel", "1", 0.5)
    assert set(made.flows["mode"]) == {mode}


@pytest.mark.parametrize(
    ("queue", "xstats", "expected"),
    [
        ('"codel"', [0, 0, 0, 0, 0, 4, 7], ("codel", 4, 6, 7)),
        ('"fq_codel"', [0, 0, 4, 7], ("codel", 4, 6, 7)),
        ('"pie"', [0, 0, 0, 0, 0, 0, 0, 4, 0, 7], ("pie", 4, 6, 7)),
        (
            '{ kind = "red", limit = "1 MB", min = "30 kB", max = "90 kB" }',
            [6, 4, 0, 7],
            ("red", 4, 6, 7),
        ),
    ],
)
def test_drops_and_marks_have_reasons(queue, xstats, expected, tmp_path):
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]', "bottleneck.queue": queue}
    queues = [{}] + [{"drops": 10, "xstats": xstats, "losses": 5}] * 200
    infos = [steady(n) for n in range(201)]
    made = record(spec_of(overrides=overrides), written(tmp_path, infos, queues), "k", "1", 0.5)
    reason, overflow, early, marked = expected
    sums = made.links.select(
        f"dropped_{reason}", "dropped_overflow", "dropped_loss", f"marked_{reason}"
    )
    assert sums.sum().row(0) == (early, overflow, 5, marked)
    assert made.summary["links"][0]["phases"]["overall"]["dropped_packets"] == 15


def test_drops_of_our_own_disciplines_have_reasons(tmp_path):
    queue = '{ kind = "occupancy_drop", limit = "1 MB", threshold = "500 kB" }'
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]', "bottleneck.queue": queue}
    queues = [{}] + [{"drops": 10, "xstats": [4, 6], "losses": 5, "outages": 3}] * 200
    infos = [steady(n) for n in range(201)]
    made = record(spec_of(overrides=overrides), written(tmp_path, infos, queues), "k", "1", 0.5)
    names = ("overflow", "occupancy", "loss", "outage")
    sums = made.links.select(*(f"dropped_{name}" for name in names)).sum().row(0)
    assert sums == (4, 6, 5, 3)
    assert made.summary["links"][0]["phases"]["overall"]["dropped_packets"] == 18


def test_faults_are_counted_apart(tmp_path):
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'}
    faults = {"corrupted": 2, "duplicated": 3, "delay_full": 4, "rejected": 5, "marked": 6}
    queues = [{}] + [{"drops": 1, **faults}] * 200
    infos = [steady(n) for n in range(201)]
    made = record(spec_of(overrides=overrides), written(tmp_path, infos, queues), "k", "1", 0.5)
    overall = made.summary["links"][0]["phases"]["overall"]
    names = ("dropped_corruption", "dropped_delay_queue", "dropped_overflow", "duplicated")
    assert [overall[f"{name}_packets"] for name in names] == [2, 4, 6, 3]
    assert (overall["dropped_packets"], overall["marked_fault_packets"]) == (12, 6)


def test_acks_that_are_held_back_wait_and_those_replaced_are_dropped(tmp_path):
    queue = '{ kind = "cake", ack_filter = "filter" }'
    overrides = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]', "bottleneck.queue": queue}
    waiting = {"backlog": 1000, "held_bytes": 132}
    queues = [{}] + [{"drops": 10, "xstats": [0, 4], "thinned": 7, **waiting}] * 200
    infos = [steady(n) for n in range(201)]
    made = record(spec_of(overrides=overrides), written(tmp_path, infos, queues), "k", "1", 0.5)
    names = ("ack_filter", "cobalt")
    assert made.links.select(*(f"dropped_{name}" for name in names)).sum().row(0) == (11, 6)
    late = made.summary["links"][0]["phases"]["late"]
    assert late["queue_length_mean_bytes"] == 1132


def test_a_trace_offers_its_opportunities(tmp_path):
    spec = spec_of(overrides={"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'})
    trace = {"kind": "trace", "opportunities_ms": [10, 10, 500], "opportunity_bytes": 1000}
    spec["links"][0]["capacity"] = trace
    # 12 opportunities in 2 s, of which one is used.
    infos = [steady(n) for n in range(201)]
    queues = [{"bytes": 1000 * (n > 150), "packets": int(n > 150)} for n in range(201)]
    made = record(spec, written(tmp_path, infos, queues), "k", "1", 0.5)
    phases = made.summary["links"][0]["phases"]
    assert phases["overall"]["utilisation"] == pytest.approx(1 / 12)
    assert phases["late"]["utilisation"] == pytest.approx(1 / 6)


def test_a_link_that_stands_still_has_no_utilisation(tmp_path):
    rate = '[["0 s", "20 Mbit/s"], ["1 s", "0 Mbit/s"]]'
    overrides = {"bottleneck.rate": rate, "bottleneck.queue.limit": '"100 kB"'}
    spec = spec_of(overrides={**overrides, "duration": '"2 s"', "phases.late": '["1 s", "2 s"]'})
    infos = [steady(n) for n in range(201)]
    made = record(spec, written(tmp_path, infos, [{}] * 201), "k", "1", 0.5)
    assert made.links["utilisation"].to_list()[-1] is None
    assert made.summary["links"][0]["phases"]["late"]["utilisation"] is None


def test_half_a_sample_is_an_error(spec, tmp_path):
    folder = written(tmp_path, [steady(1)], [{}])
    whole = (folder / "samples").read_bytes()
    (folder / "samples").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="not whole"):
        guest_samples.read(folder, 1, 1)


def test_the_guest_writes_what_is_read(tmp_path):
    """A recording of sockets that do not exist and queues that stand still."""
    absent = SimpleNamespace(sample=lambda: bytes(sample_format.FLOW_BYTES))
    counted = sample_format.QUEUE.pack(1, 2, 3, 4, 5, 6, b"\x07", *range(8, 17))
    still = SimpleNamespace(sample=lambda: counted)
    with sampling.Recording(tmp_path / "samples", [absent, absent], [still]) as recording:
        moments_ns = [0, 1_000_000, 1_500_000, 2_000_000, 3_000_000]
        recording.follow(0, moments_ns, lambda: False)
    (tmp_path / "events.json").write_text('{"flows": [{}, {}]}')
    seen = guest_samples.read(tmp_path, 2, 1)
    assert len(seen.time_ns) == 5
    assert seen.flows.shape == (5, 2)
    queue = seen.queues[0, 0]
    counters = ("bytes", "packets", "backlog", "qlen", "drops", "overlimits", "losses", "outages")
    assert [int(queue[name]) for name in counters] == [1, 2, 3, 4, 5, 6, 8, 9]
    later = ("thinned", "held_bytes", "corrupted", "duplicated", "delay_full", "rejected", "marked")
    assert [int(queue[name]) for name in later] == list(range(10, 17))
    assert int(queue["xstats"][0]) == 7
