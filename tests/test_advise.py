"""Advice: what would serve a goal on a network."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import jostle
import numpy as np
import pytest
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.errors import InputError
from jostle.inference.advise import NOW, Advice, SenderChoice, advise, document_of
from jostle.inference.goals import GOALS
from jostle.inference.network_source import KnownNetwork, find_network
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.store.store import Reader

DEEP = KnownNetwork(
    "scenario",
    {"bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "8 BDP"}}},
    "40 ms",
)
FAST = {"bottleneck": {"rate": "50 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}}}
CAPTURED = """
duration          = "12 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1.5 BDP" }
[[flows]]
name = "download"
controller = "cubic"
rtt = "40 ms"
"""


def advice(network: KnownNetwork, goal: str, *names: str, length_s: float = 8) -> Advice:
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        return advise(network, GOALS[goal], names, session, 2, length_s=length_s)
    finally:
        executor.shutdown()


def test_a_larger_initial_window_shortens_short_downloads() -> None:
    found = advice(replace(DEEP, tables=FAST, rtt="100 ms"), "short downloads", "cubic")
    best = found.ranking[0]
    assert "IW 50" in best.choice.label
    assert best.gain.value is not None
    assert best.gain.value > 1.1
    # 100 kB are 70 segments: with 45 at once, all that the first window of a receiver allows, at
    # least one round trip less is waited for.
    small, now = best.numbers["small_s"].value, found.baseline.numbers["small_s"].value
    assert small is not None
    assert now is not None
    assert small < now - 0.09
    assert found.baseline.gain.value == 1


def test_a_call_is_best_beside_a_controller_that_leaves_the_queue_empty() -> None:
    found = advice(DEEP, "calls", "cubic", "vegas")
    assert found.ranking[0].choice.sender["controller"] == "vegas"
    gain = found.ranking[0].gain
    assert gain.low is not None
    assert gain.low > 0.3
    assert all(one.choice.label != NOW.label for one in found.ranking)


def test_bulk_counts_what_the_other_flow_loses() -> None:
    score = GOALS["bulk"].score
    now = {"goodput_bps": 5e6, "other_bps": 4e6, "other_rtt_s": 0.1}
    greedy = {"goodput_bps": 8e6, "other_bps": 1e6, "other_rtt_s": 0.2}
    assert math.exp(score(greedy, now) - score(now, now)) == pytest.approx(8 / 5 / 4 / 2)
    kind = {"goodput_bps": 5e6, "other_bps": 6e6, "other_rtt_s": 0.05}
    assert score(kind, now) == score(now, now)
    starved = {"goodput_bps": 9e6, "other_bps": 0.0, "other_rtt_s": math.nan}
    assert score(starved, now) < score(greedy, now)


def test_what_a_capture_shows_is_drawn_from_its_interval() -> None:
    spread = {"rate": (-0.005, 0.005), "limit": (0.0, 0.07), "rtt": (-0.1, 0.0)}
    numbers = {"rate": 1e7, "limit": 75000.0, "rtt": 0.04}
    network = KnownNetwork("estimated", {"bottleneck": {}}, "40 ms", spread, numbers)
    rates = [
        int(network.drawn(at)[0]["bottleneck"]["rate"].removesuffix(" bit/s")) for at in range(200)
    ]
    assert rates[0] == 10_000_000
    assert 9_950_000 <= min(rates) < 9_960_000
    assert 10_040_000 < max(rates) <= 10_050_000
    assert rates[3] == int(network.drawn(3)[0]["bottleneck"]["rate"].split()[0])
    assert len(np.unique(rates)) > 190


def test_the_network_of_a_run_is_its_own(tmp_path: Path) -> None:
    store = tmp_path / "store"
    jostle.run(jostle.Scenario.from_toml(CAPTURED), store=store)
    file = tmp_path / "link.toml"
    file.write_text(CAPTURED)
    scenario = find_network(str(file), store)
    assert (scenario.origin, scenario.rtt) == ("scenario", "40 ms")
    (name,) = Reader(store).names()
    run = find_network(name, store)
    assert run.origin == "run"
    assert run.tables["bottleneck"]["rate"] == "10000000 bit/s"
    assert run.tables["bottleneck"]["queue"]["limit"] == "75000 B"
    assert run.tables["bottleneck"]["delay"] == "0.000000000 s"
    assert run.rtt == "0.040000000 s"


def test_a_capture_has_the_network_that_it_was_taken_on_within_its_interval(
    tmp_path: Path,
) -> None:
    scenario = jostle.Scenario.from_toml(CAPTURED).set({"capture": True})
    run = jostle.run(scenario, store=tmp_path / "store").results[0].run
    network = find_network(str(run.captures["download.sender"]), tmp_path / "store")
    truth = {"rate": 1e7, "limit": 75000.0, "rtt": 0.04}
    for key, interval in network.to_dict()["interval"].items():
        assert interval["low"] <= truth[key] <= interval["high"]
    # A capture at the sender does not show where the round trip is spent: half of it there.
    tables, keys = network.drawn(0)
    there_s = float(tables["bottleneck"]["delay"].removesuffix(" s"))
    assert there_s == pytest.approx(float(keys["rtt"].removesuffix(" s")) / 2)


def test_profiles_without_a_queue_get_one() -> None:
    network = find_network("dsl", Path("store"))
    document = document_of(network, GOALS["bulk"], 5, NOW)
    assert jostle.Scenario.from_dict(document).plan().runs


def test_what_is_no_network_is_said() -> None:
    with pytest.raises(InputError, match="no capture and no run"):
        find_network("starlinc", Path("store"))


def test_a_queue_takes_the_place_of_the_bottlenecks() -> None:
    document = document_of(DEEP, GOALS["calls"], 5, SenderChoice("", NOW.sender, "fq_codel"))
    assert document["bottleneck"]["queue"] == "fq_codel"
    assert DEEP.tables["bottleneck"]["queue"]["kind"] == "drop_tail"


def test_the_command_writes_scenarios_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["advise", "dsl", "--goal", "short downloads", "--candidates", "cubic"]
    folder = tmp_path / "advice"
    assert status([*given, "--seeds", "2", "--json", "--pep", "-o", str(folder)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "jostle.advice/2"
    assert document["network"]["from"] == "profile"
    first = document["ranking"][0]
    assert first["gain"]["low"] <= first["gain"]["value"] <= first["gain"]["high"]
    assert sorted(path.name for path in folder.iterdir())[-1] == "now.toml"
    best = jostle.run(folder / "1.toml", store=False).results[0].run
    completions = [row["completion_time_s"] for row in best.summary["flows"][:2]]
    measured = [first["numbers"][name]["value"] for name in ("small_s", "large_s")]
    assert completions == pytest.approx(measured, rel=0.2)


def test_advice_that_gains_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    # An upload of 384 kbit/s fills up whoever sends, and pacing changes nothing.
    given = ["advise", "dsl-up", "--goal", "bulk", "--candidates", "cubic", "--length", "3"]
    assert status([*given, "--seeds", "2"]) == 0
    assert "may be no better than what there is now" in capsys.readouterr().out
