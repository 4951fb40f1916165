"""What applications draw is what they draw in the simulator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jostle import _core
from jostle.backends.kernel.traffic_draws import sizes_bytes, spans_ns

from backends_kernel.kernel_specs import SCENARIO, spec_of

ON_OFF = SCENARIO.replace(
    'rtt = "40 ms"',
    'rtt = "10 ms"\n'
    'source = { kind = "on_off", on = "500 ms", off = "400 ms", exponential = true }',
)


@pytest.mark.parametrize("seed", [1, 7])
def test_a_flow_is_on_and_off_when_it_is_in_the_simulator(seed):
    spec = spec_of(ON_OFF) | {"seed": seed, "interval_ns": 10_000_000}
    record = _core.run(json.dumps(spec))
    sends = record.flows["sending_rate_bps"] > 0
    turns_ns = np.cumsum(spans_ns(seed, spec["flows"][0], spec["duration_ns"]))
    # It sends from the connection's opening on, one round trip after its start.
    middle_ns = record.flows["time_s"] * 1e9 - 5_000_000 - 10_000_000
    on = np.searchsorted(turns_ns, middle_ns) % 2 == 0
    assert sends.any()
    assert not sends.all()
    # Short of the bins in which a turn falls or the last packets of one are sent.
    assert np.mean(on[5:] == sends[5:]) > 0.95


def test_lengths_and_sizes_as_they_are_given():
    flow = spec_of(SCENARIO)["flows"][0]
    flow["source"] = {"kind": "on_off", "on_ns": 500_000_000, "off_ns": 400_000_000}
    assert spans_ns(1, flow, 10**10) == [500_000_000, 400_000_000]
    flow["source"] = {"kind": "fixed", "bytes": 1000}
    assert sizes_bytes(1, flow) == [1000]
    flow["source"] = {"kind": "bulk"}
    assert spans_ns(1, flow, 10**10) == []
    assert sizes_bytes(1, flow) == []


def exponential(mean):
    return {"law": {"kind": "exponential", "mean": mean}, "min": None, "max": None}


def test_lengths_last_for_the_run_and_never_vanish():
    flow = spec_of(ON_OFF)["flows"][0]
    drawn = spans_ns(3, flow, 100 * 10**9)
    assert sum(drawn) > 100 * 10**9
    assert np.mean(drawn[::2]) == pytest.approx(500e6, rel=0.3)
    flow["source"] = {"kind": "request_response", "bytes": 1, "think_ns": exponential(1e-3),
                      "count": None}  # fmt: skip
    assert set(spans_ns(3, flow, 10**5)) == {1000}


def test_sizes_are_drawn_as_often_as_they_are_asked_for():
    flow = spec_of(SCENARIO)["flows"][0]
    flow["source"] = {
        "kind": "request_response", "bytes": exponential(2e4), "think_ns": 0, "count": 500
    }  # fmt: skip
    sizes = sizes_bytes(3, flow)
    assert len(sizes) == 500
    assert np.mean(sizes) == pytest.approx(2e4, rel=0.2)
    assert sizes[:100] == sizes_bytes(3, flow)[:100] != sizes_bytes(4, flow)[:100]
