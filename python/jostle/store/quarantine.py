"""Quarantine of runs that kill their process, with the data to reproduce the failure."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.safe_io.open_folder import OpenFolder

if TYPE_CHECKING:
    from jostle.backends import Spec
    from jostle.store.store import Store

__all__ = ["quarantine", "quarantined"]

_FOLDER = ".quarantine"


def quarantine(store: Store | None, name: str, spec: Spec, patience_s: float) -> str:
    """Write a run's RunSpec into the store, and return an error message for the run.

    Parameters
    ----------
    patience_s
        Seconds after which the run counted as stuck.
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
    """Return the names of the quarantined runs of a store."""
    try:
        return frozenset(Path(name).stem for name in os.listdir(store / _FOLDER))
    except OSError:
        return frozenset()
