"""Simulations that are stepped by actions, with arrays for their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.gym.agent_design import AgentDesign
from jostle.gym.episode_sampler import Episode
from jostle.gym.rewards import INTERVAL, Intervals

__all__ = ["Simulations", "StepResult"]


@dataclass(frozen=True)
class StepResult:
    """State of simulations after a step.

    Attributes
    ----------
    observations
        Observations of each learner, shape (simulations, numbers).
    intervals
        Intervals, shape (simulations, learners).
    due
        Whether the learner's interval has just ended, same shape.
    over
        Whether the last interval has ended, by simulation.
    time_s
        Time of each simulation.
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
    """Simulations with the same designs, stepped together.

    Parameters
    ----------
    count
        Number of simulations.
    designs
        Designs of the learners in each simulation.
    threads
        Number of threads for a step.
    """

    def __init__(self, count: int, designs: Sequence[AgentDesign], threads: int) -> None:
        self.count = count
        self.learners = len(designs)
        self._engine = _core.Episodes(count, [design.text for design in designs], threads)

    def _stop(self, raw: _Raw) -> StepResult:
        observations, intervals, due, over, time_s = raw
        return StepResult(
            observations.reshape(self.count, -1),
            intervals.view(INTERVAL).reshape(self.count, self.learners),
            due.reshape(self.count, self.learners),
            over,
            time_s,
        )

    def begin(self, which: Sequence[int], episodes: Sequence[Episode]) -> StepResult:
        """Start new episodes in some of the simulations, and return the state of all."""
        specs = [episode.spec_json for episode in episodes]
        flows = [episode.flows for episode in episodes]
        return self._stop(self._engine.reset(list(which), specs, flows))

    def step(self, actions: npt.ArrayLike) -> StepResult:
        """Apply an action of every learner, and continue to the next interval's end in each."""
        return self._stop(self._engine.step(np.asarray(actions, np.float64).reshape(-1)))

    def finish(self, which: int) -> _core.RunRecord:
        """Continue a run to its end with the present actions, and return its record."""
        return self._engine.finish(which)
