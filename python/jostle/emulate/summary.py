"""Result of an emulation: a document and its text form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DIRECTIONS", "SCHEMA", "EmulationSummary", "lines"]

SCHEMA: Final = "jostle.emulation/1"

DIRECTIONS: Final = ("to_command", "from_command")
"""Names of both directions."""

_NAMES: Final = {"to_command": "to COMMAND", "from_command": "from COMMAND"}


@dataclass(frozen=True)
class EmulationSummary:
    """The result of an emulation.

    Parameters
    ----------
    exit_status
        Exit status of the command, as a shell reports it.
    document
        All counters and measurements, ready for JSON.
    log
        All drops and marks, if they were recorded.
    """

    exit_status: int
    document: Mapping[str, Any]
    log: pl.DataFrame | None

    @property
    def valid(self) -> bool:
        """Whether the links were emulated within the bound on the delay error."""
        return bool(self.document["verdict"] == "on_time")


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a result document's text form."""
    yield f"{document['title']}: {document['duration_s']:.1f} s of emulation, {_judged(document)}"
    header = ("", "packets", "delivered", "utilisation", "queue p95", "dropped", "marked")
    faults = [_faults(link) for direction in DIRECTIONS for link in document[direction]["links"]]
    rows: list[tuple[str, ...]] = [(*header, "faults") if any(faults) else header]
    told = iter(faults)
    for direction in DIRECTIONS:
        found = document[direction]
        several = len(found["links"]) > 1
        for number, link in enumerate(found["links"]):
            name = f"{_NAMES[direction]}, {link['name']}" if several else _NAMES[direction]
            first, last = number == 0, number == len(found["links"]) - 1
            fault = next(told)
            rows.append(
                (
                    name,
                    f"{found['arrived_packets']:,}" if first else "",
                    f"{found['delivered_packets']:,}" if last else "",
                    f"{100 * link['utilisation']:.1f} %",
                    _ms(link["queue_delay_p95_s"]),
                    _by_reason(link["dropped"]),
                    _by_reason(link["marked"]),
                    *([fault] if any(faults) else []),
                )
            )
    yield from _aligned(rows)
    if document["verdict"] != "on_time":
        yield f"INVALID: {_why(document)}"


def _judged(document: Mapping[str, Any]) -> str:
    lateness = document["lateness"]
    if lateness["p999_s"] is None:
        return "no packet was carried"
    word = "on time" if document["verdict"] == "on_time" else "not as described"
    return (
        f"{word}: 99.9 % of packets left within {_ms(lateness['p999_s'])} of their time "
        f"(median {_ms(lateness['p50_s'])}, worst {_ms(lateness['max_s'])})"
    )


def _why(document: Mapping[str, Any]) -> str:
    if document["verdict"] == "overrun":
        unheld = sum(document[direction]["unheld_packets"] for direction in DIRECTIONS)
        if unheld:
            return (
                f"{unheld:,} packets came when those on their way took all the memory that they "
                "may: a link of a lower rate or delay, or a shorter queue, holds fewer"
            )
        lost = sum(document[direction]["unseen_packets"] for direction in DIRECTIONS)
        return f"{lost:,} packets were lost before the link saw them: too many for this machine"
    return (
        f"late. One packet in a thousand left more than {_ms(document['lateness']['bound_s'])} "
        "after its time, so what was measured is this machine as much as the link"
    )


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:.3g} ms"


def _by_reason(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.items()) or "0"


def _faults(link: Mapping[str, Any]) -> str:
    """Return the packets that a link corrupted and duplicated; empty if there are none."""
    kinds = ("corrupted", "duplicated")
    counts = {kind: link.get(f"{kind}_packets", 0) for kind in kinds}
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *cells in rows:
        shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *shown]).rstrip()
