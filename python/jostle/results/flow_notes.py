"""Notes below a table of flows: what limited a flow, and how much of its traffic was of no use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from jostle.results.measure_samples import samples
from jostle.results.measures import measure
from jostle.results.suitable_measures import LIMITS

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

EXPLAINS: Final = 0.2
"""Share of the time from which a limit other than congestion control explains a flow's rate."""
FAR_BELOW: Final = 0.8
"""Goodput ÷ throughput below which a table warns. Headers alone take 4.4 % at an MTU of 1500."""
MUCH: Final = 0.2
"""Retransmission rate above which a table warns."""
_MOST: Final = 3
"""Number of notes of one kind; further ones are counted."""

Place = tuple[int, str]
"""Position of the condition, and name of the flow or group."""


def flow_notes(
    results: FinishedRuns, phase: str, kind: str, flows: Sequence[Place], *, each: bool
) -> tuple[str, ...]:
    """Return the notes on the flows of a table.

    Parameters
    ----------
    results
        The runs.
    phase
        Name of the phase.
    kind
        Kind of the flows. The application limits all kinds by design, except bulk flows.
    flows
        The flows or groups in the table, and their conditions.
    each
        Whether each flow of a group is shown by itself.
    """

    def means(name: str) -> dict[Place, float]:
        return {
            (sample.condition, sample.place["flow"]): value
            for sample in samples(results, name, (phase,), each=each)
            if (value := sample.estimate().value) is not None
        }

    def limits() -> Iterator[str]:
        for name in LIMITS if kind == "bulk" else LIMITS[:2]:
            shares = means(name)
            for place in flows:
                if (share := shares.get(place, 0.0)) >= EXPLAINS:
                    told = f"{measure(name).title} {100 * share:.0f} % of the time"
                    yield f"{named(results, place)}: {told}."

    def warnings() -> Iterator[str]:
        goodputs, throughputs = means("goodput"), means("throughput")
        for place in flows if kind in ("bulk", "transfers") else ():
            goodput, throughput = goodputs.get(place), throughputs.get(place)
            if goodput is not None and throughput and goodput < FAR_BELOW * throughput:
                share = 100 * goodput / throughput
                yield f"Warning: {named(results, place)}: goodput is {share:.0f} % of throughput."
        ratios = means("retransmission_ratio")
        for place in flows:
            if (ratio := ratios.get(place, 0.0)) > MUCH:
                told = f"{100 * ratio:.0f} % of the packets sent were retransmissions"
                yield f"Warning: {named(results, place)}: {told}."

    return (*_first(list(warnings())), *_first(list(limits())))


def named(results: FinishedRuns, place: Place) -> str:
    """Return the name of a flow, group or link, with the condition if there are several."""
    condition, flow = place
    label = results.labels[condition]
    return f"{flow} ({label})" if label else flow


def _first(notes: list[str]) -> list[str]:
    more = len(notes) - _MOST
    return notes if more <= 0 else [*notes[:_MOST], f"… and {more} more of this kind."]
