"""Fit of a scenario's keys to measurements by CMA-ES.

Every guess is run for each experiment with the same seeds. Its misfit is the distance of its
features (`fit_features.py`) from the features of the data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError, JostleError
from jostle.inference.fit_features import FitFeature, features, rtts_known
from jostle.inference.free_keys import FittedKey
from jostle.inference.gauss_newton import misfit as held_against
from jostle.inference.gauss_newton import noise_weights, refine, scan, slopes_at
from jostle.inference.uncertainty import Uncertainty, uncertainty
from jostle.scenario import Condition, PlannedRun, RunPlan, Scenario, ScenarioError

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.runner.session import Session
    from jostle.stats.descriptive import Floats

__all__ = ["Compared", "Experiment", "Fit", "Parameter", "compare", "compared_dict", "fit"]

_WIDTH: Final = 0.2
"""Initial standard deviation of the search, as a share of each range."""
_PASSES: Final = 2
"""Number of times that all keys are scanned and refined after the search, with new weights."""
_STEPS: Final = 6
"""Maximum number of Gauss-Newton steps per pass."""
_CONVERGED: Final = 1e-3
"""The search ends when a generation's guesses lie within this share of each range."""
_FIRST_SEED: Final = 1_000_000
"""First seed of simulated runs. It is arbitrary, because measured runs have no known seed."""

Compared = tuple[tuple[FitFeature, float | None], ...]
"""Features of an experiment: the measured feature, and the value of the scenario."""


@dataclass(frozen=True)
class Experiment:
    """A measured run, the condition of the scenario to which it belongs, and its file."""

    condition: int
    run: Run
    source: str = ""


