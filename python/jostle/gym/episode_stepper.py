"""Simulations that are stepped by actions, with arrays for their state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle import _core
from jostle.errors import InputError
from jostle.gym.agent_design import AgentDesign
from jostle.gym.episode_sampler import Episode
from jostle.gym.rewards import INTERVAL, Intervals

__all__ = ["ActionError", "Simulations", "StepResult", "check_actions", "has_nan", "refuse_nan"]


class ActionError(InputError, ValueError):
    """An action has another number of values than the design, or no numbers."""


def check_actions(
    actions: npt.ArrayLike, shape: tuple[int, ...], whose: str = ""
) -> npt.NDArray[np.float64]:
    """Return actions as an array.

    NaN stays in the array, because actions of finished episodes are ignored; see `refuse_nan`.

    Raises
    ------
    ActionError
        If they are not numbers, or if their shape is not `shape`.
    """
    try:
        array = np.asarray(actions, np.float64)
    except (TypeError, ValueError) as error:
        raise ActionError(f"action{whose}: {actions!r} is not an array of numbers") from error
    if actions is None or array.shape != shape:
        found = "None" if actions is None else f"an array of shape {array.shape}"
        raise ActionError(f"action{whose}: expected an array of shape {shape}, not {found}")
    return array


def has_nan(actions: npt.NDArray[np.float64]) -> bool:
    """Return whether any action is NaN."""
    flat = actions.reshape(-1)
    # A sum of squares is NaN only if a value is. This is four times faster than `np.isnan`.
    return math.isnan(flat.dot(flat))


def refuse_nan(actions: npt.NDArray[np.float64], whose: str = "") -> None:
    """Raise `ActionError` if an action contains NaN."""
    if has_nan(actions):
        raise ActionError(
            f"action{whose}: {actions.tolist()} contains NaN; has the policy diverged?"
        )


@dataclass(frozen=True)
class StepResult:
    """State of simulations after a step.

    Attributes
    ----------
    observations
        Observations of each learner, shape (simulations, numbers).
    intervals
        Intervals, shape (simulations, learners). An interval is 0 in all values if the episode
        ended before it did.
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
        observations, values, due, over, time_s = raw
        due = due.reshape(self.count, self.learners)
        intervals = values.view(INTERVAL).reshape(self.count, self.learners)
        # The engine repeats the last interval of a learner whose interval the end of the run cuts.
        if np.count_nonzero(over):
            intervals[over[:, None] & ~due] = 0
        return StepResult(observations.reshape(self.count, -1), intervals, due, over, time_s)

    def begin(self, which: Sequence[int], episodes: Sequence[Episode]) -> StepResult:
        """Start new episodes in some of the simulations, and return the state of all.

        Raises
        ------
        InputError
            If an episode is too short for a step.
        """
        specs = [episode.spec_json for episode in episodes]
        flows = [episode.flows for episode in episodes]
        stop = self._stop(self._engine.reset(list(which), specs, flows))
        for place, episode in zip(which, episodes, strict=True):
            if stop.over[place]:
                values = ", ".join(f"{key} = {value}" for key, value in episode.about.items())
                raise InputError(
                    f"the run ends before a learner has had two intervals, so that no step is"
                    f" possible ({values}): make `duration` or the flow longer, or the `interval`"
                    " of the design shorter"
                )
        return stop

    def step(self, actions: npt.NDArray[np.float64]) -> StepResult:
        """Apply an action of every learner, and continue to the next interval's end in each."""
        return self._stop(self._engine.step(actions.reshape(-1)))

    def finish(self, which: int) -> _core.RunRecord:
        """Continue a run to its end with the present actions, and return its record."""
        return self._engine.finish(which)
