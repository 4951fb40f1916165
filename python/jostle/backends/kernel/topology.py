"""Converts the network of a RunSpec to hosts (network namespaces), veth pairs and qdiscs.

Flow i has a sender `s<i>` and a receiver `r<i>`. A link l is a chain of routers: `a<l>`, at which
its traffic arrives and whose device `q` has its rate and queue; `m<l>`, whose device `d` adds delay
and loss, if there are any; and `z<l>`, from which the routes of the flows diverge::

    s0 ─out──in.s0─ a0 ─q──in─ m0 ─d──in─ z0 ─to.r0──in─ r0
    └─back──────────────────────────────────────────back─┘

ACKs cross the links of `reverse_path`, or go directly to the sender. The access delay of a flow is
applied on the receiver's device `back`. On the sender it would affect TCP small queues, which count
packets in the sender's qdiscs. A capture sees packets after the qdiscs of its host. With captures,
a router `h<i>` next to the receiver therefore applies the delay, so that ACKs are captured when
they leave.

If the route of a flow changes, a router of the flow is at both ends of all its paths, so that its
hosts keep one device::

    s0 ─out──in─ x0 ─to.0─ a0 … z0 ─to.v0──in.z0─ v0 ─out──in─ r0
                  └──to.1─ a1 … z1 ─to.v0──in.z1──┘

The timetable changes routes in `x0` and in the routers of the links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from jostle.backends.base import Spec
from jostle.backends.kernel import (
    cake_hosts,
    impairment_playback,
    packet_sizes,
    tc_classes,
    tc_queues,
)
from jostle.backends.kernel.addresses import receiver_address, sender_address
from jostle.backends.kernel.guest.netlink import NETEM_PACKETS, ROOT
from jostle.backends.kernel.host_sysctls import ROUTER, end_sysctls
from jostle.backends.kernel.network_hosts import Host, Route
from jostle.run_spec import FlowSpec, LinkSpec
from jostle.scenario.flow_links import (
    crossed_links,
    forward_links,
    opposites,
    paths,
    reverse_links,
    reverse_paths,
)

_QUEUE, _FAR = "queue", "far"
# Name prefixes of a link's routers.
_ROUTERS = ("a", "m", "z")

ROOT_HANDLE, LEAF_HANDLE = 0x10000, 0x100000
"""Handles `1:` and `10:`."""

# The NIC's queue is limited by TCP small queues, far below this limit.
_NIC_LIMIT_BYTES = 1_000_000_000
_PACED = "fq"


@dataclass(frozen=True)
class Burst:
    """Burst that a link may send to compensate a late timer.

    Attributes
    ----------
    least_bytes
        Minimum at any rate.
    lateness_us
        Lateness to compensate: the burst is what the link sends in this time, if that is more.
    """

    least_bytes: int
    lateness_us: int

    def size_bytes(self, rate_bps: int) -> int:
        """Return the burst size at a rate."""
        return max(self.least_bytes, rate_bps * self.lateness_us // 8_000_000)


@dataclass(frozen=True)
class Machine:
    """Properties of the kernel on which the network depends.

    Attributes
    ----------
    burst
        Burst that a link may send after a late timer.
    own
        Whether the kernel contains jostle's qdiscs, which all links then use. `htb` releases a
        packet when its transmission begins, and sends a burst after a pause, so a full queue loses
        other packets. It asks no empty queue for packets, so RED would never become idle.
    tick_ns
        Length of its jiffies, if known.
    """

    burst: Burst
    own: bool = False
    tick_ns: int | None = None


@dataclass
class Topology:
    """A network as the guest program builds it.

    Attributes
    ----------
    wires
        Host, device, host, device.
    queues
        Location of each link's queue, and of its random losses.
    timetable
        Commands of `tc`, delays, and routes through devices, that are due during the run.
    """

    hosts: dict[str, Host] = field(default_factory=dict)
    wires: list[tuple[str, str, str, str]] = field(default_factory=list)
    queues: list[dict[str, Any]] = field(default_factory=list)
    timetable: list[dict[str, Any]] = field(default_factory=list)

    def host(self, name: str) -> Host:
        """Return the host called `name`, created if it does not exist."""
        return self.hosts.setdefault(name, Host(name))

    def wire(self, a: str, a_device: str, b: str, b_device: str) -> None:
        """Connect two hosts, unless these devices are connected already."""
        wire = (a, a_device, b, b_device)
        if wire not in self.wires:
            self.wires.append(wire)


def ends(spec: Spec, flow: int) -> tuple[str, str]:
    """Return the hosts of a flow's sender and receiver."""
    of = spec["flows"][flow].get("connection_of")
    return (f"s{flow}", f"r{flow}") if of is None else (f"r{of}", f"s{of}")


