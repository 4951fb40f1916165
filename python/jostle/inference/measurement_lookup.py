"""Lookup of measurements: captures, or runs given by name or folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jostle.errors import InputError
from jostle.store.store import Reader

if TYPE_CHECKING:
    from jostle.backends import Run

__all__ = ["find_measured"]

_FEWEST_DIGITS: Final = 6
_MOST_HOURS: Final = 24
"""Maximum duration of a measurement, because candidates simulate the same duration."""
_NAME: Final = re.compile(f"[0-9a-f]{{{_FEWEST_DIGITS},32}}")


def find_measured(given: str, store: Path) -> Run:
    """Measure a capture or a folder of captures, or load a measured run.

    A run is given by the path of its folder, its name in a store, or the beginning of its name.

    Raises
    ------
    InputError
        If there is no such run, or several, a file is not a capture, or the measurement is longer
        than a day.
    StoreError
        If the run is incomplete or cannot be read.
    """
    run = _find(given, store)
    hours = run.spec["duration_ns"] / 3.6e12
    if hours > _MOST_HOURS:
        raise InputError(
            f"{given}: it lasts {hours:.0f} hours: at most {_MOST_HOURS} are simulated — cut out a "
            "part, as `editcap -A … -B …` does"
        )
    return run


def _find(given: str, store: Path) -> Run:
    path = Path(given)
    if (path / "manifest.json").is_file():
        return Reader(path.resolve().parent).get(path.resolve().name)
    if path.exists():
        return _captured(path)
    if not _NAME.fullmatch(given):
        raise InputError(
            f"{given} is no capture and no run: give a file, a run's folder, or at least "
            f"{_FEWEST_DIGITS} digits of its name in the store {store}"
        )
    reader = Reader(store)
    found = sorted(name for name in reader.names() if name.startswith(given))
    if not found:
        raise InputError(f"no run in {store} begins with {given}")
    if len(found) > 1:
        raise InputError(f"{len(found)} runs in {store} begin with {given}: give more digits")
    return reader.get(found[0])


def _captured(path: Path) -> Run:
    from jostle import measurements

    results = measurements.analyze([path])
    if len(results.results) != 1:
        names = [condition["capture"] for condition in results.conditions]
        raise InputError(
            f"{path}: {len(names)} measurements — give one of them ({', '.join(names)}), or "
            "captures of both ends of the same connections"
        )
    return results.results[0].run
