"""Applications write the same on a real kernel and in the simulator, on a path without a queue."""

from __future__ import annotations

import numpy as np
import pcapng
import pytest

from backends_kernel.kernel_specs import spec_of

LINK = """
[bottleneck]
rate = "1 Gbit/s"
queue = { kind = "drop_tail", limit = "10 MB" }
"""
FLOW = """
[[flows]]
name = "{name}"
controller = "cubic"
rtt = "20 ms"
start = "{start_ms} ms"
source = {source}
"""
# Messages that fit into the initial window, so that each is sent at once.
SIZE = '{ distribution = "exponential", mean = "5 kB", max = "14 kB" }'
SOURCES = {
    "fixed": f'{{ kind = "fixed", size = {SIZE} }}',
    "on_off": (
        '{ kind = "on_off", on = { distribution = "exponential", mean = "60 ms", max = "90 ms" }, '
        'off = { distribution = "exponential", mean = "500 ms", min = "400 ms" } }'
    ),
    "request_response": (
        f'{{ kind = "request_response", size = {SIZE}, '
        'think_time = { distribution = "exponential", mean = "100 ms" } }'
    ),
    "visits": f'{{ kind = "request_response", size = {SIZE}, think_time = "50 ms", count = 7 }}',
    "media": (
        '{ kind = "media", fps = 30, key_frame_size = "12 kB", delta_frame_size = "3 kB", '
        'key_frame_interval = 5, deadline = "100 ms" }'
    ),
    "video": (
        '{ kind = "video", abr = "buffer", bitrates = ["20 kbit/s", "60 kbit/s", "100 kbit/s"], '
        'segment = "1 s", buffer = "12 s", variation = "30 %" }'
    ),
}
TRACE = [(100, 5_000), (400, 9_000), (440, 700), (1_500, 1)]


@pytest.fixture(scope="module")
def captured(backend, simulator):
    """The record of the simulator and that of the kernel, of one flow for each application."""
    flows = [
        FLOW.format(name=name, start_ms=10 * number, source=source)
        for number, (name, source) in enumerate(SOURCES.items())
    ]
    trace = FLOW.format(name="trace", start_ms=70, source='"bulk"')
    spec = spec_of(f'duration = "6 s"\ncapture = true\n{LINK}{"".join(flows)}{trace}')
    spec["flows"][-1]["source"] = {
        "kind": "trace",
        "writes": [{"at_ns": ms * 10**6, "bytes": size} for ms, size in TRACE],
        "deadline_ns": None,
    }
    return simulator.run(spec), backend.run(spec)


def writes(record, name, gap_ms):
    """Times in ms since the SYN and bytes of what was sent with less than `gap_ms` between."""
    sent = pcapng.read(record.captures[f"{name}.sender"]).of(1)
    data = [packet for packet in sent if packet.payload]
    times_ms = np.array([(packet.time_ns - sent[0].time_ns) / 1e6 for packet in data])
    begins = np.flatnonzero(np.diff(times_ms, prepend=-np.inf) >= gap_ms)
    return times_ms[begins], np.add.reduceat([packet.payload for packet in data], begins)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fixed", 1),
        ("request_response", 30),
        ("visits", 7),
        ("media", 170),
        ("trace", 4),
        ("video", 14),
    ],
)
def test_messages_are_written_as_in_the_simulator(name, count, captured):
    (ours_ms, ours_bytes), (theirs_ms, theirs_bytes) = (writes(it, name, 10) for it in captured)
    assert len(ours_bytes) >= count
    assert theirs_bytes.tolist() == ours_bytes.tolist()
    assert theirs_ms == pytest.approx(ours_ms, abs=2)


def test_on_periods_begin_as_in_the_simulator(captured):
    (ours_ms, ours_bytes), (theirs_ms, theirs_bytes) = (
        writes(record, "on_off", 100) for record in captured
    )
    assert len(ours_ms) >= 6
    assert theirs_ms == pytest.approx(ours_ms, abs=2)
    # Also what was in the send buffer when a period ended.
    assert theirs_bytes.tolist() == ours_bytes.tolist()


MANY = f"""
duration = "6 s"
sampling_interval = "50 ms"
{LINK}
[[flows]]
name = "web"
controller = "cubic"
rtt = "20 ms"
source.kind = "web"
source.think_time = {{ distribution = "exponential", mean = "100 ms" }}
source.pages = 12
[[flows]]
name = "short"
controller = "cubic"
rtt = "20 ms"
size = {SIZE}
arrivals = {{ rate = "20 /s" }}
[[flows]]
name = "sessions"
controller = "cubic"
rtt = "20 ms"
source.kind = "sessions"
source.rate = "3 /s"
source.size = {SIZE}
source.think_time = {{ distribution = "exponential", mean = "50 ms" }}
source.count = {{ distribution = "exponential", mean = "4" }}
[[flows]]
name = "call"
controller = "none"
rtt = "20 ms"
start = "13 ms"
source = {{ kind = "cbr", codec = "g711" }}
[[flows]]
name = "ping"
controller = "none"
rtt = "20 ms"
source = {{ kind = "ping", size = "56 B", period = "70 ms", timeout = "1 s" }}
"""


@pytest.fixture(scope="module")
def many(backend, simulator):
    spec = spec_of(MANY)
    return simulator.run(spec), backend.run(spec)


@pytest.mark.parametrize("name", ["short", "sessions"])
def test_transfers_are_requested_as_in_the_simulator(name, many):
    ours, theirs = (record.transfers.filter(flow=name) for record in many)
    assert len(ours) > 50
    assert theirs["bytes"].to_list() == ours["bytes"].to_list()
    for column in ("time_s", "completion_time_s"):
        assert theirs[column].to_numpy() == pytest.approx(
            ours[column].to_numpy(), abs=2e-3, nan_ok=True
        )
    if name == "short":
        assert theirs["time_s"].to_list() == ours["time_s"].to_list()


def test_pages_are_those_of_the_simulator(many):
    ours, theirs = (record.summary["flows"][0] for record in many)
    assert theirs["pages"] == ours["pages"] == 12
    delivered_bps = [it["phases"]["overall"]["goodput_bps"] for it in (ours, theirs)]
    assert delivered_bps[1] == pytest.approx(delivered_bps[0], rel=1e-9)
    for name in ("page_load_time_p50_s", "page_load_time_mean_s", "page_load_time_p95_s"):
        assert theirs[name] == pytest.approx(ours[name], rel=0.03), name


@pytest.mark.parametrize("name", ["call", "ping"])
def test_datagrams_leave_when_they_do_in_the_simulator(name, many):
    ours, theirs = (record.flows.filter(flow=name)["sent_packets"].to_list() for record in many)
    # What leaves at the end of an interval may count in it, or in the next one.
    assert np.abs(np.cumsum(theirs) - np.cumsum(ours)).max() <= 1
    assert sum(theirs) == sum(ours) > 80


@pytest.mark.parametrize("name", ["request_response", "visits", "media"])
def test_messages_over_quic_are_those_of_the_simulator(name, backend, simulator):
    flow = FLOW.format(name=name, start_ms=0, source=SOURCES[name]) + 'transport = "quic"\n'
    spec = spec_of(f'duration = "3 s"\n{LINK}{flow}')
    ours, theirs = (it.run(spec).summary["flows"][0] for it in (simulator, backend))
    overall = [it["phases"]["overall"] for it in (ours, theirs)]
    assert overall[1]["goodput_bps"] == pytest.approx(overall[0]["goodput_bps"], rel=1e-9)
    counted = "frames" if name == "media" else "responses"
    assert overall[1][counted] == overall[0][counted] > 5