@dataclass(frozen=True)
class Parameter:
    """Estimate of a key.

    Attributes
    ----------
    key
        Key with its range and unit.
    value
        Best value, in that unit.
    low, high
        Ends of the 95 % interval; see `uncertainty`.
    """

    key: FittedKey
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Fit:
    """A fitted scenario.

    Attributes
    ----------
    scenario
        Scenario with the fitted values.
    parameters
        Estimates of the free keys.
    misfit
        Mean over features; 1 if each differs by its tolerance.
    compared
        Features of each experiment: measured, and of the fitted scenario (mean over seeds).
    runs
        A run of the fitted scenario for each experiment.
    unclear
        Pairs of keys that the data cannot separate, with their correlation.
    evaluations
        Number of evaluated guesses.
    assumptions
        Sentences on what was assumed about the measurements, and on what was left out.
    """

    scenario: Scenario
    parameters: tuple[Parameter, ...]
    misfit: float
    compared: tuple[Compared, ...]
    runs: Sequence[Run]
    unclear: tuple[tuple[str, str, float], ...]
    evaluations: int
    assumptions: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `jostle fit --json` prints."""
        return {
            "format": "jostle.fit/2",
            "parameters": [
                {
                    "key": one.key.key,
                    "value": one.value,
                    "low": one.low,
                    "high": one.high,
                    "unit": one.key.unit,
                    "written": one.key.written(one.value),
                }
                for one in self.parameters
            ],
            "misfit": self.misfit,
            "evaluations": self.evaluations,
            "indistinguishable": [
                {"keys": [one, other], "correlation": correlation}
                for one, other, correlation in self.unclear
            ],
            "experiments": [compared_dict(one) for one in self.compared],
            "assumptions": list(self.assumptions),
        }


def compared_dict(compared: Compared) -> list[dict[str, Any]]:
    """Return features of an experiment as plain data."""
    return [
        {"name": f.name, "unit": f.unit, "measured": f.value, "fitted": fitted}
        for f, fitted in compared
    ]


def fit(
    scenario: Scenario,
    experiments: Sequence[Experiment],
    keys: Sequence[FittedKey],
    session: Session,
    *,
    budget: int = 80,
    seeds: int = 2,
    replicates: int = 24,
    seed: int = 1,
    progress: Callable[[int, float], object] | None = None,
) -> Fit:
    """Find the values of free keys with which a scenario reproduces measurements.

    Parameters
    ----------
    scenario
        Known parts of the setup: flows, controllers, topology.
    experiments
        Measurements. The simulated runs have the same duration and sampling interval.
    keys
        Unknown keys with their ranges.
    session
        Session that simulates guesses.
    budget
        Guesses of the search. The following steps take about ten more per key.
    seeds
        Runs per guess and experiment.
    replicates
        Runs of the fitted scenario that estimate the random variation, for weights and intervals.
    seed
        Seed of the search.
    progress
        Called after each generation with the number of guesses and the least misfit.

    Raises
    ------
    InputError
        If an experiment does not match the scenario, or optimisation libraries are missing.
    """
    searched = _Search(scenario, experiments, keys, session, seeds)
    best, _ = searched.search(budget, seed, progress)
    for _ in range(_PASSES):
        searched.learn_chance(best, replicates)
        about = (searched.target, searched.weights, searched.expected_features)
        best, _ = scan(best, *about)
        best, least = refine(best, *about, _STEPS)
        if progress is not None:
            progress(searched.evaluations, least)
    slopes = slopes_at(best, searched.expected_features)
    (many,) = searched.evaluate([best], replicates, _FIRST_SEED + seeds)
    known = uncertainty(keys, best, slopes, searched.weights, many, seeds=replicates)
    return searched.build_result(best, least, known)


class _Search:
    def __init__(
        self,
        scenario: Scenario,
        experiments: Sequence[Experiment],
        keys: Sequence[FittedKey],
        session: Session,
        seeds: int,
    ) -> None:
        if not experiments:
            raise InputError("nothing to fit to: give at least one run")
        self.scenario = scenario
        self.experiments = experiments
        self.keys = keys
        self.session = session
        self.seeds = seeds
        self.rtts = [rtts_known(one.run) for one in experiments]
        self.measured = [
            features(one.run, rtts) for one, rtts in zip(experiments, self.rtts, strict=True)
        ]
        self.evaluations = 0
        self.failed = 0
        """Number of guesses that could not be run."""
        self.target = np.array([f.scaled for each in self.measured for f in each])
        self.weights = np.ones(self.target.size)
        self.luck = np.zeros(self.target.size)
        """Mean of the features over many seeds minus their mean over the guesses' seeds."""
        self._fits(scenario)

    def _fits(self, scenario: Scenario) -> None:
        """Check that the scenario has the conditions and the flows of the experiments."""
        for one in self.experiments:
            if not 0 <= one.condition < len(scenario.conditions):
                count = len(scenario.conditions)
                raise InputError(f"{scenario.source}: the scenario has {count} conditions")
        flows = [
            len(one.spec["flows"]) for one in scenario.plan(repeats=1).first_run_of_each_condition()
        ]
        for one in self.experiments:
            ours, theirs = flows[one.condition], len(one.run.summary["flows"])
            if ours != theirs:
                measured = one.source or "what was measured"
                message = f"the scenario has {ours} flows, and {measured} {theirs}"
                raise InputError(f"{scenario.source}: {message}")

    def with_values(self, places: Floats) -> Scenario:
        """Return the scenario with values at positions of the keys' ranges."""
        values = {
            key.key: key.written(key.value(float(place)))
            for key, place in zip(self.keys, places, strict=True)
        }
        return self.scenario.set(values)

    def evaluate(
        self, guesses: Sequence[Floats], seeds: int, first: int = _FIRST_SEED
    ) -> list[Floats | None]:
        """Run guesses; return features of shape (seeds, features), None for a guess that fails."""
        runs: list[PlannedRun] = []
        for number, places in enumerate(guesses):
            try:
                plan = self.with_values(places).plan(repeats=seeds, seed=first)
            except ScenarioError:
                continue
            for at, experiment in enumerate(self.experiments):
                spec = experiment.run.spec
                for planned in plan.runs:
                    if planned.condition == experiment.condition:
                        shaped = _shaped(dict(planned.spec), spec)
                        place = number * len(self.experiments) + at
                        runs.append(PlannedRun(place, planned.seed, shaped))
        count = len(guesses) * len(self.experiments)
        conditions = tuple(Condition(at, {"guess": str(at)}) for at in range(count))
        if not runs:
            self.failed += len(guesses)
            return [None] * len(guesses)
        plan = RunPlan("fit", conditions, runs, source=self.scenario.source)
        results = self.session.carry_out(plan)
        found: list[Floats | None] = []
        for number in range(len(guesses)):
            rows: list[list[float]] = [[] for _ in range(seeds)]
            for at, measured in enumerate(self.measured):
                done = results.runs_of(number * len(self.experiments) + at)
                for row, result in zip(rows, done, strict=False):
                    scaled = {f.name: f.scaled for f in features(result.run, self.rtts[at])}
                    row += [scaled.get(f.name, float("nan")) for f in measured]
            whole = all(len(row) == self.target.size for row in rows)
            found.append(np.array(rows) if whole else None)
            self.failed += not whole
        return found

    def search(
        self, budget: int, seed: int, progress: Callable[[int, float], object] | None
    ) -> tuple[Floats, float]:
        """Search the ranges; return the best positions, and their misfit."""
        try:
            cma = importlib.import_module("cmaes")
        except ImportError as error:
            raise InputError('cmaes is not installed: pip install "jostle[tune]"') from error
        # CMA-ES needs two dimensions. If there is one key, the second dimension has no effect.
        size = max(2, len(self.keys))
        start = np.full(size, 0.5)
        start[: len(self.keys)] = [key.relative_position(key.start) for key in self.keys]
        start = np.clip(start, 0.02, 0.98)
        bounds = np.tile([0.0, 1.0], (size, 1))
        walk = cma.CMA(mean=start, sigma=_WIDTH, bounds=bounds, seed=seed)
        best, least = start[: len(self.keys)], float("inf")
        count = 0
        while count < budget:
            asked = [walk.ask() for _ in range(walk.population_size)]
            guesses = [one[: len(self.keys)] for one in asked]
            told = []
            for guess, places, rows in zip(
                guesses, asked, self.evaluate(guesses, self.seeds), strict=True
            ):
                mean = None if rows is None else _mean(rows)
                misfit = held_against(mean, self.target, self.weights)
                told.append((places, min(misfit, 1e9)))
                if misfit < least:
                    best, least = guess, misfit
            walk.tell(told)
            count += len(asked)
            if progress is not None:
                progress(count, least)
            if np.ptp(np.array(guesses), axis=0).max() < _CONVERGED:
                break
        if not np.isfinite(least):
            raise JostleError("no guess could be run: are the ranges right?")
        self.evaluations += count
        return best, least

    def learn_chance(self, best: Floats, replicates: int) -> None:
        """Run the best guess with many seeds, and update weights and the bias of the few seeds.

        All guesses use the same few seeds, so differences between guesses are not random. But if
        these seeds happen to have more losses than average, the fit would underestimate the loss
        rate. The bias at the best guess also holds for neighbouring guesses.
        """
        (many,) = self.evaluate([best], replicates, _FIRST_SEED + self.seeds)
        (few,) = self.evaluate([best], self.seeds)
        if many is None or few is None:
            return
        self.weights = noise_weights(many)
        self.luck = np.nan_to_num(_mean(many) - _mean(few))

    def expected_features(self, guesses: Sequence[Floats]) -> list[Floats | None]:
        """Run guesses; return the scaled features of each, corrected for the bias of the seeds."""
        self.evaluations += len(guesses)
        rows = self.evaluate(guesses, self.seeds)
        return [None if one is None else _mean(one) + self.luck for one in rows]

    def build_result(self, best: Floats, misfit: float, known: Uncertainty) -> Fit:
        """Return the result of the fit."""
        scenario = self.with_values(best)
        parameters = tuple(
            Parameter(key, key.value(float(place)), *(key.value(float(end)) for end in ends))
            for key, place, ends in zip(self.keys, best, known.ends, strict=True)
        )
        compared, runs = compare(scenario, self.experiments, self.session, self.seeds)
        unclear = tuple(known.unclear)
        said = tuple(self._assumptions(compared))
        return Fit(scenario, parameters, misfit, compared, runs, unclear, self.evaluations, said)

    def _assumptions(self, compared: Sequence[Compared]) -> Iterator[str]:
        """Say how measurements were matched with the scenario, and what was not compared."""
        scenario = self.scenario
        yield from matching(scenario, self.experiments)
        conditions = scenario.conditions
        used = {one.condition for one in self.experiments}
        unused = [str(one) for one in conditions if one.index not in used]
        if unused:
            yield f"Left out: conditions without a measurement ({'; '.join(unused)})."
        yield (
            f"Runs have the duration and sampling interval of the measurement, and {self.seeds} "
            "seeds each. Left out: those of the scenario, its phases and its captures."
        )
        for one, features_of in zip(self.experiments, compared, strict=True):
            missing = [f.name for f, fitted in features_of if f.value is None or fitted is None]
            if missing:
                yield f"Left out of the misfit with {one.source}: {', '.join(missing)} (no value)."
        if self.failed:
            yield f"Left out: {self.failed} guesses that could not be run."


