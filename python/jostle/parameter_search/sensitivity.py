"""Sensitivity of a measure to sampled keys: Sobol indices and elementary effects (Morris)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from jostle.errors import InputError
from jostle.figures.data import GroupsData
from jostle.parameter_search.objective_quantity import ObjectiveQuantity, means
from jostle.results.completion_bounds import longer_run
from jostle.results.condition_names import short_names
from jostle.results.text_table import Table
from jostle.stats.distribution import Box

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.scenario import Scenario

__all__ = ["METHODS", "Index", "Sensitivity", "analyse", "designed", "figure", "table"]

Method = Literal["sobol", "morris"]
METHODS: Final[tuple[Method, ...]] = ("sobol", "morris")
_MOST: Final = 10_000
_LEVELS: Final = 4
"""Levels of Morris' grid, as in his paper: steps are two thirds of a range."""
_RESAMPLES: Final = 1000
_EMPTY: Final = np.array([])


@dataclass(frozen=True)
class Index:
    """Sensitivity of a measure to one key.

    Attributes
    ----------
    key
        The sampled key.
    first, first_half
        Sobol: share of the variance that the key alone explains, and half of its 95 % interval.
        Morris: mean absolute effect μ* of crossing the complete range, in the measure's unit.
    second, second_half
        Sobol: share of the variance that the key explains together with others (total effect).
        Morris: standard deviation σ of the effects, which is large if they depend on other keys or
        are not linear; it has no interval.
    """

    key: str
    first: float
    first_half: float
    second: float
    second_half: float | None


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a measure to each key.

    Attributes
    ----------
    quantity
        The measure.
    method
        The method.
    conditions, runs
        Number of conditions and runs.
    mean, sd
        Mean and standard deviation over all conditions.
    indices
        One for each key, in the order of the scenario.
    """

    quantity: ObjectiveQuantity
    method: Method
    conditions: int
    runs: int
    mean: float
    sd: float
    indices: tuple[Index, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        names = _NAMES[self.method]
        return {
            "measure": self.quantity.text,
            "unit": self.quantity.measure.display_unit,
            "method": self.method,
            "conditions": self.conditions,
            "runs": self.runs,
            "mean": self.mean,
            "sd": self.sd,
            "keys": {
                one.key: {
                    names[0]: one.first,
                    f"{names[0]}_half": one.first_half,
                    names[1]: one.second,
                    f"{names[1]}_half": one.second_half,
                }
                for one in self.indices
            },
        }


_NAMES: Final = {"sobol": ("first_order", "total"), "morris": ("mu_star", "sigma")}
_HEADS: Final = {"sobol": ("first order", "total"), "morris": ("μ*", "σ")}


def designed(scenario: Scenario, method: Method, size: int, seed: int) -> Scenario:
    """Return the scenario with the points that a method needs, instead of its sample.

    Parameters
    ----------
    scenario
        A scenario with a sample and without a grid.
    method
        `sobol`: Saltelli's design (2010) of `size` × (keys + 2) points. `morris`: `size`
        trajectories of keys + 1 points (Morris 1991).
    size
        Number of base points, best a power of two; or number of trajectories.
    seed
        Seed of the design.

    Raises
    ------
    InputError
        When the scenario has no sample, or keys of the sample depend on each other; or SALib is
        missing.
    """
    place = scenario.location_of("sample")
    if scenario.design is None:
        message = "the scenario samples no key: give it a table [sample] with ranges"
        raise InputError(f"{scenario.source}: {message}")
    if scenario.grid:
        varied = ", ".join(f'"{key}"' for key in scenario.grid)
        message = f"the grid varies {varied}: indices are of sampled keys; --set one value"
        raise InputError(f"{scenario.location_of('grid')}: {message}")
    if scenario.design.constraints:
        message = "`where` makes keys depend on each other, indices need them to be free"
        raise InputError(f"{scenario.location_of('sample', 'where')}: {message}")
    keys = len(scenario.design.variables)
    if keys < 2:
        raise InputError(f"{place}: one key alone explains everything: sample two or more")
    count = size * (keys + 2 if method == "sobol" else keys + 1)
    if count > _MOST:
        raise InputError(f"{place}: {count} conditions are more than {_MOST}: give fewer points")
    problem = _problem(scenario)
    if method == "sobol":
        points = _salib("sample.sobol").sample(problem, size, calc_second_order=False, seed=seed)
    else:
        # SALib's sampler also uses NumPy's global generator.
        state = np.random.get_state()  # noqa: NPY002
        points = _salib("sample.morris").sample(problem, size, num_levels=_LEVELS, seed=seed)
        np.random.set_state(state)  # noqa: NPY002
    return scenario.with_points(tuple(tuple(map(float, point)) for point in points))


def analyse(
    scenario: Scenario, results: ResultSet, quantity: ObjectiveQuantity, method: Method, seed: int
) -> Sensitivity:
    """Compute the sensitivity of a measure to each key.

    Parameters
    ----------
    scenario
        The scenario from `designed`.
    results
        Its runs.
    quantity
        The measure. The value of a condition is the mean over its runs.
    method, seed
        As for `designed`; the seed is also used for the resamples of intervals.

    Raises
    ------
    InputError
        When a condition has no value, or all have the same.
    """
    found = means(quantity.per_condition(results))
    missing = found.count(None)
    if missing:
        raise InputError(
            f'"{quantity.text}" has no value in {missing} of {len(found)} '
            "conditions: choose a measure that all have, or narrower ranges"
        )
    if unfinished := quantity.unfinished(results):
        raise InputError(
            f'"{quantity.text}" is not known in {unfinished} of '
            f"{len(results.results)} runs, in which a transfer is not complete: "
            f"{longer_run([one.run for one in results.results])}"
        )
    values = np.array(found, dtype=np.float64)
    if np.ptp(values) == 0.0:
        raise InputError(f'"{quantity.text}" is the same everywhere: it depends on no key')
    problem = _problem(scenario)
    assert scenario.design is not None
    keys = [variable.key for variable in scenario.design.variables]
    if method == "sobol":
        answer = _salib("analyze.sobol").analyze(
            problem, values, calc_second_order=False, num_resamples=_RESAMPLES, seed=seed
        )
        columns = (answer["S1"], answer["S1_conf"], answer["ST"], answer["ST_conf"])
    else:
        points = np.array(scenario.points)
        answer = _salib("analyze.morris").analyze(
            problem, points, values, num_levels=_LEVELS, num_resamples=_RESAMPLES, seed=seed
        )
        none = [None] * len(keys)
        columns = (answer["mu_star"], answer["mu_star_conf"], answer["sigma"], none)
    indices = [
        Index(key, float(a), float(b), float(c), None if d is None else float(d))
        for key, a, b, c, d in zip(keys, *columns, strict=True)
    ]
    return Sensitivity(
        quantity, method, len(found), len(results.results), float(values.mean()),
        float(values.std(ddof=1)), tuple(indices),
    )  # fmt: skip


def table(found: Sensitivity) -> Table:
    """Return a table of the indices, the largest total effect first."""
    heads = _HEADS[found.method]
    short = short_names([one.key for one in found.indices])
    unit = found.quantity.measure.display_unit if found.method == "morris" else ""
    header = ("key", *(f"{head}\n{unit}".rstrip() for head in heads))
    rows = [
        (short[one.key], _cell(one.first, one.first_half), _cell(one.second, one.second_half))
        for one in by_importance(found)
    ]
    what = "± half of the 95 % interval of a bootstrap over points."
    note = f"{found.conditions} conditions, {found.runs} runs. {what}"
    if found.method == "morris":
        note += " μ*: mean change over the whole range; σ: how much that differs."
    return Table(header, tuple(rows), (), 1, found.quantity.axis, notes=(note,))


def figure(found: Sensitivity) -> GroupsData:
    """Return the indices as bars with intervals."""
    short = short_names([one.key for one in found.indices])
    ordered = by_importance(found)
    boxes = tuple((_bar(o.first, o.first_half), _bar(o.second, o.second_half)) for o in ordered)
    label = (
        f"Part of the variance of {found.quantity.measure.title}"
        if found.method == "sobol"
        else f"Effect on {found.quantity.axis}"
    )
    caption = f"{found.quantity.text}: {found.conditions} conditions; 95 % intervals."
    groups = tuple(short[one.key] for one in ordered)
    return GroupsData(label, groups, _HEADS[found.method], boxes, bars=True, caption=caption)


def by_importance(found: Sensitivity) -> list[Index]:
    """Return the indices, the largest total effect first."""

    def importance(one: Index) -> float:
        return one.second if found.method == "sobol" else one.first

    return sorted(found.indices, key=importance, reverse=True)


def _bar(value: float, half: float | None) -> Box:
    reach = float("nan") if half is None else half
    return Box(value - reach, value, value, value, value + reach, value, _EMPTY)


def _cell(value: float, half: float | None) -> str:
    if half is None:
        return f"{value:.3g}"
    digits = max(0, 1 - int(np.floor(np.log10(half)))) if half > 0 else 3
    return f"{value:.{digits}f} ± {half:.{digits}f}"


def _problem(scenario: Scenario) -> dict[str, Any]:
    assert scenario.design is not None
    names = [variable.key for variable in scenario.design.variables]
    return {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}


def _salib(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"SALib.{module}")
    except ImportError as error:
        raise InputError('SALib is not installed: pip install "jostle[sensitivity]"') from error
