"""A backend whose runs are constants, so that what is computed from them can be known by heart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import polars.selectors as cs
from fake_core import spec
from jostle import _core
from jostle.backends import Cancelled, RunRecord, SimBackend, Spec
from jostle.errors import InputError


@dataclass(frozen=True)
class Constant:
    """What a flow does in the second half of a run; the first half is nothing like it."""

    goodput_bps: float = 10e6
    srtt_s: float | None = 0.05
    retransmitted: int = 100


def _zeros(frame: pl.DataFrame) -> dict[str, Any]:
    numbers = frame.select(cs.numeric()).drop("time_s")
    return {name: 0 if kind.is_integer() else 0.0 for name, kind in numbers.schema.items()}


_RECORD = SimBackend(_core).run(spec(1, ("cubic",), 3))
NOTHING = _zeros(_RECORD.flows)
"""A flow's row of a series, in which nothing happens; it has what the engine's have."""
_NO_TRAFFIC = _zeros(_RECORD.links)

Behaviour = Callable[[Mapping[str, Any], int], Constant]
"""Flow and seed → what the flow does."""


@dataclass
class FakeBackend:
    """A backend with a given behaviour.

    Attributes
    ----------
    name
        Name.
    behaviour
        What flows do.
    broken
        Whether a run of this spec fails.
    specs
        Everything that was run.
    refuses
        Why it cannot run anything; it can if that is empty.
    """

    name: str
    behaviour: Behaviour = lambda _flow, _seed: Constant()
    broken: Callable[[Spec], bool] = lambda _spec: False
    version: str = "fake-1"
    specs: list[Spec] = field(default_factory=list)
    refuses: str = ""

    def version_of(self, spec: Spec) -> str:
        return self.version

    def patience_s(self, spec: Spec) -> float:
        return 60.0

    def check(self, spec: Spec) -> None:
        if self.refuses:
            raise InputError(self.refuses)

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        self.specs.append(spec)
        if self.broken(spec):
            raise RuntimeError(f"the {self.name} is out of order")
        step_s = spec["interval_ns"] / 1e9
        bins = spec["duration_ns"] // spec["interval_ns"]
        ends_s = [number * step_s for number in range(1, bins + 1)]
        rows = [self._row(flow, spec, end_s) for end_s in ends_s for flow in spec["flows"]]
        links = [
            {**_NO_TRAFFIC, "time_s": end_s, "link": link["name"]}
            for end_s in ends_s
            for link in spec["links"]
        ]
        empty: dict[str, Any] = {phase["name"]: {} for phase in spec["phases"]}
        return RunRecord(
            spec=spec,
            backend=self.name,
            backend_version=self.version,
            summary={
                "flows": [
                    {"name": f["name"], "controller": f["controller"]["name"], "phases": empty}
                    for f in spec["flows"]
                ],
                "links": [{"name": link["name"], "phases": empty} for link in spec["links"]],
                "fairness": empty,
                "totals": empty,
            },
            tables={
                "flows": pl.DataFrame(rows, infer_schema_length=None),
                "links": pl.DataFrame(links),
                "internals": pl.DataFrame(),
            },
            wall_s=0.0,
        )

    def _row(self, flow: Mapping[str, Any], spec: Spec, end_s: float) -> dict[str, Any]:
        does = self.behaviour(flow, spec["seed"])
        step_s = spec["interval_ns"] / 1e9
        half_s = spec["duration_ns"] / 2e9
        late = end_s - step_s >= half_s - 1e-9
        first = end_s <= step_s + 1e-9
        goodput_bps = does.goodput_bps if late else 1e3
        return {
            **NOTHING,
            "time_s": end_s,
            "flow": flow["name"],
            "throughput_bps": goodput_bps,
            "goodput_bps": goodput_bps,
            # In the first interval nothing was measured yet.
            "srtt_s": None if first else does.srtt_s if late else 9.0,
            "cwnd_bytes": 1e6,
            "sent_packets": 1000,
            "retransmitted_packets": does.retransmitted if first else 0,
        }
