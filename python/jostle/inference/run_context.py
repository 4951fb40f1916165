"""The run that contains an unknown sender: everything except the sender's controller."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jostle.backends.kernel.packet_sizes import HEADER_BYTES, LINK_HEADER_BYTES, packet_bytes
from jostle.errors import InputError
from jostle.kernel_images.controller_modules import refuse_in_simulator
from jostle.scenario import Scenario
from jostle.scenario.fields import MAX_MTU_BYTES, MIN_MTU_BYTES
from jostle.scenario.parsing.quantities import PACKET_BYTES
from jostle.scenario.python_controllers.source_files import is_python_controller
from jostle.scenario.service_rate import constant_service_bps

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.emulate.link_file import LinkFile
    from jostle.inference.observed_flow import ObservedFlow
    from jostle.run_spec import RunSpec

__all__ = [
    "KNOWN_RATE",
    "LATENESS_S",
    "SINGLE_FLOW_NAME",
    "about_mss",
    "alternative_networks",
    "mtu_bytes",
    "sender_in",
    "spec_from_estimate",
    "spec_from_link_file",
    "spec_from_run",
    "with_perturbed_links",
    "with_random_delay",
]  # fmt: skip

SINGLE_FLOW_NAME: Final = "flow"
"""Name of the flow in a run with a single flow, because names of captured flows
("192.0.2.1:443 > …") are invalid in scenarios."""
CROSS_TRAFFIC_NAME: Final = "cross-traffic"
"""Name of the flow that sends what other flows sent over the bottleneck."""
_DATAGRAM_BYTES: Final = PACKET_BYTES - 42
"""Payload of a datagram in a full packet: without Ethernet, IPv4 and UDP headers."""
_FAST: Final[Mapping[str, Any]] = {
    "rate": "1 Gbit/s",
    "queue": {"kind": "drop_tail", "limit": "1000 packets"},
}
"""A link that delays no ACK."""
_ACKED_PACKETS: Final = 2
"""Packets that a receiver acknowledges at once (RFC 9293 §3.8.6.3)."""
_LONGEST_HOLD_S: Final = 0.2
"""Maximum time that a link with ACK thinning holds an ACK."""
KNOWN_RATE: Final = 0.002
"""Relative perturbation of the rate of a known link in further runs."""
_SLOWEST: Final = 0.2
"""Least factor of a rate, however many runs there are on links of an uncertain rate."""
_LIMIT: Final = 0.02
"""Relative perturbation of the queue limit, about the accuracy of estimates."""
LATENESS_S: Final = (30e-6, 0.1e-3, 0.3e-3, 1e-3)
"""Mean random delays of packets on paths without guaranteed timing: from the timers of an idle
machine to a busy one."""
_MOST: Final = 10
"""Maximum random delay in multiples of the mean; one packet in 22,000 (e^-10) would exceed it."""


def spec_from_run(run: Run, flow: str) -> RunSpec:
    """Return the specification of a run without the sender of a flow.

    Raises
    ------
    InputError
        If the flow cannot be sent by a controller, or another flow runs foreign code.
    """
    spec = copy.deepcopy(run.spec)
    for each in spec["flows"]:
        if each["name"] == flow and each["transport"] != "tcp":
            raise InputError(f"flow {flow} is sent over {each['transport']}, not TCP")
        if each["name"] != flow and is_python_controller(each["controller"]["name"]):
            raise InputError(f"flow {each['name']} has a controller written in Python")
    refuse_in_simulator(each for each in spec["flows"] if each["name"] != flow)
    return _quiet(spec)


def spec_from_link_file(link: LinkFile, observed: ObservedFlow) -> tuple[RunSpec, str]:
    """Return a run with a single bulk flow, as long as the observed one, on the links of a file.

    The flow crosses the links of that direction whose rate is closer to the observed one.

    Returns
    -------
    tuple
        The run, and a sentence that names the direction.
    """
    spec = _alone(observed, {**_ANY, "seed": link.seed})
    links = copy.deepcopy([*link.links, *link.reverse])
    there, back = list(range(len(link.links))), list(range(len(link.links), len(links)))
    own_bps, other_bps = _least_rate_bps(link.links), _least_rate_bps(link.reverse)
    shown, seen = observed.link_rate, ""
    if shown is not None and own_bps and other_bps and own_bps != other_bps:
        if abs(math.log(other_bps / shown.rate_bps)) < abs(math.log(own_bps / shown.rate_bps)):
            there, back, own_bps, other_bps = back, there, other_bps, own_bps
        seen = (
            f", because {own_bps / 1e6:.4g} Mbit/s are closer to its "
            f"{shown.rate_bps / 1e6:.4g} Mbit/s than {other_bps / 1e6:.4g} Mbit/s"
        )
    name = "reverse" if there and there[0] else links[0]["name"]
    (flow,) = spec["flows"]
    # The links contain the complete delay.
    flow["path"], flow["reverse_path"] = there, back
    flow["base_delay_ns"] = 0
    spec["links"] = cast("Any", links)
    base_s = sum(one["delay"]["steps"][0]["delay_ns"] for one in links) / 1e9
    said = f"The flow crosses {name} of {link.source}{seen}. Its least RTT is "
    said += (
        f"{observed.quiet_rtt_s(0.0) * 1e3:.4g} ms, the base RTT of the file {base_s * 1e3:.4g} ms."
    )
    return spec, said


def _least_rate_bps(links: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the lowest service rate of links in a row; None if one varies."""
    found = [constant_service_bps(link) for link in links]
    rates_bps = [rate_bps for rate_bps in found if rate_bps is not None]
    return min(rates_bps) if len(rates_bps) == len(found) else None


