"""Service rate of a link: the lower of its capacity and its shaper.

The engine defines it (`crates/link/src/service_rate.rs`); this module asks the engine about links
of run specifications. Everything that is derived from the rate of a link uses it: BDPs, the rate of
a path, drawings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

__all__ = ["constant_service_bps", "may_shape", "service_bps"]

_PARTS: Final = ("capacity", "framing", "queue", "classes", "frames")
"""Parts of a link on which the service rate depends."""
_PARTS_OF_ALL: Final = 2
"""Number of these parts that every link has: capacity and queue."""
_OTHER_PARTS: Final = {
    "name": "link",
    "delay": {"steps": [{"at_ns": 0, "delay_ns": 0}], "jitter": None},
}


def constant_service_bps(link: Mapping[str, Any]) -> int | None:
    """Return the service rate of a link of a run specification; None if it varies.

    The rate is constant if the capacity is, or if it is always above the rate of the shaper.
    """
    parts = {key: link[key] for key in _PARTS if link.get(key) is not None}
    if len(parts) == _PARTS_OF_ALL and not may_shape(parts["queue"]["kind"]):
        capacity = parts["capacity"]
        if capacity["kind"] == "constant":
            rate_bps: int = capacity["rate_bps"]
            return rate_bps
    return _computed_service_bps(json.dumps(parts | _OTHER_PARTS))


@cache
def may_shape(kind: str) -> bool:
    """Return whether a queue discipline has a rate among its parameters."""
    from jostle.scenario.registry import engine_rows

    rows = (row for row in engine_rows()["queues"] if row["name"] == kind)
    return any(parameter["kind"] == "rate" for row in rows for parameter in row["parameters"])


@lru_cache(1024)
def _computed_service_bps(link_json: str) -> int | None:
    from jostle import _core

    return _core.constant_service_bps(link_json)


def service_bps(link: Mapping[str, Any], capacity_bps: int) -> int:
    """Return the service rate of a link while its capacity is `capacity_bps`.

    Parameters
    ----------
    link
        Link of a run specification. Only its framing, its queue with classes and its frames count.
    capacity_bps
        Capacity, for example the first rate of a link with steps.
    """
    if capacity_bps == 0:
        return 0
    capacity = {"kind": "constant", "rate_bps": capacity_bps}
    found = constant_service_bps({**link, "capacity": capacity})
    # The engine refuses the run if a part is invalid; its message then names the part.
    return capacity_bps if found is None else found
