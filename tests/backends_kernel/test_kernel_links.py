"""Links that no other discipline is, on a real kernel, held against those of the simulator.

Both draw the same numbers, so that to the same packets the same thing happens.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pcapng
import polars as pl
import pytest

from backends_kernel.kernel_specs import spec_of

CALL = """
duration          = "4 s"
sampling_interval = "1 ms"
[bottleneck]
rate = "100 Mbit/s"
queue = { kind = "drop_tail", limit = "100 kB" }
[[flows]]
name = "one"
controller = "none"
rtt = "20 ms"
source = { kind = "cbr", rate = "4 Mbit/s", size = "1000 B" }
"""

DOWNLOAD = """
duration          = "10 s"
sampling_interval = "100 ms"
capture = true
[phases]
late = ["2 s", "10 s"]
[downlink]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[uplink]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
"""

# With the headers of UDP, IP and Ethernet.
PACKET_BYTES = 1042

CROWDED = '{ access_delay = { "0 %" = "3 ms", "50 %" = "5 ms", "100 %" = "15 ms" }, packets = 8 }'
STEPS = [(0, 0.0), (1_000_000_000, 0.02), (2_000_000_000, 1.0), (2_100_000_000, 0.3)]


def overall(record: Any, kind: str, position: int = 0, phase: str = "overall") -> dict[str, Any]:
    found: dict[str, Any] = record.summary[kind][position]["phases"][phase]
    return found


def per_interval(record: Any, column: str, link: str = "bottleneck") -> list[int]:
    column_of = record.links.filter(pl.col("link") == link)[column]
    return [int(value) for value in column_of]


def frames_of(record: Any) -> list[int]:
    """Packets of each frame: all of one have left before the wait for the next is over."""
    counts = per_interval(record, "sent_packets")
    idle = [n for n, count in enumerate(counts) if not count]
    between = (sum(counts[a + 1 : b]) for a, b in pairwise(idle))
    return [packets for packets in between if packets]


def is_conserved(record: Any) -> bool:
    """Whether what a flow of datagrams sent has come, was dropped, waits or is sent at the end."""
    sent, dropped = (
        overall(record, "flows")["sent_packets"],
        overall(record, "links")["dropped_packets"],
    )
    waiting = per_interval(record, "queue_bytes")[-1] // PACKET_BYTES
    there = sent - dropped - waiting - int(record.flows["received_packets"].sum())
    return 0 <= there <= 8


@pytest.mark.parametrize("rate", ["4 Mbit/s", pytest.param("30 Mbit/s", marks=pytest.mark.slow)])
def test_frames_are_those_of_the_simulator(rate, backend, simulator):
    """With 30 Mbit/s frames are full, and what waits meanwhile overflows the queue."""
    text = CALL.replace("4 Mbit/s", rate)
    spec = spec_of(text, {"bottleneck.frame_aggregation": CROWDED})
    real, simulated = backend.run(spec), simulator.run(spec)
    theirs, ours = frames_of(real), frames_of(simulated)
    assert len(ours) > 300
    assert sum(ours) / len(ours) == pytest.approx(8 if rate == "30 Mbit/s" else 4, rel=0.1)
    # The run may end in the last one.
    assert theirs[: len(ours) - 1] == ours[:-1]
    assert len(theirs) == pytest.approx(len(ours), abs=1)
    flows = [overall(run, "flows") for run in (real, simulated)]
    # The last datagram is due when the run ends.
    assert flows[0]["sent_packets"] == pytest.approx(flows[1]["sent_packets"], abs=1)
    for measured in ("one_way_delay_mean_s", "one_way_delay_p95_s", "one_way_delay_min_s"):
        delays = [flow[measured] for flow in flows]
        assert delays[0] == pytest.approx(delays[1], rel=0.005), measured
    dropped = [overall(run, "links")["dropped_overflow_packets"] for run in (real, simulated)]
    assert dropped[0] == pytest.approx(dropped[1], rel=0.005)
    assert (dropped[1] > 0) == (rate == "30 Mbit/s")
    assert is_conserved(real)


def test_acks_in_frames_are_those_of_the_simulator(backend, simulator):
    spec = spec_of(
        DOWNLOAD,
        {
            "uplink.frame_aggregation": CROWDED,
            "downlink.frame_aggregation": '{ access_delay = "1 ms" }',
        },
    )
    records = [run.run(spec) for run in (backend, simulator)]
    late = [overall(record, "flows", phase="late") for record in records]
    assert late[0]["goodput_bps"] == pytest.approx(late[1]["goodput_bps"], rel=0.01)
    theirs, ours = (record.flows["srtt_s"][20:].mean() for record in records)
    assert theirs == pytest.approx(ours, rel=0.03)
    # The waits of both ways cost a fifth of the link.
    assert late[1]["goodput_bps"] < 0.85 * 20e6 * 1448 / 1514


def test_recorded_losses_are_of_the_same_packets(backend, simulator):
    spec = spec_of(CALL)
    spec["links"][0]["loss_steps"] = [{"at_ns": at, "probability": p} for at, p in STEPS]
    real, simulated = backend.run(spec), simulator.run(spec)
    lost = [per_interval(run, "dropped_loss") for run in (real, simulated)]
    # Those of the last interval may be of packets that have not been sent yet at its end.
    assert lost[0] == lost[1]
    assert sum(lost[0][:1000]) == 0
    # One comes every 2 ms; of 500 are 10 lost, then all, then 285 of 950.
    assert 3 < sum(lost[0][1000:2000]) < 20
    assert sum(lost[0][2000:2100]) == 50
    assert 240 < sum(lost[0][2100:]) < 330
    assert is_conserved(real)


@pytest.mark.parametrize("most", [pytest.param(2, marks=pytest.mark.slow), 16])
def test_acks_are_thinned_out_as_in_the_simulator(most, backend, simulator):
    thinning = f'{{ max_acks = {most}, max_delay = "10 ms" }}'
    spec = spec_of(DOWNLOAD, {"uplink.ack_thinning": thinning, "flows.one.size": '"4 MB"'})
    real, simulated = backend.run(spec), simulator.run(spec)
    theirs, ours = (overall(run, "links", 1) for run in (real, simulated))
    filtered = theirs["dropped_ack_filter_packets"]
    assert filtered == pytest.approx(ours["dropped_ack_filter_packets"], rel=0.05)
    assert filtered > 500
    assert theirs["dropped_packets"] == filtered
    flows = [run.summary["flows"][0] for run in (real, simulated)]
    assert flows[0]["completion_time_s"] == pytest.approx(flows[1]["completion_time_s"], rel=0.02)
    # What the receiver sent and the sender did not see is what was dropped in between.
    seen = [
        sum(not packet.payload for packet in pcapng.read(real.captures[f"one.{end}"]).of(2))
        for end in ("receiver", "sender")
    ]
    assert seen[0] - seen[1] == filtered


def test_a_shaper_within_a_link_of_ours_sends_when_it_may(backend, simulator):
    """It has packets and no tokens when the link asks, and has to be asked again."""
    queue = '{ kind = "tbf", rate = "10 Mbit/s", burst = "15 kB", limit = "100 kB" }'
    jitter = '{ quantiles = { "0 %" = "0 ms", "100 %" = "1 ms" }, correlation = "1 s" }'
    spec = spec_of(overrides={"bottleneck.queue": queue, "bottleneck.jitter": jitter})
    late = [overall(run.run(spec), "flows", phase="late") for run in (backend, simulator)]
    assert late[0]["goodput_bps"] == pytest.approx(late[1]["goodput_bps"], rel=0.01)
    assert late[1]["goodput_bps"] == pytest.approx(10e6 * 1448 / 1514, rel=0.01)


ROUTES = """
duration          = "6 s"
sampling_interval = "10 ms"
[phases]
second = ["3 s", "4 s"]
[[links]]
name  = "far"
rate  = "20 Mbit/s"
delay = "50 ms"
loss  = "1 %"
queue = { kind = "drop_tail", limit = "400 kB" }
[[links]]
name  = "near"
rate  = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[links]]
name  = "last"
rate  = "100 Mbit/s"
delay = "1 ms"
queue = { kind = "drop_tail", limit = "100 kB" }
[[links]]
name  = "back"
rate  = "5 Mbit/s"
delay = "30 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name         = "one"
controller   = "none"
source       = { kind = "cbr", rate = "2 Mbit/s", size = "250 B" }
rtt          = "100 ms"
path         = ["far", "last"]
reverse_path = ["back"]
routes = [
    { at = "2 s", path = ["near", "last"], reverse_path = [] },
    { at = "4 s", path = ["far", "last"], reverse_path = ["back"] },
]
"""

UPLOAD = """
seed = 2
duration = "20 s"
[[links]]
name = "down"
rate = "20 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[links]]
name = "up"
rate = "1 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "50 packets" }
[[flows]]
name = "download"
controller = "cubic"
path = ["down"]
reverse_path = ["up"]
rtt = "100 ms"
start_jitter = "500 ms"
[[flows]]
name = "upload"
controller = "cubic"
path = ["up"]
reverse_path = ["down"]
rtt = "100 ms"
start_jitter = "500 ms"
"""


def test_packets_move_to_the_links_of_a_new_route(backend, simulator):
    """At the change, packets of both routes arrive."""
    records = [run.run(spec_of(ROUTES)) for run in (backend, simulator)]
    for link in ("far", "near", "last"):
        theirs, ours = (per_interval(record, "sent_packets", link) for record in records)
        assert sum(theirs) == pytest.approx(sum(ours), abs=3), link
        assert max(abs(a - b) for a, b in zip(theirs, ours, strict=True)) <= 2, link
    theirs, ours = ([round(it) for it in record.flows["received_packets"]] for record in records)
    # From 10 ms after the change to 50 ms after it, twice as many packets arrive.
    assert sum(theirs[202:205]) == pytest.approx(sum(ours[202:205]), abs=3) == 60
    assert sum(theirs) == pytest.approx(sum(ours), abs=3)
    lost = [overall(record, "links")["dropped_loss_packets"] for record in records]
    assert lost[0] == pytest.approx(lost[1], abs=1)
    assert lost[1] > 20


def test_what_links_do_not_delay_follows_the_queue_of_acknowledgements(backend, simulator):
    """The other order gives the download 14 % less."""
    spec = spec_of(UPLOAD)
    theirs, ours = (overall(run.run(spec), "flows") for run in (backend, simulator))
    assert theirs["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.1)
    assert theirs["rtt_mean_s"] == pytest.approx(ours["rtt_mean_s"], rel=0.1)


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_connections_over_changing_routes_are_those_of_the_simulator(transport, backend, simulator):
    text = ROUTES.replace('loss  = "1 %"\n', "").replace('"none"', '"cubic"')
    text = text.replace('source       = { kind = "cbr", rate = "2 Mbit/s", size = "250 B" }', "")
    spec = spec_of(text, {"flows.one.transport": f'"{transport}"'})
    records = [run.run(spec) for run in (backend, simulator)]
    theirs, ours = (overall(record, "flows") for record in records)
    assert theirs["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.05)
    theirs, ours = (overall(record, "flows", phase="second") for record in records)
    assert theirs["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.05)
    assert theirs["rtt_mean_s"] == pytest.approx(ours["rtt_mean_s"], rel=0.05)


ALONE = """
duration = "20 s"
[uplink]
rate = "2 Mbit/s"
delay = "{delay} ms"
queue = {{ kind = "drop_tail", limit = "4 BDP" }}
[downlink]
rate = "20 Mbit/s"
delay = "{delay} ms"
queue = {{ kind = "drop_tail", limit = "4 BDP" }}
[[flows]]
name = "upload"
controller = "cubic"
direction = "up"
rtt = "{rtt} ms"
timers = {{ hz = 1000 }}
"""


@pytest.mark.parametrize("delay_ms", [10, 11, 12, 13, 14])
def test_what_leaves_at_an_instant_makes_room_for_what_comes(backend, simulator, delay_ms):
    """ACKs clock packets out in step with the link, so a full queue has many such instants."""
    spec = spec_of(ALONE.format(delay=delay_ms, rtt=20 + 2 * delay_ms))
    theirs, ours = (overall(run.run(spec), "flows") for run in (backend, simulator))
    assert theirs["retransmitted_packets"] == pytest.approx(ours["retransmitted_packets"], abs=1)
    assert theirs["rtt_mean_s"] == pytest.approx(ours["rtt_mean_s"], rel=0.02)


RESPONSES = """
duration = "6 s"
[[links]]
name = "first"
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
[[links]]
name = "second"
rate = "1 Mbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "one"
controller = "cubic"
path = ["first", "second"]
rtt = "100 ms"
source = { kind = "request_response", size = "1448 B", think_time = "200 ms" }
"""


def test_a_response_takes_the_transmission_on_every_link(backend, simulator):
    spec = spec_of(RESPONSES)
    theirs, ours = (overall(run.run(spec), "flows") for run in (backend, simulator))
    by_hand_s = 2 * 1514 * 8 / 1e6
    assert ours["response_time_p50_s"] == pytest.approx(by_hand_s, rel=0.02)
    assert theirs["response_time_p50_s"] == pytest.approx(by_hand_s, rel=0.02)


CLASSES = """
duration = "4 s"
[bottleneck]
rate = "2 Mbit/s"
[bottleneck.queue]
kind = "KIND"
[bottleneck.queue.classes]
first = {}
default = { queue = { kind = "codel", limit = "100 packets", ecn = true } }
[[flows]]
name = "one"
controller = "cubic"
rtt = "100 ms"
ecn = ECN
"""


@pytest.mark.parametrize("kind", ["prio", "drr"])
@pytest.mark.parametrize(("ecn", "what"), [("true", "marked"), ("false", "dropped")])
def test_classes_have_the_reasons_of_their_queues(backend, simulator, kind, ecn, what):
    spec = spec_of(CLASSES.replace("KIND", kind).replace("ECN", ecn))
    theirs, ours = (overall(run.run(spec), "links") for run in (backend, simulator))
    assert theirs[f"{what}_codel_packets"] == theirs[f"{what}_packets"]
    assert theirs[f"{what}_packets"] == pytest.approx(ours[f"{what}_packets"], abs=3)


RED = """
duration = "20 s"
[bottleneck]
rate = "6 Mbit/s"
queue = { kind = "red", limit = "280 kB", min = "20 kB", max = "60 kB", probability = 0.1 }
[[flows]]
name = "one"
controller = "reno"
rtt = "90 ms"
"""


def test_an_empty_queue_of_red_becomes_idle(backend, simulator):
    """Its average falls, and it does not drop the packets that end the recovery."""
    theirs, ours = (overall(run.run(spec_of(RED)), "flows") for run in (backend, simulator))
    assert theirs["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.3)
