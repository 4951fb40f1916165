"""Limits on the size of a document, because processing time grows with its keys and digits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jostle.safe_io.untrusted_files import SCENARIO_BYTES
from jostle.scenario.parsing.key_lines import KeyPath

__all__ = ["check_document_size"]

_DEEPEST: Final = 80
"""Maximum nesting depth, the same as for TOML text (`positions`)."""
_MOST_KEYS: Final = 5_000
"""Maximum number of keys per table."""
_LARGEST: Final = 10**300
_TOO_LARGE: Final = f"here the scenario exceeds {SCENARIO_BYTES} characters, the most that is read"


def check_document_size(document: Any) -> tuple[KeyPath, str] | None:
    """Return the path and the problem of a value that is too large or too deep, if there is one.

    A document from Python may contain itself, or the same list a billion times. The check stops
    when the size exceeds the limit for text.
    """
    return _Walk().through(document, ())


@dataclass
class _Walk:
    """Traversal of a document.

    Attributes
    ----------
    left
        Remaining budget of values and of characters in keys and strings. In TOML text each takes at
        least one character.
    """

    left: int = SCENARIO_BYTES

    def through(self, value: Any, path: KeyPath) -> tuple[KeyPath, str] | None:
        """Check the value at `path` and all values nested in it."""
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
        """Check one value and its key, and reduce the budget by their size."""
        self.left -= sum(len(it) if isinstance(it, str) else 1 for it in (value, *path[-1:]))
        if self.left < 0:
            return path[:1], _TOO_LARGE
        if len(path) > _DEEPEST:
            return path[:1], "nested too deeply"
        if isinstance(value, Mapping) and len(value) > _MOST_KEYS:
            return path, f"{len(value)} keys — at most {_MOST_KEYS} in a table"
        if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
            # Python refuses to convert integers of more than some thousand digits to text.
            return path, "a number of more than 300 digits"
        return None
