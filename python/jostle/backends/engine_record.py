"""Converts results of the engine to run records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jostle.backends.base import JsonObject, RunRecord, Spec
from jostle.backends.capture_files import Captures
from jostle.backends.record_tables import Table

if TYPE_CHECKING:
    from jostle.backends.record_tables import Columns


class EngineRecord(Protocol):
    """Result of the engine: a summary, and columns with NaN for missing values."""

    @property
    def summary(self) -> str:
        """Measures, as canonical JSON."""

    @property
    def flows(self) -> Columns:
        """One row per (interval, flow); `flow` is an index into the spec, `mode` is a code."""

    @property
    def links(self) -> Columns:
        """One row per (interval, link); `link` is an index into the spec."""

    @property
    def internals(self) -> Columns:
        """One row per sample of a controller's state; `quantity` is a code."""

    @property
    def acks(self) -> Columns | None:
        """One row per ACK."""

    @property
    def transfers(self) -> Columns | None:
        """One row per transfer of multi-connection flows."""

    @property
    def modes(self) -> Sequence[str]:
        """Names of the codes in `mode`."""

    @property
    def quantities(self) -> Sequence[str]:
        """Names of the codes in `quantity`."""


def run_record(
    record: EngineRecord,
    spec: Spec,
    backend: str,
    version: str,
    *,
    wall_s: float,
    captured: Captures | None = None,
    text: str | None = None,
) -> RunRecord:
    """Return the run record for a result of the engine."""
    flows = [flow["name"] for flow in spec["flows"]]
    links = [link["name"] for link in spec["links"]]
    tables = {
        "flows": Table(record.flows, {"flow": flows, "mode": record.modes}),
        "links": Table(record.links, {"link": links}),
        "internals": Table(record.internals, {"flow": flows, "quantity": record.quantities}),
    }
    acks, transfers = record.acks, record.transfers
    if acks is not None:
        tables["acks"] = Table(acks, {"flow": flows})
    if transfers is not None:
        tables["transfers"] = Table(transfers, {"flow": flows})
    return RunRecord(
        spec=spec,
        backend=backend,
        backend_version=version,
        summary=JsonObject(record.summary),
        tables=tables,
        wall_s=wall_s,
        captured=captured,
        given_text=text,
    )
