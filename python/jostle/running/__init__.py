"""Carrying plans out: where runs happen, what is looked up, what is kept."""

from __future__ import annotations

import os

DEFAULT_STORE = ".jostle/store"
STORE_VARIABLE = "JOSTLE_STORE"


def default_store() -> str:
    """Name the folder that is taken if none is given: what `JOSTLE_STORE` says, or our own."""
    return os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
