"""Datagrams that nobody answers, on a real kernel: they leave when they do in the simulator."""

from __future__ import annotations

import json
from itertools import takewhile

import numpy as np
import pytest
from jostle import _core
from jostle.backends.kernel import capabilities
from jostle.backends.kernel.engine_samples_datagrams import datagram_samples
from jostle.backends.kernel.guest.sample_format import ARRIVAL, DEPARTURE

from backends_kernel.kernel_specs import record_of_logs, spec_of

CALL = """
duration = "4 s"
[bottleneck]
rate = "2 Mbit/s"
queue = { kind = "drop_tail", limit = "40 packets" }
[[flows]]
name = "download"
controller = "reno"
rtt = "40 ms"
start = "1 s"
[[flows]]
name = "call"
controller = "none"
rtt = "40 ms"
source = { kind = "cbr", codec = "g711" }
"""

STEPS = [(0, 0), (10**9, 64_000), (1_337_000_000, 4_096_000), (1_500_000_000, 7_777)]


@pytest.mark.parametrize("start_ns", [0, 1_200_000_007, 1_337_000_000])
def test_the_guest_sends_when_the_simulator_does(start_ns):
    spec = spec_of(CALL)
    flow = spec["flows"][1] | {"start_ns": start_ns}
    steps = [{"at_ns": at, "rate_bps": rate} for at, rate in STEPS]
    flow["source"] = flow["source"] | {"bytes": 131, "steps": steps}
    spec |= {"flows": [flow], "interval_ns": 10_000_000}
    record = _core.run(json.dumps(spec))
    duration_ns = spec["duration_ns"]
    times_ns = _core.Traffic(json.dumps(spec)).datagram_times(0, start_ns)
    ours = [*takewhile(lambda at: at < duration_ns, times_ns)]
    sent = record.flows["sent_packets"]
    ends_ns = [round(end * 1e9) for end in record.flows["time_s"]]
    counted = [0] * len(ends_ns)
    for at in ours:
        # What a running source does at the end of an interval is part of the next.
        counted[at // 10_000_000] += 1
    assert list(sent) == counted
    assert sum(counted) > 100


def test_tiny_datagrams_are_refused(defaults):
    spec = spec_of(CALL)
    assert capabilities.problems(spec, defaults, "virtual") == []
    spec["flows"][1]["source"]["bytes"] = 10
    (problem,) = capabilities.problems(spec, defaults, "virtual")
    assert problem.key == "flows.call.source.size"


def test_a_call_beside_a_download_is_what_it_is_in_the_simulator(backend, simulator):
    spec = spec_of(CALL)
    runs = simulator.run(spec), backend.run(spec)
    ours, theirs = (run.summary["flows"][1]["phases"]["overall"] for run in runs)
    assert ours["sent_packets"] == theirs["sent_packets"] == 200
    assert theirs["one_way_delay_min_s"] == pytest.approx(ours["one_way_delay_min_s"], abs=1e-4)
    assert theirs["one_way_delay_mean_s"] == pytest.approx(ours["one_way_delay_mean_s"], rel=0.1)
    assert theirs["mos"] == pytest.approx(ours["mos"], abs=0.2)
    assert theirs["path_queueing_delay_mean_s"] is None


PINGS = """
duration = "6 s"
[downlink]
rate = "4 Mbit/s"
queue = { kind = "drop_tail", limit = "20 packets" }
loss = "1 %"
[uplink]
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "30 packets" }
[[flows]]
name = "upload"
controller = "reno"
direction = "up"
rtt = "30 ms"
start = "2 s"
[[flows]]
name = "ping"
controller = "none"
direction = "up"
rtt = "30 ms"
source = { kind = "ping", size = "56 B", period = "50 ms", timeout = "1 s" }
"""


def test_pings_beside_an_upload_are_what_they_are_in_the_simulator(backend, simulator):
    spec = spec_of(PINGS)
    ours, theirs = (run.run(spec).summary["flows"][1] for run in (simulator, backend))
    seen = theirs["pings"]
    assert seen["sent"] == ours["pings"]["sent"] == 120
    assert seen["echoed"] + seen["lost"] + seen["waiting"] == seen["sent"]
    assert seen["lost"] > 0
    assert seen["rtt_min_s"] == pytest.approx(ours["pings"]["rtt_min_s"], abs=1e-4)
    means = [one["phases"]["overall"]["rtt_mean_s"] for one in (ours, theirs)]
    assert means[1] == pytest.approx(means[0], rel=0.1)


def test_a_ping_that_comes_too_late_is_lost(tmp_path):
    folder = tmp_path / "datagrams"
    folder.mkdir()
    sent_ns = [0, 100, 200, 300]
    (folder / "0.sent").write_bytes(b"".join(DEPARTURE.pack(at) for at in sent_ns))
    (folder / "0.came").write_bytes(b"")
    back = [(40, 0, 0), (160, 100, 1), (230, 200, 2)]
    (folder / "0.back").write_bytes(b"".join(ARRIVAL.pack(*one) for one in back))
    source = {"kind": "ping", "bytes": 56, "every_ns": 100, "timeout_ns": 60}
    flow = {"source": source, "after": None, "start_ns": 0}
    time_ns = np.array([100, 240, 400])
    seen = datagram_samples(flow, 0, time_ns, {}, tmp_path)
    assert seen["pings_ns"] == [(40, 0, 40), (160, 1, None), (230, 2, 30), (360, 3, None)]
    assert seen["in_flight_bytes"].tolist() == [56, 0, 0]


def test_duplicates_count_on_the_wire_only(tmp_path):
    folder = tmp_path / "datagrams"
    folder.mkdir()
    (folder / "0.sent").write_bytes(b"".join(DEPARTURE.pack(at) for at in (0, 100, 200)))
    came = [(40, 0, 0), (45, 0, 0), (240, 200, 2), (250, 200, 2)]
    (folder / "0.came").write_bytes(b"".join(ARRIVAL.pack(*one) for one in came))
    flow = {"source": {"kind": "cbr", "bytes": 100}, "after": None, "start_ns": 0}
    seen = datagram_samples(flow, 0, np.array([100, 400]), {}, tmp_path)
    assert seen["datagrams_ns"] == [(40, 0, 40), (240, 2, 40)]
    assert seen["delivered_bytes"].tolist() == [100, 200]
    frame_bytes = seen["sent_bytes"][0] / seen["sent_packets"][0]
    assert seen["received_bytes"].tolist() == [2 * frame_bytes, 4 * frame_bytes]


def test_lost_datagrams_count_in_the_phase_in_which_they_were_sent():
    second = 10**9
    spec = spec_of(CALL)
    spec["phases"] += [
        {"name": str(number), "from_ns": number * second, "to_ns": (number + 1) * second}
        for number in range(4)
    ]
    # 50 datagrams a second. The path fails from 1.5 s on.
    arrivals = [(number * second // 50 + 20_000_000, number, 20_000_000) for number in range(75)]

    def losses(arrivals):
        logs = [{}, {"datagrams_ns": arrivals}]
        phases = json.loads(record_of_logs(spec, logs).summary)["flows"][1]["phases"]
        return [phases[str(number)]["lost_share"] for number in range(4)]

    assert losses(arrivals) == [0, 0.5, 1, 1]
    assert losses([]) == [1, 1, 1, 1]
