"""Samples of TCP flows and links, in the format of `crates/metrics/src/kernel_samples.rs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jostle.backends.kernel import packet_sizes
from jostle.backends.kernel.controller_states import ControllerState, read_states

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from jostle.run_spec import FlowSpec, LinkSpec

    Array = NDArray[np.float64]

# linux/tcp.h, linux/tcp_states.h
_SYN_SENT, _NO_STATE = 2, 0
_CA_CWR, _CA_RECOVERY, _CA_LOSS = 2, 3, 4
_INFINITE_SSTHRESH = 0x7FFFFFFF
_NO_RTT_US = 0x7FFFFFFF
_BBR_UNIT = 256
_DCTCP_UNIT = 1024

REASONS = (
    "overflow",
    "occupancy",
    "red",
    "codel",
    "cobalt",
    "pie",
    "step",
    "pi2",
    "policer",
    "loss",
    "outage",
    "ack_filter",
    "corruption",
    "delay_queue",
    "fault",
)
"""Reasons of drops and marks, with the simulator's names."""

# Reason of the discipline's own drops, and words of its statistics (linux/pkt_sched.h) that count
# overflow drops and marks (None if it has no such word). All other drops are its own.
_XSTATS: Mapping[str, tuple[str, int | None, int | None]] = {
    "occupancy_drop": ("occupancy", 0, None),
    "red": ("red", 1, 3),
    "codel": ("codel", 5, 6),
    "fq_codel": ("codel", 2, 3),
    "fq_pie": ("pie", 2, 4),
    # Written by the guest. CAKE: marks and drops of its ACK filter. Policer: drops of its inner
    # queue.
    "cake": ("cobalt", None, 0),
    "policer": ("policer", 0, None),
    "pie": ("pie", 7, 9),
    "step_mark": ("step", 5, 8),
}
_CAKE_FILTERED = 1


