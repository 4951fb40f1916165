"""A flow of a scenario as an environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.gym._gymnasium import gymnasium
from jostle.gym.design import AURORA, Design
from jostle.gym.domain import Domain, Draw
from jostle.gym.rewards import INTERVAL, Reward, aurora_reward
from jostle.gym.stepping import Simulations, Stop
from jostle.scenario import Scenario

__all__ = ["FlowEnv", "box"]

Observation = npt.NDArray[np.float32]


def box(bounds: npt.NDArray[np.float32]) -> gymnasium.spaces.Box:
    """Return the space between bounds of shape (numbers, 2)."""
    return gymnasium.spaces.Box(bounds[:, 0], bounds[:, 1], dtype=np.float32)


def told(stop: Stop, place: int, learner: int = 0) -> dict[str, Any]:
    """Return what is told beside an observation."""
    interval = stop.intervals[place, learner]
    values = {name: float(interval[name]) for name in INTERVAL.names or ()}
    return {"time_s": float(stop.time_s[place]), "interval": values}


class FlowEnv(gymnasium.Env[Any, Any]):
    """A scenario in which one flow is governed by actions.

    An episode is a run. It is truncated with the last interval that ends before the run does, and
    never terminates. A learner that opens late is waited for.

    Parameters
    ----------
    scenario
        A scenario, or its file; conditions of its grid are drawn at random.
    learner
        Name of the flow.
    design
        What is observed and what actions do.
    reward
        What an interval is worth.
    draw
        Draws values of further keys of the scenario.
    render_mode
        There is none.

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
        design: Design = AURORA,
        reward: Reward = aurora_reward,
        draw: Draw | None = None,
        render_mode: None = None,
    ) -> None:
        self.render_mode = render_mode
        self._domain = Domain(scenario, [learner], draw)
        self._simulations = Simulations(1, [design], 1)
        self._reward = reward
        self.observation_space = box(design.observation_bounds)
        self.action_space = box(design.bounds)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode: the same one for the same seed.

        Parameters
        ----------
        seed
            Seeds what is drawn from now on.
        options
            There are none.

        Returns
        -------
        tuple
            The observation of the first interval; what was drawn, the time, and the interval.
        """
        super().reset(seed=seed)
        episode = self._domain.episode(self.np_random)
        stop = self._simulations.begin([0], [episode])
        return stop.observations[0], {**told(stop, 0), "episode": episode.about}

    def step(self, action: npt.ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Act, and go on to the end of the next interval.

        Returns
        -------
        tuple
            Observation, reward of the interval, False, whether it was the last one, and its values.
        """
        stop = self._simulations.step(action)
        reward = float(self._reward(stop.intervals[:, 0])[0])
        return stop.observations[0], reward, False, bool(stop.over[0]), told(stop, 0)