def spec_from_estimate(observed: ObservedFlow, *, only_link: bool = False) -> RunSpec:
    """Return a run with a single bulk flow on a bottleneck estimated from the observed flow.

    The rate is `ObservedFlow.link_rate`. The queue limit is the longest queueing delay times that
    rate, and the packet that waited so long. This holds for a drop-tail queue. If the capture shows
    thinned ACKs, the ACKs of the run are thinned as much. If it shows cross traffic, the run has a
    flow of datagrams with the same rates.

    Parameters
    ----------
    observed
        Observed flow.
    only_link
        Whether to leave out thinned ACKs and cross traffic.

    Raises
    ------
    InputError
        If nothing was delivered, or there was no queueing.
    """
    rate = observed.link_rate
    if rate is None:
        raise InputError(
            f"flow {observed.flow} delivered too little for an estimate of the link — describe the "
            "network by --link"
        )
    packet_s = observed.packet_bytes * 8 / rate.rate_bps
    least_s = observed.quiet_rtt_s(packet_s)
    delay_s = float(np.nanmax(observed.rtt_s)) - least_s
    # Base RTT without the transmission time of the packet on the bottleneck.
    rtt_s = least_s - packet_s
    if rtt_s <= 0 or delay_s < packet_s:
        raise InputError(
            f"flow {observed.flow} shows no bottleneck: its mean RTT exceeds the base RTT of "
            f"{least_s * 1e3:.4g} ms by {max(delay_s, 0.0) * 1e3:.3g} ms at most, less than a "
            f"packet takes at {rate.rate_bps / 1e6:.4g} Mbit/s — describe the network by --link"
        )
    waiting_bytes = delay_s * rate.rate_bps / 8 + observed.packet_bytes
    queue = {"kind": "drop_tail", "limit": f"{round(waiting_bytes)} B"}
    bottleneck = {"rate": f"{round(rate.rate_bps)} bit/s", "queue": queue}
    rtt = f"{rtt_s:.9f} s"
    others = [] if only_link else _cross_traffic(observed, rtt_s)
    if only_link or observed.packets_per_ack is None:
        return _alone(observed, {"bottleneck": bottleneck, "rtt": rtt}, others)
    # The first ACK waits while the packets that cause the others leave the bottleneck.
    held_s = min((observed.packets_per_ack - 1) * packet_s, _LONGEST_HOLD_S)
    uplink = {**_FAST, "ack_thinning": {"max_acks": 1024, "max_delay": f"{held_s:.9f} s"}}
    return _alone(observed, {"downlink": bottleneck, "uplink": uplink, "rtt": rtt}, others)


