"""Family tree of the controllers, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

GROUPS = ("loss", "hybrid", "delay")
"""Groups in the order of the columns. Hybrids are between the two families that they combine.

The classification is from Turkovic, Kuipers, Uhlig, "Interactions between Congestion Control
Algorithms", TMA 2019. Other groups follow in the order of the registry.
"""


Row = Mapping[str, Any]

_NAMED: Final[tuple[tuple[Row, str], ...]] = (
    (
        {
            "name": "ar",
            "class": "hybrid",
            "based_on": ["reno"],
            "summary": "adaptive Reno (GLOBECOM 2005); not here: its equations are unknown",
            "here": False,
        },
        "areno",
    ),
)
"""Controllers of the classification that jostle does not implement, each with its descendant.

They are shown in the tree if the descendant is.
"""


@dataclass(frozen=True)
class FamilyTreeNode:
    """A controller in the tree.

    Attributes
    ----------
    name
        Name of the controller.
    group
        Index of its column.
    row
        Position in the column, from the top.
    here
        Whether the controller is in the registry. Others are shown for their descendants.
    """

    name: str
    group: int
    row: int
    here: bool = True


@dataclass(frozen=True)
class FamilyData:
    """Controllers by group, and their lines of descent.

    Attributes
    ----------
    groups
        Names of the columns from left to right.
    members
        All controllers, including those that are not in the registry.
    descents
        Pairs of ancestor and descendant, without pairs that follow from other pairs.
    """

    groups: tuple[str, ...]
    members: tuple[FamilyTreeNode, ...]
    descents: tuple[tuple[str, str], ...]


def family_tree(rows: Sequence[Row]) -> FamilyData:
    """Return the layout: groups are columns, and ancestors are above their descendants.

    Parameters
    ----------
    rows
        Registry entries with `name`, `class` and `based_on`.
    """
    rows = _with_named(rows)
    groups = _groups(rows)
    here = {row["name"]: row.get("here", True) for row in rows}
    members = []
    for column, group in enumerate(groups):
        own = [row for row in rows if row["class"] == group]
        names = {row["name"] for row in own}
        roots = [row for row in own if not names.intersection(row["based_on"])]
        ordered = dict.fromkeys(
            name for root in roots for _, name in _descendants(root["name"], own, ())
        )
        members += [FamilyTreeNode(name, column, at, here[name]) for at, name in enumerate(ordered)]
    known = {member.name for member in members}
    above: dict[str, set[str]] = {}
    descents = []
    for row in rows:  # Ancestors come before their descendants.
        parents = [name for name in row["based_on"] if name in known]
        further = set[str]().union(*(above[name] for name in parents))
        above[row["name"]] = further.union(parents)
        descents += [(name, row["name"]) for name in parents if name not in further]
    return FamilyData(groups, tuple(members), tuple(descents))


def tree_lines(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the lines of a text tree: the branches as text, and the entry at their end.

    A controller with several ancestors is listed below the first.
    """
    rows = _with_named(rows)
    by_name = {row["name"]: row for row in rows}
    first = {row["name"]: next(iter(row["based_on"]), None) for row in rows}
    roots = [name for name, ancestor in first.items() if ancestor not in by_name]
    for root in roots:
        yield "", by_name[root]
        yield from _branches(root, first, by_name, "")


def _branches(
    name: str, first: Mapping[str, str | None], by_name: Mapping[str, Row], indent: str
) -> Iterator[tuple[str, Row]]:
    children = [child for child, ancestor in first.items() if ancestor == name]
    for child in children:
        last = child == children[-1]
        yield indent + ("└─ " if last else "├─ "), by_name[child]
        yield from _branches(child, first, by_name, indent + ("   " if last else "│  "))


def _with_named(rows: Sequence[Row]) -> list[Row]:
    """Insert controllers that are not in the registry before their descendants."""
    found: list[Row] = []
    for row in rows:
        named = [ancestor for ancestor, heir in _NAMED if heir == row["name"]]
        above = [ancestor["name"] for ancestor in named]
        found += [*named, {**row, "based_on": [*above, *row["based_on"]]} if named else row]
    return found


def _groups(rows: Sequence[Row]) -> tuple[str, ...]:
    found = dict.fromkeys(row["class"] for row in rows)
    return (*(g for g in GROUPS if g in found), *(g for g in found if g not in GROUPS))


def _descendants(
    name: str, rows: Sequence[Row], above: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    yield len(above), name
    for row in rows:
        if name in row["based_on"] and row["name"] not in above:
            yield from _descendants(row["name"], rows, (*above, name))