def _destination_address(spec: Spec, flow: int, backward: bool) -> str:
    """Return the destination of a flow's data, or of its ACKs if `backward`."""
    of: int | None = spec["flows"][flow].get("connection_of")
    if of is not None:
        flow, backward = of, not backward
    return sender_address(flow) if backward else receiver_address(flow)


def topology(spec: Spec, machine: Machine) -> Topology:
    """Return the network of a run."""
    made = Topology()
    for number, link in enumerate(spec["links"]):
        largest_bytes = max(packet_sizes.sizes_on(number, spec["flows"]))
        if machine.own:
            lay_own_link(made, number, link, machine, largest_bytes)
        else:
            _lay_link(made, number, link, machine, largest_bytes)
        if tc_classes.is_classful(link["queue"]):
            _lay_classes(made.host(f"a{number}"), number, spec, machine, largest_bytes)
        for handle, queue in tc_classes.queues_of(number, spec).items():
            device = f"dev {_QUEUE} parent {handle}"
            made.host(f"a{number}").tc += cake_hosts.filters(
                number, spec, queue, device, partial(_destination_address, spec)
            )
    for number, handle, queue in tc_classes.class_queues(spec):
        place = {"host": f"a{number}", "device": _QUEUE, "handle": int(handle[:-1], 16) << 16}
        made.queues.append({"queue": {**place, "kind": queue["kind"]}, "losses": None})
    for number, flow in enumerate(spec["flows"]):
        _lay_flow(made, number, flow, spec, machine)
    made.timetable += [] if machine.own else _timetable(spec, machine)
    made.timetable.sort(key=lambda entry: int(entry["at_ns"]))
    return made


def _lay_routers(made: Topology, number: int) -> tuple[Host, Host]:
    """Add the routers at both ends of a link."""
    enters, leaves = made.host(f"a{number}"), made.host(f"z{number}")
    for router in (enters, leaves):
        router.sysctls |= ROUTER
    enters.route(None, _QUEUE)
    return enters, leaves


def lay_own_link(
    made: Topology, number: int, link: LinkSpec, machine: Machine, largest_bytes: int
) -> None:
    """Add a link that uses jostle's qdisc, with the queue inside."""
    enters, leaves = _lay_routers(made, number)
    made.wire(enters.name, _QUEUE, leaves.name, "in")
    enters.disciplines.append(_discipline(impairment_playback.LINK, number, ROOT_HANDLE, ROOT))
    if impairment_playback.own_queue(link):
        enters.disciplines.append(
            _discipline(impairment_playback.QUEUE, number, LEAF_HANDLE, ROOT_HANDLE + 1)
        )
    else:
        place = _context(link, impairment_playback.first_rate_bps(link), machine, largest_bytes)
        words = tc_queues.command(link["queue"], place)
        enters.tc.append(f"qdisc add dev {_QUEUE} parent 1:1 handle 10: {words}")
        enters.tc += tc_queues.inside(link["queue"], _QUEUE, place)
    device = {"host": enters.name, "device": _QUEUE}
    queue = _queue_location(device, link)
    losses = {**device, "handle": ROOT_HANDLE, "kind": impairment_playback.LINK}
    made.queues.append({"queue": queue, "losses": losses})


