"""Measures of pairs in studies: what a flow is held against, on which backend, and envelopes."""

from __future__ import annotations

import numpy as np
import pytest
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.figures.renderer import render_figure
from jostle.results import ResultSet
from jostle.results.conformance import conformance_results
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.studies import Runs, Study
from jostle.studies.evaluate import value_estimate
from jostle.studies.figures import figure_data
from jostle.studies.load import load
from jostle.studies.models import Curve, FigureSpec, Reference, Value

RENO = Value(experiment="flow", where={"controller": "reno"}, flow="download")


def carried_out(study: Study, seed: int = 1) -> ResultSet:
    session = Session(SimBackend(_core), local(1), None)
    return session.carry_out(study.scenarios["flow"].plan(seed=seed))


@pytest.fixture
def study(folder) -> Study:
    return load("small", folder)


@pytest.fixture
def results(study) -> ResultSet:
    return carried_out(study)


def of(value: Value, **changes: object) -> Value:
    return value.model_copy(update=changes)


def test_a_flow_against_another_condition(study, results):
    runs = Runs(study, {"flow": results})
    against_bbr = Reference(where={"controller": "bbr"})
    value = of(RENO, measure="conformance", reference=against_bbr)
    (expected,) = conformance_results(
        results.where(controller="reno"), results.where(controller="bbr")
    )
    assert runs.per_run(value) == expected.values("conformance")
    shift = of(value, measure="delay_shift")
    assert runs.per_run(shift) == pytest.approx([100 * v for v in expected.values("delay_shift")])
    assert value_estimate(runs, shift).unit == "% of the base RTT"
    itself = of(RENO, measure="conformance", reference=Reference())
    assert runs.per_run(itself) == [1.0] * 3
    late = of(value, window="late")
    assert runs.per_run(late) != runs.per_run(value)


def test_repeatability_is_of_the_other_runs(study, results):
    runs = Runs(study, {"flow": results})
    found = runs.per_run(of(RENO, measure="repeatability"))
    (same,) = conformance_results(
        results.where(controller="reno"), results.where(controller="reno")
    )
    assert np.mean(found) == pytest.approx(same.itself)
    assert 0.3 < np.mean(found) < 1.0


def test_a_reference_of_another_backend(study, results):
    """Other seeds stand in for another backend's runs."""
    others = carried_out(study, seed=9)
    by_backend = {"sim": {"flow": results}, "kernel": {"flow": others}}
    runs = Runs(study, {"flow": results}, by_backend)
    value = of(RENO, measure="conformance", reference=Reference(backend="kernel"))
    (expected,) = conformance_results(
        results.where(controller="reno"), others.where(controller="reno")
    )
    assert runs.per_run(value) == expected.values("conformance")
    assert runs.per_run(value) != [1.0] * 3
    # In the kernel's own column it is the same reference.
    own = Runs(study, {"flow": others}, by_backend)
    assert own.per_run(value) == [1.0] * 3
    # Whatever names its backend is the same in every column.
    rate = of(RENO, measure="throughput", backend="kernel")
    assert runs.per_run(rate) == own.per_run(rate)
    assert own.per_run(rate) == own.per_run(of(rate, backend=""))
    # What that backend did not run has no value.
    alone = Runs(study, {"flow": results}, {"sim": {"flow": results}})
    assert alone.per_run(value) == []
    assert value_estimate(alone, value).value is None


def test_envelopes(study, results):
    curves = tuple(
        Curve(label=name, experiment="flow", where={"controller": name}, flow="download")
        for name in ("reno", "bbr", "reno", "vivace")
    )
    figure = FigureSpec(id="e", caption="", kind="envelopes", curves=curves,
                        groups=("against BBR", "against Vivace"))  # fmt: skip
    data = figure_data(Runs(study, {"flow": results}), figure)
    assert [title for title, _ in data.parts] == ["against BBR", "against Vivace"]
    assert [[cloud.label for cloud in part.clouds] for _, part in data.parts] == [
        ["reno", "bbr"], ["reno", "vivace"],
    ]  # fmt: skip
    assert render_figure(data).axes
    assert figure_data(Runs(study, {}), figure) is None


def test_heat_maps_of_pairs_have_one_scale(study, results):
    curves = tuple(
        Curve(label=f"against {name}", experiment="flow", flow="download", measure="conformance",
              reference=Reference(where={"controller": name}))
        for name in ("reno", "bbr")
    )  # fmt: skip
    figure = FigureSpec(id="h", caption="", kind="heat_map", curves=curves, rows="controller",
                        columns="window", windows=("overall", "late"))  # fmt: skip
    data = figure_data(Runs(study, {"flow": results}), figure)
    assert [title for title, _ in data.parts] == ["against reno", "against bbr"]
    assert {(part.lowest, part.highest) for _, part in data.parts} == {(0.0, 1.0)}
    assert data.parts[0][1].values[0, 0] == 1.0
    assert render_figure(data).axes
