"""Names of figure formats, available without loading the drawing library."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.errors import InputError, unknown

FORMATS = ("png", "svg", "pdf")


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Split comma-separated formats and remove duplicates.

    Raises
    ------
    InputError
        If a format does not exist.
    """
    found = tuple(dict.fromkeys(n.strip() for name in names for n in name.split(",") if n.strip()))
    for name in found:
        if name not in FORMATS:
            raise InputError(unknown("figure format", name, FORMATS))
    return found