def _context(
    link: LinkSpec, rate_bps: int, machine: Machine, largest_bytes: int
) -> tc_queues.QueueContext:
    classes = link.get("classes")
    bands = None if classes is None else len(classes)
    return tc_queues.QueueContext(rate_bps, machine.tick_ns, largest_bytes, bands)


def _queue_location(device: Mapping[str, str], link: LinkSpec) -> dict[str, Any]:
    """Return where the guest reads the statistics of a link's queue."""
    inner = tc_queues.inner_handle(link["queue"])
    return {**device, "handle": LEAF_HANDLE, "kind": link["queue"]["kind"], "inner": inner}


def _lay_classes(
    enters: Host, number: int, spec: Spec, machine: Machine, largest_bytes: int
) -> None:
    """Add the classes of a link's queue, and filters that assign flows to them."""
    place = tc_queues.QueueContext(
        impairment_playback.first_rate_bps(spec["links"][number]), machine.tick_ns, largest_bytes
    )
    found = tc_classes.classes_of(number, spec)
    words = [tc_queues.command(entry["queue"], place) for entry in found]
    # All packets of an end of a shared connection belong to the flow whose data it sends.
    shared = opposites(spec["flows"])
    addresses = [
        [
            _destination_address(spec, flow, backward)
            for flow in entry["flows"]
            for backward, direction in ((False, forward_links), (True, reverse_links))
            if number in direction(spec["flows"][flow])
            and not (backward and flow in shared)
            and not tc_classes.is_by_dscp(spec["flows"][flow], entry)
        ]
        for entry in found
    ]
    enters.tc += tc_classes.commands(
        _QUEUE, spec["links"][number]["queue"]["kind"], found, words, addresses
    )


def _discipline(kind: str, link: int, handle: int, parent: int) -> dict[str, Any]:
    options = impairment_playback.file_name(kind, link)
    made = {"device": _QUEUE, "kind": kind, "handle": handle, "parent": parent}
    return {**made, "options": options}


def _lay_link(
    made: Topology, number: int, link: LinkSpec, machine: Machine, largest_bytes: int
) -> None:
    enters, leaves = _lay_routers(made, number)
    rate_bps = _rates(link)[0][1]
    where = _context(link, rate_bps, machine, largest_bytes)
    words = tc_queues.command(link["queue"], where)
    enters.tc += [
        f"qdisc add dev {_QUEUE} root handle 1: htb default 10",
        f"class add dev {_QUEUE} parent 1: classid 1:10 {_htb(rate_bps, machine.burst)}",
        f"qdisc add dev {_QUEUE} parent 1:10 handle 10: {words}",
        *tc_queues.inside(link["queue"], _QUEUE, where),
    ]
    device = {"host": enters.name, "device": _QUEUE}
    place = _queue_location(device, link)
    losses = None
    far = _far_side(link)
    if far is None:
        made.wire(enters.name, _QUEUE, leaves.name, "in")
    else:
        middle = made.host(f"m{number}")
        middle.sysctls |= ROUTER
        middle.route(None, _FAR)
        middle.tc.append(f"qdisc add dev {_FAR} root handle 1: {far}")
        made.wire(enters.name, _QUEUE, middle.name, "in")
        made.wire(middle.name, _FAR, leaves.name, "in")
        losses = {"host": middle.name, "device": _FAR, "handle": ROOT_HANDLE, "kind": "netem"}
    made.queues.append({"queue": place, "losses": losses})


def _htb(rate_bps: int, burst: Burst) -> str:
    rate = f"rate {rate_bps}bit ceil {rate_bps}bit"
    size_bytes = burst.size_bytes(rate_bps)
    return f"htb {rate} burst {size_bytes} cburst {size_bytes} quantum {packet_sizes.PACKET_BYTES}"


