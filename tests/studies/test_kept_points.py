"""Operating points of Linux's flows that are kept beside a study."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from jostle import _core
from jostle.backends.sim import SimBackend
from jostle.errors import InputError
from jostle.runner.executors import local
from jostle.runner.session import Session
from jostle.studies import Runs
from jostle.studies.figures import figure_data
from jostle.studies.load import load
from jostle.studies.models import Curve, FigureSpec, Reference, Value
from jostle.studies.operating_points_archive import FILE, PARTS, read_archived_points
from jostle.studies.operating_points_export import operating_points_document

SCRIPT = Path(__file__).parents[2] / "tools" / "results" / "record_linux.py"

AGAINST_LINUX = Value(
    experiment="flow",
    where={"controller": "reno"},
    flow="download",
    measure="conformance",
    backend="sim",
    reference=Reference(backend="kernel"),
)


def script():
    """Return the script that writes the file."""
    spec = importlib.util.spec_from_file_location("record_linux", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def study(folder):
    path = folder / "small" / "study.toml"
    number = """
[[numbers]]
id         = "against-linux"
text       = "Reno against Linux"
experiment = "flow"
where      = { controller = "reno" }
flow       = "download"
measure    = "conformance"
backend    = "sim"
reference  = { backend = "kernel" }
"""
    path.write_text(path.read_text() + number)
    return load("small", folder)


def carried_out(study, seed):
    session = Session(SimBackend(_core), local(1), None)
    return session.carry_out(study.scenarios["flow"].plan(seed=seed))


def written(study, runs):
    """Keep what a run of another seed gave as Linux's."""
    (folder := study.folder / FILE).write_text(
        script().points(
            {"versions": {"kernel": "virtual-6.1"}, "points": operating_points_document(runs)},
            "2026-11-22",
            {},
        )
    )
    return folder


def test_what_is_kept_stands_for_runs(study):
    ours, linux = carried_out(study, 1), carried_out(study, 9)
    live = Runs(study, {"flow": ours}, {"sim": {"flow": ours}, "kernel": {"flow": linux}})
    written(study, live)
    kept = read_archived_points(study)
    assert (kept.version, kept.date) == ("virtual-6.1", "2026-11-22")
    alone = Runs(study, {"flow": ours}, {"sim": {"flow": ours}}, kept)

    expected = live.per_run(AGAINST_LINUX)
    assert None not in expected
    # The outline is thin, and rounding moves points on it to its outside.
    assert alone.per_run(AGAINST_LINUX) == pytest.approx(expected, abs=0.25)
    value = AGAINST_LINUX.model_copy(update={"backend": "kernel"})
    (condition,) = study.conditions(value)
    for one, other in zip(
        live.seeded_points(value, condition), alone.seeded_points(value, condition), strict=True
    ):
        assert one[0] == other[0]
        for axis in ("delay", "throughput"):
            real, read = getattr(one[1], axis), getattr(other[1], axis)
            np.testing.assert_allclose(read, real, atol=0.5001 / PARTS)
    shift = AGAINST_LINUX.model_copy(update={"measure": "delay_shift"})
    # Parts of a base RTT, told in percent.
    assert alone.per_run(shift) == pytest.approx(live.per_run(shift), abs=100 / PARTS)

    # Only what is held against Linux is kept, and no other backend has it.
    assert {
        run["condition"]["flows.download.controller"] for run in operating_points_document(live)
    } == {"reno"}
    other = AGAINST_LINUX.model_copy(update={"where": {"controller": "bbr"}})
    assert alone.per_run(other) == []


def test_runs_that_come_later_join_those_that_are_kept(study):
    def document(seed, version):
        linux = carried_out(study, seed)
        live = Runs(study, {"flow": linux}, {"kernel": {"flow": linux}})
        return {"versions": {"kernel": version}, "points": operating_points_document(live)}

    points = script().points
    # Three runs each, two of which are the same.
    first = json.loads(points(document(9, "6.1"), "2026-11-22", {}))
    second = json.loads(points(document(10, "6.2"), "2026-11-23", first))
    assert [one["seed"] for one in first["runs"]] == [9, 10, 11]
    assert [one["seed"] for one in second["runs"]] == [9, 10, 11, 12]
    assert second["runs"][:3] == first["runs"]
    assert (second["version"], second["date"]) == ("6.1, 6.2", "2026-11-23")

    # What came again is the new one's; a version of which nothing is left is not named.
    for one in first["runs"]:
        one["delay"] = []
    again = json.loads(points(document(9, "6.2"), "2026-11-23", first))
    assert again["version"] == "6.2"
    assert again["runs"] == second["runs"][:3]


def test_envelopes_are_drawn_of_what_is_kept(study):
    ours, linux = carried_out(study, 1), carried_out(study, 9)
    live = Runs(study, {"flow": ours}, {"sim": {"flow": ours}, "kernel": {"flow": linux}})
    written(study, live)
    curves = [
        Curve(label=name, experiment="flow", where={"controller": "reno"}, flow="download",
              backend=name)
        for name in ("sim", "kernel")
    ]  # fmt: skip
    figure = FigureSpec(id="e", caption="e", kind="envelopes", curves=tuple(curves))
    data = figure_data(
        Runs(study, {"flow": ours}, {"sim": {"flow": ours}}, read_archived_points(study)), figure
    )
    ((_, scatter),) = data.parts
    assert [cloud.label for cloud in scatter.clouds] == ["sim", "kernel"]


def test_what_ran_comes_before_what_is_kept(study):
    ours, linux = carried_out(study, 1), carried_out(study, 9)
    by_backend = {"sim": {"flow": ours}, "kernel": {"flow": linux}}
    written(study, Runs(study, {"flow": ours}, {"kernel": {"flow": ours}}))
    fresh = Runs(study, {"flow": ours}, by_backend, read_archived_points(study))
    assert fresh.per_run(AGAINST_LINUX) == Runs(study, {"flow": ours}, by_backend).per_run(
        AGAINST_LINUX
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Invalid JSON"),
        (
            '{"schema": "jostle.points/2", "version": "", "date": "2026-11-22", "runs": []}',
            "schema",
        ),
        ('{"schema": "jostle.points/1", "version": "", "date": "today", "runs": []}', "date"),
    ],
)
def test_a_file_that_is_none(study, text, why):
    (study.folder / FILE).write_text(text)
    with pytest.raises(InputError, match=why):
        read_archived_points(study)
