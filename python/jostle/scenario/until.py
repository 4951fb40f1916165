"""When a condition has been repeated often enough: `goodput ± 2 %`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jostle.scenario.text.units import Kind, QuantityError, parse_quantity

__all__ = ["LEAST_REPEATS", "Until", "parse_until"]

LEAST_REPEATS: Final = 5
"""Runs before an interval is looked at: of two or three it is narrow by chance now and then."""

_FORM: Final = re.compile(
    r"\s*(?P<measure>[a-z][a-z0-9_]*)"
    r"(?:\s+of\s+(?P<who>\S(?:.*?\S)?))?(?:\s+in\s+(?P<phase>\S(?:.*?\S)?))?"
    r"\s*(?:±|\+-|\+/-)\s*(?P<half>[\d.].*?)\s*"
)
_EXAMPLE: Final = 'write for example "goodput ± 2 %" or "rtt of web in steady ± 1 ms"'
_LONGEST: Final = 300


@dataclass(frozen=True)
class Until:
    """A measure, and how narrow its interval has to be.

    Parameters
    ----------
    text
        As it was written.
    measure
        Name of a measure.
    who
        Name of a flow, group or link; each of them if empty.
    phase
        Name of a phase; the whole run if empty.
    half
        Half of the interval: a part of the mean if `kind` is `percent`, else in ns, bit/s, bytes,
        or the measure's own unit.
    kind
        What the half is of.
    place
        Start of messages about the rule: the key, after the file and the line if they are known.
    """

    text: str
    measure: str
    who: str
    phase: str
    half: float
    kind: Kind
    place: str = "until"


def parse_until(given: object) -> Until:
    """Read a rule: `MEASURE [of NAME] [in PHASE] ± HALF`, in percent of the mean or a quantity.

    Raises
    ------
    QuantityError
        If it is none.
    """
    match = _FORM.fullmatch(given) if isinstance(given, str) and len(given) <= _LONGEST else None
    if match is None or not isinstance(given, str):
        raise QuantityError(f"this is no rule for repeats — {_EXAMPLE}")
    half, kind = parse_quantity(match["half"])
    if half <= 0:
        raise QuantityError(f'"{match["half"]}" is no half of an interval — {_EXAMPLE}')
    if kind in ("packets", "bdp"):
        raise QuantityError(f'no measure is in the unit of "{match["half"]}" — {_EXAMPLE}')
    part = float(half) / 100 if kind == "percent" else float(half)
    return Until(given, match["measure"], match["who"] or "", match["phase"] or "", part, kind)
