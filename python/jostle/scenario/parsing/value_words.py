"""How users write a value of a run: `MEASURE [of NAME] [in PHASE]`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["QUOTED", "VALUE", "owner_and_phase", "quoting_hint"]

_QUOTED: Final = r'"[^"]+"'
_ANY: Final = r'[^\s"](?:.*?\S)??'
# Without quotes, a name that contains the word "in" has no definite end.
_PLAIN: Final = r'[^\s"](?:(?:(?!\sin\s).)*?\S)??'
VALUE: Final = (
    r"(?P<measure>[a-z][a-z0-9_]*)"
    rf"(?:\s+of\s+(?P<who>{_QUOTED}|{_PLAIN}))?"
    rf"(?:\s+in\s+(?P<phase>{_QUOTED}|(?(who){_PLAIN}|{_ANY})))?"
)
"""Regular expression, with the groups `measure`, `who` and `phase`; see `owner_and_phase`."""
QUOTED: Final = 'write a name that contains " in " in quotes'


def owner_and_phase(match: re.Match[str]) -> tuple[str, str]:
    """Return the flow, group or link, and the phase; empty if absent."""
    who, phase = ((match[group] or "").strip('"') for group in ("who", "phase"))
    return who, phase


def quoting_hint(who: str, phase: str, names: Iterable[str]) -> str:
    """Return the end of a message, if the phase may be the end of a name; else an empty text."""
    return f' — {QUOTED}: "{who} in {phase}"' if f"{who} in {phase}" in names else ""
