"""Formats of figures, known before anything that draws is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from jostle.errors import InputError, unknown

FORMATS = ("png", "svg", "pdf")


def chosen(names: Iterable[str]) -> tuple[str, ...]:
    """Take formats apart that are written with commas, each once.

    Raises
    ------
    InputError
        When there is no such format.
    """
    found = tuple(dict.fromkeys(n.strip() for name in names for n in name.split(",") if n.strip()))
    for name in found:
        if name not in FORMATS:
            raise InputError(unknown("figure format", name, FORMATS))
    return found
