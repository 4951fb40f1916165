"""Simulations that wait for actions, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.gym.design import Design
from jostle.gym.domain import Episode
from jostle.gym.rewards import INTERVAL, Intervals

__all__ = ["Simulations", "Stop"]


@dataclass(frozen=True)
class Stop:
    """Where simulations have stopped.

    Attributes
    ----------
    observations
        Of each learner in turn, of shape (simulations, numbers).
    intervals
        Of shape (simulations, learners).
    due
        Whether the learner's interval has just ended, of the same shape.
    over
        Whether nothing is to be decided any more, by simulation.
    time_s
        Time in each.
    """

    observations: npt.NDArray[np.float32]
    intervals: Intervals
    due: npt.NDArray[np.bool_]
    over: npt.NDArray[np.bool_]
    time_s: npt.NDArray[np.float64]


_Raw = tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    npt.NDArray[np.float64],
]


class Simulations:
    """Simulations of one shape, stepped together.

    Parameters
    ----------
    count
        How many.
    designs
        Of the learners in each.
    threads
        Threads that carry steps out.
    """

    def __init__(self, count: int, designs: Sequence[Design], threads: int) -> None:
        self.count = count
        self.learners = len(designs)
        self._engine = _core.Episodes(count, [design.text for design in designs], threads)

    def _stop(self, raw: _Raw) -> Stop:
        observations, intervals, due, over, time_s = raw
        return Stop(
            observations.reshape(self.count, -1),
            intervals.view(INTERVAL).reshape(self.count, self.learners),
            due.reshape(self.count, self.learners),
            over,
            time_s,
        )

    def begin(self, which: Sequence[int], episodes: Sequence[Episode]) -> Stop:
        """Begin new episodes in some places; all places are shown."""
        specs = [episode.spec_json for episode in episodes]
        flows = [episode.flows for episode in episodes]
        return self._stop(self._engine.reset(list(which), specs, flows))

    def step(self, actions: npt.ArrayLike) -> Stop:
        """Give every learner its action, and go on to where the next interval ends in each."""
        return self._stop(self._engine.step(np.asarray(actions, np.float64).reshape(-1)))

    def finish(self, which: int) -> _core.Record:
        """Let a run go on to its end, as the learners act now, and return what was recorded."""
        return self._engine.finish(which)
