"""Network and traffic of a recommendation: from a profile, a scenario, a run, or a capture."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jostle.backends.kernel.packet_sizes import MTU_BYTES, packet_bytes
from jostle.errors import InputError, name_source
from jostle.inference.measurement_lookup import find_measured
from jostle.inference.observed_flow import observe
from jostle.inference.run_context import (
    SINGLE_FLOW_NAME,
    about_mss,
    mtu_bytes,
    spec_from_estimate,
    spec_from_run,
)
from jostle.scenario import Scenario, load
from jostle.scenario.models import LINK_TABLES
from jostle.scenario.parsing.problems import Report
from jostle.scenario.resolve.grid import GridKey, filled, read_grid
from jostle.scenario.resolve.key_paths import value_at
from jostle.scenario.resolve.profiles import profiles

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.run_spec import RunSpec

__all__ = ["KnownNetwork", "find_network"]

_LIMIT: Final = 0.02
_RTT: Final = (-0.013, 0.002)
"""Relative errors of queue limit and RTT that a capture gives; see docs/explanation/inference.md.

The shortest RTT of Linux includes some tenths of a millisecond of the hosts. A queue holds whole
packets, so its limit is known to one packet at best. The rate has the interval of
`ObservedFlow.link_rate`.
"""
_NETWORK: Final = (*LINK_TABLES, "links", "graph")
"""Tables of a scenario that describe its network."""
_DESIGN: Final = (
    "grid", "sample", "repeats", "repeat_until", "max_repeats", "seed", "capture", "record",
)  # fmt: skip
"""Keys of a scenario that say which runs there are and what is recorded of them."""


@dataclass(frozen=True)
class KnownNetwork:
    """Links in scenario form with their uncertainty, and the traffic if it is known.

    Attributes
    ----------
    origin
        `profile`, `scenario`, `run` or `estimated`.
    tables
        The tables of a scenario document that describe the network, such as `bottleneck`.
    rtt
        Base RTT of added flows, with its unit; None for the profile's default.
    mtu_bytes
        MTU of added flows.
    spread
        Least and largest relative deviation of the true `rate`, `limit` and `rtt` from the
        estimates; empty if they are known.
    numbers
        Estimates to which `spread` applies, in bit/s, bytes and seconds.
    traffic
        Flows, duration and the other keys of a scenario except its network; empty if the traffic is
        not known.
    varied_queues
        Values that the scenario's grid has for queues: key, then label, then value.
    source
        Name of the scenario file. Files that it names are relative to its folder.
    assumptions
        Sentences on what was assumed about the input, or left out of it.
    allow_code
        Whether the scenario may run foreign code (see `jostle.safe_io.code_consent`).
    """

    origin: str
    tables: Mapping[str, Any]
    rtt: str | None
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)
    traffic: Mapping[str, Any] = field(default_factory=dict)
    varied_queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: str = "advice"
    assumptions: tuple[str, ...] = ()
    mtu_bytes: int = MTU_BYTES
    allow_code: bool = False

    @property
    def is_access_line(self) -> bool:
        """Whether there are a `downlink` and an `uplink`."""
        return "downlink" in self.tables

    @property
    def link(self) -> str:
        """Name of the link that a single-link network has, or the one towards the client."""
        return "downlink" if self.is_access_line else "bottleneck"

    def drawn(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Draw a network uniformly from the range of the estimates.

        Parameters
        ----------
        number
            Number of the draw; 0 is the estimate itself.

        Returns
        -------
        tuple
            Tables of a scenario, and the flow keys that belong to the network.
        """
        tables = copy.deepcopy(dict(self.tables))
        keys = {} if self.mtu_bytes == MTU_BYTES else {"mtu": f"{self.mtu_bytes} B"}
        if not self.spread:
            return tables, keys if self.rtt is None else {"rtt": self.rtt, **keys}
        chance = np.random.default_rng([number, 17])
        value = {
            key: self.numbers[key] * (1 + (chance.uniform(*parts) if number else 0.0))
            for key, parts in self.spread.items()
        }
        tables[self.link] = _drop_tail(value["rate"], value["limit"], value["rtt"] / 2)
        return tables, {"rtt": f"{value['rtt']:.9f} s", **keys}

    def to_dict(self) -> dict[str, Any]:
        """Return the network in the form of the JSON document."""
        interval = {
            key: {
                "value": self.numbers[key],
                "low": self.numbers[key] * (1 + low),
                "high": self.numbers[key] * (1 + high),
            }
            for key, (low, high) in self.spread.items()
        }
        return {
            "from": self.origin, "tables": dict(self.tables), "rtt": self.rtt, "interval": interval,
        }  # fmt: skip


