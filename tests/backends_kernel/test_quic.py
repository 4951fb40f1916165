"""Flows over jostle's own QUIC on a real kernel, beside the simulator."""

from __future__ import annotations

import pytest
from jostle.errors import InputError

from backends_kernel.kernel_specs import spec_of

SCENARIO = """
duration = "4 s"
[phases]
late = ["2 s", "4 s"]
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
transport = "quic"
"""
BESIDE_TCP = f"""{SCENARIO}
[[flows]]
name = "tcp"
controller = "cubic"
rtt = "40 ms"
"""


def late(record, flow: int = 0):
    return record.summary["flows"][flow]["phases"]["late"]


def test_a_transfer_that_is_stopped_is_not_complete(backend, simulator):
    stopped = """
    source = { kind = "fixed", size = "2 MB" }
    stop = "600 ms"
    [[flows]]
    name = "next"
    controller = "cubic"
    rtt = "40 ms"
    after = "one"
    """
    spec = spec_of(SCENARIO + stopped)
    for record in (backend.run(spec), simulator.run(spec)):
        first, after = record.summary["flows"]
        assert first["completion_time_s"] is None
        # At most 600 ms at 10 Mbit/s, of 2 MB.
        assert first["phases"]["overall"]["goodput_bps"] * 4 / 8 < 750_000
        assert not after["phases"]["overall"]["goodput_bps"]


def test_a_source_that_is_stopped_writes_no_more(backend, simulator):
    stopped = """
    source = { kind = "request_response", size = "20 kB", think_time = "10 ms" }
    stop = "600 ms"
    """
    spec = spec_of(SCENARIO + stopped)
    for record in (backend.run(spec), simulator.run(spec)):
        assert record.summary["flows"][0]["phases"]["overall"]["goodput_bps"] > 0
        assert not late(record)["goodput_bps"]


@pytest.mark.parametrize(
    "controller",
    [
        "noq:cubic",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("reno", "cubic", "bbr3", "vegas")
        ),
    ],
)
def test_a_flow_alone_does_what_it_does_in_the_simulator(controller, backend, simulator):
    # BBRv3 probes for the RTT 5 s after the start, or later if the smallest RTT is seen again: that
    # one probe would be 3.5 % of the goodput.
    overrides = {
        "duration": '"4900 ms"',
        "phases.late": '["2 s", "4900 ms"]',
        "flows.one.controller": f'"{controller}"',
    }
    spec = spec_of(SCENARIO, overrides)
    real, simulated = late(backend.run(spec)), late(simulator.run(spec))
    assert real["goodput_bps"] == pytest.approx(simulated["goodput_bps"], rel=0.03)
    assert real["throughput_bps"] == pytest.approx(simulated["throughput_bps"], rel=0.03)
    assert real["rtt_mean_s"] == pytest.approx(simulated["rtt_mean_s"], rel=0.08)
    assert real["sent_packets"] == pytest.approx(simulated["sent_packets"], rel=0.03)


def test_the_same_seed_gives_the_same_numbers(backend):
    spec = spec_of(SCENARIO, {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'})
    first, second = backend.run(spec), backend.run(spec)
    assert first.summary == second.summary
    assert first.flows.equals(second.flows)


def test_quic_and_tcp_share_a_link(backend):
    record = backend.run(spec_of(BESIDE_TCP))
    quic, tcp = late(record), late(record, 1)
    (link,) = record.summary["links"]
    assert quic["goodput_bps"] > 0.5e6
    assert tcp["goodput_bps"] > 0.5e6
    carried_bps = 10e6 * link["phases"]["late"]["utilisation"]
    assert quic["throughput_bps"] + tcp["throughput_bps"] == pytest.approx(carried_bps, rel=0.01)


def test_transfers_complete_and_follow_each_other(backend, simulator):
    overrides = {
        "flows.one.source": '{ kind = "fixed", size = "500 kB" }',
        "flows.one.count": "2",
        "flows.one.one_at_a_time": '"300 ms"',
    }
    spec = spec_of(SCENARIO, overrides)
    real, simulated = backend.run(spec).summary["flows"], simulator.run(spec).summary["flows"]
    for here, there in zip(real, simulated, strict=True):
        assert here["completion_time_s"] == pytest.approx(there["completion_time_s"], rel=0.05)
        assert here["start_s"] == pytest.approx(there["start_s"], rel=0.05, abs=0.001)


def test_responses_take_as_long_as_in_the_simulator(backend, simulator):
    source = '{ kind = "request_response", size = "50 kB", think_time = "200 ms", count = 8 }'
    spec = spec_of(SCENARIO, {"flows.one.source": source})
    real, simulated = (b.run(spec).summary["flows"][0] for b in (backend, simulator))
    here, there = (flow["phases"]["overall"] for flow in (real, simulated))
    assert here["responses"] == there["responses"] == 8
    assert here["response_time_mean_s"] == pytest.approx(there["response_time_mean_s"], rel=0.05)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("flows.one.peer_cache", '"tcp-cache"', "flows.one.peer_cache: `tcp-cache`"),
    ],
)
def test_what_the_ends_cannot_have_is_refused(key, value, text, backend):
    spec = spec_of(SCENARIO.replace('"quic"', '{ kind = "quic" }'), {key: value})
    with pytest.raises(InputError, match=text):
        backend.check(spec)