@dataclass(frozen=True)
class _Flow:
    """Samples of a TCP flow; arrays have one value per sample.

    Parameters
    ----------
    spec
        Specification of the flow.
    time_ns
        Times of the samples.
    sender, details, receiver
        The kernel's information about both ends and the controller.
    events
        Times at which it started and completed, the log of its application, and the states of
        jostle's controller.
    """

    spec: FlowSpec
    time_ns: NDArray[np.int64]
    sender: NDArray[np.void]
    details: NDArray[np.void]
    receiver: NDArray[np.void]
    events: Mapping[str, Any]

    @property
    def counters(self) -> dict[str, Array]:
        """Cumulative counters by name."""
        import numpy as np

        sent = self.sender["data_segs_out"].astype(float)
        sent_bytes = self.sender["bytes_sent"].astype(float)
        got = self.receiver["data_segs_in"].astype(float)
        # The kernel does not count bytes of duplicate or reordered packets. All packets of a
        # message except the last are full, so received packets are assumed as large as sent ones.
        payload_bytes = sent_bytes / np.maximum(sent, 1)
        received_bytes = got * (packet_sizes.HEADER_BYTES + payload_bytes)
        return {
            "sent_bytes": sent_bytes + packet_sizes.HEADER_BYTES * sent,
            "received_bytes": np.maximum.accumulate(received_bytes),
            "delivered_bytes": self.receiver["bytes_received"].astype(float),
            "sent_packets": sent,
            "retransmitted_packets": self.sender["total_retrans"].astype(float),
        }

    @property
    def limited_ns(self) -> dict[str, Array]:
        """Time so far during which each limit held, from the kernel's chronographs.

        The time counts from the first sample after the handshake until the flow completed or
        stopped. The kernel's busy time (`tcpi_busy_time`) includes the wait for the ACK of the last
        data. If nothing is unsent at the end of a sampling interval, its busy time counts as
        limited by the application.
        """
        import numpy as np

        ends_ns = [ns for ns in (self.events.get("completed_ns"), self.spec["stop_ns"])
                   if ns is not None]  # fmt: skip
        until_ns = np.minimum(self.time_ns, min(ends_ns, default=self.time_ns[-1]))
        length_ns = np.diff(until_ns, prepend=until_ns[:1]).astype(float)
        length_ns[~self.connected | ~np.roll(self.connected, 1)] = 0.0

        def during(name: str) -> Array:
            total_ns = self.sender[name].astype(float) * 1e3
            grown = np.diff(total_ns, prepend=total_ns[:1])
            return np.where(length_ns > 0, np.clip(grown, 0, None), 0.0)

        busy, window, buffer = (during(f"{name}_us") for name in
                                ("busy", "rwnd_limited", "sndbuf_limited"))  # fmt: skip
        network = np.clip(busy - window - buffer, 0, None)
        unsent = self.sender["notsent_bytes"] > 0
        idle = np.clip(length_ns - busy, 0, None)
        parts = {
            "application": idle + np.where(unsent, 0.0, network),
            "receive_window": window,
            "send_buffer": buffer,
            "cwnd_or_pacing": np.where(unsent, network, 0.0),
        }
        return {name: np.cumsum(part) for name, part in parts.items()}

    @cached_property
    def connected(self) -> NDArray[np.bool_]:
        """Whether the handshake is complete."""
        import numpy as np

        found: NDArray[np.bool_] = ~np.isin(self.sender["state"], (_NO_STATE, _SYN_SENT))
        return found

    @cached_property
    def fresh(self) -> NDArray[np.bool_]:
        """Whether an ACK of data arrived since the previous sample, so that the RTT is new."""
        import numpy as np

        acked_bytes = self.sender["bytes_acked"].astype(np.int64)
        sacked = self.sender["sacked"].astype(np.int64)
        # The kernel counts a SYN as one byte.
        found: NDArray[np.bool_] = self.connected & (acked_bytes > 1)
        newly = (np.diff(acked_bytes, prepend=0) > 0) | (np.diff(sacked, prepend=0) > 0)
        return found & (self.sender["rtt_us"] > 0) & newly

    @cached_property
    def srtt_s(self) -> Array:
        """Smoothed RTT; NaN before the first RTT sample."""
        import numpy as np

        rtt_s = self.sender["rtt_us"] / 1e6
        known = self.connected & (self.sender["rtt_us"] > 0)
        return np.where(known, rtt_s, np.nan)

    @cached_property
    def min_rtt_s(self) -> Array:
        """Minimum RTT of the kernel so far; NaN before the handshake is complete."""
        import numpy as np

        return np.where(self.connected, self.sender["min_rtt_us"] / 1e6, np.nan)

    @cached_property
    def cwnd_bytes(self) -> Array:
        """Congestion window; NaN before the handshake is complete."""
        import numpy as np

        cwnd = self.sender["cwnd"].astype(float) * self.sender["snd_mss"]
        return np.where(self.connected, cwnd, np.nan)

    @property
    def initial_cwnd_bytes(self) -> int:
        """Congestion window before the handshake is complete."""
        return self.spec["initial_window_packets"] * packet_sizes.payload_bytes(self.spec)

    @property
    def ssthresh_bytes(self) -> Array:
        """Slow-start threshold; NaN if it is infinite."""
        import numpy as np

        some = self.connected & (self.sender["ssthresh"] < _INFINITE_SSTHRESH)
        ssthresh = self.sender["ssthresh"].astype(float) * self.sender["snd_mss"]
        return np.where(some, ssthresh, np.nan)

    @property
    def in_flight_bytes(self) -> Array:
        """Bytes in flight, as `tcp.h::tcp_packets_in_flight` counts them."""
        import numpy as np

        counts = {k: self.sender[k].astype(float) for k in ("unacked", "sacked", "lost", "retrans")}
        packets = counts["unacked"] - counts["sacked"] - counts["lost"] + counts["retrans"]
        return np.where(self.connected, packets * self.sender["snd_mss"], 0.0)

    @property
    def pacing_rate_bps(self) -> Array:
        """Pacing rate; NaN if packets are not paced, although the kernel always computes a rate."""
        import numpy as np

        paced: Any = self.spec["pacing"] or self.spec["controller"]["name"] == "bbr"
        if self.states:
            required = [state is not None and state.pacing_bps > 0 for state in self.states]
            paced = np.array(required) | self.spec["pacing"]
        rate = self.sender["pacing_rate"]
        some = self.connected & (rate < 2**63) & paced
        return np.where(some, rate.astype(float) * 8, np.nan)

    @property
    def modes(self) -> list[str]:
        """State of recovery if recovery controls cwnd, otherwise the controller's mode."""
        return [self._mode(number) for number in range(len(self.sender))]

    def _mode(self, number: int) -> str:
        if not self.connected[number]:
            return "handshake"
        sender = self.sender[number]
        own = self.states[number] if self.states else None
        recovering = {_CA_LOSS: "timeout"}
        if own is None or not own.owns_cwnd:
            recovering |= {_CA_CWR: "cwr", _CA_RECOVERY: "recovery"}
        if (state := recovering.get(int(sender["ca_state"]))) is not None:
            return state
        if own is not None:
            return own.mode
        if self.spec["controller"]["name"] == "bbr":
            return _bbr_mode(self.details[number])
        return "slow_start" if sender["cwnd"] < sender["ssthresh"] else "avoidance"

    @property
    def internals(self) -> dict[str, Array]:
        """Internal values of the controller, with the simulator's names; NaN where it has none."""
        import numpy as np

        details = self.details
        found: dict[str, Array] = {}
        if self.states:
            return _values_by_name(self.states)
        match self.spec["controller"]["name"]:
            case "bbr":
                found = {
                    "bottleneck_bps": details["bbr_bytes_per_s"] * 8.0,
                    "min_rtt_s": details["bbr_min_rtt_us"] / 1e6,
                    "pacing_gain": details["bbr_pacing_gain"] / _BBR_UNIT,
                    "cwnd_gain": details["bbr_cwnd_gain"] / _BBR_UNIT,
                }
            case "dctcp":
                enabled = details["dctcp_enabled"] != 0
                found = {"alpha": np.where(enabled, details["dctcp_alpha"] / _DCTCP_UNIT, np.nan)}
            # Modules fill the same two fields differently (`*_get_info`).
            case "vegas" | "yeah":
                found = {"base_rtt_s": _rtt_s(details["vegas_rtt_us"])}
            case "illinois":
                found = {"base_rtt_s": _rtt_s(details["vegas_min_rtt_us"])}
            case "nv":
                found = {"min_rtt_s": _rtt_s(details["vegas_min_rtt_us"])}
        return {name: np.where(self.connected, values, np.nan) for name, values in found.items()}

    @cached_property
    def states(self) -> list[ControllerState | None]:
        """State of jostle's controller at each sample; empty for a controller of Linux."""
        return read_states(self.events.get("states", []))

    @property
    def start_ns(self) -> int | None:
        """Scheduled start time; None if the flow waited for another until the end."""
        if self.spec["after"] is None and self.spec["source"]["kind"] != "relay":
            return int(self.spec["start_ns"])
        due = self.events.get("due_ns")
        return None if due is None else int(due)

    def to_dict(self) -> dict[str, Any]:
        """Return all samples, for the engine."""
        import numpy as np

        return {
            **self.counters,
            "limited_ns": self.limited_ns,
            "rtt_s": np.where(self.fresh, self.srtt_s, np.nan),
            "srtt_s": self.srtt_s,
            "rtt_min_s": self.min_rtt_s,
            "cwnd_bytes": self.cwnd_bytes,
            "ssthresh_bytes": self.ssthresh_bytes,
            "in_flight_bytes": self.in_flight_bytes,
            "pacing_rate_bps": self.pacing_rate_bps,
            "mode": self.modes,
            "internals": self.internals,
            "initial_cwnd_bytes": self.initial_cwnd_bytes,
            "start_ns": self.start_ns,
            "completed_ns": self.events.get("completed_ns"),
            "messages": self.events.get("messages", []),
        }


