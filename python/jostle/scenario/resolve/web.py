"""Web pages: converts a web source to the form of the run specification.

Defaults come from the web browsing model of IEEE 802.16m (Evaluation Methodology Document,
802.16m-08/004r5, 2009, section 10.1). The models of 3GPP2 and ns-3 have the same sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jostle.run_spec import Quantity, WebSource
from jostle.scenario.distributions import RandomQuantity
from jostle.scenario.sources import Web

__all__ = ["web_spec"]

_MAIN: Final = RandomQuantity(
    {"kind": "lognormal", "median": 4315.64, "sigma": 1.37}, min=100, max=2_000_000
)
"""Size of main objects: µ = 8.37, mean 10,710 B."""

_OBJECT: Final = RandomQuantity(
    {"kind": "lognormal", "median": 478.186, "sigma": 2.36}, min=50, max=2_000_000
)
"""Size of embedded objects: µ = 6.17, mean 7,758 B."""

_PARSE: Final = RandomQuantity({"kind": "exponential", "mean": 130_000_000.0})
_THINK: Final = RandomQuantity({"kind": "exponential", "mean": 30_000_000_000.0})

# Number of embedded objects: Pareto with minimum k and exponent α, limited to m, minus k.
_ALPHA, _K, _M = 1.1, 2, 55

CONNECTIONS: Final = 6
"""Number of connections that browsers open per host over HTTP/1.1."""


def web_spec(source: Web, drawn: Callable[[int | RandomQuantity, str], Quantity]) -> WebSource:
    """Return a web source in the form of the run specification.

    Parameters
    ----------
    source
        Source in the scenario.
    drawn
        Converts a quantity at a key to the form of the run specification.
    """

    def of(key: str, given: int | RandomQuantity | None, default: RandomQuantity) -> Quantity:
        return drawn(default if given is None else given, key)

    connections = source.connections
    if connections is None:
        connections = 1 if source.multiplexed else CONNECTIONS
    return {
        "kind": "web",
        "pages": source.pages,
        "main_bytes": of("main_object", source.main_object, _MAIN),
        "objects": of("object_count", source.object_count, _embedded()),
        "object_bytes": of("object_size", source.object_size, _OBJECT),
        "request_bytes": source.request_size,
        "parse_ns": of("parse_time", source.parse_time, _PARSE),
        "think_ns": of("think_time", source.think_time, _THINK),
        "connections": connections,
        "multiplexed": source.multiplexed,
    }


def _embedded() -> RandomQuantity:
    """Return the distribution of the number of embedded objects, rounded; its mean is 5.62."""

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
    return RandomQuantity({"kind": "empirical", "points": points})
