"""Runs that kill whatever carries them out: set aside, with what it takes to see it again."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.open_folder import OpenFolder

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.running.store import Store

__all__ = ["quarantine", "quarantined"]

_FOLDER = ".quarantine"


def quarantine(store: Store | None, name: str, spec: Spec, patience_s: float) -> str:
    """Write a run's RunSpec into the store, and say what became of it.

    Parameters
    ----------
    patience_s
        After how many seconds it counted as stuck.
    """
    stuck = f", or the run did not end within {patience_s:.0f} s" if patience_s < math.inf else ""
    text = f"its worker died{stuck}; so it was with the next that was given the run alone"
    if store is None:
        return text
    path = store.root / _FOLDER / f"{name}.json"
    try:
        text_of_spec = json.dumps(spec, ensure_ascii=False) + "\n"
        with OpenFolder.below(store.root, _FOLDER, make=True) as folder:
            folder.replace(path.name, text_of_spec.encode())
    except OSError as error:
        return f"{text}; its RunSpec could not be written: {error.strerror}"
    return f"{text}; its RunSpec is {path}"


def quarantined(store: Path) -> frozenset[str]:
    """Names of the runs that were set aside in a store."""
    try:
        return frozenset(Path(name).stem for name in os.listdir(store / _FOLDER))
    except OSError:
        return frozenset()
