"""The grid: which keys vary, over which values, and the conditions that follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from jostle.scenario.resolving.addressing import changed, find, value_at
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report
from jostle.scenario.text.units import QuantityError

__all__ = [
    "MOST_CONDITIONS",
    "Dimension",
    "Level",
    "combinations",
    "dimension_of",
    "filled",
    "label_of",
    "read_grid",
    "with_level",
    "with_levels",
]

_FIXED: Final = ("title", "repeats", "until", "most_repeats", "seed", "grid", "sample")
MOST_CONDITIONS: Final = 10_000
"""Each is resolved when the scenario is loaded."""


@dataclass(frozen=True)
class Level:
    """One value of a dimension.

    Parameters
    ----------
    label
        How the value is called in results.
    value
        As the scenario has it.
    path
        Where it stands in the document.
    """

    label: str
    value: Any
    path: KeyPath


@dataclass(frozen=True)
class Dimension:
    """A key that varies.

    Parameters
    ----------
    key
        As written.
    targets
        Paths that it names; several if it has a ``*``.
    levels
        Its values; of a sampled key that of every point.
    ends
        Of a sampled key what is checked by itself: ends of its range, or all of its choices.
    """

    key: str
    targets: tuple[KeyPath, ...]
    levels: tuple[Level, ...]
    ends: tuple[Level, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether its values advance together with those of other sampled keys."""
        return bool(self.ends)

    @property
    def checked(self) -> tuple[Level, ...]:
        """Values that are each right or wrong by themselves."""
        return self.ends or self.levels


def read_grid(document: Mapping[str, Any], report: Report) -> list[Dimension]:
    """Return the dimensions of a document's grid, without those in which something is wrong.

    All that is wrong is reported.
    """
    grid = document.get("grid", {})
    if not isinstance(grid, dict):
        return []  # the models report it
    if "grid" in document and not grid:
        report.add(("grid",), 'no key varies — write for example "bottleneck.rate" = […]')
    dimensions = []
    for key, values in grid.items():
        dimension = dimension_of(document, ("grid", key), values, report)
        if dimension is not None:
            dimensions.append(dimension)
    size = 1
    for dimension in dimensions:
        size *= len(dimension.levels)
    if size > MOST_CONDITIONS:
        longest = max(dimensions, key=lambda dimension: len(dimension.levels))
        message = f"{size} combinations are more than {MOST_CONDITIONS}"
        report.add(("grid", longest.key), message)
        # One value of each is enough to look for other problems.
        dimensions = [replace(one, levels=one.levels[:1]) for one in dimensions]
    return dimensions


def combinations(dimensions: list[Dimension]) -> Iterator[tuple[Level, ...]]:
    """Every combination of the grid's levels with every point of the sample.

    The last key varies fastest, and points faster than it; one empty one if nothing varies. Sampled
    dimensions are the last.
    """
    varied = itertools.product(*(d.levels for d in dimensions if not d.sampled))
    sampled = [d.levels for d in dimensions if d.sampled]
    points = list(zip(*sampled, strict=True)) if sampled else [()]
    for levels in varied:
        for point in points:
            yield (*levels, *point)


def with_level(document: Mapping[str, Any], dimension: Dimension, level: Level) -> dict[str, Any]:
    """Return a copy of `document` with one level set.

    Raises
    ------
    QuantityError
        If the key does not fit into the document.
    """
    copy = dict(document)
    for target in dimension.targets:
        copy = changed(copy, target, level.value)
    return copy


def with_levels(
    document: Mapping[str, Any], dimensions: list[Dimension], levels: tuple[Level, ...]
) -> dict[str, Any]:
    """Return a copy of `document` with a level of each dimension set.

    Shorter keys come before longer ones: a key below another changes what the other has set.

    Raises
    ------
    QuantityError
        If one key's value leaves no room for another key.
    """
    copy = dict(document)
    pairs = list(zip(dimensions, levels, strict=True))
    for dimension, level in sorted(pairs, key=lambda p: max(len(t) for t in p[0].targets)):
        copy = with_level(copy, dimension, level)
    return copy


def filled(document: Mapping[str, Any], dimensions: list[Dimension]) -> dict[str, Any]:
    """Return a copy of `document` in which keys that only the grid gives have its first value.

    Raises
    ------
    QuantityError
        If one key's value leaves no room for another key.
    """
    copy = dict(document)
    for dimension in dimensions:
        for target in dimension.targets:
            if not value_at(copy, target)[0]:
                copy = changed(copy, target, dimension.levels[0].value)
    return copy


def dimension_of(
    document: Mapping[str, Any], path: KeyPath, values: Any, report: Report
) -> Dimension | None:
    """Return what a key of the grid or the sample varies, or None and report what is wrong.

    Parameters
    ----------
    document
        Where the key is looked for.
    path
        Where it is written: the table, and the key.
    values
        What is written for it.
    """
    key = str(path[-1])
    # `bottleneck.rate = […]` without quotes is a table "bottleneck" to TOML, not a key that varies.
    lists = isinstance(values, dict) and any(isinstance(v, list) for v in values.values())
    if "." not in key and isinstance(values, dict) and (lists or key in document):
        report.add(path, f'put the whole key in quotes: "{_whole(key, values)}" = […]')
        return None
    try:
        targets = find(document, key)
    except QuantityError as error:
        report.add(path, str(error))
        return None
    root = str(targets[0][0]) if targets else key
    if root in _FIXED:
        report.add(path, f'"{root}" is the same for all conditions — it cannot vary')
        return None
    levels = _levels(path, values, report)
    if not levels or not targets:
        return None
    try:
        dimension = Dimension(key, tuple(targets), tuple(levels))
        with_level(document, dimension, levels[0])
    except QuantityError as error:
        report.add(path, f"there is no such key: {error}")
        return None
    return dimension


def _levels(path: KeyPath, values: Any, report: Report) -> list[Level]:
    if isinstance(values, dict):
        pairs = [Level(label, value, (*path, label)) for label, value in values.items()]
    elif isinstance(values, list):
        pairs = [Level(label_of(v), v, (*path, index)) for index, v in enumerate(values)]
    else:
        report.add(path, "write a list of values, or a table of labels with values")
        return []
    if not pairs:
        report.add(path, "no values — the grid would have no condition; write at least one")
    seen: set[str] = set()
    for level in pairs:
        if "\n" in level.label:
            report.add(level.path, "a label is on one line — remove the line feed")
        if level.label in seen:
            report.add(level.path, f"{level.label} is in the list twice")
        seen.add(level.label)
    return pairs


def label_of(value: Any) -> str:
    """Name a value without a label of its own: a word as it is, a table by its name."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        rest = dict(value)
        name = rest.pop("name", rest.pop("kind", None))
        keys = ", ".join(f"{k} = {label_of(v)}" for k, v in rest.items())
        return f"{name} ({keys})" if name is not None and keys else str(name or f"({keys})")
    if isinstance(value, list):
        return f"[{', '.join(label_of(v) for v in value)}]"
    return str(value)


def _whole(key: str, values: Mapping[str, Any]) -> str:
    """Name the key that was meant by one without quotes: down to its list, if it has one."""
    steps, node = [key], values
    while isinstance(node, dict) and node:
        steps.append(next(iter(node)))
        node = node[steps[-1]]
    return ".".join(steps if isinstance(node, list) else [key, next(iter(values), "key")])
