"""Changes that a recommendation compares: queues of links, and settings of senders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jostle.backends.kernel.packet_sizes import packet_bytes
from jostle.inference.candidates import candidates
from jostle.scenario.flow_links import forward_links
from jostle.scenario.parsing.quantities import format_short
from jostle.scenario.resolve.key_paths import quoted_name
from jostle.scenario.service_rate import constant_service_bps

if TYPE_CHECKING:
    from jostle.run_spec import FlowSpec, LinkSpec, RunSpec

__all__ = [
    "NOW",
    "Change",
    "Senders",
    "combined",
    "flow_key",
    "has_shaper",
    "proxy_change",
    "queue_changes",
    "sender_changes",
    "variants",
    "with_ecn",
    "without_ecn",
]  # fmt: skip

_SHARES: Final = (0.95, 0.9)
"""Rates of a shaper as shares of the link's, so that packets queue in it and not in the modem."""
_DISCIPLINES: Final = {"FQ-CoDel": "fq_codel", "CoDel": "codel", "PIE": "pie"}
_BUFFERS: Final = (0.5, 1.0)
"""Lengths of drop-tail queues, as shares of the bandwidth-delay product of the longest RTT."""
_ECN_KEY: Final = ("fq_codel", "codel", "pie", "fq_pie", "red")
"""Disciplines that mark only with `ecn = true`."""
_WINDOWS: Final = ("20 packets", "50 packets")
_PROXY_BUFFER: Final = "4 MB"


def flow_key(name: str, key: str) -> str:
    """Return the key of a flow's setting, as for `--set`."""
    return f"flows.{quoted_name(name)}.{key}"


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a scenario.

    Attributes
    ----------
    label
        Description, which continues the word "Set".
    values
        Changed keys with their values, as for `--set`.
    family
        Name that similar changes share: the queue discipline or the controller.
    in_the_modem
        Whether a queue without a shaper is set. It must be where packets queue, in the modem.
    """

    label: str
    values: Mapping[str, Any]
    family: str
    in_the_modem: bool = False


NOW: Final = Change("now", {}, "now")
"""The baseline."""


@dataclass(frozen=True)
class Senders:
    """Flows whose senders are configured together.

    Attributes
    ----------
    names
        Names of entries in `flows`.
    controllers
        Names of their present controllers.
    transport
        `tcp` or `quic`.
    """

    names: tuple[str, ...]
    controllers: tuple[str, ...]
    transport: str

    @property
    def label(self) -> str:
        """The names as words."""
        return _listed(self.names)

    def change(self, label: str, family: str, values: Mapping[str, Any]) -> Change:
        """Return the change that sets keys of all of these flows."""
        keys = {flow_key(name, key): one for name in self.names for key, one in values.items()}
        return Change(f"{label} for {self.label}", keys, family)


def _line(link: LinkSpec) -> tuple[int | None, dict[str, Any]]:
    """Return the rate of a link for a shaper, and parameters with which CAKE counts the same bytes.

    If a link has framing and no shaper, its rate counts bytes on the wire.
    """
    framing, capacity = link.get("framing"), link["capacity"]
    if framing is None or capacity["kind"] != "constant" or has_shaper(link):
        return constant_service_bps(link), {}
    given = {"overhead": framing["overhead_bytes"], "mpu": framing["mpu_bytes"]}
    cells = {} if framing["cells"] == "none" else {"atm": framing["cells"]}
    return capacity["rate_bps"], {**given, **cells}


def _bdp_packets(spec: RunSpec, link: LinkSpec, share: float) -> int | None:
    """Return a share of the bandwidth-delay product of a link in full packets of its flows."""
    rate_bps = constant_service_bps(link)
    delays = [each["delay"]["steps"][0]["delay_ns"] for each in spec["links"]]
    flows = [
        flow for flow in spec["flows"] if link in [spec["links"][at] for at in forward_links(flow)]
    ]
    rtts_ns = [
        flow["base_delay_ns"] + sum(delays[at] for at in (*flow["path"], *flow["reverse_path"]))
        for flow in flows
    ]
    if rate_bps is None or not rtts_ns:
        return None
    size_bytes = max(map(packet_bytes, flows))
    return max(2, round(share * rate_bps * max(rtts_ns) / 8e9 / size_bytes))


def _shaper_bps(link: LinkSpec) -> int:
    rate = link["queue"]["parameters"].get("rate", 0)
    return rate if isinstance(rate, int) else 0


def has_shaper(link: LinkSpec) -> bool:
    """Return whether the queue of a link sets a rate below the link's: a shaper or a policer."""
    return _shaper_bps(link) > 0


