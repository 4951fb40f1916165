"""What the engine measured as a run's record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jostle.backends.base import RunRecord, Spec
from jostle.backends.captures import Captures
from jostle.backends.tables import Table

if TYPE_CHECKING:
    from jostle.backends.tables import Columns


class EngineRecord(Protocol):
    """What the engine returns: a JSON summary and columns; NaN where there is no value."""

    @property
    def summary(self) -> str:
        """Measures as a JSON document."""

    @property
    def flows(self) -> Columns:
        """One row per (interval, flow); `flow` counts the spec's flows, `mode` is a code."""

    @property
    def links(self) -> Columns:
        """One row per (interval, link); `link` counts the spec's links."""

    @property
    def internals(self) -> Columns:
        """One row per sample of a controller's state; `quantity` is a code."""

    @property
    def acks(self) -> Columns | None:
        """One row per ACK."""

    @property
    def transfers(self) -> Columns | None:
        """One row per transfer of flows that are many connections."""

    @property
    def modes(self) -> Sequence[str]:
        """What the codes of `mode` mean."""

    @property
    def quantities(self) -> Sequence[str]:
        """What the codes of `quantity` mean."""


def run_record(
    record: EngineRecord,
    spec: Spec,
    backend: str,
    version: str,
    *,
    wall_s: float,
    captured: Captures | None = None,
) -> RunRecord:
    """Make a run's record of what the engine measured."""
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
        summary=json.loads(record.summary),
        tables=tables,
        wall_s=wall_s,
        captured=captured,
    )
