"""Measures that matter to the user of a flow, by kind of traffic, and their benefit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.results.compared_phase import OVERALL
from jostle.results.flow_groups import FlowGroup, TrafficKind, flow_groups
from jostle.results.measures import measure

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.run_spec import RunSpec

__all__ = [
    "HIDDEN",
    "FlowValues",
    "benefit",
    "measured",
    "traffic_groups",
    "voice_flows",
]  # fmt: skip

_MEASURES: Final[Mapping[TrafficKind, tuple[str, ...]]] = {
    "bulk": ("goodput", "rtt"),
    "transfers": ("completion_time",),
    "requests": ("response_time",),
    "pages": ("page_load_time_mean",),
    "videos": ("bitrate", "rebuffering"),
    "pings": ("rtt",),
    "media": ("frame_delay", "late_frames"),
    "datagrams": ("one_way_delay", "datagram_loss"),
}
"""Measures of each kind of traffic, the most important first."""
_VOICE: Final = ("mos", "one_way_delay", "r_factor")
HIDDEN: Final = ("r_factor",)
"""Measures that only the benefit needs."""
_LEAST: Final = 1e-3
"""Minimum benefit as a share of the best one, because the logarithm of 0 is infinite."""


@dataclass(frozen=True)
class FlowValues:
    """Measures of one scenario entry in one run.

    Attributes
    ----------
    kind
        Kind of traffic.
    values
        Mean over the flows of the entry, by name of the measure; NaN if there is none.
    length_s
        Duration of the run. A transfer, page or response that is not complete counts as this long.
    """

    kind: TrafficKind
    values: Mapping[str, float]
    length_s: float

    @property
    def is_voice(self) -> bool:
        """Whether the flow is a voice call, which has an opinion score."""
        return "mos" in self.values


def measured(run: Run) -> dict[str, FlowValues]:
    """Return the measures of every scenario entry with flows, by name of the entry."""
    spec = run.spec
    length_s = spec["duration_ns"] / 1e9
    entries: dict[str, Any] = {row["name"]: row for row in run.summary["flows"]}
    groups: dict[str, Any] = {row["name"]: row for row in run.summary.get("groups", ())}
    left_s = {flow["name"]: length_s - flow["start_ns"] / 1e9 for flow in spec["flows"]}
    voice = voice_flows(spec)
    found = {}
    for group in traffic_groups(spec):
        names = _VOICE if group.members[0] in voice else _MEASURES[group.kind]
        values = {name: _value(name, group, entries, groups, left_s) for name in names}
        found[group.name] = FlowValues(group.kind, values, length_s)
    return found


def traffic_groups(spec: RunSpec) -> list[FlowGroup]:
    """Return the flows of a run by scenario entry, without the legs of proxies and tunnels."""
    carriers = {
        flow["name"] for flow in spec["flows"] if flow["source"]["kind"] in ("relay", "tunnel")
    }
    return [group for group in flow_groups(spec) if group.members[0] not in carriers]


def voice_flows(spec: RunSpec) -> frozenset[str]:
    """Return the names of the flows that are voice calls, which have an opinion score."""
    sources = {flow["name"]: cast("Mapping[str, Any]", flow["source"]) for flow in spec["flows"]}
    return frozenset(name for name, source in sources.items() if source.get("voice") is not None)


def _value(
    name: str,
    group: FlowGroup,
    entries: Mapping[str, Any],
    groups: Mapping[str, Any],
    left_s: Mapping[str, float],
) -> float:
    """Return the mean of a measure over the flows of an entry."""
    whole = groups.get(group.name, {})
    if name == "completion_time" and "transfers" in whole:
        # An entry with arrivals: its flow never ends, its connections do.
        value = whole["completion_time_mean_s"]
        return left_s[group.members[0]] if value is None else float(value)
    which = measure(name)
    values = []
    for member in group.members:
        value = which.of_entry(entries[member], OVERALL)
        if value is None and which.unit == "s" and group.kind in ("transfers", "requests", "pages"):
            value = left_s[member]
        values.append(math.nan if value is None else float(value))
    return sum(values) / len(values)


def benefit(flow: FlowValues) -> float:
    """Return what the user gets as a positive number; twice as much is twice as good.

    Bulk: goodput. Transfers, requests, pages, pings: 1 / time. Video: bitrate × (1 − time in
    stalls). Frames: share in time. Voice: R factor (ITU-T G.107). Other datagrams: share that
    arrives / delay.
    """
    values = {name: value for name, value in flow.values.items() if not math.isnan(value)}
    match flow.kind:
        case "bulk":
            return max(values.get("goodput", 0.0), 1.0)
        case "videos":
            playing = max(1 - values.get("rebuffering", 1.0), _LEAST)
            return max(values.get("bitrate", 0.0), 1.0) * playing
        case "media":
            return max(1 - values.get("late_frames", 1.0), _LEAST)
        case "datagrams" if flow.is_voice:
            return max(values.get("r_factor", 0.0), 100 * _LEAST)
        case "datagrams":
            arrived = max(1 - values.get("datagram_loss", 0.0), _LEAST)
            return arrived / values.get("one_way_delay", flow.length_s)
        case _:
            return 1 / max(values.get(next(iter(flow.values)), flow.length_s), 1e-9)
