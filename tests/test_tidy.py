"""The frame of everything: as samples are estimated one by one, and each summary read once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from fake_core import spec
from fake_plan import plan_of
from hypothesis import given
from hypothesis import strategies as st
from jostle.results import ResultSet
from jostle.results.measure_samples import grid_keys, samples
from jostle.results.measures import measures
from jostle.results.tidy_frame import tidy
from jostle.runner.progress import BarProgress
from jostle.scenario import PlannedRun
from jostle.stats import estimate, estimates


def several(seed: int, copies: int, source: dict) -> dict:
    """A flow of its own, and one that `count` made several of."""
    made = spec(seed, ("bbr",) + ("cubic",) * copies, jitter=True)
    for at, flow in enumerate(made["flows"][1:], start=1):
        flow["name"] = f"web-{at}"
        flow["source"] = source
    return made


@pytest.fixture
def results(carry_out) -> ResultSet:
    """Conditions with one to four flows, transfers and bulk, one to three runs of each."""
    bulk = spec()["flows"][0]["source"]
    ends = {"kind": "fixed", "bytes": 20_000}
    runs, conditions = [], []
    for at, (copies, source) in enumerate(((0, bulk), (1, bulk), (3, bulk), (2, ends), (1, ends))):
        conditions.append({"web.count": str(copies), "ends": str(source is ends)})
        runs += [PlannedRun(at, seed, several(seed, copies, source)) for seed in range(at % 3 + 1)]
    return carry_out(plan_of("", conditions, runs))


def one_by_one(results: ResultSet, phases, each: bool) -> Iterator[tuple]:
    """Rows as samples give them."""
    keys = grid_keys(results)
    for name in (name for name, one in measures().items() if one.tabled):
        for sample in samples(results, name, phases, each=each):
            found = sample.estimate()
            place = sample.place
            yield (
                *(int(place[key]) if key == "web.count" else place[key] for key in keys),
                place.get("phase"),
                place.get("flow", place.get("group")),
                len(sample.flows[0]) if sample.measure.scope == "flow" else None,
                place.get("controller"), place.get("link"), name, sample.measure.unit,
                found.value, found.low, found.high, found.n, *(sample.spread or (None, None)),
                0, None,
            )  # fmt: skip


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("phases", [None, ("steady",)])
@pytest.mark.parametrize("block", [1, 50, 20_000])
def test_rows_are_what_samples_are_estimated_as(results, phases, each, block, monkeypatch):
    monkeypatch.setattr("jostle.results.tidy_frame._BLOCK", block)
    rows = list(one_by_one(results, phases, each))
    frame = tidy(results, phases=phases, each=each)
    # To the last bit, and in this order.
    assert frame.rows() == rows
    assert frame.filter(measure="harm").height
    assert (frame["smallest"].null_count() == frame.height) is each


def test_no_run_gives_an_empty_frame_with_its_columns(results):
    nothing = ResultSet("", "sim", "1", conditions=[{"web.count": "1"}], results=[])
    frame = tidy(nothing)
    assert frame.height == 0
    assert frame.schema["mean"] == pl.Float64
    assert frame.columns == [name for name in tidy(results).columns if name != "ends"]


def test_a_summary_is_read_once_however_many_measures_there_are(results, monkeypatch):
    class Counted:
        """A run that counts how often it is asked for its summary, as a store reads it."""

        def __init__(self, run) -> None:
            self.run, self.asked = run, 0

        @property
        def summary(self):
            self.asked += 1
            return self.run.summary

        def __getattr__(self, name: str):
            return getattr(self.run, name)

    counted = tuple(result._replace(run=Counted(result.run)) for result in results.results)
    monkeypatch.setattr(results, "results", counted)
    done = []
    tidy(results, advance=lambda: done.append(1))
    assert len(done) == len(results.conditions)
    # Beside that, harm asks for names of flows and for what it compares.
    few = 1 + 2 + 3 * len(results.phases) * 4
    assert max(result.run.asked for result in results.results) <= few


numbers = st.one_of(st.none(), st.floats(-1e12, 1e12), st.sampled_from([0.0, -0.0, 1.0, 0.5]))


@given(st.lists(st.lists(numbers, min_size=1, max_size=40), min_size=1, max_size=12))
def test_many_estimates_are_those_of_each(sample_lists):
    flat = np.array([value for sample in sample_lists for value in sample], dtype=np.float64)
    sizes = np.array([len(sample) for sample in sample_lists])
    found = estimates(flat, sizes, np.full(len(sizes), -np.inf), 0.75)
    for at, sample in enumerate(sample_lists):
        one = estimate(sample, "s", bounds=(None, 0.75))
        told = [found.value[at], found.low[at], found.high[at]]
        assert [None if np.isnan(end) else end for end in told] == [one.value, one.low, one.high]
        assert found.n[at] == one.n


@pytest.mark.parametrize("size", [2, 7, 8, 9, 127, 128, 129, 1000, 10_000])
def test_estimates_of_long_samples_are_the_same_whichever_stand_beside_them(size):
    samples_of = np.random.default_rng(size).normal(5, 2, (5, size))
    together = estimates(samples_of.ravel(), np.full(5, size))
    for at, sample in enumerate(samples_of):
        one = estimate(sample.tolist(), "s")
        ends = (together.value[at], together.low[at], together.high[at])
        assert ends == (one.value, one.low, one.high)


def test_a_patient_bar_shows_nothing_of_what_is_soon_over(capsys):
    bar = BarProgress([], what="conditions written", patient=True)
    bar.begin(10_000, 0)
    bar.advance()
    bar.end()
    assert capsys.readouterr().err == ""