def _values_by_name(states: Sequence[ControllerState | None]) -> dict[str, Array]:
    """Return the internal values of all samples; NaN where there is none."""
    import numpy as np

    known = [{} if state is None else state.values for state in states]
    names = dict.fromkeys(name for values in known for name in values)
    return {
        name: np.array([values.get(name, np.nan) for values in known], dtype=float)
        for name in names
    }


def _rtt_s(rtt_us: Array) -> Array:
    """Convert to seconds; NaN if the module has no sample, which it reports as 2³¹ − 1 or more."""
    import numpy as np

    return np.where(rtt_us < _NO_RTT_US, rtt_us / 1e6, np.nan)


def _bbr_mode(details: np.void) -> str:
    """Return the mode, which the pair of gains identifies (tcp_bbr.c)."""
    pacing, cwnd = int(details["bbr_pacing_gain"]), int(details["bbr_cwnd_gain"])
    high = 2 * _BBR_UNIT
    if cwnd > high:
        return "startup" if pacing > _BBR_UNIT else "drain"
    return "probe_rtt" if cwnd == _BBR_UNIT else "probe_bw"


def flow_samples(
    spec: FlowSpec,
    time_ns: NDArray[np.int64],
    sender: NDArray[np.void],
    details: NDArray[np.void],
    receiver: NDArray[np.void],
    *,
    events: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the samples of a TCP flow; see `_Flow`."""
    return _Flow(spec, time_ns, sender, details, receiver, events).to_dict()


def link_samples(
    spec: LinkSpec, queue: NDArray[np.void], classes: Sequence[tuple[str, NDArray[np.void]]] = ()
) -> dict[str, Array]:
    """Return the samples of a link: counters of its queue, drops and marks by reason.

    Parameters
    ----------
    spec
        The link.
    queue
        Its counters.
    classes
        Kind and counters of the queue of each class. The drops of the link's queue include theirs.
    """
    import numpy as np

    nothing = np.zeros(len(queue))
    found: dict[str, Array] = {
        "sent_bytes": queue["bytes"].astype(float),
        "queue_bytes": queue["backlog"].astype(float) + queue["held_bytes"].astype(float),
        "sent_packets": queue["packets"].astype(float),
        **{f"dropped_{reason}": nothing for reason in REASONS},
        **{f"marked_{reason}": nothing for reason in REASONS},
    }
    for kind, counters in ((spec["queue"]["kind"], queue), *classes):
        for name, counts in _own_counts(kind, counters).items():
            found[name] = found[name] + counts
    own_drops = sum(found[f"dropped_{reason}"] for reason in REASONS)
    drops = queue["drops"].astype(float)
    return found | {
        "dropped_overflow": np.maximum(drops - own_drops, 0) + queue["rejected"].astype(float),
        "dropped_loss": queue["losses"].astype(float),
        "dropped_outage": queue["outages"].astype(float),
        "dropped_ack_filter": found["dropped_ack_filter"] + queue["thinned"].astype(float),
        "dropped_corruption": queue["corrupted"].astype(float),
        "dropped_delay_queue": queue["delay_full"].astype(float),
        "marked_fault": queue["marked"].astype(float),
        "duplicated": queue["duplicated"].astype(float),
    }


def _own_counts(kind: str, queue: NDArray[np.void]) -> dict[str, Array]:
    """Return the marks of a discipline, and its drops for other reasons than an overflow."""
    import numpy as np

    if kind not in _XSTATS:
        return {}
    reason, overflow_word, marked_word = _XSTATS[kind]
    words = queue["xstats"].astype(float)
    filtered = words[:, _CAKE_FILTERED] if kind == "cake" else np.zeros(len(queue))
    drops = queue["drops"].astype(float) - filtered
    if overflow_word is not None:
        drops -= words[:, overflow_word]
    found = {f"dropped_{reason}": np.maximum(drops, 0), "dropped_ack_filter": filtered}
    if marked_word is not None:
        found[f"marked_{reason}"] = words[:, marked_word]
    return found
