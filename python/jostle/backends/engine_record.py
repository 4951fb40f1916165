"""What the engine measured as a run's record: codes become words, NaN becomes null."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.base import RunRecord, Spec
from jostle.backends.captures import Captures

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    Columns = Mapping[str, np.ndarray[Any, np.dtype[Any]]]


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
    flow_names = [flow["name"] for flow in spec["flows"]]
    link_names = [link["name"] for link in spec["links"]]
    acks, transfers = record.acks, record.transfers
    return RunRecord(
        spec=spec,
        backend=backend,
        backend_version=version,
        summary=json.loads(record.summary),
        flows=_frame(record.flows, {"flow": flow_names, "mode": record.modes}),
        links=_frame(record.links, {"link": link_names}),
        internals=_frame(record.internals, {"flow": flow_names, "quantity": record.quantities}),
        acks=None if acks is None else _frame(acks, {"flow": flow_names}),
        wall_s=wall_s,
        captured=captured,
        transfers=None if transfers is None else _frame(transfers, {"flow": flow_names}),
    )


def _frame(columns: Columns, words: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Columns as a frame: codes become words, NaN becomes null."""
    import polars as pl

    # Column by column: an expression over a frame costs a small run more than its simulation.
    made = []
    for name, values in columns.items():
        meanings = words.get(name)
        if meanings is None:
            made.append(pl.Series(name, values, nan_to_null=True))
        else:
            known = pl.Series(name, list(meanings), dtype=pl.String)
            made.append(known[values] if len(values) else known.clear())
    return pl.DataFrame(made)