def find_network(
    given: str,
    store: Path,
    flow: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    allow_code: bool = False,
) -> KnownNetwork:
    """Find the network for a recommendation.

    Parameters
    ----------
    given
        Name of a profile, a scenario (`.toml`), a run, or a capture.
    store
        Store in which runs are looked up by name.
    flow
        Flow of a run or capture; optional if there is only one.
    settings
        Values of keys of the scenario or profile, as for `--set`.
    allow_code
        Whether a scenario may run foreign code.

    Raises
    ------
    InputError
        If it is none of these, or its network is not sufficiently described.
    """
    settings = settings or {}
    if given in profiles():
        return _of_a_profile(given, settings)
    if given.endswith(".toml"):
        return _of_a_scenario(given, settings, allow_code=allow_code)
    if settings:
        raise InputError("--set changes a scenario or a profile; a run or a capture has no keys")
    run = find_measured(given, store)
    with name_source(given):
        return _network_of(run, flow)


def _of_a_profile(name: str, settings: Mapping[str, str]) -> KnownNetwork:
    bare = {"bottleneck": {"profile": name}}
    if "queue" not in profiles()[name] and not any("queue" in key for key in settings):
        raise InputError(
            f"profile {name} does not say which queue is at its link, and advice depends on it: "
            'add --set \'bottleneck.queue={ kind = "drop_tail", limit = "64 packets" }\' with the '
            "buffer of the modem or router in bytes, packets or BDP"
        )
    flow = {"name": "flow", "controller": "cubic"}
    queue = {"queue": {"kind": "drop_tail", "limit": "1 BDP"}}
    whole = {
        "duration": "1 s", "flows": [flow],
        "bottleneck": {**bare["bottleneck"], **({} if "queue" in profiles()[name] else queue)},
    }  # fmt: skip
    document = Scenario.from_dict(whole, name=name).set(settings).document
    said = (
        f"The profile {name} is one direction and has no flows. The other direction has no limit.",
    )
    return KnownNetwork(
        "profile", {"bottleneck": document["bottleneck"]}, None, source=name, assumptions=said
    )


def _network_of(run: Run, flow: str | None) -> KnownNetwork:
    if run.spec["links"]:
        names = [each["name"] for each in run.spec["flows"] if each["transport"] == "tcp"]
        if flow is None and not names:
            raise InputError("the run has no TCP flow")
        name = flow or names[0]
        spec = spec_from_run(run, name)
        tables, rtt, _ = _single_link(spec, name)
        (sender,) = (each for each in spec["flows"] if each["name"] == name)
        left_out = ", ".join(each["name"] for each in run.spec["flows"])
        said = (
            f"Of the run only the link, the RTT and the MTU of {name} were used. Left out: its "
            f"flows ({left_out}). To keep them, give the scenario file.",
        )
        return KnownNetwork("run", tables, rtt, assumptions=said, mtu_bytes=sender["mtu_bytes"])
    observed = observe(run, flow)
    _, _, numbers = _single_link(spec_from_estimate(observed, only_link=True), SINGLE_FLOW_NAME)
    tables = {"bottleneck": _drop_tail(numbers["rate"], numbers["limit"], numbers["rtt"] / 2)}
    rate = observed.link_rate
    assert rate is not None
    limit = max(_LIMIT, observed.packet_bytes / numbers["limit"])
    spread = {
        "rate": (rate.low_bps / rate.rate_bps - 1, rate.high_bps / rate.rate_bps - 1),
        "limit": (-limit, limit),
        "rtt": _RTT,
    }
    others = len(run.spec["flows"]) - 1
    notes = [
        f"The network was estimated from {observed.flow}: {rate}, "
        f"{numbers['rtt'] * 1e3:.4g} ms, a drop-tail queue of {numbers['limit'] / 1e3:.4g} kB. "
        "Half of the RTT is on each way, and the way back has no limit.",
        *about_mss(observed),
        *([f"Left out: {others} more flows of the capture."] if others else []),
        *(["Left out: the path thins ACKs."] if observed.packets_per_ack is not None else []),
        *(["Left out: the traffic of other flows at the link."] if observed.cross_traffic else []),
    ]
    return KnownNetwork(
        "estimated",
        tables,
        f"{numbers['rtt']:.9f} s",
        spread,
        numbers,
        assumptions=tuple(notes),
        mtu_bytes=mtu_bytes(observed),
    )


