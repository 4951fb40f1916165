"""Published formulas for measures of a study, which figures draw next to measured values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jostle.scenario.parsing.quantities import QuantityError, parse_rate, parse_size, parse_span


@dataclass(frozen=True)
class PublishedModel:
    """A formula.

    Attributes
    ----------
    source
        Publication.
    measure
        Name of the predicted measure, whose unit `value` returns.
    value
        The formula. Names of its parameters end with their units.
    """

    source: str
    measure: str
    value: Callable[..., float]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the formula's parameters."""
        return tuple(inspect.signature(self.value).parameters)


def bbr_beside_loss_based(
    *,
    buffer_bdp: float,
    rate_bps: float,
    rtt_s: float,
    bbr_flows: float,
    packet_bytes: float,
) -> float:
    """Return the share of a link, in %, that BBRv1 flows get next to loss-based flows.

    BBR's rate is limited by its cap of two estimated bandwidth-delay products in flight, while the
    other flows fill the queue. In ProbeRTT it measures an RTT that contains the other flows' part
    of the queue, *p q / c*, and four packets of each BBR flow. If the packets in flight equal the
    cap, the loss-based flows get *p* = 1/2 − 1/(2 X) − 4 N / q of the link (equation 9); a negative
    *p* means that BBR gets all of it. In every ProbeRTT, one per 10 s, BBR stops sending until the
    queue is empty, and for another 200 ms and an RTT (11), which reduces its share (10). The
    duration of the competition cancels out of (10) and (11).

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
"""Published formulas by name."""


def quantity(model: str, name: str, given: float | str) -> float:
    """Parse a parameter of a model, in the unit that its name ends with.

    Raises
    ------
    QuantityError
        If the text is not such a quantity.
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
