"""How users write a value of a run: `MEASURE [of NAME] [in PHASE]`."""

from __future__ import annotations

from typing import Final

__all__ = ["VALUE"]

VALUE: Final = (
    r"(?P<measure>[a-z][a-z0-9_]*)"
    r"(?:\s+of\s+(?P<who>\S(?:.*?\S)??))?(?:\s+in\s+(?P<phase>\S(?:.*?\S)??))?"
)
"""Regular expression, with the groups `measure`, `who` and `phase`."""
