"""The measures of a run per phase, by the definitions of the simulator's summary.

Two things are known less well than there. The kernel tells its smoothed RTT and not that of each
ACK: means, percentiles and deviations are of the smoothed RTT at the samples since which ACKs came.
And what is a mean over time, of a queue or a window, is a mean over samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel.measured import (
    FLOW_COUNTERS,
    REASONS,
    FlowTrack,
    LinkTrack,
    at,
    position,
)
from jostle.run_spec import PhaseSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Phase = PhaseSpec


def summary(
    spec: Spec, flows: Sequence[FlowTrack], links: Sequence[LinkTrack]
) -> Mapping[str, Any]:
    """Measures per flow, link and phase, and fairness per phase."""
    phases: list[Phase] = spec["phases"]
    of_flows: list[dict[str, Any]] = [
        {
            "name": flow.spec["name"],
            "transport": flow.spec["transport"],
            "controller": flow.spec["controller"]["name"],
            "completion_s": None if flow.completion_ns is None else flow.completion_ns / 1e9,
            "phases": {phase["name"]: flow_phase(flow, phase) for phase in phases},
        }
        for flow in flows
    ]
    of_links = [
        {
            "name": link.spec["name"],
            "phases": {phase["name"]: link_phase(link, phase) for phase in phases},
        }
        for link in links
    ]
    fairness = {
        phase["name"]: {
            "jain": jain(
                [
                    measures["phases"][phase["name"]]["throughput_bps"]
                    for flow, measures in zip(flows, of_flows, strict=True)
                    if _is_there(flow, phase)
                ]
            )
        }
        for phase in phases
    }
    return {"flows": of_flows, "links": of_links, "fairness": fairness}


def flow_phase(flow: FlowTrack, phase: Phase) -> dict[str, Any]:
    """Measures of a flow in a phase."""
    length_s = (phase["to_ns"] - phase["from_ns"]) / 1e9
    grown = {name: _growth(flow, name, phase) for name in FLOW_COUNTERS}
    sent = round(grown["sent_packets"])
    retransmitted = round(grown["retransmitted_packets"])
    throughput_bps = grown["received_bytes"] * 8 / length_s
    rtt = _rtt(flow, phase)
    return {
        "sending_rate_bps": grown["sent_bytes"] * 8 / length_s,
        "throughput_bps": throughput_bps,
        "goodput_bps": grown["delivered_bytes"] * 8 / length_s,
        "goodput_ratio": _ratio(grown["delivered_bytes"], grown["sent_bytes"]),
        **rtt,
        "cwnd_mean_bytes": _cwnd_mean_bytes(flow, phase),
        "sent_packets": sent,
        "retransmitted_packets": retransmitted,
        "retransmission_ratio": _ratio(retransmitted, sent),
        "power_bits": _ratio(throughput_bps, rtt["rtt_mean_s"] or 0.0),
    }


def link_phase(link: LinkTrack, phase: Phase) -> dict[str, Any]:
    """Measures of a link in a phase."""
    import numpy as np

    waiting = link.queue_bytes[_inside(link, phase)]
    offered = float(np.diff(link.offered_bytes(_bounds(phase)))[0])
    counts = {
        what: sum(round(_growth(link, f"{what}_{reason}", phase)) for reason in REASONS)
        for what in ("dropped", "marked")
    }
    return {
        "utilisation": _ratio(_growth(link, "sent_bytes", phase), offered),
        "queue_mean_bytes": float(waiting.mean()) if waiting.size else 0.0,
        "queue_p95_bytes": float(np.percentile(waiting, 95)) if waiting.size else 0.0,
        "dropped_packets": counts["dropped"],
        "marked_packets": counts["marked"],
    }


def jain(shares: Sequence[float]) -> float | None:
    """(Σx)² ÷ n·Σx² (Jain, Chiu, Hawe 1984); absent if nobody got anything."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares > 0 else None


def _bounds(phase: Phase) -> Array:
    import numpy as np

    return np.array([phase["from_ns"], phase["to_ns"]], float)


def _growth(track: FlowTrack | LinkTrack, name: str, phase: Phase) -> float:
    before, after = at(track, name, _bounds(phase))
    return float(after - before)


def _inside(track: FlowTrack | LinkTrack, phase: Phase) -> slice:
    """Find the samples of a phase: after its start, up to its end."""
    before, last = position(track, _bounds(phase))
    return slice(int(before) + 1, int(last) + 1)


def _rtt(flow: FlowTrack, phase: Phase) -> dict[str, float | None]:
    import numpy as np

    inside = _inside(flow, phase)
    rtt_s = flow.srtt_s[inside][flow.fresh[inside]]
    if not rtt_s.size:
        names = ("rtt_mean_s", "rtt_min_s", "rtt_p50_s", "rtt_p95_s", "rtt_sd_s")
        return dict.fromkeys(names)
    return {
        "rtt_mean_s": float(rtt_s.mean()),
        "rtt_min_s": _rtt_min_s(flow, inside, float(rtt_s.min())),
        "rtt_p50_s": float(np.percentile(rtt_s, 50)),
        "rtt_p95_s": float(np.percentile(rtt_s, 95)),
        "rtt_sd_s": float(rtt_s.std(ddof=1)) if rtt_s.size > 1 else None,
    }


def _rtt_min_s(flow: FlowTrack, inside: slice, smoothed_s: float) -> float:
    """Find the smallest RTT: that of a single ACK if the kernel's minimum fell during the phase."""
    earlier_s = flow.min_rtt_s[inside.start - 1]
    now_s = flow.min_rtt_s[inside.stop - 1]
    fell = not earlier_s <= now_s
    return min(smoothed_s, float(now_s)) if fell else smoothed_s


def _cwnd_mean_bytes(flow: FlowTrack, phase: Phase) -> float | None:
    """Mean while the flow lived: from its first ACK until it completed or was told to stop."""
    import numpy as np

    inside = _inside(flow, phase)
    lived = ~np.isnan(flow.cwnd_bytes[inside]) & (flow.time_ns[inside] <= _ended_ns(flow))
    window = flow.cwnd_bytes[inside][lived]
    return float(window.mean()) if window.size else None


def _ended_ns(flow: FlowTrack) -> float:
    """When the flow completed or was told to stop."""
    moments = (flow.spec["stop_ns"], flow.events.get("completed_ns"))
    return min((float(moment) for moment in moments if moment is not None), default=float("inf"))


def _is_there(flow: FlowTrack, phase: Phase) -> bool:
    """Whether the flow was there during part of a phase."""
    start_ns = flow.start_ns
    if start_ns is None:
        return False
    return bool(start_ns < phase["to_ns"] and _ended_ns(flow) > phase["from_ns"])


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
