"""Order of phases for a reader: the phase that compares flows first, the complete run last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jostle.results.measures import measures

OVERALL: Final = "overall"
"""Name of the phase that every run has: the complete run."""


def compared_phase(summary: Mapping[str, Any]) -> str:
    """Return the phase of a run that compares its flows.

    It is the phase in which most flows send. If several phases have that many senders, it is the
    last of them, because flows have converged by then. The complete run contains start-up, so it is
    returned only if the run has no other phase.
    """
    rate = measures()["throughput"]
    named = [phase for phase in summary["fairness"] if phase != OVERALL]
    senders = {
        phase: sum((rate.of_entry(flow, phase) or 0.0) > 0.0 for flow in summary["flows"])
        for phase in named
    }
    return max(reversed(named), key=senders.__getitem__, default=OVERALL)


def in_reading_order(phases: Sequence[str], first: str) -> list[str]:
    """Return names of phases, beginning with `first`; the complete run is last."""
    return sorted(phases, key=lambda phase: (phase == OVERALL, phase != first))
