"""Web pages: from a scenario's browser to the source of a run's specification.

What a scenario does not say is as in the web browsing model of IEEE 802.16m (Evaluation Methodology
Document, 802.16m-08/004r5, 2009, section 10.1), whose sizes those of 3GPP2 and ns-3 are, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from jostle.scenario.distributions import Drawn
from jostle.scenario.sources import Web

__all__ = ["web_spec"]

_MAIN: Final = Drawn(
    {"kind": "lognormal", "median": 4315.64, "sigma": 1.37}, min=100, max=2_000_000
)
"""Main objects: µ = 8.37, a mean of 10,710 B."""

_OBJECT: Final = Drawn(
    {"kind": "lognormal", "median": 478.186, "sigma": 2.36}, min=50, max=2_000_000
)
"""Embedded objects: µ = 6.17, a mean of 7,758 B."""

_PARSE: Final = Drawn({"kind": "exponential", "mean": 130_000_000.0})
_THINK: Final = Drawn({"kind": "exponential", "mean": 30_000_000_000.0})

# Number of embedded objects: Pareto from k with the exponent α, above m it is m; less k.
_ALPHA, _K, _M = 1.1, 2, 55

CONNECTIONS: Final = 6
"""What browsers open to a host over HTTP/1.1."""


def web_spec(
    source: Web, drawn: Callable[[int | Drawn, str], int | dict[str, Any]]
) -> dict[str, Any]:
    """Return what a browser asks for.

    Parameters
    ----------
    source
        The browser.
    drawn
        Makes a specification of a quantity, given the key that it stands at.
    """

    def of(key: str, given: int | Drawn | None, default: Drawn) -> int | dict[str, Any]:
        return drawn(default if given is None else given, key)

    connections = source.connections
    if connections is None:
        connections = 1 if source.multiplexed else CONNECTIONS
    return {
        "kind": "web",
        "pages": source.pages,
        "main_bytes": of("main", source.main, _MAIN),
        "objects": of("objects", source.objects, _embedded()),
        "object_bytes": of("object", source.object, _OBJECT),
        "request_bytes": source.request,
        "parse_ns": of("parse", source.parse, _PARSE),
        "think_ns": of("think", source.think, _THINK),
        "connections": connections,
        "multiplexed": source.multiplexed,
    }


def _embedded() -> Drawn:
    """Return how many embedded objects there are: the model's, rounded; their mean is 5.62."""

    def below(objects: float) -> float:
        value = _K + objects
        if value >= _M:
            return 1.0
        share: float = (_K / max(value, _K)) ** _ALPHA
        return round(1 - share, 12)

    points = [
        {"value": float(number), "probability": below(number + half)}
        for number in range(_M - _K + 1)
        for half in (-0.5, 0.5)
    ]
    return Drawn({"kind": "empirical", "points": points})
