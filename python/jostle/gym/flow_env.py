"""Gymnasium environment with one flow of a scenario."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.gym._gymnasium import gymnasium
from jostle.gym.agent_design import AURORA, AgentDesign
from jostle.gym.episode_sampler import Draw, EpisodeSampler
from jostle.gym.episode_stepper import Simulations, StepResult, check_actions, refuse_nan
from jostle.gym.rewards import INTERVAL, Reward, aurora_reward
from jostle.scenario import Scenario

__all__ = ["FlowEnv", "box"]

Observation = npt.NDArray[np.float32]

NO_EPISODE = "no episode is running: call `reset` first"


def box(bounds: npt.NDArray[np.float32]) -> gymnasium.spaces.Box:
    """Return the space with bounds of shape (numbers, 2)."""
    return gymnasium.spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)


def step_info(stop: StepResult, place: int, learner: int = 0) -> dict[str, Any]:
    """Return the `info` dictionary of an observation."""
    interval = stop.intervals[place, learner]
    values = {name: float(interval[name]) for name in INTERVAL.names or ()}
    return {"time_s": float(stop.time_s[place]), "interval": values}


class FlowEnv(gymnasium.Env[Any, Any]):
    """A scenario in which your actions control one flow.

    An episode is a run. It is truncated with the last interval that ends before the run does, and
    never terminates. If the flow ends earlier, a last step without an interval has reward 0. If the
    flow opens late, the first observation is at its first interval.

    Parameters
    ----------
    scenario
        A scenario, or its file. Conditions of its grid are drawn at random.
    learner
        Name of the flow.
    design
        Observations and actions.
    reward
        Function that returns the reward of an interval.
    draw
        Function that draws values of further keys of the scenario.
    render_mode
        Not supported; must be None.

    Examples
    --------
    >>> import jostle.gym
    >>> environment = jostle.gym.FlowEnv("scenarios/first.toml", "newcomer")
    >>> observation, about = environment.reset(seed=7)
    >>> observation, reward, terminated, truncated, about = environment.step([1.0])
    >>> about["interval"]["cwnd_packets"] > 0
    True
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        learner: str,
        *,
        design: AgentDesign = AURORA,
        reward: Reward = aurora_reward,
        draw: Draw | None = None,
        render_mode: None = None,
    ) -> None:
        self.render_mode = render_mode
        self._domain = EpisodeSampler(scenario, [learner], draw)
        self._simulations = Simulations(1, [design], 1)
        self._reward = reward
        self._over = True
        self._shape = (len(design.bounds),)
        self.observation_space = box(design.observation_bounds)
        self.action_space = box(design.bounds)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode. The same seed gives the same episode.

        Parameters
        ----------
        seed
            Seed of all following random draws.
        options
            Not used.

        Returns
        -------
        tuple
            Observation of the first interval, and a dictionary with the drawn values, the time and
            the interval.

        Raises
        ------
        InputError
            If the run ends before the second interval.
        """
        super().reset(seed=seed)
        episode = self._domain.episode(self.np_random)
        self._over = True
        stop = self._simulations.begin([0], [episode])
        self._over = False
        return stop.observations[0], {**step_info(stop, 0), "episode": episode.about}

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Apply an action, and continue to the end of the next interval.

        Returns
        -------
        tuple
            Observation, reward of the interval, False, whether it was the last, and its values.

        Raises
        ------
        ActionError
            If the action is NaN, or not an array of the shape of `action_space`. It is a
            `ValueError`, too.
        gymnasium.error.ResetNeeded
            If no episode is running.
        """
        if self._over:
            raise gymnasium.error.ResetNeeded(NO_EPISODE)
        numbers = check_actions(action, self._shape)
        refuse_nan(numbers)
        stop = self._simulations.step(numbers)
        self._over = bool(stop.over[0])
        reward = float(self._reward(stop.intervals[:, 0])[0]) if stop.due[0, 0] else 0.0
        return stop.observations[0], reward, False, self._over, step_info(stop, 0)
