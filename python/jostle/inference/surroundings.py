"""The run around an unknown sender: everything of it but the controller."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.errors import InputError
from jostle.python_controllers.sources import is_python_controller
from jostle.scenario import Scenario

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.emulate.link_file import LinkFile
    from jostle.inference.observation import Observation
    from jostle.run_spec import RunSpec

__all__ = ["around_a_link", "of_a_run", "shaken"]

_RATE: Final = 0.002
_LIMIT: Final = 0.02
"""Parts by which a link of a second run differs: about as well as links are known."""


def of_a_run(run: Run, flow: str) -> RunSpec:
    """Take what a run says about itself, but for how a flow sends.

    Raises
    ------
    InputError
        When the flow is none that a controller could send, or another one runs code of its own.
    """
    spec = copy.deepcopy(run.spec)
    for each in spec["flows"]:
        if each["name"] == flow and each["transport"] != "tcp":
            raise InputError(f"flow {flow} is sent over {each['transport']}, not TCP")
        if each["name"] != flow and is_python_controller(each["controller"]["name"]):
            raise InputError(f"flow {each['name']} has a controller written in Python")
    return _quiet(spec)


def around_a_link(link: LinkFile, observed: Observation) -> RunSpec:
    """Put a single bulk flow, as long as the observed one, on the links of a LINK.toml."""
    document = {
        "seed": link.seed,
        "duration": f"{max(observed.length_s, 0.001):.6f} s",
        "interval": f"{observed.interval_s:.6f} s",
        "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [{"name": observed.flow, "controller": "reno", "rtt": "40 ms"}],
    }
    spec = copy.deepcopy(Scenario.from_dict(document, name=link.source).plan().runs[0].spec)
    links = copy.deepcopy([*link.links, *link.reverse])
    (flow,) = spec["flows"]
    # The links have all of the delay.
    flow["path"] = list(range(len(link.links)))
    flow["reverse_path"] = list(range(len(link.links), len(links)))
    flow["access_delay_ns"] = 0
    spec["links"] = cast("Any", links)
    return _quiet(spec)


def _quiet(spec: RunSpec) -> RunSpec:
    """Measure the whole run, and record no more than its series."""
    spec["capture"] = None
    spec["trace"] = "none"
    spec["phases"] = [{"name": "overall", "from_ns": 0, "to_ns": spec["duration_ns"]}]
    return spec


def shaken(spec: RunSpec, number: int) -> RunSpec:
    """Return the run on a network that is known no better than networks are.

    Where nothing is random, what a first loss leaves behind decides about all that follows; a link
    that differs by less than anybody measures shows what else the same sender does.

    Parameters
    ----------
    spec
        The run.
    number
        0 for the run itself; others have another seed, rate and queue, above and below in turn.
    """
    changed = copy.deepcopy(spec)
    if number == 0:
        return changed
    size = (number + 1) // 2 * (1 if number % 2 else -1)
    changed["seed"] = (spec["seed"] + number) % 2**63
    for link in changed["links"]:
        capacity = cast("dict[str, Any]", link["capacity"])
        if capacity["kind"] == "constant":
            capacity["rate_bps"] = round(capacity["rate_bps"] * (1 + size * _RATE))
        limit = cast("dict[str, Any]", link["queue"]["parameters"]).get("limit")
        if isinstance(limit, dict):
            for unit, amount in limit.items():
                limit[unit] = max(1, round(amount * (1 + size * _LIMIT)))
    return changed
