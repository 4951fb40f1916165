"""Formulas that papers give for what a study measures, to be drawn beside what was measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jostle.scenario.text.units import QuantityError, parse_rate, parse_size, parse_span


@dataclass(frozen=True)
class PublishedModel:
    """A formula.

    Attributes
    ----------
    source
        Where it is published.
    measure
        Name of the measure that it predicts, in whose unit `value` is.
    value
        The formula. The ends of its parameters' names are their units.
    """

    source: str
    measure: str
    value: Callable[..., float]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what the formula takes."""
        return tuple(inspect.signature(self.value).parameters)


def bbr_beside_loss_based(
    *,
    buffer_bdp: float,
    rate_bps: float,
    rtt_s: float,
    bbr_flows: float,
    packet_bytes: float,
) -> float:
    """Share of a link that BBRv1 flows get beside any number of loss-based ones, in %.

    BBR's rate is what its cap of two estimated bandwidth-delay products lets it keep in a queue
    that the others fill. In ProbeRTT it measures an RTT that contains their part of the queue,
    *p q / c*, and four packets of each BBR flow. Where cap and packets in flight are equal, the
    loss-based flows have *p* = 1/2 − 1/(2 X) − 4 N / q of the link (equation 9); a negative *p*
    means that BBR has all of it. For every ProbeRTT, one in 10 s, BBR stands still until the queue
    is empty, for another 200 ms and a round trip (11), which lessens its share (10). How long the
    flows compete cancels out of the two.

    Parameters
    ----------
    buffer_bdp
        Queue of the bottleneck, *X*, in bandwidth-delay products.
    rate_bps, rtt_s
        Capacity *c* and RTT of the empty path *l*.
    bbr_flows
        Number of BBR flows, *N*.
    packet_bytes
        Size of a packet, in which the queue *q* is counted.
    """
    packets_per_s = rate_bps / (8 * packet_bytes)
    queue_packets = buffer_bdp * packets_per_s * rtt_s
    loss_based = 0.5 - 1 / (2 * buffer_bdp) - 4 * bbr_flows / queue_packets
    probing = (queue_packets / packets_per_s + 0.2 + rtt_s) / 10
    return 100 * (1 - max(0.0, loss_based)) * max(0.0, 1 - probing)


MODELS: Final[Mapping[str, PublishedModel]] = {
    "bbr-beside-loss-based": PublishedModel(
        "R. Ware, M. K. Mukerjee, S. Seshan, J. Sherry: Modeling BBR's Interactions with "
        "Loss-Based Congestion Control, IMC 2019, equations 9 to 11",
        "share",
        bbr_beside_loss_based,
    ),
}
"""By name."""


def quantity(model: str, name: str, given: float | str) -> float:
    """Read a parameter of a model, in the unit that its name ends with.

    Raises
    ------
    QuantityError
        If it is not such a quantity.
    """
    parsers: dict[str, Callable[[Any], float]] = {
        "bps": parse_rate,
        "bytes": parse_size,
        "s": lambda text: parse_span(text) / 1e9,
    }
    parse = parsers.get(name.rpartition("_")[2])
    if parse is not None:
        return float(parse(given))
    if isinstance(given, str):
        raise QuantityError(f'"{given}" is no number, which `{name}` of {model} is')
    return given