def _cross_traffic(observed: ObservedFlow, rtt_s: float) -> list[dict[str, Any]]:
    """Return a flow that sends what other flows sent over the bottleneck of the observed one.

    Its bytes enter the queue before they leave it. The run begins with a handshake, the series of
    the observed flow with its first data.
    """
    if not observed.cross_traffic:
        return []
    delay_s = observed.queueing_delay_s
    steps: dict[str, str] = {"0.000000 s": "0 bit/s"}
    for start_s, rate_bps in observed.cross_traffic:
        waited_s = delay_s[min(int(start_s / observed.interval_s), delay_s.size - 1)]
        time_s = max(0.0, start_s + rtt_s / 2 - waited_s)
        payload_bps = rate_bps * _DATAGRAM_BYTES / PACKET_BYTES
        steps[f"{time_s:.6f} s"] = f"{payload_bps:.0f} bit/s"
    order = sorted(steps.items(), key=lambda step: float(step[0].removesuffix(" s")))
    source = {"kind": "cbr", "size": f"{_DATAGRAM_BYTES} B", "rate": [list(one) for one in order]}
    return [{"name": CROSS_TRAFFIC_NAME, "controller": "none", "rtt": "1 ms", "source": source}]


def alternative_networks(around: RunSpec, observed: ObservedFlow) -> list[RunSpec]:
    """Return other networks that the observed flow may have crossed, besides its estimate.

    A capture shows how many packets an ACK acknowledges. Whether the path waits for a number of
    ACKs or for some time shows only in how the flow changes. Cross traffic is uncertain if it is
    little.
    """
    networks = []
    if observed.packets_per_ack is not None:
        counted = copy.deepcopy(around)
        for link in cast("list[dict[str, Any]]", counted["links"]):
            if link.get("ack_thinning"):
                most = max(1, round(observed.packets_per_ack / _ACKED_PACKETS))
                link["ack_thinning"] = {"most": most, "hold_ns": round(_LONGEST_HOLD_S * 1e9)}
        networks.append(counted)
    if observed.cross_traffic:
        alone = copy.deepcopy(around)
        alone["flows"] = [each for each in alone["flows"] if each["name"] != CROSS_TRAFFIC_NAME]
        networks.append(alone)
    return networks


def sender_in(around: RunSpec, flow: str) -> str:
    """Return the name of an observed flow in a run: its own, or `SINGLE_FLOW_NAME`."""
    names = {each["name"] for each in around["flows"]}
    return flow if flow in names else SINGLE_FLOW_NAME


_ANY: Final[Mapping[str, Any]] = {
    "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
    "rtt": "40 ms",
}
"""A placeholder network, whose links are replaced."""


def mtu_bytes(observed: ObservedFlow) -> int:
    """Return the MTU of senders with full packets of the size of an observed flow's."""
    return min(max(observed.packet_bytes - LINK_HEADER_BYTES, MIN_MTU_BYTES), MAX_MTU_BYTES)


def about_mss(observed: ObservedFlow) -> Iterator[str]:
    """Say which MSS added flows have if it is not the usual one."""
    if observed.packet_bytes != PACKET_BYTES:
        mss = mtu_bytes(observed) + LINK_HEADER_BYTES - HEADER_BYTES
        yield f"The MSS is {mss} bytes, from the measurement."


