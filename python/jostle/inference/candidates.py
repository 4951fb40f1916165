"""Candidates: a known flow with other controllers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from jostle.backends.kernel.controllers import NAMES as LINUX
from jostle.errors import InputError, unknown
from jostle.scenario import Registry, Scenario

if TYPE_CHECKING:
    from jostle.run_spec import FlowSpec, RunSpec

__all__ = ["EVERY", "Candidate", "candidates", "chosen_names"]

EVERY: Final = "all"
USUAL: Final = "linux"
_NEWER: Final = ("bbr3",)
"""Controllers that are in use but not in a Linux release."""
_OF_A_CONTROLLER: Final = ("controller", "slow_start", "memory", "pacing", "initial_pacing")
"""Keys of a flow that belong to its sender. The other keys describe path and traffic."""


@dataclass(frozen=True)
class Candidate:
    """A controller for the flow in question.

    Attributes
    ----------
    controller
        Name of the controller.
    keys
        Resolved keys of a flow: the controller with its parameters, its slow start, ….
    """

    controller: str
    keys: dict[str, Any]

    def sends(self, spec: RunSpec, flow: str) -> RunSpec:
        """Return a copy of the run in which this controller sends the flow."""
        changed = copy.deepcopy(spec)
        for each in changed["flows"]:
            if each["name"] == flow:
                cast("dict[str, Any]", each).update(copy.deepcopy(self.keys))
        return changed


def chosen_names(chosen: str, registry: Registry | None = None) -> tuple[str, ...]:
    """Parse a choice of controllers: `linux`, `all`, or comma-separated names.

    Raises
    ------
    InputError
        If a controller does not exist.
    """
    known = list((registry or Registry.of_engine()).controllers)
    if chosen == USUAL:
        return (*(name for name in LINUX if name in known), *_NEWER)
    if chosen == EVERY:
        return tuple(known)
    names = tuple(dict.fromkeys(word.strip() for word in chosen.split(",")))
    for name in names:
        if name not in known:
            raise InputError(unknown("controller", name, known))
    return names


def candidates(names: Sequence[str], flow: FlowSpec) -> list[Candidate]:
    """Resolve controllers with their default parameters for a flow.

    Controllers that need ECN are excluded if the flow has none, because they would act differently.
    """
    document = {
        "duration": "1 s",
        "bottleneck": {"rate": "1 Mbit/s", "queue": {"kind": "drop_tail", "limit": "1 BDP"}},
        "flows": [
            {
                "name": f"c{at}",
                "controller": name,
                "rtt": "40 ms",
                "linux_version": str(flow["linux"]),
            }
            for at, name in enumerate(names)
        ],
    }
    resolved = Scenario.from_dict(document, name="candidates").plan().runs[0].spec["flows"]
    return [
        Candidate(name, {key: cast("dict[str, Any]", one)[key] for key in _OF_A_CONTROLLER})
        for name, one in zip(names, resolved, strict=True)
        if flow["ecn"] or not one["ecn"]
    ]
