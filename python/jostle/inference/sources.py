"""Where measurements come from: a run of a store, named by itself or by its folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.running.store import Reader

if TYPE_CHECKING:
    from jostle.backends import Run

__all__ = ["find_run"]

_FEWEST_DIGITS: Final = 6
_NAME: Final = re.compile(f"[0-9a-f]{{{_FEWEST_DIGITS},32}}")


def find_run(given: str, store: Path) -> Run:
    """Find a run by the path of its folder, its name in a store, or the beginning of that name.

    Raises
    ------
    InputError
        When there is no such run, or several.
    StoreError
        When it is not whole, or may not be read.
    """
    path = Path(given)
    if path.is_dir():
        if not (path / "manifest.json").is_file():
            raise InputError(f"{given} is no run's folder: it has no manifest.json")
        return Reader(path.resolve().parent).get(path.resolve().name)
    if not _NAME.fullmatch(given):
        raise InputError(
            f"{given} is no run: give its folder, or at least {_FEWEST_DIGITS} digits of its name "
            f"in the store {store}"
        )
    reader = Reader(store)
    found = sorted(name for name in reader.names() if name.startswith(given))
    if not found:
        raise InputError(f"no run in {store} begins with {given}")
    if len(found) > 1:
        raise InputError(f"{len(found)} runs in {store} begin with {given}: give more digits")
    return reader.get(found[0])
