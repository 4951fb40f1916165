"""Values at each ACK of runs that record them, and published formulas beside runs."""

from __future__ import annotations

import numpy as np
import pytest
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.figures.renderer import render_figure
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.scenario import ScenarioError
from jostle.studies import Runs
from jostle.studies.evaluate import value_estimate
from jostle.studies.figures import figure_data
from jostle.studies.load import load
from jostle.studies.models import Curve, FigureSpec, Value
from jostle.studies.run_study import run_study, work_of

EXPERIMENTS = """
[experiments.acks]
scenario = "transfer.toml"
repeats = 1
changes = [{ set = { record = "acks" } }]
[experiments.acks.windows]
half = { bytes = ["50 %", "100 %"] }
[experiments.queues]
scenario = "queues.toml"
keys = { queue = "bottleneck.queue" }
[[figures]]
id = "7-queues"
caption = "Share by queue"
kind = "lines"
x = "queue"
x_scale = "log"
curves = [{ label = "simulated", experiment = "queues", flow = "bbr", measure = "share" }]
[[figures.models]]
label = "formula"
model = "bbr-beside-loss-based"
x = "buffer_bdp"
parameters = { rate_bps = "10 Mbit/s", rtt_s = "20 ms", bbr_flows = 1, packet_bytes = "1500 B" }
"""
QUEUES = """
title = "Two flows"
duration          = "2 s"
sampling_interval = "100 ms"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "reno"
controller = "reno"
rtt = "20 ms"
[[flows]]
name = "bbr"
controller = "bbr"
rtt = "20 ms"
[grid."bottleneck.queue"]
"1 BDP" = { kind = "drop_tail", limit = "1 BDP" }
"4 BDP" = { kind = "drop_tail", limit = "4 BDP" }
"""


def written(folder, *changes):
    """Load the small study with experiments that record ACKs and vary a queue."""
    (folder / "small" / "queues.toml").write_text(QUEUES)
    path = folder / "small" / "study.toml"
    text = path.read_text() + EXPERIMENTS
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return load("small", folder)


@pytest.fixture
def runs(folder) -> Runs:
    study = written(folder)
    backend = SimBackend(_core)
    session = Session(backend, local(1), None)
    wanted = [one for one in work_of(study, backend, None) if one.experiment in ("acks", "queues")]
    done = run_study(wanted, lambda one: session.carry_out(one.plan))
    return Runs(study, done["small", "described"])


ACKS = Value(experiment="acks", flow="download", measure="segment_rtt", window="half", bin="ack")


def test_bins_of_acks_are_all_acks_of_the_window(runs):
    (view,) = runs.views("acks", 0)
    span = view.span("half", runs.study.file.experiments["acks"].windows["half"], "download")
    acks = view._run.acks
    there = acks.filter((acks["time_s"] >= span.from_s) & (acks["time_s"] < span.to_s))
    wanted = there["segment_rtt_s"].drop_nulls().drop_nans().to_numpy() * 1e3
    assert np.sort(runs.per_bin(ACKS)) == pytest.approx(np.sort(wanted))
    # 1 MB are 690 packets and about half as many ACKs.
    assert 300 < wanted.size < 800


def test_their_mean_is_that_of_the_series(runs):
    of_series = runs.per_run(ACKS.model_copy(update={"bin": None}))
    assert np.mean(runs.per_bin(ACKS)) == pytest.approx(of_series[0], rel=0.02)


def test_percentiles_and_shares_of_acks(runs):
    every = runs.per_bin(ACKS)
    median = value_estimate(runs, ACKS.model_copy(update={"percentile": 50}))
    assert median.value == pytest.approx(np.median(every))
    share = value_estimate(runs, ACKS.model_copy(update={"bins_above": float(np.median(every))}))
    assert share.unit == "%"
    assert 45 < share.value < 60
    none = value_estimate(runs, ACKS.model_copy(update={"bins_above": 1e6}))
    assert none.value == 0


def test_a_distribution_of_many_acks_keeps_what_can_be_seen(runs, monkeypatch):
    figure = FigureSpec(
        id="f", caption="RTT", kind="cdf", curves=[Curve(label="Reno", **ACKS.model_dump())]
    )
    monkeypatch.setattr("jostle.studies.figures._POINTS", 50)
    (curve,) = figure_data(runs, figure).curves
    every = np.sort(runs.per_bin(ACKS))
    assert curve.x.size == 50
    assert (curve.x[0], curve.x[-1], curve.y[-1]) == (every[0], every[-1], 1.0)
    assert np.interp(0.5, curve.y, curve.x) == pytest.approx(np.median(every), rel=0.05)


def test_an_experiment_may_have_fewer_runs_than_its_scenario(folder):
    study = written(
        folder,
        ('scenario = "flow.toml"', 'scenario = "flow.toml"\nrepeats = 2'),
    )
    first, *_ = work_of(study, SimBackend(_core), None)
    assert len(first.plan.runs) == 2 * len(study.scenarios["flow"].conditions)


def test_a_formula_is_drawn_beside_the_runs(runs):
    figure = runs.study.file.figures[-1]
    data = figure_data(runs, figure)
    simulated, formula = data.curves
    assert simulated.x.tolist() == [1.0, 4.0]
    # 10 Mbit/s and 20 ms are 16.7 packets: p is negative, then 1/2 − 1/8 − 4/66.7.
    assert formula.y[0] == pytest.approx(100 * (1 - 0.024))
    assert formula.y[-1] == pytest.approx(100 * (1 - 0.315) * (1 - 0.03))
    assert formula.x.size > 50
    assert render_figure(data).axes


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('model = "bbr-beside-loss-based"', 'model = "ware"', "no model `ware`"),
        ("bbr_flows = 1, ", "", "`bbr-beside-loss-based` needs `bbr_flows`"),
        ("bbr_flows = 1", "flows = 1", "no parameter of bbr-beside-loss-based `flows`"),
        ('rtt_s = "20 ms"', 'rtt_s = "20"', '"20"'),
        ('flow = "bbr", measure = "share"', 'flow = "bbr", measure = "goodput"', "is of `share`"),
        ('x_scale = "log"', 'x_scale = "even"', "formulas go with `lines`"),
        (
            'measure = "rtt", bin = "200 ms"',
            'measure = "rtt", bin = "ack"',
            "records no ACKs — its scenario needs record",
        ),
        (
            'measure = "rtt", bin = "200 ms"',
            'measure = "cwnd", bin = "ack"',
            "no measure of an ACK `cwnd`",
        ),
        (
            'measure = "rtt", bin = "200 ms"',
            'measure = "rtt", bins_above = 2, percentile = 3',
            "either `percentile` or `bins_above`",
        ),
    ],
)
def test_what_cannot_be_drawn_is_told_before_anything_runs(folder, old, new, told):
    with pytest.raises(ScenarioError, match=told):
        written(folder, (old, new))
