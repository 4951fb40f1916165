"""Flows that are many connections, on a real kernel beside the simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jostle import _core
from jostle.backends.kernel import transfer_table
from jostle.backends.kernel.arrivals import connections
from jostle.backends.kernel.job import memory_mb, samples_per_interval

from backends_kernel.kernel_specs import spec_of

SHORT = """
duration = "10 s"
[bottleneck]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "short"
controller = "cubic"
rtt = "40 ms"
size = { distribution = "lognormal", median = "15 kB", sigma = 1.5, max = "2 MB" }
arrivals = { load = "60 %" }
"""

SESSIONS = """
duration = "20 s"
[[links]]
name = "first"
rate = "5 Mbit/s"
delay = "5 ms"
queue = "fq_codel"
[[links]]
name = "back"
rate = "1 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "60 kB" }
[[flows]]
name = "bulk"
controller = "cubic"
rtt = "40 ms"
path = ["first"]
reverse_path = ["back"]
[[flows]]
name = "talk"
controller = "reno"
rtt = "40 ms"
path = ["first"]
reverse_path = ["back"]
start = "2 s"
stop = "19 s"
source.kind = "sessions"
source.rate = "2 /s"
source.size       = { distribution = "exponential", mean = "20 kB" }
source.think_time = { distribution = "exponential", mean = "100 ms" }
source.count      = { distribution = "exponential", mean = "4" }
"""


def test_connections_are_those_of_the_simulator():
    spec = spec_of(SHORT)
    table = _core.run(json.dumps(spec)).transfers
    drawn = connections(spec, spec["flows"][0])
    assert [one["start_ns"] / 1e9 for one in drawn] == table["time_s"].tolist()
    assert [one["sizes_bytes"] for one in drawn] == [[size] for size in table["bytes"].tolist()]
    assert len(drawn) > 200


def test_sessions_are_those_of_the_simulator():
    spec = spec_of(SESSIONS)
    bulk, talk = spec["flows"]
    assert connections(spec, bulk) is None
    table = _core.run(json.dumps(spec)).transfers
    drawn = connections(spec, talk)
    numbers, sizes = table["connection"], table["bytes"]
    assert len(drawn) == len(set(numbers.tolist())) > 20
    begun = 0
    for number, one in enumerate(drawn):
        asked = sizes[numbers == number].tolist()
        # What was not asked for when the run ended was not told.
        assert one["sizes_bytes"][: len(asked)] == asked
        assert one["start_ns"] / 1e9 == table["time_s"][numbers == number][0]
        assert len(one["sizes_bytes"]) == len(one["spans_ns"]) == one["source"]["count"]
        begun += len(asked)
    assert begun == len(sizes)
    # Responses that were over at once were followed by those spans.
    first = table["time_s"][numbers == 0], table["completion_time_s"][numbers == 0]
    thinks_s = np.diff(first[0]) - first[1][:-1]
    # Beside a think time, half a round trip until the sender knows of the last byte.
    assert thinks_s - np.array(drawn[0]["spans_ns"])[: len(thinks_s)] / 1e9 == pytest.approx(
        np.full(len(thinks_s), 0.03), abs=0.03
    )


def test_a_list_says_when_they_come():
    spec = spec_of(SHORT)
    flow = spec["flows"][0]
    flow["arrivals"] = {"kind": "listed", "at_ns": [0, 5, 10**9], "bytes": [7, 70_000, 9]}
    flow["start_ns"] = 10**9
    drawn = connections(spec, flow)
    assert [one["start_ns"] for one in drawn] == [10**9, 10**9 + 5, 2 * 10**9]
    assert [one["sizes_bytes"] for one in drawn] == [[7], [70_000], [9]]


@pytest.mark.parametrize("text", [SHORT, SESSIONS], ids=["short", "sessions"])
def test_measures_are_those_of_the_engine(text):
    spec = spec_of(text)
    record = _core.run(json.dumps(spec))
    table, groups = record.transfers, json.loads(record.summary)["groups"]
    events = [{"transfers_ns": told(table, flow)} for flow in range(len(spec["flows"]))]
    made = transfer_table.table(spec, events)
    assert list(made) == list(table)
    for name, column in table.items():
        assert made[name].dtype == column.dtype
        np.testing.assert_allclose(made[name], column, rtol=1e-9, err_msg=name)
    for found, group in zip(transfer_table.add_transfers(groups, spec, made), groups, strict=True):
        assert measured(found) == pytest.approx(measured(group), rel=1e-9, nan_ok=True)


def measured(group):
    """Leave out what is of phases, or no number."""
    chosen = {name: value for name, value in group.items() if name not in ("name", "phases")}
    return {name: np.nan if value is None else value for name, value in chosen.items()}


def told(table, flow):
    """Say of the transfers of a flow what the guest would say."""
    of_flow = table["flow"] == flow
    columns = ("connection", "time_s", "bytes", "completion_time_s", "retransmitted_packets")
    return [
        (
            number,
            round(at_s * 1e9),
            size_bytes,
            None if np.isnan(took_s) else round(took_s * 1e9),
            again,
        )
        for number, at_s, size_bytes, took_s, again in zip(
            *(table[name][of_flow].tolist() for name in columns), strict=True
        )
    ]


def test_what_is_not_known_of_a_run_without_transfers():
    spec = spec_of(SHORT)
    spec["flows"][0]["arrivals"] = {"kind": "poisson", "rate_per_s": 1e-9}
    made = transfer_table.table(spec, [{}])
    assert [len(column) for column in made.values()] == [0] * 7
    groups = json.loads(_core.run(json.dumps(spec)).summary)["groups"]
    (found,) = transfer_table.add_transfers(groups, spec, made)
    assert measured(found) == pytest.approx(measured(groups[0]), nan_ok=True)
    assert transfer_table.table(spec_of(), [{}]) is None


def test_many_are_looked_at_less_often_and_have_room():
    many, one = spec_of(SHORT), spec_of()
    assert samples_per_interval(many) < samples_per_interval(one)
    assert memory_mb(many) > memory_mb(one)


def test_short_flows_take_as_long_as_in_the_simulator(backend, simulator):
    spec = spec_of(SHORT)
    ours, theirs = simulator.run(spec), backend.run(spec)
    assert theirs.transfers["time_s"].to_list() == ours.transfers["time_s"].to_list()
    assert theirs.transfers["bytes"].to_list() == ours.transfers["bytes"].to_list()
    (ours_in_all,), (theirs_in_all,) = ours.summary["groups"], theirs.summary["groups"]
    assert theirs_in_all["transfers_finished"] > 200
    for name in ("completion_time_mean_s", "completion_time_p50_s", "small_slowdown_mean"):
        assert theirs_in_all[name] == pytest.approx(ours_in_all[name], rel=0.03), name
    assert theirs_in_all["completion_time_p95_s"] == pytest.approx(
        ours_in_all["completion_time_p95_s"], rel=0.1
    )
    phases = [run.summary["flows"][0]["phases"]["overall"] for run in (ours, theirs)]
    # Connections end without a packet, as the simulator's.
    assert phases[1]["goodput_bps"] == pytest.approx(phases[0]["goodput_bps"], rel=0.005)
    # The kernel tells SRTTs.
    assert phases[1]["rtt_mean_s"] == pytest.approx(phases[0]["rtt_mean_s"], rel=0.1)
    again = theirs.transfers["retransmitted_packets"].sum()
    assert again == phases[1]["retransmitted_packets"]


def test_sessions_take_as_long_as_in_the_simulator(backend, simulator):
    spec = spec_of(SESSIONS)
    ours, theirs = (run.summary["groups"][1] for run in (simulator.run(spec), backend.run(spec)))
    assert theirs["transfers"] == pytest.approx(ours["transfers"], abs=8)
    assert theirs["completion_time_p50_s"] == pytest.approx(ours["completion_time_p50_s"], rel=0.1)
    overall = ours["phases"]["overall"], theirs["phases"]["overall"]
    assert overall[1]["responses"] == theirs["transfers_finished"]
    assert overall[1]["response_time_mean_s"] == pytest.approx(
        overall[0]["response_time_mean_s"], rel=0.15
    )
