"""Stopping rules for the repeats of a condition: `goodput ± 2 %`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from jostle.scenario.parsing.quantities import Kind, QuantityError, parse_quantity
from jostle.scenario.parsing.value_words import QUOTED, VALUE, owner_and_phase

__all__ = ["LEAST_REPEATS", "Until", "parse_until"]

LEAST_REPEATS: Final = 5
"""Minimum number of runs before the rule is checked. Intervals of two or three runs can be narrow
by chance."""

_FORM: Final = re.compile(rf"\s*{VALUE}\s*(?:±|\+-|\+/-)\s*(?P<half>[\d.].*?)\s*")
_EXAMPLE: Final = 'write for example "goodput ± 2 %" or "rtt of web in steady ± 1 ms"'
_LONGEST: Final = 300


@dataclass(frozen=True)
class Until:
    """A measure and the required width of its confidence interval.

    Parameters
    ----------
    text
        Rule as written in the scenario.
    measure
        Name of a measure.
    who
        Name of a flow, group or link; empty for each of them.
    phase
        Name of a phase; empty for the complete run.
    half
        Half width of the interval: a share of the mean if `kind` is `percent`, else in ns, bit/s,
        bytes, or the measure's own unit.
    kind
        Unit of `half`.
    place
        Start of messages about the rule: the key, after the file and the line if they are known.
    """

    text: str
    measure: str
    who: str
    phase: str
    half: float
    kind: Kind
    place: str = "repeat_until"


def parse_until(given: object) -> Until:
    """Parse a rule: `MEASURE [of NAME] [in PHASE] ± HALF`, in percent of the mean or a quantity.

    Raises
    ------
    QuantityError
        If the text is not a valid rule.
    """
    match = _FORM.fullmatch(given) if isinstance(given, str) and len(given) <= _LONGEST else None
    if match is None or not isinstance(given, str):
        quotes = f"; {QUOTED}" if isinstance(given, str) and " in " in given else ""
        raise QuantityError(f"this is no rule for repeats — {_EXAMPLE}{quotes}")
    half, kind = parse_quantity(match["half"])
    if half <= 0:
        raise QuantityError(f'"{match["half"]}" is no half of an interval — {_EXAMPLE}')
    if kind in ("packets", "bdp"):
        raise QuantityError(f'no measure is in the unit of "{match["half"]}" — {_EXAMPLE}')
    part = float(half) / 100 if kind == "percent" else float(half)
    return Until(given, match["measure"], *owner_and_phase(match), part, kind)
