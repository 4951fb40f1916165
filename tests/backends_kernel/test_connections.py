"""Flows that are many connections, on a real kernel beside the simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jostle import _core
from jostle.backends.kernel.arrivals import arrivals_ns
from jostle.backends.kernel.job import memory_mb, samples_per_interval

from backends_kernel.kernel_specs import record_of_logs, spec_of

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


def traffic(spec):
    return _core.Traffic(json.dumps(spec))


def test_connections_are_those_of_the_simulator():
    spec = spec_of(SHORT)
    table = _core.run(json.dumps(spec)).transfers
    opens_ns = arrivals_ns(spec, 0)
    assert [at / 1e9 for at in opens_ns] == table["time_s"].tolist()
    applications = [traffic(spec).application(0, number) for number in range(len(opens_ns))]
    sizes = [[one.next_message_bytes(), one.next_message_bytes()] for one in applications]
    assert sizes == [[size, None] for size in table["bytes"].tolist()]
    assert len(opens_ns) > 200


def test_sessions_are_those_of_the_simulator():
    spec = spec_of(SESSIONS)
    assert arrivals_ns(spec, 0) is None
    table = _core.run(json.dumps(spec)).transfers
    opens_ns = arrivals_ns(spec, 1)
    numbers, sizes = table["connection"], table["bytes"]
    assert len(opens_ns) == len(set(numbers.tolist())) > 20
    begun = 0
    for number, at_ns in enumerate(opens_ns):
        application = traffic(spec).application(1, number)
        drawn = list(iter(application.next_message_bytes, None))
        asked = sizes[numbers == number].tolist()
        # What was not asked for when the run ended was not told.
        assert drawn[: len(asked)] == asked
        assert at_ns / 1e9 == table["time_s"][numbers == number][0]
        begun += len(asked)
    assert begun == len(sizes)


def test_sessions_think_as_long_as_in_the_simulator():
    spec = spec_of(SESSIONS)
    table = _core.run(json.dumps(spec)).transfers
    rows = table["connection"] == 0
    asked_s, took_s = table["time_s"][rows], table["completion_time_s"][rows]
    assert len(asked_s) > 2
    application = traffic(spec).application(1, 0)
    for at_s, lasted_s, next_s in zip(asked_s, took_s, asked_s[1:], strict=False):
        step = application.act(round(at_s * 1e9))
        assert (step.is_last, step.next_ns) == (True, None)
        over_ns = round((at_s + lasted_s) * 1e9)
        next_ns = application.on_acknowledged(over_ns, 0)
        # Beside a think time, half a round trip until the sender knows of the last byte.
        assert 0 < next_s - next_ns / 1e9 < 0.06


def test_a_list_says_when_they_come():
    spec = spec_of(SHORT)
    flow = spec["flows"][0]
    flow["arrivals"] = {"kind": "listed", "at_ns": [0, 5, 10**9], "bytes": [7, 70_000, 9]}
    flow["start_ns"] = 10**9
    assert arrivals_ns(spec, 0) == [10**9, 10**9 + 5, 2 * 10**9]
    applications = [traffic(spec).application(0, number) for number in range(3)]
    assert [one.next_message_bytes() for one in applications] == [7, 70_000, 9]


@pytest.mark.parametrize(
    ("text", "over"), [(SHORT, "acknowledged_ns"), (SESSIONS, "received_ns")],
    ids=["short", "sessions"],
)  # fmt: skip
def test_measures_are_those_of_the_simulator(text, over):
    spec = spec_of(text)
    record = _core.run(json.dumps(spec))
    table = record.transfers
    logs = [{"messages": logged(table, flow, over)} for flow in range(len(spec["flows"]))]
    made = record_of_logs(spec, logs)
    assert list(made.transfers) == list(table)
    for name, column in table.items():
        assert made.transfers[name].dtype == column.dtype
        np.testing.assert_allclose(made.transfers[name], column, rtol=1e-9, err_msg=name)
    groups, expected = (json.loads(one.summary)["groups"] for one in (made, record))
    for found, group in zip(groups, expected, strict=True):
        assert measured(found) == pytest.approx(measured(group), rel=1e-9, nan_ok=True)


def measured(group):
    """Leave out what is of phases, or no number."""
    chosen = {name: value for name, value in group.items() if name not in ("name", "phases")}
    return {name: np.nan if value is None else value for name, value in chosen.items()}


def logged(table, flow, over):
    """The logs of the connections of a flow, as the guest would write them."""
    logs = []
    for connection in sorted(set(table["connection"][table["flow"] == flow].tolist())):
        rows = np.flatnonzero(table["connection"] == connection)
        messages = []
        for row in rows:
            requested_ns = round(table["time_s"][row] * 1e9)
            took_s = table["completion_time_s"][row]
            end_ns = None if np.isnan(took_s) else requested_ns + round(took_s * 1e9)
            messages.append(
                {
                    "requested_ns": requested_ns,
                    "bytes": int(table["bytes"][row]),
                    over: end_ns,
                    "retransmitted_packets": int(table["retransmitted_packets"][row]),
                }
            )
        logs.append(json.dumps(messages))
    return logs


def test_a_flow_of_which_nothing_came_has_no_measures():
    spec = spec_of(SHORT)
    spec["flows"][0]["arrivals"] = {"kind": "poisson", "rate_per_s": 1e-9}
    made = record_of_logs(spec, [{}])
    assert [len(column) for column in made.transfers.values()] == [0] * 7
    (expected,) = json.loads(_core.run(json.dumps(spec)).summary)["groups"]
    (found,) = json.loads(made.summary)["groups"]
    assert measured(found) == pytest.approx(measured(expected), nan_ok=True)
    assert record_of_logs(spec_of(), [{}]).transfers is None


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
