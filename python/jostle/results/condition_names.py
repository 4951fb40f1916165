"""Names of conditions, for tables, figures and files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Condition = Mapping[str, str]
"""Values that identify a condition: grid key → name of the value, in the order of the grid."""


def typed_values(conditions: Sequence[Condition], key: str) -> list[int] | list[float] | list[str]:
    """Return the values of a grid key for all conditions: numbers if all of them are numbers.

    A condition without the key has None.
    """
    names = [condition.get(key) for condition in conditions]
    for kind in (int, float):
        try:
            return [None if name is None else kind(name) for name in names]  # type: ignore[return-value]
        except ValueError:
            continue
    return names  # type: ignore[return-value]


def labels(conditions: Sequence[Condition]) -> list[str]:
    """Name every condition by its values; by key and value if there are several keys.

    Returns
    -------
    list of str
        One text per condition, in the same order; empty for a scenario without a grid.
    """
    keys = list(dict.fromkeys(key for condition in conditions for key in condition))
    names = short_names(keys)
    if len(keys) == 1:
        return [", ".join(condition.values()) for condition in conditions]
    return [
        ", ".join(f"{names[key]} {value}" for key, value in condition.items())
        for condition in conditions
    ]


def slugs(conditions: Sequence[Condition]) -> list[str]:
    """Name every condition for a file: letters, digits and hyphens, each name once."""
    taken: set[str] = set()
    result = []
    for position, label in enumerate(labels(conditions), start=1):
        slug = re.sub(r"[^a-z0-9.]+", "-", label.lower()).strip("-.")[:80]
        if label and not slug:
            slug = f"condition-{position}"
        unique, number = slug, 2
        while unique in taken:
            unique, number = f"{slug}-{number}", number + 1
        taken.add(unique)
        result.append(unique)
    return result


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return the shortest ending of each dotted key that no other key ends with."""
    names = {}
    for key in keys:
        parts = key.split(".")
        for length in range(1, len(parts) + 1):
            name = ".".join(parts[-length:])
            if sum(other == name or other.endswith("." + name) for other in keys) == 1:
                break
        names[key] = name
    return names
