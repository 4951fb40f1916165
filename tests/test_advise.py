"""Advice: what would serve a goal on a network."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jostle
import numpy as np
import pytest
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.errors import InputError
from jostle.inference.advice_setup import make_setup
from jostle.inference.advice_text import advice_table, answer_sentences
from jostle.inference.advise import Advice, AdviceRequest, advise, is_better
from jostle.inference.advised_changes import (
    queue_changes,
    with_ecn,
    without_ecn,
)
from jostle.inference.flow_benefits import FlowValues, benefit, measured
from jostle.inference.goals import GOALS
from jostle.inference.network_source import KnownNetwork, find_network
from jostle.results.number_format import plain
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario.parsing.quantities import parse_rate
from jostle.scenario.service_rate import constant_service_bps
from jostle.store.store import Reader

ROOT = Path(__file__).parents[1]
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


HOME = """
duration = "8 s"
[downlink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[uplink]
rate = "4 Mbit/s"
queue = { kind = "drop_tail", limit = "500 packets" }
[[flows]]
name = "photo upload"
controller = "cubic"
direction = "up"
rtt = "30 ms"
[[flows]]
name = "voice"
controller = "none"
direction = "up"
rtt = "30 ms"
source = { kind = "cbr", codec = "g711" }
[[flows]]
name = "film"
controller = "cubic"
rtt = "30 ms"
source = { kind = "video", buffer = "60 s" }
[grid."uplink.queue"]
long = { kind = "drop_tail", limit = "500 packets" }
fair = { kind = "fq_codel", quantum = "500 B" }
"""
# A video call over QUIC beside an upload, as a family described its line.
VIDEO_CALL = """
duration = "10 s"
[downlink]
rate = "100 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[uplink]
rate = "20 Mbit/s"
queue = { kind = "drop_tail", limit = "1000 packets" }
[[flows]]
name = "upload"
controller = "cubic"
direction = "up"
rtt = "30 ms"
start = "1 s"
[[flows]]
name = "call"
controller = "bbr"
direction = "up"
rtt = "30 ms"
transport = "quic"
[flows.source]
kind = "media"
fps = 30
key_frame_size = "37.5 kB"
delta_frame_size = "3.75 kB"
key_frame_interval = 30
deadline = "250 ms"
"""


def advice(network: KnownNetwork, goal: str, *names: str, **request: Any) -> Advice:
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        given = {"seeds": 2, "length_s": 8, **request}
        return advise(network, AdviceRequest(GOALS[goal], names, **given), session)
    finally:
        executor.shutdown()


def network_of(text: str, tmp_path: Path, **settings: str) -> KnownNetwork:
    file = tmp_path / "network.toml"
    file.write_text(text)
    return find_network(str(file), tmp_path, settings=settings)


def labels(found: Advice) -> str:
    return "; ".join(one.change.label for one in found.ranking)


def test_a_larger_initial_window_shortens_short_downloads() -> None:
    found = advice(replace(DEEP, tables=FAST, rtt="100 ms"), "short downloads", "cubic")
    best = found.ranking[0]
    assert "IW 50" in best.change.label
    assert best.gain.value is not None
    assert best.gain.value > 1.1
    # 100 kB are 70 segments: with 45 at once, all that the first window of a receiver allows, at
    # least one round trip less is waited for.
    small, now = (of.numbers["small"]["completion_time"].value for of in (best, found.baseline))
    assert small is not None
    assert now is not None
    assert small < now - 0.09
    assert found.baseline.gain.value == 1


def test_a_call_is_best_beside_a_controller_that_leaves_the_queue_empty() -> None:
    found = advice(DEEP, "calls", "cubic", "vegas")
    best = found.ranking[0]
    assert best.change.values["flows.download.controller"] == "vegas"
    assert best.gain.low is not None
    # In points of the R factor.
    assert best.gain.low > 0.1
    assert found.improves
    mos, now = (of.numbers["call"]["mos"].value for of in (best, found.baseline))
    assert mos is not None
    assert now is not None
    assert mos > now + 0.3
    assert answer_sentences(found)[0].startswith(
        f"Set {best.change.label}: MOS {mos:.2f} instead of {now:.2f}"
    )


def run_of(goodput: float, other: float, rtt_s: float) -> dict[str, FlowValues]:
    return {
        "download": FlowValues("bulk", {"goodput": goodput, "rtt": 0.05}, 10),
        "other": FlowValues("bulk", {"goodput": other, "rtt": rtt_s}, 10),
    }


def test_bulk_counts_what_the_other_flow_loses() -> None:
    def factors(*own: dict[str, FlowValues]) -> list[float]:
        gains = GOALS["bulk"].gains(own, [now] * len(own), ("download",))
        return [math.exp(gain) for gain in gains]

    now = run_of(5e6, 4e6, 0.1)
    greedy = run_of(8e6, 1e6, 0.2)
    assert factors(greedy) == pytest.approx([8 / 5 / 4 / 2])
    assert factors(run_of(5e6, 6e6, 0.05)) == [1.0]
    assert factors(run_of(9e6, 0.0, math.nan)) < factors(greedy)


@pytest.mark.parametrize("other", [(5e6, 3.4e6), (3.4e6, 5e6)])
def test_chance_in_other_flows_does_not_lower_the_gain(other: tuple[float, float]) -> None:
    now = run_of(5e6, 4e6, 0.1)
    gains = GOALS["bulk"].gains(
        [run_of(5e6, value, 0.1) for value in other], [now, now], ("download",)
    )
    assert gains == [0.0, 0.0]


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


def test_a_profile_without_a_queue_asks_for_it() -> None:
    with pytest.raises(InputError, match=r"profile cable does not say which queue .* --set"):
        find_network("cable", Path("store"))
    queue = '{ kind = "drop_tail", limit = "64 packets" }'
    network = find_network("cable", Path("store"), settings={"bottleneck.queue": queue})
    assert network.tables["bottleneck"]["queue"]["limit"] == "64 packets"
    assert find_network("viasat-2", Path("store")).origin == "profile"


def test_what_is_no_network_is_said() -> None:
    with pytest.raises(InputError, match="no capture and no run"):
        find_network("starlinc", Path("store"))
    with pytest.raises(InputError, match="no keys"):
        find_network("starlinc", Path("store"), settings={"duration": "5 s"})


def test_advice_is_about_the_own_network_flows_and_directions(tmp_path: Path) -> None:
    found = advice(network_of(HOME, tmp_path), "calls", "reno")
    assert found.setup.served == ("voice",)
    assert found.setup.others == ("photo upload", "film")
    # The baseline is the scenario itself, and the recommended keys give the promised numbers.
    scenario = jostle.load(tmp_path / "network.toml")
    long = scenario.set({"uplink.queue": {"kind": "drop_tail", "limit": "500 packets"}})
    best = found.ranking[0]
    for of in (found.baseline, best):
        runs = [
            jostle.run(long.set({**of.change.values, "seed": seed}), store=False).results[0].run
            for seed in (4, 5)
        ]
        for name, key, column in (
            ("voice", "mos", "mos"),
            ("photo upload", "goodput", "goodput_bps"),
        ):
            rows = [
                next(row for row in run.summary["flows"] if row["name"] == name) for run in runs
            ]
            mean = np.mean([row["phases"]["overall"][column] for row in rows])
            assert of.numbers[name][key].value == pytest.approx(mean)
    old, new = (of.numbers["voice"]["mos"].value for of in (found.baseline, best))
    assert old is not None
    assert new is not None
    assert old < 3
    assert new > 4.2
    assert any("uplink" in key for key in best.change.values)
    # Behind an access line, senders are changed only on request.
    assert not any("controller" in key for one in found.ranking for key in one.change.values)
    assert "You control no sender" in " ".join(found.assumptions)


def test_a_grid_is_not_dropped_silently(tmp_path: Path) -> None:
    grid = '[grid]\n"flows.film.controller" = ["bbr", "cubic"]\n[grid."uplink.queue"]'
    text = "repeats = 3\nseed = 7" + HOME.replace('[grid."uplink.queue"]', grid)
    network = network_of(text, tmp_path)
    said = " ".join(network.assumptions)
    assert "uplink.queue is long now, as in its table. Its other values are candidates." in said
    assert "flows.film.controller is cubic now, as in its table. Left out" in said
    assert "grid" not in network.traffic
    assert "Left out: repeats, seed of the scenario. --repeats sets the number of runs." in said
    spec = make_setup(network, GOALS["calls"], 5)[0].spec
    changes = queue_changes(spec, ["uplink"], network.varied_queues, ecn=False)
    fair = [one for one in changes if one.label == "uplink.queue = fair"]
    assert fair[0].values["uplink.queue"]["quantum"] == "500 B"


def test_a_grid_alone_gives_its_first_value(tmp_path: Path) -> None:
    text = HOME.replace('controller = "cubic"\ndirection', "direction", 1)
    text = text.replace(
        '[grid."uplink.queue"]',
        '[grid]\n"flows.photo upload.controller" = ["bbr", "reno"]\n[grid."uplink.queue"]',
    ).replace('"flows.photo upload.controller"', "'flows.\"photo upload\".controller'")
    network = network_of(text, tmp_path)
    assert network.traffic["flows"][0]["controller"] == "bbr"
    assert "is bbr now, as in the first of the grid" in " ".join(network.assumptions)


def test_a_sample_has_its_first_point(tmp_path: Path) -> None:
    text = HOME[: HOME.index("[grid")] + (
        '[sample]\npoints = 3\n"downlink.delay" = { from = "1 ms", to = "5 ms" }\n'
    )
    network = network_of(text, tmp_path)
    assert "sample" not in network.traffic
    delay = network.tables["downlink"]["delay"]
    said = f"downlink.delay is {delay} now, as in the first of the sample. Left out"
    assert said in " ".join(network.assumptions)


def test_a_video_call_is_judged_by_its_frames(tmp_path: Path) -> None:
    found = advice(network_of(VIDEO_CALL, tmp_path), "calls", "vegas")
    (first, *_) = answer_sentences(found)
    assert found.setup.served == ("call",)
    assert "MOS" not in first
    assert "frame delay" in first
    old, new = (
        of.numbers["call"]["frame_delay"].value for of in (found.baseline, found.ranking[0])
    )
    assert old is not None
    assert new is not None
    assert old > 0.15
    assert new < 0.05
    assert not any("IW" in one.change.label for one in found.ranking)
    # A router can have a shaper, whoever has the modem.
    assert any(one.change.label.startswith("CAKE with 1") for one in found.ranking)


def test_senders_are_changed_only_if_they_are_yours(tmp_path: Path) -> None:
    setup, _ = make_setup(network_of(VIDEO_CALL, tmp_path), GOALS["calls"], 5)
    assert setup.senders(())[0] == []
    (tcp, quic), said = setup.senders(("all",))
    assert (tcp.names, tcp.transport, quic.names, quic.transport) == (
        ("upload",), "tcp", ("call",), "quic",
    )  # fmt: skip
    assert "You control the senders of upload, call" in said
    (one,), said = setup.senders(("upload",))
    assert one.names == ("upload",)
    assert "not those of call" in said
    with pytest.raises(InputError, match="no flow to configure"):
        setup.senders(("download",))
    # Without an access line, all senders are configurable unless you say otherwise.
    alone, _ = make_setup(DEEP, GOALS["calls"], 5)
    assert [each.names for each in alone.senders(())[0]] == [("download",)]
    assert alone.senders(("none",))[0] == []


def test_a_change_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    network = network_of(VIDEO_CALL.replace("10 s", "2 s"), tmp_path)
    found = advice(network, "calls", "lp", queues=False, senders=("call",))
    said = " ".join(found.assumptions)
    assert "Left out: lp for call, which cannot be run" in said
    assert "--include-queues tries others" in said


@pytest.mark.parametrize(
    ("goal", "probes"),
    [
        ("short downloads", ("probe-small", "probe-large")),
        ("calls", ("probe-call", "probe-up-call")),
        ("bulk", ("probe-download",)),
    ],
)
def test_a_goal_without_a_flow_adds_a_probe_and_says_so(
    tmp_path: Path, goal: str, probes: tuple[str, ...]
) -> None:
    film = HOME[: HOME.index("[[flows]]")] + HOME[HOME.rindex("[[flows]]") : HOME.index("[grid")]
    setup, said = make_setup(network_of(film, tmp_path), GOALS[goal], 5)
    assert setup.served == probes
    assert setup.others == ("film",)
    assert f"Added: {', '.join(probes)}." in " ".join(said)
    flows = {flow["name"]: flow for flow in setup.spec["flows"]}
    assert flows["film"]["path"] == [0]
    assert [flows[name]["path"] for name in probes][-1] == ([1] if "up" in probes[-1] else [0])


@pytest.mark.parametrize("kind", ["tbf", "policer", "cake"])
@pytest.mark.parametrize("rate_bps", [512_000, 30_000_000])
def test_a_shaper_is_not_removed(tmp_path: Path, kind: str, rate_bps: int) -> None:
    text = HOME.replace(
        'rate = "4 Mbit/s"\nqueue = { kind = "drop_tail", limit = "500 packets" }',
        f'rate = "100 Mbit/s"\nqueue = {{ kind = "{kind}", rate = "{rate_bps} bit/s" }}',
    )
    network = network_of(text[: text.index("[grid")], tmp_path)
    spec = make_setup(network, GOALS["calls"], 5)[0].spec
    assert constant_service_bps(spec["links"][1]) == rate_bps
    changes = list(queue_changes(spec, ["uplink"], {}, ecn=False))
    assert changes
    for change in changes:
        queue = change.values["links.uplink.queue"]
        assert queue["kind"] == "cake"
        assert parse_rate(queue["rate"]) < rate_bps
    found = advice(network, "calls", "cubic") if rate_bps < 1e6 and kind == "tbf" else None
    assert found is None or "Left out: queues without a shaper on uplink" in str(found.assumptions)


@pytest.mark.parametrize(("mtu", "packets"), [("1500 B", [21, 41]), ("9000 B", [3, 7])])
def test_a_bdp_has_packets_of_the_mtu_of_the_flows(mtu: str, packets: list[int]) -> None:
    spec = jostle.Scenario.from_dict(
        {
            "duration": "10 s",
            "bottleneck": {"rate": "10 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
            "flows": [{"name": "bulk", "controller": "cubic", "rtt": "50 ms", "mtu": mtu}],
        }
    ).plan()
    changes = queue_changes(spec.runs[0].spec, ["bottleneck"], {}, ecn=False)
    limits = [
        change.values["links.bottleneck.queue"]["limit"]
        for change in changes
        if change.family == "drop_tail"
    ]
    assert limits == [f"{count} packets" for count in packets]


def test_queues_are_tried_with_and_without_marks(tmp_path: Path) -> None:
    network = network_of(VIDEO_CALL.replace("10 s", "3 s"), tmp_path)
    setup, _ = make_setup(network, GOALS["calls"], 5)
    codel = next(
        one for one in queue_changes(setup.spec, ["uplink"], {}, ecn=False) if "CoDel" in one.label
    )
    marking = with_ecn(codel, setup.senders(("all",))[0])
    flows = {flow["name"]: flow for flow in setup.run(marking, 1)["flows"]}
    assert flows["upload"]["ecn"]
    assert flows["call"]["ecn"]
    assert setup.run(marking, 1)["links"][1]["queue"]["parameters"]["ecn"]
    dropping = without_ecn(marking)
    assert dropping is not None
    assert not setup.run(dropping, 1)["links"][1]["queue"]["parameters"]["ecn"]


def test_a_stored_run_says_which_flows_are_left_out(tmp_path: Path) -> None:
    store = tmp_path / "store"
    jostle.run(jostle.Scenario.from_toml(CAPTURED.replace("12 s", "2 s")), store=store)
    (name,) = Reader(store).names()
    assert "Left out: its flows (download)" in " ".join(find_network(name, store).assumptions)


def test_the_answer_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "home.toml"
    file.write_text(HOME.replace("8 s", "4 s"))
    given = ["advise", str(file), "--goal", "calls", "--repeats", "2"]
    assert status(given) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Set ")
    assert " instead of " in lines[0]
    assert "photo upload loses" in lines[0]
    assert lines.index("Assumptions") < lines.index("Settings")
    assert status([*given, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answer"][0] == lines[0]
    assert document["assumptions"]
    assert set(document["baseline"]["flows"]) == {"photo upload", "voice", "film"}


def test_zero_has_no_sign() -> None:
    assert [plain(value, 1, 2) for value in (-0.001, -0.0, 0.0, -0.01)] == [
        "0.00", "0.00", "0.00", "-0.01",
    ]  # fmt: skip


def test_the_command_writes_scenarios_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = 'bottleneck.queue={ kind = "drop_tail", limit = "20 packets" }'
    given = ["advise", "dsl", "--goal", "short downloads", "--candidates", "cubic", "--set", queue]
    folder = tmp_path / "advice"
    assert status([*given, "--repeats", "2", "--json", "--include-proxy", "-o", f"{folder}/"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "jostle.advice/3"
    assert document["network"]["from"] == "profile"
    first = document["ranking"][0]
    assert first["gain"]["low"] <= first["gain"]["value"] <= first["gain"]["high"]
    assert sorted(path.name for path in folder.iterdir())[-1] == "now.toml"
    best = jostle.run(folder / "1.toml", store=False).results[0].run
    completions = [row["completion_time_s"] for row in best.summary["flows"][:2]]
    measured = [first["flows"][name]["completion_time"]["value"] for name in ("small", "large")]
    assert completions == pytest.approx(measured, rel=0.2)


def test_advice_that_gains_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    # An upload of 384 kbit/s fills up whoever sends, and pacing changes nothing.
    given = ["advise", "dsl-up", "--goal", "bulk", "--candidates", "cubic", "--duration", "3 s"]
    queue = 'bottleneck.queue={ kind = "drop_tail", limit = "20 packets" }'
    assert status([*given, "--repeats", "2", "--set", queue]) == 0
    assert capsys.readouterr().out.startswith("Change nothing: ")


def test_a_certain_gain_comes_before_an_uncertain_one_of_the_same_size() -> None:
    network = find_network(str(ROOT / "examples/measurement/up-cubic.log.gz"), Path())
    found = advice(network, "calls", "cubic", "bbr", seeds=10, length_s=30, queues=True)
    certain = [is_better(one, GOALS["calls"]) for one in found.ranking]
    # A queue of some packets gains as much as FQ-CoDel in some runs, and loses in others.
    assert certain == sorted(certain, reverse=True)
    assert set(certain) == {True, False}
    assert answer_sentences(found)[0].startswith("Set ")


def test_advice_says_that_all_settings_are_worse(tmp_path: Path) -> None:
    found = advice(network_of(VIDEO_CALL, tmp_path), "calls", "vegas")
    worse = [
        replace(one, gain=replace(one.gain, value=-0.2, low=-0.3, high=-0.1))
        for one in found.ranking
    ]
    (said,) = answer_sentences(replace(found, ranking=tuple(worse)))
    assert "with 95 % confidence. All are worse than now. The least bad, " in said
    mixed = [*worse[:-1], replace(worse[-1], gain=replace(worse[-1].gain, high=0.001))]
    (said,) = answer_sentences(replace(found, ranking=tuple(mixed)))
    assert "All are worse" not in said
    assert "The best of them, " in said


# The upload of 1.5 MB ends before the run with Cubic, and not with the slower CDG.
UPLOAD = """
duration = "9 s"
[downlink]
rate = "30 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "300 packets" }
[uplink]
rate = "3 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "300 packets" }
[[flows]]
name = "photos"
direction = "up"
rtt = "30 ms"
controller = "cubic"
size = "1500 kB"
start = "1 s"
start_jitter = "200 ms"
[[flows]]
name = "mail"
direction = "up"
rtt = "30 ms"
controller = "cubic"
size = "200 kB"
start = "3 s"
[[flows]]
name = "backup"
direction = "up"
rtt = "30 ms"
controller = "cubic"
start = "2 s"
"""
ARRIVALS = """
duration = "10 s"
[downlink]
rate = "4 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "50 packets" }
[uplink]
rate = "4 Mbit/s"
delay = "5 ms"
queue = { kind = "drop_tail", limit = "100 packets" }
[[flows]]
name = "files"
rtt = "30 ms"
controller = "cubic"
arrivals = { file = "files.txt" }
[[flows]]
name = "bg"
rtt = "30 ms"
controller = "cubic"
"""


def test_a_setting_that_leaves_more_transfers_unfinished_is_not_recommended(
    tmp_path: Path,
) -> None:
    found = advice(
        network_of(UPLOAD, tmp_path), "short downloads", "cdg", seeds=3,
        senders=("photos",), queues=False,
    )  # fmt: skip
    by_label = {one.change.label: one for one in found.ranking}
    losing = [one for one in found.ranking if "photos" in one.loses]
    assert losing, list(by_label)
    kinds = [one.eligible for one in found.ranking]
    assert kinds == sorted(kinds, reverse=True), "those that lose transfers come last"
    assert not any(is_better(one, found.setup.goal) for one in losing)
    worst = losing[0]
    some, every = worst.unfinished["photos"]
    assert (0 < some <= every, every) == (True, 3)
    document = worst.to_dict()
    assert document["unfinished"]["photos"] == {"transfers": some, "of": 3}
    assert document["flows"]["photos"]["completion_time"]["bound"] == "lower"
    assert document["gain"]["from_bounds"] is True
    assert document["eligible"] is False
    forced = replace(found, ranking=(worst,))
    assert not forced.improves
    text = " ".join(answer_sentences(forced))
    assert text.startswith("Change nothing: ")
    assert "flow completion time > " in text
    assert f"({some} of 3 transfers not complete, 0 now)" in text
    assert "Extend `duration` to 18 s." in text
    rows = advice_table(forced, [worst, found.baseline]).rows
    assert rows[0][1].startswith("~ ")
    assert rows[0][2].startswith("> ")
    assert "±" not in rows[0][2]


def test_unfinished_arrivals_count_with_the_time_that_they_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["0.5 1500000", *(f"{1 + at / 2} 30000" for at in range(16))]
    Path("files.txt").write_text("\n".join(lines))
    Path("arrivals.toml").write_text(ARRIVALS)
    run = jostle.run("arrivals.toml", store=False).results[0].run
    (files,) = (flow for name, flow in measured(run).items() if name == "files")
    mean = run.summary["groups"][0]["completion_time_mean_s"]
    assert (files.unfinished, files.transfers) == (1, 17)
    assert files.values["completion_time"] == pytest.approx((16 * mean + 9.5) / 17)
    found = advice(find_network("arrivals.toml", tmp_path), "short downloads")
    assert found.improves
    assert found.ranking[0].change.label.endswith("CoDel on downlink")
    assert found.ranking[0].unfinished == {}
    assert found.baseline.unfinished == {"files": (2, 34)}
    assert "instead of > " in answer_sentences(found)[0]
    assert any(note.startswith("All 2 runs of ") for note in found.assumptions)
    assert "identical" in " ".join(found.assumptions)
    assert "[" not in advice_table(found, found.ranking[:1]).rows[0][1]


def test_a_transfer_that_never_starts_has_no_time(tmp_path: Path) -> None:
    document = {
        "duration": "2 s",
        "bottleneck": {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [
            {"name": "s", "controller": "cubic", "rtt": "60 ms", "size": "20 MB", "start": "1 s"},
            {"name": "b", "controller": "cubic", "rtt": "60 ms", "after": "s", "size": "1 kB"},
        ],
    }
    results = jostle.run(jostle.Scenario.from_dict(document), store=False)
    flows = measured(results.results[0].run)
    assert flows["s"].values["completion_time"] == 1.0
    assert math.isnan(flows["b"].values["completion_time"])
    assert [flows[name].unfinished for name in "sb"] == [1, 1]
    assert benefit(flows["b"]) == 1 / 2


def test_written_scenarios_find_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/files.txt").write_text("0.5 30000\n1 30000\n")
    text = ARRIVALS.replace("10 s", "2 s").replace('rate = "4 Mbit/s"', 'trace = "t.mahi"', 1)
    Path("mine/arrivals.toml").write_text(text)
    Path("mine/t.mahi").write_text("".join(f"{3 * at}\n" for at in range(1, 100)))
    words = ["advise", "mine/arrivals.toml", "--goal", "short downloads", "--repeats", "2"]
    assert status([*words, "-o", "deep/advice/"]) == 0
    for name in ("now", "1"):
        assert status(["run", f"deep/advice/{name}.toml", "--store", "none", "--json"]) == 0
    assert "../../mine/files.txt" in Path("deep/advice/now.toml").read_text()
    assert status([*words, "-o", "mine/"]) == 0
    assert '"files.txt"' in Path("mine/now.toml").read_text()
    capsys.readouterr()


def test_a_scenario_may_have_a_python_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aimd.py").write_bytes((ROOT / "examples/aimd.py").read_bytes())
    (tmp_path / "mine.toml").write_text(
        'duration = "4 s"\n[bottleneck]\nrate = "5 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "2 BDP" }\n'
        '[[flows]]\nname = "mine"\ncontroller = "aimd:Aimd"\nrtt = "40 ms"\n'
    )
    words = ["advise", "mine.toml", "--goal", "bulk", "--candidates", "reno", "--repeats", "2",
             "--exclude-queues", "--jobs", "1"]  # fmt: skip
    assert status(words) == 2
    assert "add --allow-code" in capsys.readouterr().err
    assert status([*words, "--allow-code", "-o", "best/"]) == 0
    said = capsys.readouterr().out
    assert "reno for mine" in said
    assert "Left out of best: code that mine.toml names: copy it there." in said
    assert 'controller = "aimd:Aimd"' in (tmp_path / "best/now.toml").read_text()
