"""Finished runs on disk: segments, plans, maintenance, object storage."""

from __future__ import annotations

import os

DEFAULT_STORE = ".jostle/store"
STORE_VARIABLE = "JOSTLE_STORE"


def default_store() -> str:
    """Return the folder of the store if no other is named: `JOSTLE_STORE` or the default."""
    return os.environ.get(STORE_VARIABLE) or DEFAULT_STORE
