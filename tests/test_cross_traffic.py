"""Cross traffic at the bottleneck of a captured flow: its estimate, and candidates beside it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import pytest
import rewritten
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.inference import run_context
from jostle.inference.identify import identify, probabilities
from jostle.inference.network_source import find_network
from jostle.inference.observed_flow import ObservedFlow, observe
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import load_text

RATE_BPS = 10e6
SCENARIO = """
duration = "30 s"
seed = 3
capture = true
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "80 kB" }
[[flows]]
name = "one"
controller = "CONTROLLER"
rtt = "50 ms"
"""
OTHER = """
[[flows]]
name = "other"
controller = "cubic"
rtt = "20 ms"
start = "8 s"
nic_rate = "4 Mbit/s"
source = { kind = "on_off", on = "4 s", off = "6 s" }
"""


def text_of(controller: str, *, other: bool = True) -> str:
    return SCENARIO.replace("CONTROLLER", controller) + (OTHER if other else "")


def capture(controller: str, path: Path, end: str = "sender", *, other: bool = True) -> Path:
    record = SimBackend().run(load_text(text_of(controller, other=other)).plan().runs[0].spec)
    path.write_bytes(rewritten.pcap(rewritten.frames(record.captures[f"one.{end}"])))
    return path


def observed(path: Path) -> ObservedFlow:
    return observe(jostle.analyze(path).results[0].run)


def mean_bps(flow: ObservedFlow, start_s: float, stop_s: float) -> float:
    """Mean rate of the estimated cross traffic in a time."""
    total = 0.0
    for (low_s, rate_bps), (high_s, _) in pairwise([*flow.cross_traffic, (np.inf, 0.0)]):
        total += max(0.0, min(high_s, stop_s) - max(low_s, start_s)) * rate_bps
    return total / (stop_s - start_s)


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("controller", ["cubic", "reno", "bbr"])
def test_the_estimate_is_what_others_sent(controller, end, tmp_path):
    flow = observed(capture(controller, tmp_path / "a.pcap", end))
    record = SimBackend().run(load_text(text_of(controller)).plan().runs[0].spec)
    other = record.flows.filter(flow="other")
    for start_s, stop_s in ((8.0, 13.0), (13.0, 18.0), (18.0, 23.0), (23.0, 28.0)):
        inside = (other["time_s"] > start_s) & (other["time_s"] <= stop_s)
        sent_bps = other.filter(inside)["throughput_bps"].mean()
        assert mean_bps(flow, start_s, stop_s) == pytest.approx(sent_bps, abs=0.03 * RATE_BPS)


@pytest.mark.parametrize("end", ["sender", "receiver"])
@pytest.mark.parametrize("controller", ["cubic", "reno", "bbr", "vegas", "htcp"])
def test_a_flow_alone_has_none(controller, end, tmp_path):
    flow = observed(capture(controller, tmp_path / "a.pcap", end, other=False))
    assert flow.cross_traffic == ()
    assert run_context.alternative_networks(run_context.spec_from_estimate(flow), flow) == []


@pytest.mark.parametrize("controller", ["reno", "cubic", "westwood"])
def test_the_sender_is_named_beside_others(controller, tmp_path):
    flow = observed(capture(controller, tmp_path / "a.pcap"))
    around = run_context.spec_from_estimate(flow)
    assert [each["name"] for each in around["flows"]] == ["flow", "cross-traffic"]
    (alone,) = run_context.alternative_networks(around, flow)
    assert [each["name"] for each in alone["flows"]] == ["flow"]
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        names = ("reno", "cubic", "westwood", "vegas", "htcp")
        found = identify(flow, around, names, session, replicas=1, alternatives=[alone])
    finally:
        executor.shutdown()
    assert found.ranking[0].controller == controller
    assert found.ranking[0].probability > 0.8


def test_commands_say_that_others_were_there(tmp_path, capsys):
    path = capture("cubic", tmp_path / "a.pcap")
    network = find_network(str(path), tmp_path)
    assert "Left out: the traffic of other flows at the link." in network.assumptions
    words = ["identify", str(path), "--candidates", "cubic,reno", "--repeats", "1", "--json"]
    assert status(words) == 0
    assert "Other flows shared the bottleneck" in capsys.readouterr().out


def test_thinned_acks_have_two_explanations(tmp_path):
    access = """
[downlink]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "80 kB" }
[uplink]
rate = "1 Gbit/s"
queue = { kind = "drop_tail", limit = "100 packets" }
ack_thinning = { max_acks = 8, max_delay = "200 ms" }
"""
    head, _, tail = SCENARIO.partition("[bottleneck]")
    text = head + access + tail[tail.index("[[flows]]") :].replace("CONTROLLER", "cubic")
    record = SimBackend().run(load_text(text).plan().runs[0].spec)
    path = tmp_path / "a.pcap"
    path.write_bytes(rewritten.pcap(rewritten.frames(record.captures["one.sender"])))
    flow = observed(path)
    around = run_context.spec_from_estimate(flow)
    (counted,) = run_context.alternative_networks(around, flow)
    thinning: Any = counted["links"][1]["ack_thinning"]
    # Of 8 ACKs, some acknowledge one packet.
    assert 5 <= thinning["most"] <= 8
    assert around["links"][1]["ack_thinning"]["most"] > 8


def test_candidates_that_act_alike_are_one_answer():
    *one, none = probabilities([0.01, 0.05, 0.2])
    *two, none_of_two = probabilities([0.01, 0.01, 0.05, 0.2])
    assert none == pytest.approx(none_of_two)
    assert two[0] + two[1] == pytest.approx(one[0])
    assert sum(two) + none_of_two == pytest.approx(1.0)


def test_the_probability_of_the_first_grows_with_the_distance_of_the_next():
    shares = [probabilities([0.01, 0.01 * apart])[0] for apart in np.linspace(1.01, 10, 50)]
    assert np.all(np.diff(shares) >= 0)
    assert shares[-1] <= 0.98
