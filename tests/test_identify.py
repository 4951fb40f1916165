"""Naming the controller of a flow that somebody measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jostle
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.errors import InputError
from jostle.inference import run_context
from jostle.inference.candidates import candidates, chosen_names
from jostle.inference.curve_distance import curve_distances
from jostle.inference.dynamic_time_warping import warped_distances
from jostle.inference.identify import (
    Identification,
    _assumptions,
    identify,
    observe_candidates,
    probabilities,
)
from jostle.inference.network_source import find_network
from jostle.inference.observed_flow import ObservedFlow, observe
from jostle.runner.executors import local
from jostle.runner.session import Session

NAMES = ("reno", "cubic", "bbr", "vegas", "westwood")


def scenario(controller: str, **changes: Any) -> jostle.Scenario:
    flow = {"name": "download", "controller": controller, "rtt": "40 ms", "start": "230 ms"}
    return jostle.Scenario.from_dict(
        {
            "duration": "20 s",
            "sampling_interval": "100 ms",
            "seed": 7,
            "bottleneck": {
                "rate": "10 Mbit/s",
                "queue": {"kind": "drop_tail", "limit": "1.5 BDP"},
            },
            "flows": [flow],
            **changes,
        }
    )


def run_of(controller: str, **changes: Any) -> Any:
    return jostle.run(scenario(controller, **changes), store=False).results[0].run


def named(run: Any, names: Sequence[str], around: Any = None) -> Identification:
    observed = observe(run)
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        given_around = around or run_context.spec_from_run(run, observed.flow)
        return identify(observed, given_around, names, session, replicas=2)
    finally:
        executor.shutdown()


def naive(one: np.ndarray, other: np.ndarray, band: int) -> float:
    """The recurrence of the definition, cell by cell."""
    size = len(one)
    cost = np.full((size + 1, size + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(1, size + 1):
        for j in range(max(1, i - band), min(size, i + band) + 1):
            before = min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
            cost[i, j] = abs(one[i - 1] - other[j - 1]) + before
    return float(cost[size, size] / size)


@given(st.integers(1, 14), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_warping_is_what_its_definition_says(size: int, band: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    curve, others = random.random(size), random.random((3, size))
    expected = [naive(curve, other, band) for other in others]
    assert warped_distances(curve, others, band) == pytest.approx(expected)
    curves, lengths = random.random((3, size)), random.integers(1, size + 1, 3)
    cut = [
        naive(one[:length], other[:length], band)
        for one, other, length in zip(curves, others, lengths, strict=True)
    ]
    assert warped_distances(curves, others, band, lengths) == pytest.approx(cut)


def observation(curve: np.ndarray) -> ObservedFlow:
    return ObservedFlow("f", 0.0, 0.1, 0.04 + curve / 1e3, 1e4 + 1e3 * curve, np.zeros_like(curve))


def test_a_shifted_sawtooth_is_closer_than_one_of_another_form() -> None:
    time = np.arange(600.0)
    saw = observation(time % 150)
    # A third of a period later: farther than curves may run ahead of each other.
    late = observation((time + 50) % 150)
    concave = observation(150 * np.sqrt(time % 150 / 150))
    same, shifted, other = curve_distances(saw, [saw, late, concave])
    assert same == pytest.approx(1e-4)
    assert shifted < 0.2 * other


def test_a_distance_does_not_depend_on_the_other_candidates() -> None:
    time = np.arange(600.0)
    saw, other = observation(time % 150), observation(150 * np.sqrt(time % 150 / 150))
    large = observation(20 * (time % 90))
    alone = curve_distances(saw, [other])
    # More candidates, of which many are closer.
    closer = [observation((time + phase) % 150 * 1.01) for phase in range(40)]
    assert curve_distances(saw, [other, large, *closer])[0] == pytest.approx(alone[0], rel=1e-12)
    # A distance is relative to the observed flow.
    assert curve_distances(saw, [large])[0] > 1


def test_a_flow_without_a_queue_is_not_compared_in_units_of_its_noise() -> None:
    noise = np.random.default_rng(1).random((2, 600)) * 1e-3
    one, other = (observation(row) for row in noise)
    # Noise of 1 µs is 0.25 % of 1 % of the base RTT.
    assert curve_distances(one, [other])[0] < 0.01


def test_short_candidates_and_fine_series_are_compared_all_the_same() -> None:
    time = np.arange(2000.0)
    distances = curve_distances(observation(time % 90), [observation(time[:700] % 90)])
    assert distances.shape == (1,)
    assert np.isfinite(distances).all()


def test_probabilities_add_up_and_strangers_are_none_of_these() -> None:
    *shares, none = probabilities([0.004, 0.04, 0.3])
    assert sum(shares) + none == pytest.approx(1.0)
    assert shares[0] > 0.8
    assert probabilities([0.5, 0.6])[-1] > 0.75
    # Two that do the same share what there is.
    assert probabilities([0.004, 0.004])[0] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("controller", NAMES)
def test_a_run_of_the_simulator_is_named(controller: str) -> None:
    found = named(run_of(controller), NAMES)
    assert found.ranking[0].controller == controller
    assert found.ranking[0].probability > 0.9
    total = sum(one.probability for one in found.ranking) + found.none_of_these
    assert total == pytest.approx(1.0)


def test_what_is_not_among_the_candidates_is_none_of_these() -> None:
    found = named(run_of("vegas"), ("reno", "cubic", "westwood"))
    assert found.none_of_these > 0.5


def test_a_link_file_stands_for_what_the_run_says(tmp_path: Path) -> None:
    link = tmp_path / "link.toml"
    link.write_text(
        'rtt = "40 ms"\n[bottleneck]\nrate = "10 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "75 kB" }\n'
    )
    run = run_of("cubic")
    around, said = run_context.spec_from_link_file(jostle_link(link), observe(run))
    assert (
        said
        == f"The flow crosses bottleneck of {link}. Its least RTT is 41.21 ms, the base RTT of "
        "the file 40 ms."
    )
    assert [one["name"] for one in around["links"]] == ["bottleneck", "reverse"]
    assert around["interval_ns"] == 100_000_000
    found = named(run, NAMES, around)
    assert found.ranking[0].controller == "cubic"
    assert found.ranking[0].probability > 0.9


@pytest.mark.parametrize("is_upload", [False, True])
def test_a_flow_crosses_the_links_of_its_direction(is_upload: bool, tmp_path: Path) -> None:
    """The link of the flow may be either direction of a home line."""
    own, other = ("10 Mbit/s", "75 kB"), ("40 Mbit/s", "300 kB")
    there, back = (other, own) if is_upload else (own, other)
    link = tmp_path / "line.toml"
    link.write_text("".join(
        f'[{table}]\nrate = "{rate}"\ndelay = "20 ms"\n'
        f'queue = {{ kind = "drop_tail", limit = "{limit}" }}\n'
        for table, (rate, limit) in (("bottleneck", there), ("reverse", back))
    ))  # fmt: skip
    run = run_of("cubic")
    around, said = run_context.spec_from_link_file(jostle_link(link), observe(run))
    assert ("crosses reverse of" if is_upload else "crosses bottleneck of") in said
    assert "Mbit/s than 40 Mbit/s. Its" in said
    (flow,) = around["flows"]
    assert (flow["path"], flow["reverse_path"]) == (([1], [0]) if is_upload else ([0], [1]))
    assert named(run, NAMES, around).ranking[0].controller == "cubic"


def jostle_link(path: Path) -> Any:
    from jostle.emulate import load

    return load(path)


def test_a_flow_is_seen_from_its_first_packet_to_its_last() -> None:
    size = {"kind": "fixed", "size": "8 MB"}
    flow = {"name": "download", "controller": "reno", "rtt": "40 ms", "start": "2 s"}
    run = run_of("reno", flows=[{**flow, "source": size}])
    seen = observe(run)
    assert seen.start_s == pytest.approx(2.0)
    assert 6.0 < seen.length_s < 12.0
    assert seen.queueing_delay_s.min() == 0.0


def test_what_cannot_be_seen_is_refused() -> None:
    two = [{"name": n, "controller": "reno", "rtt": "40 ms"} for n in ("one", "two")]
    run = run_of("reno", flows=two)
    with pytest.raises(InputError, match="one, two"):
        observe(run)
    with pytest.raises(InputError, match="did you mean `one`"):
        observe(run, "ona")
    with pytest.raises(InputError, match="at least 40"):
        observe(run_of("reno", duration="3 s"))
    source = {"kind": "ping", "size": "56 B", "period": "20 ms"}
    pings = [{"name": "p", "controller": "none", "source": source, "rtt": "40 ms"}]
    pinged = run_of("reno", flows=pings)
    with pytest.raises(InputError, match="not TCP"):
        run_context.spec_from_run(pinged, "p")


def test_candidates_keep_the_flow_and_leave_out_what_needs_marks() -> None:
    spec = scenario("cubic").plan().runs[0].spec
    (flow,) = spec["flows"]
    found = candidates(("reno", "dctcp", "bbr"), flow)
    assert [one.controller for one in found] == ["reno", "bbr"]
    (changed,) = found[1].sends(spec, "download")["flows"]
    assert changed["controller"]["name"] == "bbr"
    assert changed["start_ns"] == flow["start_ns"]
    assert spec["flows"][0]["controller"]["name"] == "cubic"


def test_a_link_is_shaken_by_less_than_anybody_measures() -> None:
    spec = scenario("cubic").plan().runs[0].spec
    assert run_context.with_perturbed_links(spec, 0) == spec
    up, down = (run_context.with_perturbed_links(spec, number)["links"][0] for number in (1, 2))
    assert up["capacity"] == {"kind": "constant", "rate_bps": 10_020_000}
    assert down["capacity"] == {"kind": "constant", "rate_bps": 9_980_000}
    assert up["queue"]["parameters"]["limit"] == {"bytes": 76_514}
    # Of 75 kB, one packet is more than 2 %; of 750 kB, it is less.
    queue = {"kind": "drop_tail", "limit": "15 BDP"}
    long = scenario("cubic", bottleneck={"rate": "10 Mbit/s", "queue": queue}).plan().runs[0].spec
    (link,) = run_context.with_perturbed_links(long, 1)["links"]
    assert link["queue"]["parameters"]["limit"] == {"bytes": 765_000}


def test_choices_of_candidates() -> None:
    assert {"bbr", "bbr3", "reno", "cubic"} <= set(chosen_names("linux"))
    assert set(chosen_names("linux")) < set(chosen_names("all"))
    assert chosen_names("cubic, bbr") == ("cubic", "bbr")
    with pytest.raises(InputError, match="did you mean `cubic`"):
        chosen_names("cubik")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    (result,) = jostle.run(scenario("bbr"), store=store).results
    name = result.run.run_id
    words = ["--store", str(store), "--candidates", "reno,bbr", "--repeats", "1"]
    figure = tmp_path / "figures" / "beside.svg"
    assert status(["identify", name[:8], *words, "--json", "-o", str(figure)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ranking"][0]["controller"] == "bbr"
    assert document["ranking"][0]["probability"] > 0.9
    assert document["link"]["from"] == "run"
    assert document["link"]["links"][0]["capacity"]["rate_bps"] == 10_000_000
    assert b"bbr, " in figure.read_bytes()
    assert status(["identify", name, *words]) == 0
    shown = capsys.readouterr().out
    assert "none of these" in shown
    assert shown.index("bbr") < shown.index("reno")


def test_what_was_left_out_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows = [
        {"name": "download", "controller": "cubic", "rtt": "40 ms"},
        {"name": "upload", "controller": "reno", "rtt": "40 ms"},
    ]
    store = tmp_path / "store"
    (result,) = jostle.run(scenario("cubic", flows=flows, duration="8 s"), store=store).results
    words = ["--store", str(store), "--candidates", "cubic,dctcp", "--repeats", "1"]
    given = ["identify", result.run.run_id, "--flow", "download", *words]
    assert status([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["assumptions"]
    assert "The flow is download. The others are as in the run: upload." in said
    assert "Left out: dctcp, because the flow has no ECN." in said
    assert status(given) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for sentence in said:
        assert sentence in shown
    link = tmp_path / "link.toml"
    link.write_text(
        'rtt = "40 ms"\n[bottleneck]\nrate = "10 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "75 kB" }\n'
    )
    assert status([*given, "--link", str(link), "--json"]) == 0
    said = " ".join(json.loads(capsys.readouterr().out)["assumptions"])
    assert "Left out: 1 more flows of the data." in said
    assert "Left out: the links of the run." in said
    assert "random delays" in said


def test_candidates_that_cannot_be_compared_are_listed() -> None:
    run = run_of("cubic", duration="8 s")
    observed = observe(run)
    around = run_context.spec_from_run(run, observed.flow)
    others = [("cubic", observed)]
    said = list(_assumptions(around, "download", ("cubic", "vegas"), others, on_time=True))
    assert "Left out: vegas. Their runs failed or sent too little to be compared." in said


def test_a_capture_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured = scenario("westwood", capture=True, duration="15 s")
    (result,) = jostle.run(captured, store=tmp_path).results
    file = str(result.run.captures["download.sender"])
    words = ["--candidates", "cubic,westwood,vegas", "--repeats", "2"]
    assert status(["identify", file, *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ranking"][0]["controller"] == "westwood"
    assert told["ranking"][0]["distance"] < 0.3 * told["ranking"][1]["distance"]
    assert told["link"]["from"] == "estimated"
    (link,) = told["link"]["links"]
    assert link["capacity"]["rate_bps"] == pytest.approx(10e6, rel=0.01)
    # 1.5 BDP of 50 kB; means of intervals do not show the very longest delay.
    assert link["queue"]["parameters"]["limit"]["bytes"] == pytest.approx(75e3, rel=0.1)
    assert status(["identify", file, *words]) == 0
    assert "The link was taken from the capture: 10 Mbit/s (9.9" in capsys.readouterr().out


def test_a_flow_that_queues_nowhere_shows_no_bottleneck() -> None:
    flat = ObservedFlow("f", 0.0, 0.1, np.full(50, 0.04), np.full(50, 3e4), np.full(50, 6e6))
    with pytest.raises(InputError, match="--link"):
        run_context.spec_from_estimate(flat)


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_few_bytes_before_all_others_do_not_shorten_the_round_trip(
    end: str, tmp_path: Path
) -> None:
    writes = tmp_path / "writes.csv"
    # As iperf3 begins a connection.
    writes.write_text("0,37\n0.5,12000000\n")
    source = {"kind": "trace", "file": str(writes)}
    flow = {"name": "download", "controller": "cubic", "rtt": "40 ms", "source": source}
    slow = {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "60 kB"}}
    (result,) = jostle.run(
        scenario("cubic", capture=True, bottleneck=slow, flows=[flow]), store=tmp_path
    ).results
    (seen,) = jostle.analyze(result.run.captures[f"download.{end}"]).results
    (row,) = seen.run.summary["flows"]
    packet_s = 1514 * 8 / 5e6
    assert row["full_rtt_min_s"] == pytest.approx(0.04 + packet_s, abs=1e-9)
    smallest_s = {"sender": 0.04 + (66 + 37 + 66) * 8 / 5e6, "receiver": 0.04 + packet_s}[end]
    assert row["phases"]["overall"]["rtt_min_s"] == pytest.approx(smallest_s, abs=1e-9)
    observed = observe(seen.run)
    around = run_context.spec_from_estimate(observed)
    (link,) = around["links"]
    (sender,) = around["flows"]
    rtt_ns = link["delay"]["steps"][0]["delay_ns"] + sender["base_delay_ns"]
    assert rtt_ns == pytest.approx(40e6, rel=1e-4)


@pytest.mark.parametrize("mtu_bytes", [576, 9000])
def test_candidates_send_packets_as_large_as_those_of_the_capture(
    mtu_bytes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = {"name": "download", "controller": "reno", "rtt": "40 ms", "mtu": f"{mtu_bytes} B"}
    link = {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "100 kB"}}
    captured = scenario("reno", capture=True, duration="10 s", flows=[flow], bottleneck=link)
    (result,) = jostle.run(captured, store=tmp_path).results
    file = str(result.run.captures["download.sender"])
    words = ["--candidates", "reno,cubic,hybla", "--repeats", "1", "--json"]
    assert status(["identify", file, *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ranking"][0]["controller"] == "reno"
    assert document["ranking"][0]["distance"] < 0.01
    said = f"The MSS is {mtu_bytes - 52} bytes, from the measurement."
    assert said in document["assumptions"]
    network = find_network(file, tmp_path)
    assert said in network.assumptions
    assert network.drawn(1)[1]["mtu"] == f"{mtu_bytes} B"
    # The ACK of the handshake delays the first packet by 0.1 ms.
    assert network.numbers["rtt"] == pytest.approx(0.04, rel=3e-3)
    of_run = find_network(result.run.run_id, tmp_path)
    assert of_run.drawn(0)[1]["mtu"] == f"{mtu_bytes} B"


def test_a_small_packet_bounds_the_round_trip_where_full_ones_met_a_queue() -> None:
    curve = np.linspace(0.05, 0.1, 50)
    seen = ObservedFlow("f", 0.0, 0.1, curve, curve, curve, 0.041, least_full_rtt_s=0.05)
    assert seen.quiet_rtt_s(0.002) == pytest.approx(0.043)
    seen = ObservedFlow("f", 0.0, 0.1, curve, curve, curve, 0.049, least_full_rtt_s=0.05)
    assert seen.quiet_rtt_s(0.002) == 0.05


def test_what_a_full_packet_takes_to_be_sent_is_no_queue() -> None:
    curve = np.array([0.038, 0.04, 0.06])
    seen = ObservedFlow("f", 0.0, 0.1, curve, curve, curve, 0.038, least_full_rtt_s=0.04)
    assert seen.queueing_delay_s == pytest.approx([0.0, 0.0, 0.02])


def test_of_flows_of_which_nobody_says_what_they_sent_none_is_taken() -> None:
    both = [{"name": name, "controller": "cubic", "rtt": "40 ms"} for name in ("one", "other")]
    run = run_of("cubic", flows=both, duration="6 s")
    with pytest.raises(InputError, match="choose one by --flow, of one, other"):
        observe(run)
    for sent in (None, float("nan")):
        rates = pl.lit(sent, pl.Float64)
        unknown = run.flows.with_columns(sending_rate_bps=rates)
        logged = SimpleNamespace(spec=run.spec, summary=run.summary, flows=unknown)
        with pytest.raises(InputError, match="choose one by --flow, of one, other"):
            observe(logged)
        assert observe(logged, "other").flow == "other"


def test_intervals_that_a_busy_machine_moves_do_not_make_a_link_faster() -> None:
    random = np.random.default_rng(5)
    late = random.exponential(0.002, 301)
    # Of each interval of 100 ms, what came late counts in the next one.
    moved = 2e7 * (1 - np.diff(late) / 0.1)
    moved[::40] = 1.4e7
    curve = 40 * np.abs(np.sin(np.arange(300) / 10))
    seen = ObservedFlow("f", 0.0, 0.1, 0.04 + curve / 1e3, 1e4 + 1e3 * curve, moved)
    (link,) = run_context.spec_from_estimate(seen)["links"]
    assert link["capacity"]["rate_bps"] == pytest.approx(2e7, rel=0.005)
    # A link that is full now and then is as fast as it is then.
    seen = ObservedFlow("f", 0.0, 0.1, 0.04 + curve / 1e3, 1e4 + curve, 1e7 + 2e5 * curve)
    (link,) = run_context.spec_from_estimate(seen)["links"]
    assert link["capacity"]["rate_bps"] == pytest.approx(1.8e7, rel=0.04)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0123456789"], "no run in"),
        (["nothing.pcapng"], "no capture and no run"),
        (["0123456789", "--candidates", "cubik"], "did you mean `cubic`"),
    ],
)
def test_what_is_wrong_is_told(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["identify", *words, "--store", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_a_capture_at_either_end_names_the_sender(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captured = scenario("cubic", capture=True, duration="30 s")
    (result,) = jostle.run(captured, store=tmp_path).results
    file = str(result.run.captures[f"download.{end}"])
    words = ["--candidates", "reno,cubic,bic,highspeed,vegas", "--repeats", "2", "--json"]
    assert status(["identify", file, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    first, second = told["ranking"][:2]
    assert first["controller"] == "cubic"
    assert first["distance"] < 0.5 * second["distance"]
    # A queue that is a few per cent too short, as means of intervals show it, makes all candidates
    # strangers; so do bytes in flight that a receiver does not know.
    assert told["none_of_these"] < first["probability"]


def late_bbr(tmp_path: Path) -> str:
    """A capture of BBR over a path whose packets are late by some tenths of a millisecond."""
    quantiles = {"0 %": "0 ms", "50 %": "0.2 ms", "90 %": "0.7 ms", "100 %": "4 ms"}
    late = {"quantiles": quantiles, "correlation": "0 ms"}
    slow = {"rate": "5 Mbit/s", "queue": {"kind": "drop_tail", "limit": "60 kB"}, "jitter": late}
    (result,) = jostle.run(
        scenario("bbr", capture=True, duration="30 s", bottleneck=slow), store=tmp_path
    ).results
    return str(result.run.captures["download.sender"])


def test_bbr_over_a_path_that_is_late_is_bbr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = late_bbr(tmp_path)
    # Of an emulation that was late, BBR was taken for NV: it keeps a queue there that it does not
    # keep elsewhere.
    assert status(["identify", file, "--candidates", "reno,htcp,nv,vegas,bbr", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first, second = told["ranking"][:2]
    assert first["controller"] == "bbr"
    assert first["distance"] < 0.7 * second["distance"]


def test_candidates_have_late_paths_where_nobody_knows_them_to_be_on_time() -> None:
    observed = observe(run_of("bbr"))
    around = run_context.spec_from_estimate(observed)
    late = run_context.with_random_delay(around, run_context.SINGLE_FLOW_NAME, 0.3e-3)
    jitter = late["links"][0]["delay"]["jitter"]
    assert jitter is not None
    times = [point["value_ns"] for point in jitter["quantiles"]]
    shares = [point["probability"] for point in jitter["quantiles"]]
    # Trapezoids under the quantile function: its mean.
    assert np.trapezoid(times, shares) == pytest.approx(0.3e6, rel=0.05)
    assert times[-1] == 3e6
    assert around["links"][0]["delay"]["jitter"] is None
    # A path with jitter of its own keeps that.
    assert run_context.with_random_delay(late, run_context.SINGLE_FLOW_NAME, 1e-3) == late
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        runs = [
            len(observe_candidates(around, observed.flow, ("bbr",), session, 2, on_time=on_time))
            for on_time in (True, False)
        ]
    finally:
        executor.shutdown()
    assert runs == [2, 2 + len(run_context.LATENESS_S)]


def test_what_is_like_none_of_them_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captured = scenario("vegas", capture=True)
    (result,) = jostle.run(captured, store=tmp_path).results
    file = str(result.run.captures["download.sender"])
    words = ["--candidates", "cubic,htcp", "--repeats", "1", "--link"]
    link = tmp_path / "link.toml"
    link.write_text(
        'rtt = "40 ms"\n[bottleneck]\nrate = "10 Mbit/s"\n'
        'queue = { kind = "drop_tail", limit = "75 kB" }\n'
    )
    assert status(["identify", file, *words, str(link)]) == 0
    assert "none of these (probability" in capsys.readouterr().out


def test_a_connection_beside_it_that_carries_next_to_nothing_is_not_asked_about() -> None:
    beside = {"kind": "request_response", "size": "300 B", "think_time": "1 s"}
    flow = {"name": "download", "controller": "reno", "rtt": "40 ms"}
    run = run_of("reno", flows=[{**flow, "name": "control", "source": beside}, flow])
    assert observe(run).flow == "download"
