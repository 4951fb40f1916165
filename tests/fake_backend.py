"""A backend whose runs are constants, so that what is computed from them can be known by heart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from jostle.backends import Cancelled, RunRecord, Spec
from jostle.backends.kernel.measured import REASONS
from jostle.errors import InputError


@dataclass(frozen=True)
class Constant:
    """What a flow does in the second half of a run; the first half is nothing like it."""

    goodput_bps: float = 10e6
    srtt_s: float | None = 0.05
    retransmitted: int = 100


NOTHING = {
    "sending_rate_bps": 0.0, "throughput_bps": 0.0, "goodput_bps": 0.0, "rtt_mean_s": 0.0,
    "rtt_samples": 0, "srtt_s": 0.0, "cwnd_mean_bytes": 0.0, "lived_s": 0.0, "sent_packets": 0,
    "retransmitted_packets": 0, "responses": 0, "response_mean_s": 0.0,
}  # fmt: skip
"""What a flow's series has to have."""


def _link_row(link: Mapping[str, Any], end_s: float) -> dict[str, Any]:
    counts = {f"{what}_{reason}": 0 for what in ("dropped", "marked") for reason in REASONS}
    rates = {"throughput_bps": 0.0, "capacity_bps": 0.0, "queue_mean_bytes": 0.0}
    return {"time_s": end_s, "link": link["name"], **rates, **counts}


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
        links = [_link_row(link, end_s) for end_s in ends_s for link in spec["links"]]
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
            flows=pl.DataFrame(rows, infer_schema_length=None),
            links=pl.DataFrame(links),
            internals=pl.DataFrame(),
            acks=None,
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
