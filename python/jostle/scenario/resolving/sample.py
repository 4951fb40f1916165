"""The sample: keys whose values are drawn from ranges, and the points that are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jostle.scenario.resolving.addressing import find, value_at
from jostle.scenario.resolving.constraints import Constraint, parse_constraint
from jostle.scenario.resolving.grid import MOST_CONDITIONS, Dimension, Level, dimension_of, label_of
from jostle.scenario.resolving.ranges import KEYS, Range, RangeError, parse_range
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report, did_you_mean, overlaps
from jostle.scenario.text.units import QuantityError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["METHODS", "OWN_KEYS", "Design", "Points", "Variable", "read_design"]

OWN_KEYS: Final = ("points", "method", "seed", "where")
"""Keys of the sample that vary nothing."""

METHODS: Final = ("sobol", "latin_hypercube", "random")
Points = tuple[tuple[float, ...], ...]
"""Shares from 0 to 1, one for each variable, of each point."""

_TRIES: Final = 1000
"""For each point that is wanted, before constraints are said to leave no room."""
_MOST_TRIES: Final = 50_000
"""For all points, or ten for each of them if that is more: a second or two."""


@dataclass(frozen=True)
class Variable:
    """A key that is sampled.

    Parameters
    ----------
    key
        As written.
    targets
        Paths that it names.
    range
        Its values, or None where it has choices.
    choices
        Values of which one is drawn.
    """

    key: str
    targets: tuple[KeyPath, ...]
    range: Range | None
    choices: tuple[Level, ...]

    def level(self, share: float) -> Level:
        """Value at a share from 0 to 1."""
        if self.range is None:
            return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]
        value = self.range.at(share)
        return Level(label_of(value), value, ("sample", self.key))

    @property
    def ends(self) -> tuple[Level, ...]:
        """What is checked by itself: both ends, or every choice."""
        if self.range is None:
            return self.choices
        low, high = self.range.written
        return (
            Level(label_of(low), low, ("sample", self.key, "from")),
            Level(label_of(high), high, ("sample", self.key, "to")),
        )


@dataclass(frozen=True)
class Design:
    """What is sampled, how, and which points count.

    Parameters
    ----------
    variables
        Keys with their ranges, in the order of the file.
    points
        How many are drawn.
    method
        One of `METHODS`.
    seed
        Of the draws; the seeds of runs have nothing to do with it.
    constraints
        What has to hold of every point, each with its place in `where`.
    """

    variables: tuple[Variable, ...]
    points: int
    method: str
    seed: int
    constraints: tuple[Constraint, ...]

    def dimensions(
        self, document: Mapping[str, Any], report: Report, given: Points | None = None
    ) -> list[Dimension]:
        """Draw the points: one dimension for each variable, which advance together.

        Parameters
        ----------
        document
            What the sample is of.
        report
            Told if constraints cannot be met.
        given
            Points to take instead of drawn ones, whatever the constraints.
        """
        if given is not None:
            points = [tuple(map(Variable.level, self.variables, point)) for point in given]
        else:
            points = self._drawn(document, report)
        columns = zip(*points, strict=True) if points else ((),) * len(self.variables)
        return [
            Dimension(variable.key, variable.targets, tuple(levels), variable.ends)
            for variable, levels in zip(self.variables, columns, strict=True)
        ]

    def _drawn(self, document: Mapping[str, Any], report: Report) -> list[tuple[Level, ...]]:
        places = self._places(document, report)
        if places is None:
            return []
        kept: list[tuple[Level, ...]] = []
        seen: set[tuple[str, ...]] = set()
        met, tried = 0, 0
        for share in _shares(self.method, len(self.variables), self.points, self.seed):
            if share is None:  # a Latin hypercube begins anew, with more points
                kept, seen, met = [], set(), 0
                continue
            tried += 1
            levels = tuple(map(Variable.level, self.variables, share))
            try:
                if not self._holds(levels, places):
                    if tried >= _tries(self.points):
                        break
                    continue
            except QuantityError as error:
                report.add(("sample", "where"), str(error))
                return []
            met += 1
            # Of whole numbers and choices the same point may be drawn again: it is one condition.
            labels = tuple(level.label for level in levels)
            if labels not in seen:
                seen.add(labels)
                kept.append(levels)
            if met == self.points:
                break
        if met < self.points:
            message = f"only {met} of {tried} points that were drawn satisfy all of these"
            report.add(("sample", "where"), f"{message} — make room for {self.points}")
        return kept

    def _places(
        self, document: Mapping[str, Any], report: Report
    ) -> list[tuple[Constraint, dict[str, int], dict[str, Any]]] | None:
        """Find which key of each constraint is which variable, and the values of the others."""
        places = []
        for at, constraint in enumerate(self.constraints):
            sampled: dict[str, int] = {}
            fixed: dict[str, Any] = {}
            for key in constraint.keys:
                try:
                    number, value = self._place(document, key)
                except QuantityError as error:
                    report.add(("sample", "where", at), str(error))
                    return None
                if number is None:
                    fixed[key] = value
                else:
                    sampled[key] = number
            places.append((constraint, sampled, fixed))
        return places

    def _place(self, document: Mapping[str, Any], key: str) -> tuple[int | None, Any]:
        targets = find(document, key)
        if len(targets) != 1:
            raise QuantityError(f'"{key}" names several values — name one')
        for number, variable in enumerate(self.variables):
            if targets[0] in variable.targets:
                return number, None
        grid = document.get("grid", {})
        for varied in grid if isinstance(grid, dict) else ():
            if any(overlaps(targets[0], one) for one in find(document, varied)):
                raise QuantityError(f'"{key}" is of the grid — every point meets all of its values')
        exists, value = value_at(document, targets[0])
        if not exists:
            known = [variable.key for variable in self.variables]
            hint = did_you_mean(key, known, listed="sampled")
            raise QuantityError(f'"{key}" has no value in this file — {hint}')
        return None, value

    @staticmethod
    def _holds(
        levels: tuple[Level, ...],
        places: list[tuple[Constraint, dict[str, int], dict[str, Any]]],
    ) -> bool:
        return all(
            constraint.holds({**fixed, **{k: levels[n].value for k, n in sampled.items()}})
            for constraint, sampled, fixed in places
        )


def read_design(
    document: Mapping[str, Any], grid: Sequence[Dimension], report: Report
) -> Design | None:
    """Return the design of a document's sample; None if it has none or something is wrong in it.

    All that is wrong is reported.
    """
    sample = document.get("sample")
    if not isinstance(sample, dict):
        return None  # the models report it
    before = report.count
    variables = [
        made
        for key, values in sample.items()
        if key not in OWN_KEYS and (made := _variable(document, key, values, report)) is not None
    ]
    _check_apart(variables, grid, report)
    points = _whole(sample, "points", 1, MOST_CONDITIONS, report)
    seed = _whole({"seed": 1, **sample}, "seed", 0, 2**63 - 1, report)
    method = sample.get("method", "sobol")
    if method not in METHODS:
        known = did_you_mean(str(method), METHODS, listed="methods")
        report.add(("sample", "method"), f'"{method}" is no method of sampling — {known}')
    constraints = _constraints(sample.get("where", []), report)
    if not [key for key in sample if key not in OWN_KEYS]:
        example = '"bottleneck.rate" = { from = "1 Mbit/s", to = "1 Gbit/s", scale = "log" }'
        report.add(("sample",), f"no key is sampled — write for example {example}")
    size = points
    for dimension in grid:
        size *= len(dimension.levels)
    if size > MOST_CONDITIONS and points <= MOST_CONDITIONS:
        message = f"{size} combinations with the grid are more than {MOST_CONDITIONS}"
        report.add(("sample", "points"), message)
    if report.count > before or not variables:
        return None
    return Design(tuple(variables), points, method, seed, constraints)


def _whole(table: Mapping[str, Any], key: str, least: int, most: int, report: Report) -> int:
    value = table.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    if value is None:
        report.add(("sample",), f"`{key}` is missing — write for example {key} = 64")
    else:
        report.add(("sample", key), f"{value} is no whole number from {least} to {most}")
    return 1


def _constraints(given: Any, report: Report) -> tuple[Constraint, ...]:
    found = []
    path: KeyPath = ("sample", "where")
    each = [(path, given)] if isinstance(given, str) else None
    if each is None and isinstance(given, list):
        each = [((*path, at), one) for at, one in enumerate(given)]
    if each is None:
        report.add(path, "write a list of comparisons")
        return ()
    for at, one in each:
        try:
            found.append(parse_constraint(one))
        except QuantityError as error:
            report.add(at, str(error))
    return tuple(found)


def _variable(
    document: Mapping[str, Any], key: str, values: Any, report: Report
) -> Variable | None:
    path: KeyPath = ("sample", key)
    ranged = isinstance(values, dict) and bool(set(values) & set(KEYS))
    drawn: Range | None = None
    if ranged:
        try:
            drawn = parse_range(values)
        except RangeError as error:
            report.add((*path, error.key) if error.key in values else path, str(error))
            return None
        # Its ends stand for it: what is found in them is found in all that lies between.
        values = list(drawn.written)
    dimension = dimension_of(document, path, values, report)
    if dimension is None:
        return None
    return Variable(key, dimension.targets, drawn, () if drawn else dimension.levels)


def _check_apart(variables: Sequence[Variable], grid: Sequence[Dimension], report: Report) -> None:
    """No key may be sampled and varied by the grid, or sampled twice."""
    for variable in variables:
        for dimension in grid:
            if any(overlaps(a, b) for a in variable.targets for b in dimension.targets):
                message = f'the grid varies "{dimension.key}", too — leave it in one of them'
                report.add(("sample", variable.key), message)
    for one, other in itertools.combinations(variables, 2):
        if any(a == b for a in one.targets for b in other.targets):
            message = f'"{one.key}" samples this, too — leave it in one of them'
            report.add(("sample", other.key), message)


def _shares(
    method: str, variables: int, points: int, seed: int
) -> Iterator[np.ndarray[Any, Any] | None]:
    """Yield points in the unit cube for as long as they are asked for; None where all begins anew.

    Sobol: the sequence of Joe and Kuo (2008) with Owen's scrambling (Matoušek 1998), in blocks of
    a power of two. Latin hypercube: McKay, Beckman and Conover (1979); if constraints leave fewer
    points than are wanted, a larger one is drawn.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    if method == "random":
        while True:
            yield from generator.random((points, variables))
    from scipy.stats import qmc

    if method == "sobol":
        sequence = qmc.Sobol(variables, rng=generator)
        block = 1 << (points - 1).bit_length()
        while sequence.num_generated + block <= 1 << sequence.bits:
            yield from sequence.random(block)
        return
    size = points
    while size <= _tries(points):
        yield from qmc.LatinHypercube(variables, rng=np.random.default_rng(seed)).random(size)
        yield None
        size *= 2


def _tries(points: int) -> int:
    """Return how many points are drawn at most for so many that are wanted."""
    return max(10 * points, min(_TRIES * points, _MOST_TRIES))
