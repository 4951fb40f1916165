"""Timers on the ticks of a kernel, beside those of the simulator."""

from __future__ import annotations

import pytest

from backends_kernel.kernel_specs import spec_of

# More than the link carries: connections back off, and their timers expire in coarse steps.
OVERLOAD = """
duration = "60 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "visits"
controller = "cubic"
rtt = "40.9 ms"
source = { kind = "fixed", size = "100 kB" }
arrivals = { load = "130 %" }
"""


@pytest.mark.slow
def test_ticks_explain_what_linux_retransmits_under_overload(backend, simulator):
    def retransmitted(run, timers):
        spec = spec_of(OVERLOAD, {"flows.visits.timers": timers})
        return run.run(spec).summary["flows"][0]["phases"]["overall"]["retransmission_ratio"]

    linux = retransmitted(backend, "{ hz = 1000 }")
    assert retransmitted(simulator, "{ hz = 1000 }") == pytest.approx(linux, rel=0.06)
    # With exact timers, it is 29 % more.
    assert retransmitted(simulator, '"none"') > 1.2 * linux
