"""The sample: keys whose values are drawn from ranges, and the drawn points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean, overlaps
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.resolve.grid import MOST_CONDITIONS, GridKey, GridValue, dimension_of, label_of
from jostle.scenario.resolve.key_paths import find, value_at
from jostle.scenario.resolve.sample_constraints import Constraint, parse_constraint
from jostle.scenario.resolve.sample_ranges import KEYS, Range, RangeError, parse_range

if TYPE_CHECKING:
    import numpy as np

__all__ = ["METHODS", "OWN_KEYS", "Points", "SampleDesign", "Variable", "read_design"]

OWN_KEYS: Final = ("points", "method", "seed", "where")
"""Keys of the sample that are settings and do not vary."""

METHODS: Final = ("sobol", "latin_hypercube", "random")
Points = tuple[tuple[float, ...], ...]
"""Points; each has one position from 0 to 1 per variable."""

_TRIES: Final = 1000
"""Maximum number of draws per requested point before constraints are considered unsatisfiable."""
_MOST_TRIES: Final = 50_000
"""Maximum number of draws for all points (at least ten per point), which takes 1 to 2 seconds."""


@dataclass(frozen=True)
class Variable:
    """A sampled key.

    Parameters
    ----------
    key
        Key as written in the scenario.
    targets
        Paths that match the key.
    range
        Range of values; None if the key has choices.
    choices
        Values of which one is drawn.
    """

    key: str
    targets: tuple[KeyPath, ...]
    range: Range | None
    choices: tuple[GridValue, ...]

    def level(self, share: float) -> GridValue:
        """Return the value at a position from 0 to 1."""
        if self.range is None:
            return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]
        value = self.range.at(share)
        return GridValue(label_of(value), value, ("sample", self.key))

    @property
    def ends(self) -> tuple[GridValue, ...]:
        """Values that are validated: both ends of the range, or all choices."""
        if self.range is None:
            return self.choices
        low, high = self.range.written
        return (
            GridValue(label_of(low), low, ("sample", self.key, "from")),
            GridValue(label_of(high), high, ("sample", self.key, "to")),
        )


@dataclass(frozen=True)
class SampleDesign:
    """The design of a sample: variables, number of points, method and constraints.

    Parameters
    ----------
    variables
        Keys with their ranges, in the order of the file.
    points
        Number of points.
    method
        One of `METHODS`.
    seed
        Seed of the draws, independent of the seeds of runs.
    constraints
        Constraints on every point, each with its index in `where`.
    """

    variables: tuple[Variable, ...]
    points: int
    method: str
    seed: int
    constraints: tuple[Constraint, ...]

    def labels(self, point: Sequence[float]) -> tuple[str, ...]:
        """Return the label of each variable at a point; equal labels mean equal values."""
        levels = map(Variable.level, self.variables, point)
        return tuple(level.label for level in levels)

    def dimensions(
        self, document: Mapping[str, Any], report: Report, given: Points | None = None
    ) -> list[GridKey]:
        """Draw the points and return one grid key per variable; their values advance together.

        Parameters
        ----------
        document
            Document of the scenario.
        report
            Collects a problem if the constraints cannot be satisfied.
        given
            Points to use instead of drawn ones; constraints are not applied to them.
        """
        if given is not None:
            points = [tuple(map(Variable.level, self.variables, point)) for point in given]
        else:
            points = self._drawn(document, report)
        columns = zip(*points, strict=True) if points else ((),) * len(self.variables)
        return [
            GridKey(variable.key, variable.targets, tuple(levels), variable.ends)
            for variable, levels in zip(self.variables, columns, strict=True)
        ]

    def _drawn(self, document: Mapping[str, Any], report: Report) -> list[tuple[GridValue, ...]]:
        places = self._resolve_constraints(document, report)
        if places is None:
            return []
        kept: list[tuple[GridValue, ...]] = []
        seen: set[tuple[str, ...]] = set()
        met, tried = 0, 0
        for share in _shares(self.method, len(self.variables), self.points, self.seed):
            if share is None:  # restart: a larger Latin hypercube follows
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
            # With integers and choices, a point may be drawn twice. It is one condition.
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

    def _resolve_constraints(
        self, document: Mapping[str, Any], report: Report
    ) -> list[tuple[Constraint, dict[str, int], dict[str, Any]]] | None:
        """Return each constraint with its variables by key, and the values of the other keys."""
        places = []
        for at, constraint in enumerate(self.constraints):
            sampled: dict[str, int] = {}
            fixed: dict[str, Any] = {}
            for key in constraint.keys:
                try:
                    number, value = self._resolve_operand(document, key)
                except QuantityError as error:
                    report.add(("sample", "where", at), str(error))
                    return None
                if number is None:
                    fixed[key] = value
                else:
                    sampled[key] = number
            places.append((constraint, sampled, fixed))
        return places

    def _resolve_operand(self, document: Mapping[str, Any], key: str) -> tuple[int | None, Any]:
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
        levels: tuple[GridValue, ...],
        places: list[tuple[Constraint, dict[str, int], dict[str, Any]]],
    ) -> bool:
        return all(
            constraint.holds({**fixed, **{k: levels[n].value for k, n in sampled.items()}})
            for constraint, sampled, fixed in places
        )


def read_design(
    document: Mapping[str, Any], grid: Sequence[GridKey], report: Report
) -> SampleDesign | None:
    """Return the sampling design of a document; None if there is none or it has problems.

    Problems are reported.
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
    points = _read_integer(sample, "points", 1, MOST_CONDITIONS, report)
    seed = _read_integer({"seed": 1, **sample}, "seed", 0, 2**63 - 1, report)
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
    return SampleDesign(tuple(variables), points, method, seed, constraints)


def _read_integer(table: Mapping[str, Any], key: str, least: int, most: int, report: Report) -> int:
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
        # Use the ends in place of all values: if both are valid, the values between are too.
        values = list(drawn.written)
    dimension = dimension_of(document, path, values, report)
    if dimension is None:
        return None
    return Variable(key, dimension.targets, drawn, () if drawn else dimension.levels)


def _check_apart(variables: Sequence[Variable], grid: Sequence[GridKey], report: Report) -> None:
    """Report keys that are sampled twice, or both sampled and varied by the grid."""
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
    """Yield points in the unit cube until the caller stops; None marks a restart.

    Sobol: the sequence of Joe and Kuo (2008) with Owen's scrambling (Matoušek 1998), in blocks of
    a power of two. Latin hypercube: McKay, Beckman and Conover (1979); if constraints leave too few
    points, a larger hypercube is drawn.
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
    """Return the maximum number of draws for a number of points."""
    return max(10 * points, min(_TRIES * points, _MOST_TRIES))
