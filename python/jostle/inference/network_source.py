"""Network of a recommendation: from a profile, a scenario, a run, or a capture."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from jostle.errors import InputError, name_source
from jostle.inference.measurement_lookup import find_measured
from jostle.inference.observed_flow import observe
from jostle.inference.run_context import SINGLE_FLOW_NAME, spec_from_estimate, spec_from_run
from jostle.scenario import load
from jostle.scenario.resolve.profiles import profiles

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.run_spec import RunSpec

__all__ = ["KnownNetwork", "find_network"]

_ESTIMATED: Final[Mapping[str, tuple[float, float]]] = {
    "rate": (-0.005, 0.005), "limit": (0.0, 0.03), "rtt": (-0.013, 0.002)
}  # fmt: skip
"""Relative error of network parameters estimated from a capture; see docs/advise.md.

Queues are longer than the longest mean of an interval; the shortest RTT of Linux includes some
tenths of a millisecond of the hosts (docs/fit.md).
"""
_OUTER: Final = ("bottleneck", "downlink", "uplink")


@dataclass(frozen=True)
class KnownNetwork:
    """A bottleneck in scenario form, with its uncertainty.

    Attributes
    ----------
    origin
        `profile`, `scenario`, `run` or `estimated`.
    tables
        `bottleneck`, or `downlink` and `uplink`, of a scenario document.
    rtt
        Base RTT with its unit; None for the profile's default.
    spread
        Least and largest relative deviation of the true `rate`, `limit` and `rtt` from the
        estimates; empty if they are known.
    numbers
        Estimates to which `spread` applies, in bit/s, bytes and seconds.
    """

    origin: str
    tables: Mapping[str, Any]
    rtt: str | None
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def link(self) -> str:
        """Name of the table of the link that carries data."""
        return "bottleneck" if "bottleneck" in self.tables else "downlink"

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
        if not self.spread:
            return tables, {} if self.rtt is None else {"rtt": self.rtt}
        chance = np.random.default_rng([number, 17])
        value = {
            key: self.numbers[key] * (1 + (chance.uniform(*parts) if number else 0.0))
            for key, parts in self.spread.items()
        }
        tables[self.link] = _drop_tail(value["rate"], value["limit"], value["rtt"] / 2)
        return tables, {"rtt": f"{value['rtt']:.9f} s"}

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


def find_network(given: str, store: Path, flow: str | None = None) -> KnownNetwork:
    """Find the network for a recommendation.

    Parameters
    ----------
    given
        Name of a profile, a scenario (`.toml`), a run, or a capture.
    store
        Store in which runs are looked up by name.
    flow
        Flow of a run or capture; optional if there is only one.

    Raises
    ------
    InputError
        If it is none of these, or its network is not sufficiently described.
    """
    if given in profiles():
        return KnownNetwork("profile", {"bottleneck": {"profile": given, **_queue(given)}}, None)
    if given.endswith(".toml"):
        return _of_a_scenario(given)
    run = find_measured(given, store)
    with name_source(given):
        return _network_of(run, flow)


def _network_of(run: Run, flow: str | None) -> KnownNetwork:
    if run.spec["links"]:
        names = [each["name"] for each in run.spec["flows"] if each["transport"] == "tcp"]
        if flow is None and not names:
            raise InputError("the run has no TCP flow")
        tables, rtt, _ = _single_link(spec_from_run(run, flow or names[0]), flow or names[0])
        return KnownNetwork("run", tables, rtt)
    observed = observe(run, flow)
    _, _, numbers = _single_link(spec_from_estimate(observed), SINGLE_FLOW_NAME)
    tables = {"bottleneck": _drop_tail(numbers["rate"], numbers["limit"], numbers["rtt"] / 2)}
    return KnownNetwork("estimated", tables, f"{numbers['rtt']:.9f} s", _ESTIMATED, numbers)


def _queue(profile: str) -> dict[str, Any]:
    """Return a default queue for profiles without one."""
    if "queue" in profiles()[profile]:
        return {}
    return {"queue": {"kind": "drop_tail", "limit": "1 BDP"}}


def _of_a_scenario(file: str) -> KnownNetwork:
    document = load(file).document
    tables = {key: document[key] for key in _OUTER if key in document}
    if not tables:
        raise InputError(f"{file}: advice is for one bottleneck, or a downlink and an uplink")
    rtts = [flow["rtt"] for flow in document.get("flows", []) if "rtt" in flow]
    return KnownNetwork("scenario", tables, rtts[0] if rtts else None)


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
        and not any(link.get(key) for key in ("loss", "outages", "classes", "quick_start"))
        and delay["jitter"] is None
    )
    if not plain:
        raise InputError("the run's network is more than one drop-tail link: give its scenario")
    rate = float(link["capacity"]["rate_bps"])
    length = float(limit["bytes"] if "bytes" in limit else limit["packets"] * 1514)
    rtt_s = (delay["steps"][0]["delay_ns"] + sender["base_delay_ns"]) / 1e9
    numbers = {"rate": rate, "limit": length, "rtt": rtt_s}
    way_s = delay["steps"][0]["delay_ns"] / 1e9
    return {"bottleneck": _drop_tail(rate, length, way_s)}, f"{rtt_s:.9f} s", numbers


def _drop_tail(rate_bps: float, limit_bytes: float, delay_s: float) -> dict[str, Any]:
    queue = {"kind": "drop_tail", "limit": f"{round(limit_bytes)} B"}
    return {"rate": f"{round(rate_bps)} bit/s", "delay": f"{delay_s:.9f} s", "queue": queue}
