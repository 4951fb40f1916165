"""Checks whether the kernel backend supports a RunSpec, before the run starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jostle.backends.base import Spec
from jostle.backends.kernel import (
    cake_hosts,
    controllers,
    impairment_playback,
    link_extras,
    packet_sizes,
    quic_programs,
    tc_classes,
    tc_queues,
)
from jostle.backends.kernel.kernel_controllers import KernelOffer
from jostle.backends.kernel.unsupported import Problem, flow_key, link_key
from jostle.errors import InputError
from jostle.kernel_images import Kind
from jostle.kernel_images.source_patches import VIRTUAL_HZ
from jostle.run_spec import FlowSpec, LinkPart, LinkSpec
from jostle.scenario.flow_links import opposites, paths, reverse_paths
from jostle.scenario.python_controllers.source_files import is_python_controller

_SIMULATOR = "the simulator can"
_VIRTUAL = "the virtual-time kernel has: run it with --backend kernel"

# Each router decrements the TTL of 255; a link has at most three routers.
_MAX_LINKS = 80
# Maximum number of flows in the address plan, two networks of 10.0.0.0/8.
_MAX_FLOWS = 1000
# linux/pkt_sched.h: limits of FIFOs and AQMs have 32 bits.
_MAX_LIMIT = 2**32 - 1
# Maximum window in a SYN-ACK (RFC 7323 §2.2).
_SYN_WINDOW = 65_535
# Name prefix of controllers included in the QUIC stack.
# Ethernet pads shorter frames, but a virtual device does not (`packet_sizes.py`).
_LEAST_DATAGRAM_BYTES = 18


def check(
    spec: Spec, defaults: controllers.Defaults, kind: Kind, offer: KernelOffer | None = None
) -> None:
    """Check that a run is supported.

    Parameters
    ----------
    defaults
        Default parameters of controllers; see `controllers.defaults_of`.
    kind
        Kind of the kernel.
    offer
        Controllers that only this kernel has. Default: none.

    Raises
    ------
    InputError
        If it is not supported. The message names all unsupported keys.
    """
    found = problems(spec, defaults, kind, offer)
    if found:
        listed = "\n".join(f"  {problem}" for problem in found)
        raise InputError(f"the kernel backend cannot run this scenario:\n{listed}")


def problems(
    spec: Spec, defaults: controllers.Defaults, kind: Kind, offer: KernelOffer | None = None
) -> list[Problem]:
    """Return all unsupported settings of a run."""
    # Links of tunnels have no counterpart, so nothing else is checked.
    tunnels = list(_tunnel_problems(spec))
    if tunnels:
        return tunnels
    found = [*_run_problems(spec), *_shared_problems(spec)]
    for number, link in enumerate(spec["links"]):
        sizes_bytes = packet_sizes.sizes_on(number, spec["flows"])
        queues = tc_classes.queues_of(number, spec).values()
        found.extend(_link_problems(link, list(queues), sizes_bytes))
        for queue in queues:
            found.extend(cake_hosts.problems(number, spec, queue))
        if kind == "virtual":
            found.extend(_playback_problems(link, spec["duration_ns"]))
        else:
            found.extend(_problems_of_tc(link))
            found.extend(_problems_of_extras(link))
    for flow in spec["flows"]:
        found.extend(_flow_problems(flow))
        found.extend(_timer_problems(flow, kind))
        if flow.get("routes") and kind != "virtual":
            text = "routes do not change at an exact time in real time; "
            found.append(Problem(flow_key(flow, "routes"), f"{text}{_VIRTUAL}"))
    connections = [flow for flow in spec["flows"] if flow["transport"] == "tcp"]
    found.extend(controllers.plan(connections, defaults, kind, offer).problems)
    return list(dict.fromkeys(found))


def _tunnel_problems(spec: Spec) -> Iterator[Problem]:
    tunnels = [flow for flow in spec["flows"] if flow["source"]["kind"] == "tunnel"]
    # The second connection of each tunnel has the same source.
    for flow in tunnels[: len(tunnels) // 2]:
        text = "no program of the guest carries the packets of other flows; "
        yield Problem(flow_key(flow, "source"), f"{text}{_SIMULATOR}")


def _run_problems(spec: Spec) -> Iterator[Problem]:
    if spec["record"] != "none":
        text = f'"{spec["record"]}": TCP_INFO is sampled, not recorded per ACK; {_SIMULATOR}'
        yield Problem("record", text)
    merging = next((flow for flow in spec["flows"] if flow["gro"]), None)
    if merging is not None and spec.get("capture") is not None:
        text = f"a capture would show merged segments; {_SIMULATOR}"
        yield Problem(flow_key(merging, "receiver_gro"), text)
    if len(spec["flows"]) > _MAX_FLOWS:
        yield Problem("flows", f"{len(spec['flows'])} flows: at most {_MAX_FLOWS}; {_SIMULATOR}")


def _shared_problems(spec: Spec) -> Iterator[Problem]:
    shared = opposites(spec["flows"])
    for link in spec["links"]:
        for rule in (link.get("faults") or {}).get("packets", ()):
            if rule.get("flow") in shared:
                text = "both flows of a connection have the same addresses here; "
                yield Problem(link_key(link, "faults.packets"), f"{text}{_SIMULATOR}")


def _link_problems(
    link: LinkSpec, parts: list[LinkPart], sizes_bytes: set[int]
) -> Iterator[Problem]:
    if not impairment_playback.own_queue(link):
        for part in parts:
            yield from _queue_problems(link, part, sizes_bytes)
            in_turns = part is not link["queue"] and link["queue"]["kind"] != tc_classes.PRIO
            if in_turns and tc_queues.is_rate_limiting(part):
                text = f"`{part['kind']}` in a class: Linux's drr takes turns between queues that "
                text += f"always have something; {_SIMULATOR}"
                yield Problem(link_key(link, "queue.classes"), text)
    if link["quick_start"] is not None:
        text = f"Linux does not forward Quick-Start requests; {_SIMULATOR}"
        yield Problem(link_key(link, "quick_start"), text)


def _queue_problems(link: LinkSpec, part: LinkPart, sizes_bytes: set[int]) -> Iterator[Problem]:
    for problem in tc_queues.problems(part, sizes_bytes):
        yield Problem(link_key(link, f"queue.{problem.key}"), problem.text)
    parameters: Mapping[str, Any] = part["parameters"]
    limit = parameters.get("limit", 0)
    if isinstance(limit, dict):
        limit = max(limit.values())
    if limit > _MAX_LIMIT:
        text = f"{limit}: Linux counts in 32 bits, at most {_MAX_LIMIT}"
        yield Problem(link_key(link, "queue.limit"), text)


def _playback_problems(link: LinkSpec, duration_ns: int) -> Iterator[Problem]:
    if impairment_playback.too_fine(link, duration_ns):
        text = f"too short for a run of this length; {_SIMULATOR}"
        yield Problem(link_key(link, "jitter.correlation"), text)


def _problems_of_tc(link: LinkSpec) -> Iterator[Problem]:
    """Yield the settings of a link that only jostle's qdisc supports."""
    capacity = link["capacity"]
    if capacity["kind"] == "trace":
        text = f"`tc` has no delivery opportunities, only rates; {_VIRTUAL}"
        yield Problem(link_key(link, "trace"), text)
    if capacity["kind"] == "autoregressive":
        text = f"`tc` draws no random rates; {_VIRTUAL}"
        yield Problem(link_key(link, "rate"), text)
    for step in capacity["steps"] if capacity["kind"] == "steps" else ():
        if step["rate_bps"] < 8:
            text = f"{step['rate_bps']} bit/s at {step['at_ns'] / 1e9:g} s: htb cannot stop; "
            yield Problem(link_key(link, "rate"), f"{text}{_VIRTUAL}")
    if impairment_playback.own_queue(link):
        text = f"`{link['queue']['kind']}`: `tc` has no such queue; {_VIRTUAL}"
        yield Problem(link_key(link, "queue.kind"), text)
    delay = link["delay"]
    if len(delay["steps"]) > 1:
        text = f"a delay that changes would reorder packets in netem; {_VIRTUAL}"
        yield Problem(link_key(link, "delay"), text)
    if delay["jitter"] is not None:
        # Jitter of 0 means handovers at which packets may be reordered.
        drawn = any(point["value_ns"] for point in delay["jitter"]["quantiles"])
        text = f"netem's random delays are independent or reorder packets; {_VIRTUAL}"
        yield Problem(link_key(link, "jitter" if drawn else "handovers"), text)
    if link["outages"] is not None:
        yield Problem(link_key(link, "outage"), f"`tc` has no outages; {_VIRTUAL}")
    if link.get("loss_steps"):
        text = f"netem's losses have one probability for the whole run; {_VIRTUAL}"
        yield Problem(link_key(link, "loss"), text)
    if link.get("frames") is not None:
        yield Problem(
            link_key(link, "frame_aggregation"), f"`tc` sends no packets together; {_VIRTUAL}"
        )
    if link.get("framing") is not None:
        text = f"`htb` counts other bytes, and knows no codewords of PTM; {_VIRTUAL}"
        yield Problem(link_key(link, "framing"), text)
    if link.get("ack_thinning") is not None:
        text = "`tc` holds no ACK back: cake with `ack_filter` drops those that wait together; "
        yield Problem(link_key(link, "ack_thinning"), f"{text}{_VIRTUAL}")


