"""Links that send packets together: what a scenario says, and what becomes of packets and ACKs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import jostle
import pytest
from jostle.scenario import ScenarioError, load_text

SCENARIO = """
duration = "4 s"
sampling_interval = "2 ms"
[downlink]
rate = "50 Mbit/s"
queue = {{ kind = "drop_tail", limit = "200 kB" }}
[uplink]
rate = "50 Mbit/s"
queue = {{ kind = "drop_tail", limit = "200 kB" }}
{frames}
[[flows]]
name = "flow"
direction = "{direction}"
rtt = "20 ms"
{source}
"""
VOICE = 'controller = "none"\nsource = { kind = "cbr", rate = "8 Mbit/s", size = "1000 B" }'
BULK = 'controller = "cubic"\nsize = "2 MB"'


def run(frames: str, direction: str, source: str, folder: Path) -> jostle.ResultSet:
    text = SCENARIO.format(frames=frames, direction=direction, source=source)
    return jostle.run(load_text(text), store=folder)


def test_a_scenario_says_what_a_frame_is():
    text = SCENARIO.format(
        frames='frame_aggregation = { access_delay = "2 ms" }', direction="up", source=VOICE
    )
    link = load_text(text).plan(repeats=1).runs[0].spec["links"][1]
    points = [{"probability": p, "value_ns": 2_000_000} for p in (0.0, 1.0)]
    assert link["frames"] == {"packets": 64, "bytes": 65_535, "contention": points}
    without = SCENARIO.format(frames='frame_aggregation = "none"', direction="up", source=VOICE)
    assert "frames" not in load_text(without).plan(repeats=1).runs[0].spec["links"][1]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ("frame_aggregation = {}", "uplink.frame_aggregation.access_delay: missing"),
        (
            'frame_aggregation = { access_delay = "1 ms", packets = 0 }',
            "uplink.frame_aggregation.packets",
        ),
        (
            'frame_aggregation = { access_delay = "1 ms", size = 1 }',
            "uplink.frame_aggregation.size: 1 has no unit",
        ),
    ],
)
def test_what_cannot_be_is_said(frames: str, message: str):
    with pytest.raises(ScenarioError) as caught:
        load_text(SCENARIO.format(frames=frames, direction="up", source=VOICE))
    assert message in str(caught.value)


def test_packets_that_come_one_by_one_arrive_in_frames(tmp_path: Path):
    """One comes each ms and a frame has to wait for 7 ms: so many and more go together."""
    sent = {}
    for name, frames in (
        ("alone", ""),
        ("framed", 'frame_aggregation = { access_delay = "7 ms" }'),
    ):
        series = run(frames, "up", VOICE, tmp_path / name).series("uplink", "sent")
        sent[name] = [packets for at, packets in series.rows() if at > 1 and packets]
    assert set(sent["alone"]) <= {1, 2, 3}
    # 8 packets of 0.17 ms each: the link sends for 1.4 ms of each 8.4 ms.
    assert 7 <= max(sent["framed"]) <= 9
    assert sum(sent["framed"]) == pytest.approx(sum(sent["alone"]), abs=10)


def test_acks_that_arrive_together_send_data_in_bursts(tmp_path: Path):
    """Every 2 ms 8 ACKs come, and as many segments leave the queue of the downlink."""
    framed = 'frame_aggregation = { access_delay = "5 ms", packets = 64 }'
    acks, swing = {}, {}
    for name, frames in (("alone", ""), ("framed", framed)):
        found = run(frames, "down", BULK, tmp_path / name)
        sent = [packets for _, packets in found.series("uplink", "sent").rows()[100:150]]
        queue = [size for _, size in found.series("downlink", "queue_length").rows()[100:150]]
        acks[name] = sorted(set(sent))
        swing[name] = max(abs(b - a) for a, b in pairwise(queue))
    assert acks["alone"] == [8, 9]
    assert 0 in acks["framed"]
    assert max(acks["framed"]) >= 20
    # What 20 ACKs let go meets a queue that 8 segments leave meanwhile.
    assert swing["framed"] > 5 * swing["alone"]
