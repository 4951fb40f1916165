"""Faults and grants on a real kernel, compared with the simulator: both draw the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selection import one_in

from backends_kernel.kernel_specs import spec_of

ROOT = Path(__file__).parents[2]

DOWNLOAD = """
duration = "6 s"
[bottleneck]
rate  = "20 Mbit/s"
# Packets that skip it are early by less than the reordering window of RACK, a quarter of the RTT.
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name           = "one"
controller     = "cubic"
rtt            = "40 ms"
receive_window = "150 kB"
"""
COUNTS = (
    "dropped_loss_packets",
    "dropped_corruption_packets",
    "dropped_delay_queue_packets",
    "duplicated_packets",
    "marked_fault_packets",
)


def overall(record: Any, kind: str, position: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = record.summary[kind][position]["phases"]["overall"]
    return found


FAULTS = [
    '{ packets = [{ flow = "one", lose = [3000] }] }',
    # Retransmissions are lost, too: packet 3060 and later ones are sent after the recovery began.
    '{ packets = [{ lose = [3000, 3001, 3060, 3090, 3105] }] }',
    '{ packets = [{ duplicate = ["3000-3010"] }] }',
    # Later than the reordering window of RACK: a spurious retransmission, which D-SACK undoes.
    '{ packets = [{ delay = [3000, 3400, 3800, "5000-5010"], late = "60 ms" }] }',
    '{ packets = [{ corrupt = ["3000-3002"] }] }',
    '{ duplicate = { probability = "10 %", correlation = "25 %" } }',
    '{ corrupt = "0.1 %" }',
    '{ reorder = { probability = "50 %", gap = 200, late = "3 ms" } }',
    '{ reorder = { gap = 100 } }',
    '{ packets = [{ count = "handshake", lose = [1] }] }',
]  # fmt: skip


@pytest.mark.parametrize("faults", one_in(3, FAULTS))
def test_recovery_is_that_of_linux(faults, backend, simulator):
    spec = spec_of(DOWNLOAD, {"bottleneck.faults": faults})
    real, simulated = backend.run(spec), simulator.run(spec)
    theirs, ours = overall(real, "flows"), overall(simulated, "flows")
    # Linux counts the retransmission of a SYN, and the ACK of its handshake is a packet that shifts
    # where a gap ends.
    slack = 1 if "handshake" in faults or "gap" in faults else 0
    found = theirs["retransmitted_packets"]
    assert found == pytest.approx(ours["retransmitted_packets"], abs=slack)
    assert theirs["cwnd_mean_bytes"] == pytest.approx(ours["cwnd_mean_bytes"], rel=0.03)
    assert theirs["throughput_bps"] == pytest.approx(ours["throughput_bps"], rel=0.01)
    links = [overall(run, "links") for run in (real, simulated)]
    # The window probe at the end of the run may be one packet apart.
    for key in COUNTS:
        assert links[0][key] == pytest.approx(links[1][key], abs=1 + 0.01 * links[1][key]), key


def test_marks_by_number_are_seen(backend, simulator):
    marks = '{ packets = [{ mark = ["2000-2002", 6000] }] }'
    spec = spec_of(DOWNLOAD, {"bottleneck.faults": marks, "flows.one.ecn": "true"})
    real, simulated = backend.run(spec), simulator.run(spec)
    cwnds = [overall(run, "flows")["cwnd_mean_bytes"] for run in (real, simulated)]
    assert cwnds[0] == pytest.approx(cwnds[1], rel=0.03)
    assert [overall(run, "links")["marked_fault_packets"] for run in (real, simulated)] == [4, 4]


@pytest.mark.parametrize("covers", ["delay", "queue and delay"])
def test_netems_limit_is_reached_alike(covers, backend, simulator):
    given = {
        "bottleneck.rate": '"100 Mbit/s"',
        "bottleneck.delay": '"30 ms"',
        "bottleneck.netem": f'{{ limit = 100, limit_covers = "{covers}" }}',
        "flows.one.receive_window": '"8 MB"',
    }
    spec = spec_of(DOWNLOAD, given)
    real, simulated = backend.run(spec), simulator.run(spec)
    dropped = [overall(run, "links")["dropped_packets"] for run in (real, simulated)]
    assert dropped[0] == pytest.approx(dropped[1], rel=0.2)
    assert dropped[1] > 20
    rates = [overall(run, "flows")["throughput_bps"] for run in (real, simulated)]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)


def test_a_batch_has_one_random_delay_in_both(backend, simulator):
    quantiles = '[["0 %", "0 ms"], ["100 %", "5 ms"]]'
    given = {
        "bottleneck.rate": '"1 Gbit/s"',
        "bottleneck.jitter": f'{{ quantiles = {quantiles}, correlation = "0 s", reorder = true }}',
        "flows.one.nic_rate": '"1 Gbit/s"',
    }
    results = {}
    for per_batch in ("true", "false"):
        given["bottleneck.netem"] = f"{{ jitter_per_batch = {per_batch} }}"
        spec = spec_of(DOWNLOAD, given)
        runs = [backend.run(spec), simulator.run(spec)]
        results[per_batch] = [overall(run, "flows")["throughput_bps"] for run in runs]
        assert results[per_batch][0] == pytest.approx(results[per_batch][1], rel=0.1)


def test_grants_are_those_of_the_simulator(backend, simulator):
    text = (ROOT / "scenarios/cookbook/return-channel.toml").read_text().partition("\n[grid")[0]
    spec = spec_of(text, {"flows.download.size": '"20 MB"'})
    real, simulated = backend.run(spec), simulator.run(spec)
    times = [run.summary["flows"][0]["completion_time_s"] for run in (real, simulated)]
    assert times[0] == pytest.approx(times[1], rel=0.01)
    waits = [overall(run, "links", 1)["queueing_delay_mean_s"] for run in (real, simulated)]
    assert waits[0] == pytest.approx(waits[1], rel=0.1)
    assert waits[1] > 0.1
