"""Validation of stored summaries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from jostle.backends import Spec


_INTEGERS = range(-(2**63), 2**64)


def is_summary_of(summary: object, spec: Spec) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a summary has an entry for every flow, link and phase, with numbers only.

    Summaries of version 0.1.0 have no groups.
    """
    if not isinstance(summary, dict):
        return False
    try:
        return _is_summary_of(summary, spec)
    except (AttributeError, KeyError, TypeError, RecursionError):
        return False


def _is_summary_of(summary: Mapping[str, Any], spec: Spec) -> bool:
    phases = {phase["name"] for phase in spec["phases"]}
    for kind in ("flows", "links"):
        if [one["name"] for one in summary[kind]] != [one["name"] for one in spec[kind]]:
            return False
    for kind in ("flows", "groups", "links"):
        for one in summary.get(kind, ()):
            measured = one["phases"]
            values = [value for phase in measured.values() for value in phase.values()]
            if set(measured) != phases or not all(map(_is_measure, values)):
                return False
    return set(summary["fairness"]) == set(summary["totals"]) == phases


def _is_measure(value: object) -> bool:
    """Return whether a value is a finite number, None, or a list or table of such values."""
    match value:
        case float():
            return math.isfinite(value)
        case None:
            return True
        case int():
            # JSON integers are unlimited; measures never exceed the range of a float.
            return not isinstance(value, bool) and value in _INTEGERS
        case dict():
            return all(map(_is_measure, value.values()))
        case list():
            return all(map(_is_measure, value))
    return False