def _alone(
    observed: ObservedFlow, network: Mapping[str, Any], others: Sequence[Mapping[str, Any]] = ()
) -> RunSpec:
    rest = {key: value for key, value in network.items() if key != "rtt"}
    document = {
        **rest,
        "duration": f"{max(observed.length_s, 0.001):.6f} s",
        "sampling_interval": f"{observed.interval_s:.6f} s",
        "flows": [
            {
                "name": SINGLE_FLOW_NAME,
                "controller": "reno",
                "rtt": network["rtt"],
                "mtu": f"{mtu_bytes(observed)} B",
            },
            *others,
        ],
    }
    scenario = Scenario.from_dict(document, name="network")
    return _quiet(copy.deepcopy(scenario.plan().runs[0].spec))


def _quiet(spec: RunSpec) -> RunSpec:
    """Return the run with one phase for its complete duration, and without captures."""
    spec["capture"] = None
    spec["record"] = "none"
    spec["phases"] = [{"name": "overall", "from_ns": 0, "to_ns": spec["duration_ns"]}]
    return spec


def with_perturbed_links(spec: RunSpec, number: int, rate_error: float = KNOWN_RATE) -> RunSpec:
    """Return the run with links perturbed by the accuracy with which links are known.

    In a deterministic run, the state after the first loss determines everything that follows. A
    link that differs by less than the measurement error shows other behaviour of the same sender.

    Parameters
    ----------
    spec
        Run to perturb.
    number
        0 for the run itself; others have another seed, rate and queue, alternately above and below.
    rate_error
        Relative perturbation of the rate: half of the interval of an estimate.
    """
    changed = copy.deepcopy(spec)
    if number == 0:
        return changed
    size = (number + 1) // 2 * (1 if number % 2 else -1)
    factor = max(_SLOWEST, 1 + size * rate_error)
    # A smaller step has no effect on a queue of full packets, and an estimate is not more accurate.
    least = {"bytes": max(map(packet_bytes, spec["flows"])), "packets": 1}
    changed["seed"] = (spec["seed"] + number) % 2**63
    for link in changed["links"]:
        capacity = cast("dict[str, Any]", link["capacity"])
        if capacity["kind"] == "constant":
            capacity["rate_bps"] = round(capacity["rate_bps"] * factor)
        # The rates of a shaper and of a link are known equally well.
        for queue in (link["queue"], *(one["queue"] for one in link["classes"] or ())):
            parameters = cast("dict[str, Any]", queue["parameters"])
            if "rate" in parameters:
                parameters["rate"] = round(parameters["rate"] * factor)
        limit = cast("dict[str, Any]", link["queue"]["parameters"]).get("limit")
        if isinstance(limit, dict):
            for unit, amount in limit.items():
                step = max(_LIMIT * amount, least.get(unit, 0))
                limit[unit] = max(1, round(amount + size * step))
    return changed


def with_random_delay(spec: RunSpec, flow: str, mean_s: float) -> RunSpec:
    """Return the run with random delay on a flow's path.

    Controllers that estimate bandwidth from ACK spacing respond to ACK compression. BBR keeps the
    maximum of ten round trips (`bbr_bw_rtts` of net/ipv4/tcp_bbr.c): delays of a few tenths of a
    millisecond, which do not affect loss-based controllers, cause a queue that BBR would not build
    without them.

    Parameters
    ----------
    spec
        Run to change.
    flow
        Flow on whose path the delay is added.
    mean_s
        Mean of the exponentially distributed delay that is added after the last link. Packets keep
        their order.
    """
    changed = copy.deepcopy(spec)
    sender = next(each for each in changed["flows"] if each["name"] == flow)
    delay = cast("dict[str, Any]", changed["links"][sender["path"][-1]]["delay"])
    if delay["jitter"] is None:
        # Points of the quantile function, denser where it is steep.
        shares = [1 - math.exp(-number / 2) for number in range(2 * _MOST)]
        points = [(share, -math.log1p(-share)) for share in shares] + [(1.0, float(_MOST))]
        delay["jitter"] = {
            "quantiles": [
                {"probability": share, "value_ns": round(mean_s * 1e9 * times)}
                for share, times in points
            ],
            "correlation_ns": 0,
            "reorder": False,
        }
    return changed
