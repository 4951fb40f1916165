"""Datagrams that nobody answers: what they ask for, and how good a call is that they carry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jostle import _core, scenario
from jostle.scenario import ScenarioError

SCENARIOS = Path(__file__).parents[1] / "scenarios"

ALONE = """
duration = "10 s"
[bottleneck]
rate = "1 Mbit/s"
delay = "30 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "call"
controller = "none"
rtt = "60 ms"
source = {SOURCE}
"""


def spec_of(tmp_path: Path, source: str) -> dict[str, object]:
    path = tmp_path / "call.toml"
    path.write_text(ALONE.replace("{SOURCE}", source))
    return dict(scenario.load(path).plan().runs[0].spec)


def overall(spec: dict[str, object]) -> dict[str, float]:
    (flow,) = json.loads(_core.run(json.dumps(spec)).summary)["flows"]
    return dict(flow["phases"]["overall"])


def test_a_call_over_an_empty_link_has_the_delay_of_its_way_and_nothing_else(tmp_path: Path):
    spec = spec_of(tmp_path, '{ kind = "cbr", codec = "g711" }')
    found = overall(spec)
    # 172 bytes of payload and 42 of headers at 1 Mbit/s; 500 of them leave in 10 s.
    delay_s = 0.03 + 214 * 8 / 1e6
    assert found["sent_packets"] == 500
    assert found["one_way_delay_mean_s"] == pytest.approx(delay_s, abs=1e-9)
    assert found["jitter_mean_s"] == pytest.approx(0, abs=1e-9)
    assert found["lost_share"] == 0
    assert found["mouth_to_ear_s"] == pytest.approx(0.02 + 0.00375 + delay_s, abs=1e-6)
    # Cole and Rosenbluth: 93.2 less 0.024 per ms.
    assert found["r_factor"] == pytest.approx(93.2 - 0.024 * 55.5, abs=0.5)
    assert found["mos"] == pytest.approx(4.38, abs=0.02)


def test_a_rate_in_steps_sends_what_its_steps_say(tmp_path: Path):
    steps = '[["0 s", "0 bit/s"], ["2 s", "80 kbit/s"], ["5 s", "0 bit/s"], ["9 s", "8 kbit/s"]]'
    found = overall(spec_of(tmp_path, f'{{ kind = "cbr", size = "100 B", rate = {steps} }}'))
    # 100 per second for 3 s and one that was about to leave, then 10 per second for 1 s.
    assert found["sent_packets"] == pytest.approx(310, abs=1)
    assert found["r_factor"] is None
    assert found["mos"] is None


def test_a_deep_buffer_ruins_a_call_and_fair_queues_save_it():
    beside = {}
    runs = scenario.load(SCENARIOS / "voice.toml").plan(repeats=1).runs
    for queue, planned in zip(("deep buffer", "codel", "fq_codel"), runs, strict=True):
        summary = json.loads(_core.run(json.dumps(planned.spec)).summary)
        call = next(flow for flow in summary["flows"] if flow["name"] == "call")
        assert call["phases"]["before"]["mos"] > 4.3
        beside[queue] = call["phases"]["beside"]["mos"]
    assert beside["deep buffer"] < 3.1
    assert beside["fq_codel"] > 4.3
    assert beside["deep buffer"] < beside["codel"] < beside["fq_codel"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{ kind = "cbr", size = "160 B" }', "missing — write for example rate"),
        ('{ kind = "cbr", rate = "1 Mbit/s" }', "missing — write for example size"),
        ('{ kind = "cbr", codec = "g711", rate = "1 Mbit/s" }', "the codec says it"),
        ('{ kind = "cbr", codec = "opus" }', "is not known here"),
        (
            '{ kind = "cbr", rate = "1 Mbit/s", size = "160 B", playout_delay = "best" }',
            "only speech is played",
        ),
        ('{ kind = "cbr", codec = "g711", playout_delay = "soon" }', 'or "best", or a share'),
        ('{ kind = "cbr", rate = "1 Mbit/s", size = "1473 B" }', "at most 1472 bytes"),
        ('{ kind = "cbr", rate = "1 Gbit/s", size = "20 B" }', "more often than every 1000 ns"),
    ],
)
def test_what_makes_no_sense_is_said(tmp_path: Path, source: str, message: str):
    with pytest.raises(ScenarioError, match=message):
        spec_of(tmp_path, source)
