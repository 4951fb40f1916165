"""CAKE's ACK filter and its fairness between hosts: what `tc` is told, and beside Linux's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend, capabilities
from jostle.backends.kernel.topology import Burst, Machine, topology

from backends_kernel.kernel_specs import spec_of

SCENARIOS = Path(__file__).parents[2] / "scenarios"
MACHINE = Machine(Burst(200, 0))

HOUSEHOLD = """
duration = "5 s"
[downlink]
rate = "20 Mbit/s"
queue = { kind = "cake", isolation = "dual-dsthost" }
[uplink]
rate = "10 Mbit/s"
queue = { kind = "cake", isolation = "dual-srchost", ack_filter = "filter" }
[[flows]]
name = "tv"
controller = "cubic"
rtt = "40 ms"
receiver_host = "tv"
[[flows]]
name = "web"
count = 2
controller = "cubic"
rtt = "40 ms"
receiver_host = "laptop"
[[flows]]
name = "backup"
controller = "cubic"
direction = "up"
rtt = "40 ms"
sender_host = "laptop"
"""


def run_example(backend: Any, name: str, key: str, **parameters: str) -> Any:
    """An example with a CAKE of these parameters instead of its grid."""
    text = (SCENARIOS / name).read_text()
    given = "".join(f', {parameter} = "{value}"' for parameter, value in parameters.items())
    queue = f'{{ kind = "cake"{given} }}'
    return backend.run(spec_of(text.partition("\n[grid")[0], {key: queue}))


def measured(record: Any, kind: str, position: int, phase: str) -> dict[str, Any]:
    found: dict[str, Any] = record.summary[kind][position]["phases"][phase]
    return found


def test_tc_is_told_what_a_queue_shares_by():
    made = topology(spec_of(HOUSEHOLD), MACHINE)
    down, up = (made.hosts[name].tc for name in ("a0", "a1"))
    assert " besteffort dual-dsthost rtt " in down[2]
    assert "ack-filter" not in down[2]
    assert " besteffort dual-srchost rtt " in up[2]
    assert up[2].endswith(" ack-filter")
    match = "protocol ip prio 1 u32 match ip dst"
    # To the laptop go flows 1 and 2, and ACKs of the backup. The television is nobody else's.
    assert down[3:] == [
        f"filter add dev queue parent 10: {match} {address}/32 flowid 1:0"
        for address in ("10.2.0.2", "10.2.0.3", "10.1.0.4")
    ]
    # What the laptop sends: ACKs, to the senders of these flows, and data.
    assert up[3:] == [
        f"filter add dev queue parent 10: {match} {address}/32 flowid 1:0"
        for address in ("10.1.0.2", "10.1.0.3", "10.2.0.4")
    ]


@pytest.mark.parametrize(
    ("isolation", "classes"),
    [
        # Pairs of hosts are flows of one host; the ACKs of the backup come from a host of its own.
        ("hosts", ["1:1", "1:1", "1:2", "1:2"]),
        ("srchost", ["1:0", "1:0", "2:0", "2:0"]),
        ("dsthost", ["1:0", "1:0", "1:0", "1:0"]),
        ("triple-isolate", None),
        ("flows", []),
    ],
)
def test_both_ends_of_flows_may_be_shared(isolation, classes, defaults):
    text = HOUSEHOLD.replace("dual-dsthost", isolation)
    text = text.replace('receiver_host = "tv"', 'receiver_host = "laptop"\nsender_host = "b"')
    text = text.replace("count = 2", 'count = 2\nsender_host = "a"')
    text = text.replace('sender_host = "laptop"', 'receiver_host = "b"')
    text = text.replace('name = "tv"', 'name = "tv"\ncount = 2')
    spec = spec_of(text)
    found = capabilities.problems(spec, defaults, "virtual")
    if classes is None:
        assert [problem.key for problem in found] == [
            f"flows.{name}.receiver_host" for name in ("tv-1", "tv-2", "web-1", "web-2")
        ]
        return
    assert found == []
    filters = topology(spec, MACHINE).hosts["a0"].tc[3:]
    assert [line.split()[-1] for line in filters][:4] == classes


def test_a_queue_in_a_class_is_told_of_hosts():
    queue = '{ kind = "drr", classes = { default = { queue = "cake" } } }'
    spec = spec_of(HOUSEHOLD, {"downlink.queue": queue})
    spec["links"][0]["classes"][0]["queue"]["parameters"]["isolation"] = "dual-dsthost"
    lines = [line for line in topology(spec, MACHINE).hosts["a0"].tc if "parent 101:" in line]
    assert [line.split()[-1] for line in lines] == ["1:0", "1:0", "1:0"]


@pytest.mark.parametrize(
    "ack_filter",
    [
        pytest.param("none", marks=pytest.mark.slow),
        "filter",
        pytest.param("aggressive", marks=pytest.mark.slow),
    ],
)
def test_the_ack_filter_is_that_of_linux(ack_filter, backend):
    real, simulated = (
        run_example(one, "ack-filter.toml", "uplink.queue", ack_filter=ack_filter)
        for one in (backend, SimBackend())
    )
    for phase in ("download alone", "with upload"):
        flows = ("download",) if phase == "download alone" else ("download", "upload")
        for flow, _ in enumerate(flows):
            ours, theirs = (
                measured(record, "flows", flow, phase)["goodput_bps"]
                for record in (simulated, real)
            )
            # Beside the upload a drop more or less costs a download a twentieth of what it gets.
            within = 0.05 if phase == "download alone" else 0.1
            assert ours == pytest.approx(theirs, rel=within), (phase, flow)
        ours, theirs = (
            measured(record, "links", 1, phase)["dropped_ack_filter_packets"]
            for record in (simulated, real)
        )
        assert ours == pytest.approx(theirs, rel=0.1), phase
        assert (ours > 0) == (ack_filter != "none")


@pytest.mark.parametrize(
    ("isolation", "least", "most"),
    [
        pytest.param("flows", 0.10, 0.12, marks=pytest.mark.slow),
        pytest.param("dual-dsthost", 0.34, 0.5, marks=pytest.mark.slow),
        ("triple-isolate", 0.34, 0.5),
    ],
)
def test_hosts_share_as_on_linux(isolation, least, most, backend: KernelBackend):
    """A single Cubic flow leaves the link to the others for a while after each of its drops."""
    shares = []
    for one in (backend, SimBackend()):
        record = run_example(one, "household.toml", "bottleneck.queue", isolation=isolation)
        goodputs = [measured(record, "flows", n, "late")["goodput_bps"] for n in range(9)]
        assert sum(goodputs) == pytest.approx(20e6 * 1448 / 1514, rel=0.03)
        shares.append(goodputs[0] / sum(goodputs))
        assert least < shares[-1] < most
    assert shares[0] == pytest.approx(shares[1], rel=0.05)


OVERLOAD = """
duration = "1 s"
sampling_interval = "10 ms"
[bottleneck]
rate = "1 Gbit/s"
queue = { kind = "cake", rate = "100 Mbit/s" }
[[flows]]
name = "heavy"
controller = "none"
transport = "udp"
rtt = "20 ms"
source = { kind = "cbr", rate = "150 Mbit/s", size = "1400 B" }
"""


@pytest.mark.parametrize(
    ("size", "memory_limit", "rate"),
    [pytest.param("1400 B", "0 B", 150, marks=pytest.mark.slow), ("400 B", "300 kB", 60)],
)
def test_memory_limits_the_queue_as_on_linux(size, memory_limit, rate, backend: KernelBackend):
    """By default 5 MB for this shaper, of which a datagram of 1400 bytes occupies 2304 bytes."""
    text = OVERLOAD.replace("1400 B", size).replace("150 Mbit", f"{rate} Mbit")
    text = text.replace(
        '"100 Mbit/s"', f'"{rate * 2 // 3} Mbit/s", memory_limit = "{memory_limit}"'
    )
    if memory_limit == "300 kB":
        text = text.replace("1 s", "200 ms")
    longest = [one.run(spec_of(text)).links["queue_bytes"].max() for one in (backend, SimBackend())]
    assert longest[0] == pytest.approx(longest[1], rel=0.02)
