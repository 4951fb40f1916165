"""Applications that write by the clock, on a real kernel beside the simulator."""

from __future__ import annotations

import pytest

from backends_kernel.kernel_specs import spec_of

FRAMES = """
duration = "4 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
queue = { kind = "drop_tail", limit = "60 packets" }
[[flows]]
name = "video"
controller = "cubic"
rtt = "30 ms"
source.kind = "media"
source.fps = 30
source.key_frame_size = "37.5 kB"
source.delta_frame_size = "3.75 kB"
source.deadline = "100 ms"
"""


@pytest.mark.parametrize("transport", ["tcp", pytest.param("quic", marks=pytest.mark.slow)])
def test_frames_take_as_long_as_in_the_simulator(transport, backend, simulator):
    spec = spec_of(FRAMES, {"flows.video.transport": f'"{transport}"'})
    runs = simulator.run(spec), backend.run(spec)
    ours, theirs = (run.summary["flows"][0]["phases"]["overall"] for run in runs)
    assert ours["frames"] == theirs["frames"] > 100
    assert theirs["frame_delay_p50_s"] == pytest.approx(ours["frame_delay_p50_s"], rel=0.02)
    assert theirs["frame_delay_mean_s"] == pytest.approx(ours["frame_delay_mean_s"], rel=0.05)
    assert theirs["frame_delay_max_s"] == pytest.approx(ours["frame_delay_max_s"], rel=0.1)
    assert theirs["late_frames"] == pytest.approx(ours["late_frames"], abs=0.02)


def test_a_trace_is_replayed_and_completes(backend, simulator):
    spec = spec_of(FRAMES)
    writes = [(100, 5_000), (400, 20_000), (401, 700), (1_500, 1)]
    spec["flows"][0]["source"] = {
        "kind": "trace",
        "writes": [{"at_ns": ms * 10**6, "bytes": size} for ms, size in writes],
        "deadline_ns": None,
    }
    ours, theirs = (run.summary["flows"][0] for run in (simulator.run(spec), backend.run(spec)))
    assert theirs["completion_time_s"] == pytest.approx(ours["completion_time_s"], abs=1e-3)
    found = theirs["phases"]["overall"]
    assert found["frames"] == 4
    mean_s = ours["phases"]["overall"]["frame_delay_mean_s"]
    assert found["frame_delay_mean_s"] == pytest.approx(mean_s, rel=0.05)
    assert found["late_frames"] is None
