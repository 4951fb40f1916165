"""Fitting a scenario to what was measured."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import jostle
import numpy as np
import polars as pl
import pytest
from downloads import document
from jostle.backends import SimBackend, load_engine
from jostle.cli import status
from jostle.errors import InputError
from jostle.inference.fit import Experiment, _Search, fit
from jostle.inference.fit_features import features, rtts_known
from jostle.inference.free_keys import free_keys
from jostle.inference.gauss_newton import noise_weights, refine, slopes_at
from jostle.inference.scenario_toml import fitted_text, relocated
from jostle.inference.uncertainty import uncertainty
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.stats.descriptive import Floats

GUESS = document("18 Mbit/s", "60 ms", "200 kB", "0.4 %", duration="12 s", seed=5)
TRUTH = document("10 Mbit/s", "40 ms", "80 kB", "0.1 %", duration="12 s", seed=5)
KEYS = "bottleneck.rate,bottleneck.queue.limit,flows.download.rtt,bottleneck.loss=0.01..5 %"


def test_keys_have_ranges_around_what_the_scenario_says() -> None:
    rate, loss, rtt = free_keys(GUESS, ["bottleneck.rate,bottleneck.loss", "flows.download.rtt"])
    assert (rate.low, rate.high, rate.unit, rate.start) == (4.5, 72.0, "Mbit/s", 18.0)
    assert (loss.low, loss.high, loss.unit) == (0.1, 1.6, "%")
    assert rtt.written(rtt.value(0.5)) == "60 ms"
    assert rate.relative_position(18.0) == pytest.approx(0.5)


def test_ranges_are_read_with_their_unit() -> None:
    (loss,) = free_keys(GUESS, ["bottleneck.loss=0..2 %"])
    assert not loss.logarithmic
    assert loss.value(0.5) == 1.0
    assert loss.start == 0.4
    (limit,) = free_keys(GUESS, ["bottleneck.queue.limit = 10..1000 packets"])
    assert limit.start == pytest.approx(100.0)
    assert limit.written(limit.value(0.123)) == "18 packets"
    (tiny,) = free_keys(GUESS, ["bottleneck.loss=0.00001..1 %"])
    assert tiny.written(0.00002) == "0.00002 %"


@pytest.mark.parametrize(
    "free",
    [
        "bottleneck.queue.limit=50..800 kB",
        "bottleneck.queue.limit=0.1..3 BDP",
        "bottleneck.queue.limit=20..90 packets",
        "bottleneck.rate=500..9000 kbit/s",
        "flows.download.rtt=0.01..0.2 s",
    ],
)
def test_every_value_of_a_range_can_be_run(free: str) -> None:
    scenario = jostle.Scenario.from_dict(GUESS)
    (key,) = free_keys(scenario.document, [free])
    for place in np.linspace(0.0, 1.0, 23):
        scenario.set({key.key: key.written(key.value(float(place)))}).plan(repeats=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bottleneck.delay"], "no number there"),
        (["bottleneck.rate=5..fast"], "write a range"),
        (["bottleneck.rate=5 kbit/s..6 Mbit/s"], "both ends in one unit"),
        (["bottleneck.rate=50..5 Mbit/s"], "to a larger one"),
        (["bottleneck.rate,bottleneck.rate"], "given twice"),
        (["flows.upload.rtt"], "did you mean|there is no flow"),
        ([","], "at least one key"),
    ],
)
def test_keys_that_are_none_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        free_keys(GUESS, words)


def test_a_count_is_scaled_by_what_moves_it() -> None:
    run = jostle.run(jostle.Scenario.from_dict(TRUTH), store=False, repeats=1).results[0].run
    found = {one.name: one for one in features(run, rtts_known(run))}
    count = found["flow 1: retransmissions"]
    assert count.value is not None
    # Steps of a standard deviation: of chance, √n, and of the model, a tenth of n.
    sigma = np.sqrt(count.value + (0.1 * count.value) ** 2)
    step = 20 * np.arcsinh(0.1 * np.sqrt(count.value + sigma)) - count.scaled
    assert step == pytest.approx(1.0, abs=0.15)
    assert found["flow 1: mean throughput"].unit == "bit/s"
    assert 0.04 < (found["flow 1: RTT, p1"].value or 0) < 0.05


def test_rtts_are_of_the_kind_that_was_measured() -> None:
    run = jostle.run(jostle.Scenario.from_dict(TRUTH), store=False, repeats=1).results[0].run
    assert rtts_known(run) == ["rtt_mean_s"]
    # A kernel that is asked now and then tells the smoothed RTT of that moment, and no other.
    sampled = run.flows.with_columns(rtt_last_s="srtt_s", rtt_mean_s=pl.col("srtt_s") + 5e-4)
    rtts = rtts_known(SimpleNamespace(summary=run.summary, flows=sampled))
    assert rtts == ["srtt_s"]
    (told,) = (one.value for one in features(run, rtts) if one.name == "flow 1: RTT, p100")
    assert told == pytest.approx(run.flows["srtt_s"].max())
    unknown = run.flows.with_columns(rtt_last_s=None, rtt_mean_s=None)
    assert rtts_known(SimpleNamespace(summary=run.summary, flows=unknown)) == ["srtt_s"]


def test_what_few_seeds_met_by_chance_is_not_fitted() -> None:
    searched = object.__new__(_Search)
    searched.seeds, searched.evaluations = 2, 0
    random = np.random.default_rng(4)

    def evaluate(guesses: Sequence[Floats], seeds: int, first: int = 0) -> list[Floats]:
        # The few meet three too many; what many meet is right, on average.
        chance = 3.0 if seeds == 2 else random.standard_normal((seeds, 1))
        return [np.tile(10 * one, (seeds, 1)) + chance for one in guesses]

    searched.evaluate = evaluate
    searched.learn_chance(np.array([0.5]), 400)
    assert searched.luck == pytest.approx([-3.0], abs=0.2)
    (told,) = searched.expected_features([np.array([0.6])])
    assert told == pytest.approx([6.0], abs=0.2)


def linear(random: np.random.Generator) -> tuple[Floats, Floats]:
    """Slopes of ten features in three keys, and what the data have."""
    slopes = 100 * random.standard_normal((10, 3))
    return slopes, slopes @ np.array([0.3, 0.5, 0.7])


def test_gauss_newton_finds_the_least_squares_of_what_is_linear() -> None:
    slopes, target = linear(np.random.default_rng(1))

    def evaluate(guesses: Sequence[Floats]) -> list[Floats]:
        return [slopes @ one for one in guesses]

    best, misfit = refine(np.array([0.4, 0.4, 0.6]), target, np.ones(10), evaluate, rounds=8)
    assert best == pytest.approx([0.3, 0.5, 0.7], abs=0.002)
    assert misfit < 0.01
    assert slopes_at(best, evaluate) == pytest.approx(slopes)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(2)
    slopes, _ = linear(random)
    keys = free_keys(GUESS, ["bottleneck.rate,bottleneck.queue.limit,flows.download.rtt"])
    runs = 3 * random.standard_normal((400, 10))
    weights = noise_weights(runs)
    # A mean over so many runs has no chance of its own.
    known = uncertainty(keys, np.full(3, 0.5), slopes, weights, runs, seeds=10**6)
    # The covariance of weighted least squares, by its formula.
    inverse = np.linalg.inv(slopes.T @ (slopes * weights[:, None] ** 2))
    sides = 1.96 * np.sqrt(np.diag(inverse))
    assert (known.ends[:, 1] - known.ends[:, 0]) / 2 == pytest.approx(sides, rel=0.15)
    assert known.unclear == []


def test_keys_that_do_the_same_cannot_be_told_apart() -> None:
    random = np.random.default_rng(3)
    slopes, _ = linear(random)
    slopes[:, 1] = -slopes[:, 0] + 0.01 * random.standard_normal(10)
    keys = free_keys(GUESS, ["bottleneck.rate,bottleneck.queue.limit,flows.download.rtt"])
    runs = random.standard_normal((50, 10))
    known = uncertainty(keys, np.full(3, 0.5), slopes, noise_weights(runs), runs, seeds=2)
    ((one, other, correlation),) = known.unclear
    assert (one, other) == ("bottleneck.rate", "bottleneck.queue.limit")
    assert correlation > 0.95


def test_what_was_found_is_written_as_toml() -> None:
    odd = {**GUESS, "title": 'A "line"\nof\tours', "grid": {"flows.download.controller": ["bbr"]}}
    text = fitted_text(odd, {"bottleneck.rate": "9.87 Mbit/s", "flows.download.rtt": "41 ms"})
    read = tomllib.loads(text)
    assert read["bottleneck"] == {**GUESS["bottleneck"], "rate": "9.87 Mbit/s"}
    assert read["flows"] == [{**GUESS["flows"][0], "rtt": "41 ms"}]
    assert read["grid"] == odd["grid"]
    assert read["title"] == odd["title"]
    assert jostle.Scenario.from_toml(text).title == odd["title"]


def test_a_scenario_tells_its_document_with_what_was_set() -> None:
    changed = jostle.Scenario.from_dict(GUESS).set(
        {"bottleneck.rate": "7 Mbit/s", "flows.download.controller": "reno"}
    )
    told = changed.document
    assert told["bottleneck"]["rate"] == "7 Mbit/s"
    assert told["flows"][0]["controller"] == "reno"
    assert "grid" not in told


@pytest.fixture(scope="module")
def measured() -> jostle.ResultSet:
    """A run of Cubic and one of BBR, over a network that the fit does not know."""
    return jostle.run(jostle.Scenario.from_dict(TRUTH), store=False)


@pytest.mark.slow
def test_known_keys_are_recovered(measured: jostle.ResultSet) -> None:
    scenario = jostle.Scenario.from_dict(GUESS)
    experiments = [Experiment(one.condition, one.run) for one in measured.results]
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        found = fit(scenario, experiments, free_keys(scenario.document, [KEYS]), session, budget=40)
    finally:
        executor.shutdown()
    values = {one.key.key: one.value for one in found.parameters}
    assert values["bottleneck.rate"] == pytest.approx(10.0, rel=0.02)
    assert values["bottleneck.queue.limit"] == pytest.approx(80.0, rel=0.1)
    assert values["flows.download.rtt"] == pytest.approx(40.0, rel=0.01)
    assert 0.1 / 1.5 < values["bottleneck.loss"] < 0.1 * 1.5
    for one, truth in zip(found.parameters, (10.0, 80.0, 40.0, 0.1), strict=True):
        assert one.low < truth < one.high, one.key.key
    assert found.misfit < 3.0
    assert found.scenario.plan(repeats=1).runs[0].spec["links"][0]["capacity"]["kind"] == "constant"


def test_what_does_not_fit_the_scenario_is_refused(measured: jostle.ResultSet) -> None:
    flows = [*GUESS["flows"], {"name": "other", "controller": "reno", "rtt": "40 ms"}]
    scenario = jostle.Scenario.from_dict({**GUESS, "flows": flows})
    keys = free_keys(scenario.document, ["bottleneck.rate"])
    session = Session(SimBackend(load_engine()), local(1), None)
    with pytest.raises(InputError, match="2 flows, and what was measured 1"):
        fit(scenario, [Experiment(0, measured.results[0].run)], keys, session)
    with pytest.raises(InputError, match="nothing to fit to"):
        fit(scenario, [], keys, session)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, file = tmp_path / "store", tmp_path / "guess.toml"
    truth = jostle.Scenario.from_dict({**TRUTH, "duration": "6 s", "repeats": 2})
    names = [one.run.run_id for one in jostle.run(truth, store=store).results]
    cubic, cubic_again, bbr, _ = names
    file.write_text(fitted_text({**GUESS, "duration": "6 s"}, {"bottleneck.loss": "0.1 %"}))
    fitted, figure = tmp_path / "fitted.toml", tmp_path / "fit.svg"
    words = [
        str(file), "--data", f"cubic:{cubic}", "--data", f"bbr:{bbr}", "--test-data",
        f"cubic:{cubic_again}", "--vary", "bottleneck.rate", "--trials", "12",
        "--set", "bottleneck.queue.limit=80 kB", "--set", "flows.download.rtt=40 ms",
        "--repeats", "1", "--store", str(store), "-o", str(fitted), "-o", str(figure),
    ]  # fmt: skip
    assert status(["fit", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (rate,) = told["parameters"]
    assert rate["value"] == pytest.approx(10.0, rel=0.02)
    assert rate["low"] < 10.0 < rate["high"]
    assert len(told["experiments"]) == 2
    assert told["test"][0][0]["name"] == "flow 1: mean throughput"
    said = " ".join(told["assumptions"])
    for sentence in (
        f"{cubic} is of the condition flows.download.controller = cubic.",
        f"{bbr} is of the condition flows.download.controller = bbr.",
        "1 seeds each. Left out: those of the scenario, its phases and its captures.",
        f"Left out of {fitted}: the comments of {file}",
    ):
        assert sentence in said
    assert "conditions without a measurement" not in said
    read = tomllib.loads(fitted.read_text())
    assert read["bottleneck"]["rate"] == rate["written"]
    assert read["bottleneck"]["queue"]["limit"] == "80 kB"
    assert figure.read_bytes().startswith(b"<?xml")
    assert status(["fit", *words[:-4]]) == 0
    shown = capsys.readouterr().out
    assert "95 % interval" in shown
    assert f"held out cubic:{cubic_again}" in shown
    assert "Assumptions" in shown


def test_what_a_fit_leaves_out_is_listed(measured: jostle.ResultSet) -> None:
    scenario = jostle.Scenario.from_dict(GUESS)
    keys = free_keys(scenario.document, ("bottleneck.rate",))
    executor = local(2)
    try:
        session = Session(SimBackend(load_engine()), executor, None)
        run = measured.results[0].run
        searched = _Search(scenario, [Experiment(0, run, "mine")], keys, session, 1)
        searched.failed = 3
        feature = searched.measured[0][0]
        said = " ".join(searched._assumptions([((feature, None),)]))
    finally:
        executor.shutdown()
    assert "Left out: conditions without a measurement (flows.download.controller = bbr)" in said
    assert f"Left out of the misfit with mine: {feature.name} (no value)." in said
    assert "Left out: 3 guesses that could not be run." in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (["--data", "reno:0123456789"], "no condition `reno`"),
        (["--data", "0123456789"], "say of which the run is"),
        (["--data", "cubic:0123456789"], "no run in"),
    ],
)
def test_what_is_wrong_is_told(
    changed: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "guess.toml"
    file.write_text(fitted_text(GUESS, {}))
    words = [str(file), "--vary", "bottleneck.rate", "--store", str(tmp_path), *changed]
    assert status(["fit", *words]) == 2
    assert said in capsys.readouterr().err


def test_paths_of_a_scenario_are_relative_to_its_new_folder(tmp_path: Path) -> None:
    for name in ("t.mahi", "u.mahi", "r.csv", "tree.json", "cubic"):
        (tmp_path / name).touch()
    document = {
        "bottleneck": {"trace": "t.mahi", "delay": {"file": "r.csv", "column": "rtt"}},
        "flows": [
            {"name": "t.mahi", "controller": {"name": "remy", "table": "tree.json"}},
            {"name": "b", "controller": "cubic", "arrivals": {"file": "absent"}},
        ],
        "grid": {
            "bottleneck.trace": {"a": "t.mahi", "b": "u.mahi"},
            "flows.b.controller": ["cubic"],
            "flows.t.controller.table": ["tree.json"],
        },
    }
    moved = relocated(document, tmp_path, tmp_path / "out" / "deep")
    assert moved == {
        "bottleneck": {"trace": "../../t.mahi", "delay": {"file": "../../r.csv", "column": "rtt"}},
        "flows": [
            {"name": "t.mahi", "controller": {"name": "remy", "table": "../../tree.json"}},
            {"name": "b", "controller": "cubic", "arrivals": {"file": "absent"}},
        ],
        "grid": {
            "bottleneck.trace": {"a": "../../t.mahi", "b": "../../u.mahi"},
            "flows.b.controller": ["cubic"],
            "flows.t.controller.table": ["../../tree.json"],
        },
    }
    assert relocated(document, tmp_path, tmp_path) == document
