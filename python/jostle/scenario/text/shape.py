"""How large a document may be: what goes through one takes time for every key and digit."""

from __future__ import annotations

from typing import Any, Final

from jostle.scenario.text.positions import KeyPath

__all__ = ["misshapen"]

_MOST_KEYS: Final = 5_000
"""Of one table."""
_LARGEST: Final = 10**300


def misshapen(document: Any, path: KeyPath = ()) -> tuple[KeyPath, str] | None:
    """Say which value of a TOML document is too large, and how; None if none is."""
    below: Any
    if isinstance(document, dict):
        if len(document) > _MOST_KEYS:
            return path, f"{len(document)} keys — at most {_MOST_KEYS} in a table"
        below = document.items()
    elif isinstance(document, list):
        below = enumerate(document)
    elif isinstance(document, int) and not -_LARGEST <= document <= _LARGEST:
        # Python turns no number of more than some thousand digits into text.
        return path, "a number of more than 300 digits"
    else:
        return None
    found = (misshapen(value, (*path, step)) for step, value in below)
    return next((one for one in found if one is not None), None)