def queue_changes(
    spec: RunSpec, links: Sequence[str], varied: Mapping[str, Mapping[str, Any]], ecn: bool
) -> Iterator[Change]:
    """Yield other queues of some links: of each link alone, and of all of them together.

    A link that has a shaper or a policer keeps its rate: only shapers below that rate are tried,
    because the rate may be what was paid for.

    Parameters
    ----------
    spec
        A run of the baseline.
    links
        Names of the links.
    varied
        Values that the scenario's grid has for queues: key, then label, then value.
    ecn
        Whether a sender uses ECN, so that queues that mark are compared with queues that drop.
    """
    by_name = {link["name"]: link for link in spec["links"]}
    together = [(name,) for name in links] + ([tuple(links)] if len(links) > 1 else [])
    for share in _SHARES:
        lines = {name: _line(by_name[name]) for name in links}
        rates = {name: rate_bps for name, (rate_bps, _) in lines.items()}
        for names in together:
            if all(rates[name] for name in names):
                texts = {n: format_short((rates[n] or 0) * share, "rate") for n in names}
                shapers = {n: {"kind": "cake", "rate": texts[n], **lines[n][1]} for n in names}
                where = _listed([f"{texts[n]} on {n}" for n in names])
                yield Change(f"CAKE with {where}", _queues(shapers), "cake")
    bare = [name for name in links if not has_shaper(by_name[name])]
    for title, kind in _DISCIPLINES.items():
        for names in together:
            if set(names) <= set(bare):
                queues = _queues({name: {"kind": kind} for name in names})
                change = Change(f"{title} on {_listed(names)}", queues, kind, in_the_modem=True)
                # Marks need a queue that marks, also if marking is off by default.
                yield _marking(change) if ecn else change
    for share in _BUFFERS:
        packets = {name: _bdp_packets(spec, by_name[name], share) for name in bare}
        for names in together:
            if all(packets.get(name) for name in names):
                limits = {name: f"{packets[name]} packets" for name in names}
                short = {n: {"kind": "drop_tail", "limit": limits[n]} for n in names}
                where = _listed([f"{limits[n]} on {n}" for n in names])
                label = f"drop-tail with {where}"
                yield Change(label, _queues(short), "drop_tail", in_the_modem=True)
    for key, values in varied.items():
        for label, value in values.items():
            table = {"kind": value} if isinstance(value, str) else value
            shaped = table.get("rate") not in (None, "0")
            yield Change(
                f"{key} = {label}", {key: value}, str(table["kind"]), in_the_modem=not shaped
            )


def _queues(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"links.{quoted_name(name)}.queue": value for name, value in values.items()}


def _marking(change: Change, *, marks: bool = True) -> Change:
    values = {
        key: {**one, "ecn": marks} if isinstance(one, Mapping) and one["kind"] in _ECN_KEY else one
        for key, one in change.values.items()
    }
    return Change(change.label, values, change.family, change.in_the_modem)


def with_ecn(change: Change, senders: Sequence[Senders]) -> Change:
    """Return a change of queues with ECN at both ends of some flows."""
    names = [name for each in senders for name in each.names]
    marking = _marking(change)
    values = {**marking.values, **{flow_key(name, "ecn"): True for name in names}}
    label = f"{change.label}, with ECN for {_listed(names)}"
    return Change(label, values, change.family, change.in_the_modem)


def without_ecn(change: Change) -> Change | None:
    """Return a change of queues that drop instead of marking; None if it has no such queue."""
    dropping = _marking(change, marks=False)
    if dropping.values == change.values:
        return None
    label = f"{change.label}, without marks"
    return Change(label, dropping.values, change.family, change.in_the_modem)


def combined(first: Change, second: Change) -> Change:
    """Return both changes as one."""
    return Change(
        f"{first.label}, and {second.label}",
        {**first.values, **second.values},
        first.family,
        first.in_the_modem or second.in_the_modem,
    )


def sender_changes(
    senders: Senders, flow: FlowSpec, names: Sequence[str]
) -> tuple[list[Change], list[str]]:
    """Return other controllers of some senders, and the names of those that need ECN."""
    usable = [one.controller for one in candidates(names, flow)]
    changes = [
        senders.change(name, name, {"controller": name})
        for name in usable
        if set(senders.controllers) != {name}
    ]
    return changes, [name for name in names if name not in usable]


def variants(senders: Senders, name: str | None) -> Iterator[Change]:
    """Yield larger initial windows, `fq` at the host, and both.

    Parameters
    ----------
    senders
        The flows.
    name
        Controller; None for the present one.
    """
    controller = {} if name is None else {"controller": name}
    shown = [name] if name else []
    # BBR and QUIC pace regardless of the host's queue.
    paces = senders.transport == "quic" or (name or senders.controllers[0]).startswith("bbr")
    for size in (None, *_WINDOWS):
        for fq in (False,) if paces else (False, True):
            if size is None and not fq:
                continue
            window = {} if size is None else {"initial_window": size}
            pacing = {"pacing": "fq"} if fq else {}
            label = ", ".join(
                [*shown, *([f"IW {size.split()[0]}"] if size else []), *(["paced"] if fq else [])]
            )
            family = name or senders.controllers[0]
            yield senders.change(label, family, {**controller, **window, **pacing})


def proxy_change(senders: Senders, name: str) -> Change:
    """Return a proxy before the slowest link, whose connection has a controller."""
    proxy = {"controller": name, "buffer": _PROXY_BUFFER}
    return senders.change(f"a proxy with {name}", f"proxy {name}", {"proxy": proxy})


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