def _problems_of_extras(link: LinkSpec) -> Iterator[Problem]:
    for key in link_extras.keys(link):
        text = f"`tc` cannot do the same to the same packets; {_VIRTUAL}"
        yield Problem(link_key(link, key), text)


def _flow_problems(flow: FlowSpec) -> Iterator[Problem]:
    if flow["transport"] == "quic":
        yield from _quic_problems(flow)
        return
    if flow["transport"] == "udp":
        yield from _datagram_problems(flow)
        return
    tcp = flow.get("tcp")
    if tcp is not None and tcp["prr"] == "rfc9937":
        text = f'"rfc9937": the kernel has its own, "linux"; {_SIMULATOR}'
        yield Problem(flow_key(flow, "transport.prr"), text)
    receiver = flow.get("receiver")
    if receiver is not None:
        text = f"`{receiver['kind']}`: the receiver here is Linux's own; {_SIMULATOR}"
        yield Problem(flow_key(flow, "receiver"), text)
    if flow["initial_pacing"]:
        text = f"Linux paces no more than fq does, from the 11th packet on; {_SIMULATOR}"
        yield Problem(flow_key(flow, "initial_pacing"), text)
    if flow["initial_receive_window_bytes"] != min(_SYN_WINDOW, flow["receive_window_bytes"]):
        text = f"a receiver here answers with a SYN-ACK of {_SYN_WINDOW} bytes; {_SIMULATOR}"
        yield Problem(flow_key(flow, "initial_receive_window"), text)
    yield from _path_problems(flow)