def _far_side(link: LinkSpec) -> str | None:
    """Return the netem qdisc for delay and loss behind the queue; None if there is neither."""
    words = []
    delay_ns = link["delay"]["steps"][0]["delay_ns"]
    if delay_ns:
        words.append(f"delay {_microseconds(delay_ns)}us")
    loss = link["loss"]
    chances: Mapping[str, Any] = loss["parameters"] if loss else {}
    match loss["kind"] if loss else None:
        case "independent" if chances["probability"] > 0:
            words.append(f"loss random {_percent(chances['probability'])}")
        case "gilbert_elliott":
            # p, r, 1-h, 1-k: leave good, leave bad, loss in bad, loss in good.
            order = ("good_to_bad", "bad_to_good", "loss_bad", "loss_good")
            words.append("loss gemodel " + " ".join(_percent(chances[name]) for name in order))
    return f"netem limit {NETEM_PACKETS} {' '.join(words)}" if words else None


def _percent(probability: float) -> str:
    return f"{probability * 100:.7f}%"


def _lay_flow(
    made: Topology,
    number: int,
    flow: FlowSpec,
    spec: Spec,
    machine: Machine,
) -> None:
    for router in (f"{kind}{link}" for link in forward_links(flow) for kind in _ROUTERS):
        if router in made.hosts:
            made.hosts[router].mtu_bytes = max(made.hosts[router].mtu_bytes, flow["mtu_bytes"])
    if flow.get("connection_of") is not None:
        # It has the hosts and routes of the flow that opens the connection.
        return
    opposite = opposites(spec["flows"]).get(number)
    back = flow if opposite is None else spec["flows"][opposite]
    sender, receiver = made.host(f"s{number}"), made.host(f"r{number}")
    for end, sends, receives in ((sender, flow, back), (receiver, back, flow)):
        end.mtu_bytes = flow["mtu_bytes"]
        end.sysctls |= end_sysctls(sends, receives)
    here, there = sender_address(number), receiver_address(number)
    sender.addresses.append(here)
    sender.routes.append(Route(None, "out", here, flow["initial_window_packets"]))
    receiver.addresses.append(there)
    back_window = None if opposite is None else back["initial_window_packets"]
    receiver.routes.append(Route(None, "back", there, back_window))
    if flow["transport"] == "quic":
        # UDP_SEGMENT bursts of a program leave the host as packets. The older ioctls cannot disable
        # segmentation offload of datagrams.
        sender.single_segment.append("out")
        receiver.single_segment.append("back")
    receiver.merging += ["in"] if flow["gro"] else []
    sender.tc += list(_nic_qdiscs(flow, machine.burst))
    if opposite is not None and back["pacing"]:
        receiver.tc.append(f"qdisc add dev back root handle 1: {_PACED}")
    delaying, delayed = _delaying_device(spec, number)
    delayer = made.host(delaying)
    if delaying == f"h{number}":
        delayer.sysctls |= ROUTER
        if opposite is not None:
            # Data cross it, too.
            delayer.mtu_bytes = flow["mtu_bytes"]
        delayer.route(None, delayed)
        made.wire(receiver.name, "back", delaying, "in")
    delayer.delays_us[delayed] = _microseconds(_return_delay_ns(flow, spec, machine, 0))
    if flow.get("dscp"):
        sender.tc += _dscp("out", flow["dscp"] or 0)
        receiver.tc += _dscp("back", flow["dscp"] or 0)
    ends = ((sender.name, "out"), (receiver.name, "in"))
    leaves = delaying if delaying == f"h{number}" else receiver.name
    back_ends = ((leaves, "back"), (sender.name, "back"))
    if not flow.get("routes"):
        lay_route(made, ends[0], flow["path"], ends[1], there)
        lay_route(made, back_ends[0], flow["reverse_path"], back_ends[1], here)
        return
    times_ns = [route["at_ns"] for route in flow["routes"]]
    for routers, points, ways, address in (
        ((f"x{number}", f"v{number}"), ends, paths(flow), there),
        ((f"y{number}", f"w{number}"), back_ends, reverse_paths(flow), here),
    ):
        _lay_routers_of_flow(made, routers, points, flow["mtu_bytes"])
        _lay_changing_route(made, routers, ways, times_ns, address)


