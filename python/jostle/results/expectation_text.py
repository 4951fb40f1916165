"""Expectations as cells of tables and as entries of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jostle.results.number_format import ABSENT, estimate_text
from jostle.stats import Expectation
from jostle.stats.expectation import Verdict

YES_OR_NO: Final = {True: "yes", False: "no", None: ABSENT}
VERDICT_WORDS: Final[dict[Verdict | None, str]] = {
    "holds": "yes", "fails": "no", "open": "open", None: ABSENT,
}  # fmt: skip
"""Verdicts in tables whose column is called `holds`."""


def expectation_entry(one: Expectation, keys: str) -> dict[str, Any]:
    """Return keys of an expectation for a document, in the given order, separated by spaces.

    `value` is null without a value and if it is infinite, because the event `never` occurred. Then
    `possible` has the ends of the possible values, without an end if that is null.
    """
    ours = one.ours
    entry = {
        "relation": one.relation,
        "bound": one.target,
        "value": ours.finite,
        "ours": ours.finite,
        "interval": ours.interval,
        "unit": ours.unit,
        "n": ours.n,
        "incomplete": ours.incomplete or None,
        "never": ours.never,
        "possible": ours.possible_ends,
        "holds": one.holds,
        "certain": one.certain,
        "verdict": one.verdict,
    }
    return {key: entry[key] for key in keys.split()}


def expectation_cells(parts: Sequence[Expectation], verdict: Verdict | None) -> tuple[str, str]:
    """Return our values and the verdict of expectations that have to hold together."""
    ours = "; ".join(estimate_text(part.ours, unit=True, runs=True) for part in parts)
    return ours, VERDICT_WORDS[verdict]