def _timer_problems(flow: FlowSpec, kind: Kind) -> Iterator[Problem]:
    timers = flow.get("timers")
    if timers is None:
        return
    for key, delay_ns in (("slack", timers["slack_ns"]), ("resolution", timers["resolution_ns"])):
        if delay_ns:
            text = f"the timers of pacing and QUIC are exact here; {_SIMULATOR}"
            yield Problem(flow_key(flow, f"timers.{key}"), text)
    hz = timers.get("hz")
    if hz is not None and (kind != "virtual" or hz != VIRTUAL_HZ):
        ticks = f"{VIRTUAL_HZ} ticks per second" if kind == "virtual" else "the ticks of its build"
        text = f"{hz}: this kernel has {ticks}; {_SIMULATOR}"
        yield Problem(flow_key(flow, "timers.hz"), text)


def _datagram_problems(flow: FlowSpec) -> Iterator[Problem]:
    source = flow["source"]
    assert source["kind"] in ("cbr", "ping")
    if source["bytes"] < _LEAST_DATAGRAM_BYTES:
        text = f"{source['bytes']} B: a virtual device pads no frame, so that a datagram has "
        text += f"{_LEAST_DATAGRAM_BYTES} B at least; {_SIMULATOR}"
        yield Problem(flow_key(flow, "source.size"), text)
    yield from _path_problems(flow)


def _path_problems(flow: FlowSpec) -> Iterator[Problem]:
    for key, given in (("path", paths(flow)), ("reverse_path", reverse_paths(flow))):
        for path in given:
            if len(set(path)) < len(path):
                text = f"it crosses a link twice, which routes by address cannot say; {_SIMULATOR}"
                yield Problem(flow_key(flow, key), text)
            if len(path) > _MAX_LINKS:
                yield Problem(flow_key(flow, key), f"{len(path)} links: at most {_MAX_LINKS}")


def _quic_problems(flow: FlowSpec) -> Iterator[Problem]:
    yield from _path_problems(flow)
    if flow.get("arrivals") is not None:
        text = "a flow of many connections: a process here has one over QUIC; TCP's come and go, "
        yield Problem(flow_key(flow, "arrivals"), f"{text}and {_SIMULATOR}")
    if quic_programs.is_program(flow):
        yield from quic_programs.problems(flow)
        return
    if flow["source"]["kind"] == "video":
        text = f"`video`: the ends here do not choose; TCP's do, and {_SIMULATOR}"
        yield Problem(flow_key(flow, "source"), text)
    controller = flow["controller"]["name"]
    if is_python_controller(controller):
        text = f"`{controller}` is Python code, which the ends here do not have; {_SIMULATOR}"
        yield Problem(flow_key(flow, "controller"), text)
    if flow["memory"] is not None:
        text = f"`{flow['memory']['name']}`: each flow is a process here, which knows no others; "
        yield Problem(flow_key(flow, "peer_cache"), f"{text}{_SIMULATOR}")
