"""`tc` commands for the queue disciplines of a RunSpec, one entry per kind.

`impairment_playback` handles the kinds that Linux does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from jostle.backends.kernel.packet_sizes import PACKET_BYTES
from jostle.backends.kernel.unsupported import Problem
from jostle.run_spec import LinkPart

Parameters = Mapping[str, Any]
"""Parameters of a queue in a RunSpec."""

# CoDel's clock wraps after 73 minutes; times can be compared if they differ by less than half of
# that.
_NEVER = "2000s"

# An average packet for RED's scale, and the range that `tc` searches for its weight.
_UNBOUNDED_BYTES = 1_000_000_000
_POLICED_MTU = 65_550
INNER_HANDLE = 0x101 << 16
"""Handle `101:`."""

_ACK_FILTERS = {
    "none": "",
    "filter": " ack-filter",
    "aggressive": " ack-filter-aggressive",
}

_RED_MAX_WLOG = 31
_RED_MAX_BURST = 1 << 20


@dataclass(frozen=True)
class QueueContext:
    """Link on which a queue is installed.

    Attributes
    ----------
    rate_bps
        Rate of the link.
    tick_ns
        Length of a jiffy, if known.
    packet_bytes
        Size of the largest packets on the link.
    bands
        Number of classes of the queue, if the RunSpec has any.
    """

    rate_bps: int
    tick_ns: int | None = None
    packet_bytes: int = PACKET_BYTES
    bands: int | None = None


@dataclass(frozen=True)
class Discipline:
    """`tc` commands and restrictions of a kind of queue.

    Attributes
    ----------
    command
        Returns the words after `tc qdisc add … handle …:`.
    inside
        Returns further commands. The handle of the discipline is `10:`, and `DEVICE` is replaced by
        the device. An inner queue of another kind than the default has the handle `101:`.
    problems
        Returns the unsupported subkeys with the reason; receives the packet sizes on the link.
    """

    command: Callable[[Parameters, QueueContext], str]
    inside: Callable[[Parameters, QueueContext], list[str]] = lambda _queue, _place: []
    problems: Callable[[Parameters, Set[int]], list[Problem]] = lambda _queue, _sizes: []


def command(queue: LinkPart, place: QueueContext) -> str:
    """Return the words that create `queue`, which must have no problems."""
    return DISCIPLINES[queue["kind"]].command(queue["parameters"], place)


def inside(queue: LinkPart, device: str, place: QueueContext) -> list[str]:
    """Return the commands to run after creating `queue` as the discipline `10:` of a device."""
    lines = DISCIPLINES[queue["kind"]].inside(queue["parameters"], place)
    return [line.replace("DEVICE", device) for line in lines]


def inner_handle(queue: LinkPart) -> int | None:
    """Return the handle of a policer's inner queue, to distinguish its drops from the policer's."""
    return INNER_HANDLE if queue["kind"] == "policer" else None


def is_rate_limiting(queue: LinkPart) -> bool:
    """Return whether a queue shapes or polices traffic."""
    return queue["kind"] in {"tbf", "policer"} or bool(queue["parameters"].get("rate"))


def problems(queue: LinkPart, sizes_bytes: Set[int]) -> list[Problem]:
    """Return the parts of `queue` that Linux does not support, with keys relative to the queue.

    Parameters
    ----------
    sizes_bytes
        Sizes of full packets on its link.
    """
    discipline = DISCIPLINES.get(queue["kind"])
    if discipline is None:
        known = ", ".join(DISCIPLINES)
        text = f"Linux has no queueing discipline `{queue['kind']}`: {known}; the simulator has it"
        return [Problem("kind", text)]
    return discipline.problems(queue["parameters"], sizes_bytes)


def _drop_tail(queue: Parameters, _place: QueueContext) -> str:
    limit = queue["limit"]
    return (
        f"bfifo limit {limit['bytes']}" if "bytes" in limit else f"pfifo limit {limit['packets']}"
    )


def _red(queue: Parameters, place: QueueContext) -> str:
    burst = _red_burst(queue["min"], _red_wlog(queue["weight"]))
    return (
        f"red limit {queue['limit']['bytes']} min {queue['min']} max {queue['max']} "
        f"avpkt {PACKET_BYTES} burst {burst} probability {queue['probability']:.9f} "
        f"bandwidth {place.rate_bps}bit{' ecn' if queue['ecn'] else ''}"
    )


def _red_problems(queue: Parameters, _sizes_bytes: Set[int]) -> list[Problem]:
    found = []
    if "bytes" not in queue["limit"]:
        found.append(Problem("limit", "RED of Linux counts bytes: give the limit in bytes"))
    if _red_burst(queue["min"], _red_wlog(queue["weight"])) is None:
        text = f"`tc` cannot express the weight {queue['weight']:g} with this `min`"
        found.append(Problem("weight", text))
    return found


def _red_wlog(weight: float) -> int:
    """Return the nearest power of two of the weight, as Linux stores it."""
    return max(1, min(_RED_MAX_WLOG, _rounded_log2(weight)))


def _rounded_log2(weight: float) -> int:
    exponent = 0
    while 2.0 ** -(exponent + 0.5) > weight and exponent < _RED_MAX_WLOG:
        exponent += 1
    return exponent


def _red_burst(min_bytes: int, wlog: int) -> int | None:
    """Return the burst from which `tc` derives a weight; it does not accept the weight itself.

    `tc` chooses the largest weight W = 2⁻ʷ for which a burst into an empty queue stays below the
    lower threshold: burst + 1 − min ⁄ avpkt ≤ (1 − (1 − W)^burst) ⁄ W (iproute2,
    `tc_red_eval_ewma`).
    """
    low, high = 1, _RED_MAX_BURST
    # The derived weight decreases with the burst: find the smallest burst that yields `wlog`.
    while low < high:
        middle = (low + high) // 2
        if (_wlog_of_burst(min_bytes, middle) or 0) < wlog:
            low = middle + 1
        else:
            high = middle
    return low if _wlog_of_burst(min_bytes, low) == wlog else None


def _wlog_of_burst(min_bytes: int, burst: int) -> int | None:
    excess = burst + 1 - min_bytes / PACKET_BYTES
    if excess < 1.0:
        return None
    for wlog in range(1, _RED_MAX_WLOG + 1):
        weight = 2.0**-wlog
        if excess <= (1 - (1 - weight) ** burst) / weight:
            return wlog
    return _RED_MAX_WLOG + 1


def _codel(queue: Parameters, place: QueueContext) -> str:
    return (
        f"codel limit {_packets(queue['limit'], place)} target {_time(queue['target'])} "
        f"interval {_time(queue['interval'])} {_ecn(queue)}"
    )


def _fq_codel(queue: Parameters, place: QueueContext) -> str:
    # fq_codel also has a memory limit of 32 MB, which a RunSpec does not express.
    memory_bytes = _memory_bytes(queue["limit"], place)
    return (
        f"fq_codel limit {queue['limit']} flows {queue['queues']} "
        f"quantum {queue['quantum']} target {_time(queue['target'])} "
        f"interval {_time(queue['interval'])} memory_limit {memory_bytes} {_ecn(queue)}"
    )


def _pie(queue: Parameters, place: QueueContext) -> str:
    # A timer of n jiffies fires one jiffy later, to avoid firing early (kernel/time/timer.c,
    # `calc_index`). With one jiffy less, PIE has the period of the scenario.
    tick_ns = place.tick_ns
    update_ns = max(queue["update"] - tick_ns, tick_ns) if tick_ns else queue["update"]
    return (
        f"pie limit {_packets(queue['limit'], place)} target {_time(queue['target'])} "
        f"tupdate {_time(update_ns)} alpha {round(queue['alpha'] * 16)} "
        f"beta {round(queue['beta'] * 16)} {_ecn(queue)} nobytemode"
    )


def _pie_problems(queue: Parameters, sizes_bytes: Set[int]) -> list[Problem]:
    return [*_packet_limit_problems(queue, sizes_bytes), *_fq_pie_problems(queue, sizes_bytes)]


def _fq_pie_problems(queue: Parameters, _sizes_bytes: Set[int]) -> list[Problem]:
    found = []
    for name in ("alpha", "beta"):
        sixteenths = queue[name] * 16
        if sixteenths != round(sixteenths) or not 0 <= sixteenths <= 32:
            text = f"{queue[name]:g}: Linux takes sixteenths up to 2, such as 0.125 or 1.25"
            found.append(Problem(name, text))
    return found


def _fq_pie(queue: Parameters, place: QueueContext) -> str:
    # See `_pie` and `_fq_codel`.
    tick_ns = place.tick_ns
    update_ns = max(queue["update"] - tick_ns, tick_ns) if tick_ns else queue["update"]
    memory_bytes = _memory_bytes(queue["limit"], place)
    return (
        f"fq_pie limit {queue['limit']} flows {queue['queues']} quantum {queue['quantum']} "
        f"target {_time(queue['target'])} tupdate {_time(update_ns)} "
        f"alpha {round(queue['alpha'] * 16)} beta {round(queue['beta'] * 16)} "
        f"memory_limit {memory_bytes} {_ecn(queue)}"
    )


def _sfq(queue: Parameters, _place: QueueContext) -> str:
    return (
        f"sfq limit {queue['limit']} depth {queue['depth']} flows {queue['flows']} "
        f"divisor {queue['divisor']} quantum {queue['quantum']}"
        f"{' headdrop' if queue['headdrop'] else ''}"
    )


def _sfq_problems(queue: Parameters, _sizes_bytes: Set[int]) -> list[Problem]:
    divisor = queue["divisor"]
    if divisor & (divisor - 1):
        return [Problem("divisor", f"{divisor}: Linux takes a power of two, such as 1024")]
    return []


def _cake(queue: Parameters, _place: QueueContext) -> str:
    rate = f"bandwidth {queue['rate']}bit" if queue["rate"] else "unlimited"
    isolation = "flowblind" if queue["isolation"] == "none" else queue["isolation"]
    mpu = f" mpu {queue['mpu']}" if queue["mpu"] else ""
    cells = "" if queue["atm"] == "noatm" else f" {queue['atm']}"
    memory = f" memlimit {queue['memory_limit']}" if queue["memory_limit"] else ""
    return (
        f"cake {rate} {queue['diffserv']} {isolation} rtt {_time(queue['rtt'])} "
        f"overhead {queue['overhead']}{mpu}{cells}{memory}"
        f"{_ACK_FILTERS[queue['ack_filter']]}"
    )


def _prio(_queue: Parameters, place: QueueContext) -> str:
    # Without filters, the map of `tc` applies.
    return "prio" if place.bands is None else f"prio bands {place.bands} priomap{' 0' * 16}"


def _tbf(queue: Parameters, _place: QueueContext) -> str:
    # With a limit in packets, the inner queue enforces it, and this limit is never reached.
    limit_bytes = queue["limit"].get("bytes", _UNBOUNDED_BYTES)
    return f"tbf rate {queue['rate']}bit burst {queue['burst']} limit {limit_bytes}"


def _inside_tbf(queue: Parameters, place: QueueContext) -> list[str]:
    if "bytes" in queue["limit"]:
        return []
    return [f"qdisc add dev DEVICE parent 10:1 handle 101: {_drop_tail(queue, place)}"]


def _inside_policer(queue: Parameters, place: QueueContext) -> list[str]:
    """Return one class whose filter polices, so that packets are dropped before the queue."""
    # Packets above `mtu` always exceed the rate; the default of `tc` is 2 kB.
    police = f"police rate {queue['rate']}bit burst {queue['burst']} mtu {_POLICED_MTU}"
    return [
        f"class add dev DEVICE parent 10: classid 10:1 drr quantum {place.packet_bytes}",
        f"qdisc add dev DEVICE parent 10:1 handle 101: {_drop_tail(queue, place)}",
        "filter add dev DEVICE parent 10: protocol all prio 1 matchall flowid 10:1 "
        f"action {police} conform-exceed drop/ok",
    ]


def _step_mark(queue: Parameters, place: QueueContext) -> str:
    # CoDel whose control law never acts; only `ce_threshold` is used.
    return (
        f"codel limit {_packets(queue['limit'], place)} target {_NEVER} interval {_NEVER} "
        f"ce_threshold {_time(queue['threshold'])} noecn"
    )


def _step_mark_problems(queue: Parameters, sizes_bytes: Set[int]) -> list[Problem]:
    found = _packet_limit_problems(queue, sizes_bytes)
    if queue["l4s_only"]:
        text = "no controller of this kernel sends ECT(1), so that nothing would be marked"
        found.append(Problem("l4s_only", text))
    return found


def _packet_limit_problems(queue: Parameters, sizes_bytes: Set[int]) -> list[Problem]:
    """Return a problem unless a limit in bytes equals one in packets, which Linux counts."""
    limit, largest_bytes = queue["limit"], max(sizes_bytes)
    if "packets" in limit or (limit["bytes"] % largest_bytes == 0 and len(sizes_bytes) == 1):
        return []
    packets = max(1, limit["bytes"] // largest_bytes)
    text = f'Linux counts packets here: write for example limit = "{packets} packets"'
    return [Problem("limit", text)]


def _packets(limit: Mapping[str, int], place: QueueContext) -> int:
    return limit["packets"] if "packets" in limit else limit["bytes"] // place.packet_bytes


def _memory_bytes(packets: int, place: QueueContext) -> int:
    """Return the maximum memory of a number of packets, as the kernel counts it."""
    return min(packets * (2 * place.packet_bytes + 1068), 2**32 - 1)


def _time(span_ns: int) -> str:
    return f"{round(span_ns / 1000)}us"


def _ecn(queue: Parameters) -> str:
    return "ecn" if queue["ecn"] else "noecn"


DISCIPLINES: Mapping[str, Discipline] = {
    "drop_tail": Discipline(_drop_tail),
    "red": Discipline(_red, problems=_red_problems),
    "codel": Discipline(_codel, problems=_packet_limit_problems),
    "fq_codel": Discipline(_fq_codel),
    "fq_pie": Discipline(_fq_pie, problems=_fq_pie_problems),
    "cake": Discipline(_cake),
    "sfq": Discipline(_sfq, problems=_sfq_problems),
    "tbf": Discipline(_tbf, _inside_tbf),
    "policer": Discipline(lambda _queue, _place: "drr", _inside_policer),
    "drr": Discipline(lambda _queue, _place: "drr"),
    "prio": Discipline(_prio),
    "pie": Discipline(_pie, problems=_pie_problems),
    "step_mark": Discipline(_step_mark, problems=_step_mark_problems),
}
"""Kinds of queues that Linux supports."""
