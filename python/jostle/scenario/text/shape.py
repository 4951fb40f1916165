"""How large a document may be: what goes through one takes time for every key and digit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jostle.foreign_files import SCENARIO_BYTES
from jostle.scenario.text.positions import KeyPath

__all__ = ["misshapen"]

_DEEPEST: Final = 80
"""As the TOML document (`positions`)."""
_MOST_KEYS: Final = 5_000
"""Of one table."""
_LARGEST: Final = 10**300
_TOO_LARGE: Final = f"here the scenario exceeds {SCENARIO_BYTES} characters, the most that is read"


def misshapen(document: Any) -> tuple[KeyPath, str] | None:
    """Say which value of a document is too large or too deep, and how; None if none is.

    One that was not read from a text may hold itself, or the same list a billion times: nothing is
    looked at once it is larger than a text may be.
    """
    return _Walk().through(document, ())


@dataclass
class _Walk:
    """Goes through a document.

    Attributes
    ----------
    left
        Values, and characters of keys and texts, that may still come. A text in TOML has at least a
        character for each.
    """

    left: int = SCENARIO_BYTES

    def through(self, value: Any, path: KeyPath) -> tuple[KeyPath, str] | None:
        """Go on with what stands at `path`."""
        wrong = self.itself(value, path)
        if wrong is not None:
            return wrong
        below: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            below = value.items()
        elif isinstance(value, list | tuple):
            below = enumerate(value)
        for step, inner in below:
            found = self.through(inner, (*path, step))
            if found is not None:
                return found
        return None

    def itself(self, value: Any, path: KeyPath) -> tuple[KeyPath, str] | None:
        """Look at one value and the key before it, and count them."""
        self.left -= sum(len(it) if isinstance(it, str) else 1 for it in (value, *path[-1:]))
        if self.left < 0:
            return path[:1], _TOO_LARGE
        if len(path) > _DEEPEST:
            return path[:1], "nested too deeply"
        if isinstance(value, Mapping) and len(value) > _MOST_KEYS:
            return path, f"{len(value)} keys — at most {_MOST_KEYS} in a table"
        if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
            # Python turns no number of more than some thousand digits into text.
            return path, "a number of more than 300 digits"
        return None
