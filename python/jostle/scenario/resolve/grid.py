"""The grid: keys that vary with their values, and the resulting conditions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.resolve.key_paths import changed, find, value_at

__all__ = [
    "MOST_CONDITIONS",
    "ConditionDocuments",
    "GridKey",
    "GridValue",
    "combinations",
    "dimension_of",
    "filled",
    "label_of",
    "read_grid",
    "with_level",
]

_FIXED: Final = ("title", "repeats", "repeat_until", "max_repeats", "seed", "grid", "sample")
MOST_CONDITIONS: Final = 10_000
"""Maximum number of conditions. All are resolved when the scenario is loaded."""


@dataclass(frozen=True)
class GridValue:
    """One value of a grid key.

    Parameters
    ----------
    label
        Name of the value in results.
    value
        Value in the form of the document.
    path
        Path of the value in the document.
    """

    label: str
    value: Any
    path: KeyPath


@dataclass(frozen=True)
class GridKey:
    """A key that varies.

    Parameters
    ----------
    key
        Key as written in the scenario.
    targets
        Paths that match the key; several if it contains a ``*``.
    levels
        Values; for a sampled key, one per sample point.
    ends
        Values of a sampled key that are validated: the ends of its range, or all choices.
    """

    key: str
    targets: tuple[KeyPath, ...]
    levels: tuple[GridValue, ...]
    ends: tuple[GridValue, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether the key is sampled, so that its values advance together with other such keys."""
        return bool(self.ends)

    @property
    def checked(self) -> tuple[GridValue, ...]:
        """Values that are validated individually."""
        return self.ends or self.levels


def read_grid(document: Mapping[str, Any], report: Report) -> list[GridKey]:
    """Return the valid keys of a document's grid.

    Problems of the other keys are reported.
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
        # One value per key is enough to find other problems.
        dimensions = [replace(one, levels=one.levels[:1]) for one in dimensions]
    return dimensions


def combinations(dimensions: list[GridKey]) -> Iterator[tuple[GridValue, ...]]:
    """Yield every combination of the grid's values with every sample point.

    The last key varies fastest, and sample points vary faster than grid keys. Sampled keys must be
    last. If nothing varies, yield one empty combination.
    """
    varied = itertools.product(*(d.levels for d in dimensions if not d.sampled))
    sampled = [d.levels for d in dimensions if d.sampled]
    points = list(zip(*sampled, strict=True)) if sampled else [()]
    for levels in varied:
        for point in points:
            yield (*levels, *point)


def with_level(document: Mapping[str, Any], dimension: GridKey, level: GridValue) -> dict[str, Any]:
    """Return a copy of `document` with one value set.

    Raises
    ------
    QuantityError
        If the key cannot be set in the document.
    """
    copy = dict(document)
    for target in dimension.targets:
        copy = changed(copy, target, level.value)
    return copy


class ConditionDocuments:
    """Documents with one value of each key set.

    Parameters
    ----------
    document
        Document without these values.
    dimensions
        Keys that vary.
    """

    def __init__(self, document: Mapping[str, Any], dimensions: Sequence[GridKey]) -> None:
        # Shorter paths are set first, because a longer path may change a table that they set.
        def longest_path(position: int) -> int:
            return max(len(target) for target in dimensions[position].targets)

        self._dimensions = dimensions
        self._order = sorted(range(len(dimensions)), key=longest_path)
        # The values set so far, and the documents after none, one, … of them.
        self._set: list[GridValue] = []
        self._documents = [dict(document)]

    def with_levels(self, levels: Sequence[GridValue]) -> dict[str, Any]:
        """Return the document with these values, in the order of the keys.

        Values that are the same objects as in the previous call are not set again.

        Raises
        ------
        QuantityError
            If the values of two keys are incompatible.
        """
        ordered = [levels[position] for position in self._order]
        kept = 0
        while kept < len(self._set) and self._set[kept] is ordered[kept]:
            kept += 1
        del self._set[kept:], self._documents[kept + 1 :]
        for position in self._order[kept:]:
            level = levels[position]
            copy = with_level(self._documents[-1], self._dimensions[position], level)
            self._documents.append(copy)
            self._set.append(level)
        return self._documents[-1]


def filled(document: Mapping[str, Any], dimensions: list[GridKey]) -> dict[str, Any]:
    """Return a copy of `document` in which keys given only by the grid have their first value.

    Raises
    ------
    QuantityError
        If the values of two keys are incompatible.
    """
    copy = dict(document)
    for dimension in dimensions:
        for target in dimension.targets:
            if not value_at(copy, target)[0]:
                copy = changed(copy, target, dimension.levels[0].value)
    return copy


def dimension_of(
    document: Mapping[str, Any], path: KeyPath, values: Any, report: Report
) -> GridKey | None:
    """Return a key of the grid or sample with its values; None if a problem was reported.

    Parameters
    ----------
    document
        Document in which the key is looked up.
    path
        Table and key of the grid or sample.
    values
        Value of that key in the document.
    """
    key = str(path[-1])
    # In TOML, an unquoted `bottleneck.rate = […]` is a table "bottleneck".
    lists = isinstance(values, dict) and any(isinstance(v, list) for v in values.values())
    if "." not in key and isinstance(values, dict) and (lists or key in document):
        report.add(path, f'put the whole key in quotes: "{_dotted_key(key, values)}" = […]')
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
        dimension = GridKey(key, tuple(targets), tuple(levels))
        with_level(document, dimension, levels[0])
    except QuantityError as error:
        report.add(path, f"there is no such key: {error}")
        return None
    return dimension


def _levels(path: KeyPath, values: Any, report: Report) -> list[GridValue]:
    if isinstance(values, dict):
        pairs = [GridValue(label, value, (*path, label)) for label, value in values.items()]
    elif isinstance(values, list):
        pairs = [GridValue(label_of(v), v, (*path, index)) for index, v in enumerate(values)]
    else:
        forms = "a list of values, or a table of labels with values"
        if path[0] == "sample":
            forms = 'a range, as in { from = "…", to = "…" }, or a list of values'
        report.add(path, f"write {forms}")
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
    """Return the label of a value without an explicit one: a word, or the name of a table."""
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


def _dotted_key(key: str, values: Mapping[str, Any]) -> str:
    """Return the dotted key that was probably meant by an unquoted key, down to its list."""
    steps, node = [key], values
    while isinstance(node, dict) and node:
        steps.append(next(iter(node)))
        node = node[steps[-1]]
    return ".".join(steps if isinstance(node, list) else [key, next(iter(values), "key")])