def _of_a_scenario(file: str, settings: Mapping[str, str], *, allow_code: bool) -> KnownNetwork:
    scenario = load(file, settings, allow_code=allow_code)
    document = scenario.document
    dimensions = read_grid(dict(document), Report())
    if scenario.design is not None:
        dimensions += scenario.design.dimensions(dict(document), Report(), None)
    base = filled(dict(document), dimensions)
    tables: dict[str, Any] = {key: base[key] for key in _NETWORK if key in base}
    rtts = [flow["rtt"] for flow in base["flows"] if "rtt" in flow]
    traffic = {key: one for key, one in base.items() if key not in (*_NETWORK, *_DESIGN)}
    queues = {
        dimension.key: {level.label: level.value for level in dimension.levels}
        for dimension in dimensions
        if dimension.key.split(".")[-1] == "queue"
    }
    return KnownNetwork(
        "scenario",
        tables,
        rtts[0] if rtts else None,
        traffic=traffic,
        varied_queues=queues,
        source=file,
        assumptions=tuple(_omissions(document, base, dimensions, queues)),
        allow_code=allow_code,
    )


def _omissions(
    document: Mapping[str, Any],
    base: Mapping[str, Any],
    dimensions: list[GridKey],
    queues: Mapping[str, Any],
) -> Iterator[str]:
    """Say which values of a scenario's grid apply, and what else is not as in the scenario."""
    for dimension in dimensions:
        value = value_at(base, dimension.targets[0])[1]
        written = value_at(document, dimension.targets[0])[0]
        design = "sample" if dimension.sampled else "grid"
        origin = "its table" if written else f"the first of the {design}"
        tried = " Its other values are candidates." if dimension.key in queues else (
            " Left out: its other values."
        )  # fmt: skip
        labels = [level.label for level in dimension.levels if level.value == value]
        shown = labels[0] if labels else json.dumps(value, ensure_ascii=False)
        yield f"{dimension.key} is {shown} now, as in {origin}.{tried}"
    runs = [key for key in _DESIGN if key in document and key not in ("grid", "sample")]
    if runs:
        yield f"Left out: {', '.join(runs)} of the scenario. --repeats sets the number of runs."
    if document.get("phases"):
        yield "Measures are of complete runs. Left out: the phases of the scenario."


def _single_link(spec: RunSpec, flow: str) -> tuple[dict[str, Any], str, dict[str, float]]:
    """Return the single plain link of a run in scenario form."""
    links = cast("list[dict[str, Any]]", spec["links"])
    (sender,) = (each for each in spec["flows"] if each["name"] == flow)
    link = links[0]
    delay = link["delay"]
    limit = link["queue"]["parameters"].get("limit", {})
    plain = (
        len(links) == 1
        and link["capacity"]["kind"] == "constant"
        and link["queue"]["kind"] == "drop_tail"
        and len(delay["steps"]) == 1
        and not any(
            link.get(key)
            for key in ("loss", "outages", "classes", "quick_start", "faults", "netem", "grants")
        )
        and delay["jitter"] is None
    )
    if not plain:
        raise InputError("the run's network is more than one drop-tail link: give its scenario")
    rate = float(link["capacity"]["rate_bps"])
    length = float(limit["bytes"] if "bytes" in limit else limit["packets"] * packet_bytes(sender))
    rtt_s = (delay["steps"][0]["delay_ns"] + sender["base_delay_ns"]) / 1e9
    numbers = {"rate": rate, "limit": length, "rtt": rtt_s}
    way_s = delay["steps"][0]["delay_ns"] / 1e9
    return {"bottleneck": _drop_tail(rate, length, way_s)}, f"{rtt_s:.9f} s", numbers


def _drop_tail(rate_bps: float, limit_bytes: float, delay_s: float) -> dict[str, Any]:
    queue = {"kind": "drop_tail", "limit": f"{round(limit_bytes)} B"}
    return {"rate": f"{round(rate_bps)} bit/s", "delay": f"{delay_s:.9f} s", "queue": queue}
