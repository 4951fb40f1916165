"""Measures that matter to the user of a flow, by kind of traffic, and their benefit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.results.compared_phase import OVERALL
from jostle.results.completion_bounds import CompletionTimes, censoring_time_s, completion_times
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
_TIMED: Final = ("transfers", "requests", "pages")
"""Kinds of traffic whose measure is a time, with a lower bound if nothing is complete."""
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
        Mean over the flows of the entry, by name of the measure; NaN if there is none. A completion
        time is a lower bound if a transfer is not complete, and NaN if none of them started.
    length_s
        Duration of the run. A transfer that never started counts as this long.
    unfinished, transfers
        Number of transfers that were not complete at the end of the run, and of all. Of pages and
        requests, flows of which none was complete.
    """

    kind: TrafficKind
    values: Mapping[str, float]
    length_s: float
    unfinished: int = 0
    transfers: int = 0

    @property
    def is_voice(self) -> bool:
        """Whether the flow is a voice call, which has an opinion score."""
        return "mos" in self.values


def measured(run: Run) -> dict[str, FlowValues]:
    """Return the measures of every scenario entry with flows, by name of the entry."""
    spec = run.spec
    length_s = spec["duration_ns"] / 1e9
    entries: dict[str, Any] = {row["name"]: row for row in run.summary["flows"]}
    voice = voice_flows(spec)
    found = {}
    for group in traffic_groups(spec):
        names = _VOICE if group.members[0] in voice else _MEASURES[group.kind]
        if group.kind in _TIMED:
            found[group.name] = _timed(run, group, names[0], length_s)
        else:
            values = {name: _value(name, group, entries) for name in names}
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


def _timed(run: Run, group: FlowGroup, name: str, length_s: float) -> FlowValues:
    """Return the mean time of transfers, or of the responses or pages of flows."""
    if group.kind == "transfers":
        times = completion_times(run, group.members)
    else:
        entries = {row["name"]: row for row in run.summary["flows"]}
        of_flows = [measure(name).of_entry(entries[one], OVERALL) for one in group.members]
        times = CompletionTimes(
            tuple(
                censoring_time_s(run, one) if time is None else time
                for one, time in zip(group.members, of_flows, strict=True)
            ),
            of_flows.count(None),
        )
    if times is None:
        return FlowValues(group.kind, {name: math.nan}, length_s)
    values = {name: times.mean_s or math.nan}
    return FlowValues(group.kind, values, length_s, times.unfinished, len(times.times_s))


def _value(name: str, group: FlowGroup, entries: Mapping[str, Any]) -> float:
    """Return the mean of a measure over the flows of an entry."""
    return _mean([measure(name).of_entry(entries[member], OVERALL) for member in group.members])


def _mean(values: Sequence[float | None]) -> float:
    every = [math.nan if value is None else float(value) for value in values]
    return sum(every) / len(every)


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
