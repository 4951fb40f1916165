"""Applications that write by the clock: their frames, when they are whole, and what is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle import _core, scenario
from jostle.scenario import ScenarioError

SCENARIOS = Path(__file__).parents[1] / "scenarios"

VIDEO = """
duration = "10 s"
[bottleneck]
rate = {RATE}
delay = "15 ms"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name = "video"
controller = "cubic"
rtt = "30 ms"
transport = "{TRANSPORT}"
source.kind = "media"
source.fps = 30
source.key_frame_size = "37.5 kB"
source.delta_frame_size = "3.75 kB"
source.deadline = "250 ms"
"""


def overall(text: str) -> Mapping[str, Any]:
    (planned,) = scenario.load_text(text).plan().runs
    (flow,) = json.loads(_core.run(json.dumps(planned.spec)).summary)["flows"]
    found: dict[str, Any] = flow["phases"]["overall"]
    return found


def video(rate: str, transport: str) -> Mapping[str, Any]:
    return overall(VIDEO.replace("{RATE}", rate).replace("{TRANSPORT}", transport))


@pytest.mark.parametrize(("transport", "wire_bytes"), [("tcp", 3948), ("quic", 3950)])
def test_a_frame_takes_its_way_and_its_sending(transport: str, wire_bytes: int):
    found = video('"100 Mbit/s"', transport)
    assert found["frames"] == 300
    assert found["late_frames"] == 0
    # Nine in ten frames are of three packets that leave at once.
    expected_s = 0.015 + wire_bytes * 8 / 100e6
    assert found["frame_delay_p50_s"] == pytest.approx(expected_s, rel=0.02)
    # A key frame is more than the initial window: the first takes two round trips more.
    assert 0.04 < found["frame_delay_max_s"] < 0.25
    assert found["response_time_mean_s"] is None
    assert found["responses"] is None


@pytest.mark.parametrize("transport", ["tcp", "quic"])
def test_frames_that_never_come_are_late(transport: str):
    found = video('[["0 s", "100 Mbit/s"], ["5 s", "0 Mbit/s"]]', transport)
    # Frames 0 to 292 were due by 9.75 s; 0 to 149 were written before the link stopped.
    assert found["frames"] == pytest.approx(150, abs=1)
    assert found["late_frames"] == pytest.approx(143 / 293, abs=0.005)


def test_a_deep_buffer_makes_frames_late_and_fair_queues_keep_them():
    runs = scenario.load(SCENARIOS / "media.toml").plan(repeats=1).runs
    late = []
    for planned in runs:
        flows = json.loads(_core.run(json.dumps(planned.spec)).summary)["flows"]
        late.append([flow["phases"]["settled"]["frame_delay_p95_s"] for flow in flows[:2]])
    alone, alone_fair, deep, fair = late
    for quiet in (alone, alone_fair):
        assert max(quiet) < 0.1
    assert min(deep) > 0.1
    assert max(fair) < min(deep)


def test_a_trace_is_replayed_and_ends():
    (planned,) = scenario.load(SCENARIOS / "replay.toml").plan(repeats=1).runs
    source = planned.spec["flows"][0]["source"]
    assert source["kind"] == "trace"
    record = json.loads(_core.run(json.dumps(planned.spec)).summary)
    conversation = record["flows"][0]
    found = conversation["phases"]["overall"]
    assert found["frames"] == len(source["writes"])
    last_s = source["writes"][-1]["at_ns"] / 1e9
    assert last_s < conversation["completion_time_s"] < last_s + 0.5
    assert found["frame_delay_p50_s"] > 0.02


TRACE = """
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "app"
controller = "reno"
rtt = "30 ms"
source = { kind = "trace", file = "app.csv" }
"""


def test_times_of_a_trace_are_exact(tmp_path: Path):
    (tmp_path / "app.csv").write_text("time,bytes\n# nothing\n0.1,100\n\n0.100000001,1\n1e-0, 7\n")
    (tmp_path / "app.toml").write_text(TRACE)
    (planned,) = scenario.load(tmp_path / "app.toml").plan().runs
    source = planned.spec["flows"][0]["source"]
    assert source == {
        "kind": "trace",
        "deadline_ns": None,
        "writes": [
            {"at_ns": 100_000_000, "bytes": 100},
            {"at_ns": 100_000_001, "bytes": 1},
            {"at_ns": 1_000_000_000, "bytes": 7},
        ],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("", "empty"),
        ("0.1,100\n0.2\n", 'line 2: "0.2" — a line is'),
        ("0.1,100\nsoon,5\n", 'line 2: "soon" is no number of seconds'),
        ("0.1,100\n0.2,0\n", 'line 2: "0" is not a whole number of bytes'),
        ("0.1,100\n0.05,7\n", "line 2: its time is earlier"),
        ("-1,100\n", "is no time of a run"),
        ("nan,100\n", "is no number of seconds"),
        ("0.1,1_0\n", 'line 1: "0.1,1_0"'),
    ],
)
def test_a_mistake_in_a_trace_is_told_with_its_line(
    tmp_path: Path, content: str | None, message: str
):
    if content is not None:
        (tmp_path / "app.csv").write_text(content)
    (tmp_path / "app.toml").write_text(TRACE)
    with pytest.raises(ScenarioError) as caught:
        scenario.load(tmp_path / "app.toml")
    assert message in str(caught.value)
    assert "app.csv" in str(caught.value)


def test_only_responses_are_responses_in_the_series() -> None:
    source = {"kind": "media", "fps": 30, "key_frame_size": "10 kB", "deadline": "100 ms"}
    sources = {
        "camera": source,
        "web": {"kind": "web", "think_time": "500 ms"},
        "requests": {"kind": "request_response", "size": "20 kB", "think_time": "300 ms"},
    }
    flows = [
        {"name": name, "controller": "cubic", "rtt": "40 ms", "source": source}
        for name, source in sources.items()
    ]
    link = {"rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}}
    document = {"duration": "5 s", "bottleneck": link, "flows": flows}
    run = jostle.run(jostle.Scenario.from_dict(document), store=False).results[0].run
    for flow in run.summary["flows"]:
        rows = run.flows.filter(run.flows["flow"] == flow["name"])
        counted = flow["phases"]["overall"]["responses"]
        assert rows["responses"].sum() == (counted or 0)
        assert (rows["response_time_mean_s"].drop_nulls().len() > 0) is (counted is not None)
