"""Design of a learned controller: observations, intervals and actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.errors import InputError

__all__ = ["AURORA", "FEATURES", "ORCA", "AgentDesign", "Feature"]


@dataclass(frozen=True)
class Feature:
    """A number that can be observed for every monitor interval.

    Attributes
    ----------
    about
        Description of the feature.
    low, high
        Range of the feature; values outside are clipped.
    rest
        Value in place of intervals before the first.
    """

    about: str
    low: float
    high: float
    rest: float


FEATURES: Final[Mapping[str, Feature]] = MappingProxyType(
    {
        name: Feature(about, low, high, rest)
        for name, about, low, high, rest in _core.learning_features()[0]
    }
)
"""Available features by name."""


@dataclass(frozen=True)
class AgentDesign:
    """The design of a learned controller without its weights: the head of a policy file.

    Attributes
    ----------
    features
        Observed features of an interval: keys of `FEATURES`.
    history
        Number of intervals in an observation, the oldest first.
    interval
        Length of an interval: `"0.5 rtt"`, relative to the mean RTT of the previous interval, or
        `"20 ms"`; at least 1 ms.
    action
        Meaning of an action:

        - `"rate 0.025"`: one number a; the pacing rate is multiplied by 1 + 0.025 a, or divided by
          1 − 0.025 a if a is negative. cwnd is twice the data in flight at that rate.
        - `"window 1"`: one number a; cwnd is multiplied by 2^(1 × a).
        - `"cubic"`: one number a; Cubic sets cwnd, which is multiplied by 4^a.
        - `"absolute"`: the binary logarithms of cwnd in packets and of the pacing rate in
          Mbit/s.

    Raises
    ------
    InputError
        If the design is invalid; the message names the accepted values.
    """

    features: tuple[str, ...]
    history: int
    interval: str
    action: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        try:
            _core.design(self.text)
        except ValueError as error:
            raise InputError(f"no design of a learner: {error}") from error

    @property
    def text(self) -> str:
        """Head of a policy file with this design."""
        return (
            "jostle-policy 1\n"
            f"features {' '.join(self.features)}\n"
            f"history {self.history}\n"
            f"interval {self.interval}\n"
            f"action {self.action}\n"
        )

    @property
    def bounds(self) -> npt.NDArray[np.float32]:
        """Least and largest value of each number of an action, shape (numbers, 2)."""
        return np.array(_core.design(self.text)[1], np.float32)

    @property
    def observation_bounds(self) -> npt.NDArray[np.float32]:
        """Least and largest value of each number of an observation, shape (numbers, 2)."""
        each = [(FEATURES[name].low, FEATURES[name].high) for name in self.features]
        return np.array(each * self.history, np.float32)


AURORA: Final = AgentDesign(
    features=("rtt_gradient", "rtt_ratio", "send_ratio"),
    history=10,
    interval="0.5 rtt",
    action="rate 0.025",
)
"""Aurora: Jay et al., "A Deep Reinforcement Learning Perspective on Internet Congestion Control",
ICML 2019, §4.1, with the length of intervals, the history and the ranges of the authors' release
(PCCproject/PCC-RL, `src/gym/network_sim.py`, `src/common/sender_obs.py`). The gradient comes from a
regression; the release uses the difference of the means of an interval's two halves."""

ORCA: Final = AgentDesign(
    features=(
        "delivery_to_most",
        "pacing_to_most",
        "loss_to_most",
        "acked_to_cwnd",
        "interval_s",
        "least_rtt_to_srtt",
        "delay_metric",
    ),
    history=10,
    interval="20 ms",
    action="cubic",
)
"""Orca: Abbasloo et al., "Classic Meets Modern: A Pragmatic Learning-Based Congestion Control for
the Internet", SIGCOMM 2020, with the state of the authors' release (Soheil-ab/Orca,
`rl-module/envwrapper.py`: seven numbers, of ten intervals). The scenario determines whether the
transport paces; with Orca's kernel patch it always does."""