def matching(scenario: Scenario, experiments: Sequence[Experiment]) -> Iterator[str]:
    """Say which condition and which flows of a scenario each measurement is compared with."""
    plans = {p.condition: p for p in scenario.plan(repeats=1).first_run_of_each_condition()}
    for one in experiments:
        source = one.source or "the measurement"
        if len(scenario.conditions) > 1:
            yield f"{source} is of the condition {scenario.conditions[one.condition]}."
        ours = [flow["name"] for flow in plans[one.condition].spec["flows"]]
        theirs = [flow["name"] for flow in one.run.summary["flows"]]
        pairs = [f"{mine} is {other}" for mine, other in zip(ours, theirs, strict=False)]
        if ours != theirs:
            yield f"Flows of {source} are matched by their order: {'; '.join(pairs)}."


def compare(
    scenario: Scenario, experiments: Sequence[Experiment], session: Session, seeds: int
) -> tuple[tuple[Compared, ...], list[Run]]:
    """Compare a scenario with measured runs, feature by feature, like a fit.

    Returns
    -------
    Features of each experiment with the values of the scenario (mean over `seeds` runs), and the
    first of these runs for each experiment, for display with the measured run.
    """
    plan = scenario.plan(repeats=seeds, seed=_FIRST_SEED)
    compared, shown = [], []
    for experiment in experiments:
        runs = [
            PlannedRun(0, one.seed, _shaped(dict(one.spec), experiment.run.spec))
            for one in plan.runs
            if one.condition == experiment.condition
        ]
        guessed = RunPlan("fit", (Condition(0, {}),), runs, source=scenario.source)
        results = session.carry_out(guessed)
        if results.failures:
            raise JostleError(f"the fitted scenario cannot be judged: {results.run_counts}")
        rtts = rtts_known(experiment.run)
        values = [{f.name: f.value for f in features(r.run, rtts)} for r in results.results]
        rows = []
        for feature in features(experiment.run, rtts):
            there = [v for each in values if (v := each.get(feature.name)) is not None]
            rows.append((feature, float(np.mean(there)) if there else None))
        compared.append(tuple(rows))
        shown.append(results.results[0].run)
    return tuple(compared), shown


def _shaped(spec: dict[str, Any], measured: Any) -> Any:
    """Return a specification with the measured duration and intervals, without captures."""
    duration_ns = measured["duration_ns"]
    return {
        **spec,
        "duration_ns": duration_ns,
        "interval_ns": measured["interval_ns"],
        "phases": [{"name": "overall", "from_ns": 0, "to_ns": duration_ns}],
        "capture": None,
        "record": "none",
    }


def _mean(rows: Floats) -> Floats:
    """Return the mean over seeds, without NaN."""
    there = ~np.isnan(rows)
    count = there.sum(axis=0)
    total = np.where(there, rows, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