def _lay_routers_of_flow(
    made: Topology,
    routers: tuple[str, str],
    points: tuple[tuple[str, str], tuple[str, str]],
    mtu_bytes: int,
) -> None:
    """Add the routers at both ends of a flow's paths in one direction."""
    for name in routers:
        router = made.host(name)
        router.sysctls |= ROUTER
        router.mtu_bytes = mtu_bytes
    entry, exits = routers
    made.wire(*points[0], entry, "in")
    made.wire(exits, "out", *points[1])
    made.host(exits).route(None, "out")


def _lay_changing_route(
    made: Topology,
    routers: tuple[str, str],
    ways: Sequence[Sequence[int]],
    times_ns: Sequence[int],
    address: str,
) -> None:
    """Add all paths between two routers of a flow, and the changes to each path but the first."""
    entry, exits = routers
    for path in ways:
        _lay_path(made, entry, path, exits)
    for host, device in _devices(entry, ways[0], exits):
        made.host(host).route(address, device)
    made.timetable += [
        {"at_ns": at_ns, "host": host, "device": device, "route": address}
        for at_ns, path in zip(times_ns, ways[1:], strict=True)
        for host, device in _devices(entry, path, exits)
    ]


def _dscp(device: str, dscp: int) -> list[str]:
    """Return the commands that mark the packets of a host, independent of its sockets.

    QUIC's sockets set the complete field with each datagram, because of ECN.
    """
    munge = f"action pedit ex munge ip tos set {dscp << 2:#x} retain 0xfc"
    return [
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} egress protocol ip matchall {munge} pipe action csum ip4h",
    ]


def _delaying_device(spec: Spec, number: int) -> tuple[str, str]:
    """Return the host and its device that apply a flow's delay outside of links.

    Links of the reverse path come before the delay, as in the simulator.
    """
    flow = spec["flows"][number]
    if flow.get("routes"):
        return f"w{number}", "out"
    if flow["reverse_path"]:
        return f"z{flow['reverse_path'][-1]}", f"to.s{number}"
    # A receiver that also sends has its own qdisc, and TCP small queues. A capture is before the
    # delay.
    needs_host = number in opposites(spec["flows"]) or spec.get("capture") is not None
    return f"{'h' if needs_host else 'r'}{number}", "back"


def _nic_qdiscs(flow: FlowSpec, burst: Burst) -> Iterator[str]:
    """Yield the qdiscs of the sender's device: its NIC rate, and pacing with `fq`."""
    rate_bps = flow["nic_rate_bps"]
    parent = "root"
    if rate_bps is not None:
        # Unlike htb, tbf splits large socket buffers into packets before it sends. It drops packets
        # above its burst.
        size_bytes = max(burst.size_bytes(rate_bps), packet_sizes.packet_bytes(flow))
        limits = f"burst {size_bytes} limit {_NIC_LIMIT_BYTES}"
        yield f"qdisc add dev out root handle 1: tbf rate {rate_bps}bit {limits}"
        parent = "parent 1:"
    if flow["pacing"]:
        yield f"qdisc add dev out {parent} handle 10: {_PACED}"


def lay_route(
    made: Topology,
    start: tuple[str, str],
    path: Sequence[int],
    end: tuple[str, str],
    address: str | None,
) -> None:
    """Add the wires and routes of one direction of a flow to `address`, or to any other."""
    end_host, end_device = end
    if not path:
        made.wire(*start, *end)
        return
    made.wire(*start, f"a{path[0]}", f"in.{start[0]}")
    for link, following in pairwise(path):
        made.wire(f"z{link}", f"to.{following}", f"a{following}", f"in.z{link}")
        made.host(f"z{link}").route(address, f"to.{following}")
    last = f"z{path[-1]}"
    made.wire(last, f"to.{end_host}", end_host, end_device)
    made.host(last).route(address, f"to.{end_host}")


def _devices(entry: str, path: Sequence[int], exits: str) -> Iterator[tuple[str, str]]:
    """Yield the routers at which a path between two routers is decided, with the next device."""
    following = [*map(str, path), exits]
    for host, target in zip([entry, *(f"z{link}" for link in path)], following, strict=True):
        yield host, f"to.{target}"


def _lay_path(made: Topology, entry: str, path: Sequence[int], exits: str) -> None:
    """Add the wires of a path between two routers of a flow."""
    following = [*((f"a{link}", "in.") for link in path), (exits, "in.")]
    for (host, device), (target, end) in zip(_devices(entry, path, exits), following, strict=True):
        made.wire(host, device, target, f"{end}{host}")


def _return_delay_ns(flow: FlowSpec, spec: Spec, machine: Machine, at_ns: int) -> int:
    """Return the delay outside of links, plus the transmission times on the links crossed.

    htb and tbf release a packet when its transmission begins. Links of the simulator and jostle's
    qdisc release it when the transmission ends.
    """
    delay_ns: int = flow["base_delay_ns"]
    full_bytes = packet_sizes.packet_bytes(flow)
    sent = [(link, full_bytes) for link in flow["path"]]
    is_shared = any(other.get("connection_of") is not None for other in spec["flows"])
    back_bytes = full_bytes if is_shared else packet_sizes.HEADER_BYTES
    sent += [(link, back_bytes) for link in flow["reverse_path"]]
    for link, size_bytes in () if machine.own else sent:
        delay_ns += _sending_ns(size_bytes, _rate_at(spec["links"][link], at_ns))
    if flow["nic_rate_bps"] is not None:
        delay_ns += _sending_ns(full_bytes, flow["nic_rate_bps"])
    return delay_ns


def _sending_ns(size_bytes: int, rate_bps: int) -> int:
    return size_bytes * 8 * 10**9 // rate_bps


def _microseconds(span_ns: int) -> int:
    """Round a delay to the finest unit of `tc`."""
    return round(span_ns / 1000)


def _rates(link: LinkSpec) -> list[tuple[int, int]]:
    """Return the steps of a link's rate: time in ns and bit/s, the first at 0."""
    capacity = link["capacity"]
    if capacity["kind"] == "constant":
        return [(0, capacity["rate_bps"])]
    assert capacity["kind"] == "steps", "a trace is played back, and has no steps"
    return [(step["at_ns"], step["rate_bps"]) for step in capacity["steps"]]


def _rate_at(link: LinkSpec, at_ns: int) -> int:
    return [rate_bps for from_ns, rate_bps in _rates(link) if from_ns <= at_ns][-1]


def _timetable(spec: Spec, machine: Machine) -> list[dict[str, Any]]:
    """Return the changes of rates, and of the delays that compensate for transmission times."""
    entries: list[dict[str, Any]] = []
    for number, link in enumerate(spec["links"]):
        for at_ns, rate_bps in _rates(link)[1:]:
            if at_ns >= spec["duration_ns"]:
                continue
            change = (
                f"class change dev {_QUEUE} parent 1: classid 1:10 {_htb(rate_bps, machine.burst)}"
            )
            entries.append({"at_ns": at_ns, "host": f"a{number}", "tc": [change]})
            for position, flow in enumerate(spec["flows"]):
                if number in crossed_links(flow) and flow.get("connection_of") is None:
                    delay_us = _microseconds(_return_delay_ns(flow, spec, machine, at_ns))
                    host, device = _delaying_device(spec, position)
                    delays_us = {device: delay_us}
                    entries.append({"at_ns": at_ns, "host": host, "delays_us": delays_us})
    return entries
