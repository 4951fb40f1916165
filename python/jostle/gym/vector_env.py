"""Vectorised environment with many episodes of one flow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.gym._gymnasium import gymnasium
from jostle.gym.agent_design import AURORA, AgentDesign
from jostle.gym.episode_sampler import Draw, EpisodeSampler
from jostle.gym.episode_stepper import Simulations, StepResult, check_actions, has_nan, refuse_nan
from jostle.gym.flow_env import box
from jostle.gym.rewards import Reward, aurora_reward
from jostle.scenario import Scenario

__all__ = ["FlowVectorEnv"]

_Observations = npt.NDArray[np.float32]


class FlowVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many copies of `FlowEnv`, stepped by threads without Python's interpreter lock.

    After the end of an episode, the next step starts a new one (`AutoresetMode.NEXT_STEP`); its
    action is ignored and its reward is 0. Each copy has separate random numbers, so that a seed
    gives the same episodes with any number of threads.

    Parameters
    ----------
    scenario, learner, design, reward, draw
        See `FlowEnv`.
    num_envs
        Number of copies.
    threads
        Number of threads; by default the number of cores.
    autoreset
        Whether a new episode starts automatically. If false (`AutoresetMode.DISABLED`), steps have
        no effect on a finished episode, and its rewards are 0.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        learner: str,
        *,
        num_envs: int = 1,
        design: AgentDesign = AURORA,
        reward: Reward = aurora_reward,
        draw: Draw | None = None,
        threads: int | None = None,
        autoreset: bool = True,
        render_mode: None = None,
    ) -> None:
        self.num_envs = num_envs
        self.render_mode = render_mode
        mode = gymnasium.vector.AutoresetMode
        self.metadata = {
            "render_modes": [],
            "autoreset_mode": mode.NEXT_STEP if autoreset else mode.DISABLED,
        }
        self._autoreset = autoreset
        threads = threads or os.cpu_count() or 1
        self._domain = EpisodeSampler(scenario, [learner], draw)
        self._simulations = Simulations(num_envs, [design], min(threads, num_envs))
        self._reward = reward
        self.single_observation_space = box(design.observation_bounds)
        self.single_action_space = box(design.bounds)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._shape = (num_envs, len(design.bounds))
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._over = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[_Observations, dict[str, Any]]:
        """Start all episodes, or some.

        Parameters
        ----------
        seed
            Seed of the first copy, with consecutive seeds for the others, or one seed per copy.
            `FlowEnv` has the same episodes with these seeds.
        options
            `reset_mask`, shape (num_envs,): the episodes to start; by default all.
        """
        super().reset()
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        if seed is not None:
            seeds = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
            self._random = [gymnasium.utils.seeding.np_random(each)[0] for each in seeds]
        stop = self._begin(np.flatnonzero(mask).tolist())
        self._over = stop.over
        return stop.observations, self._step_info(stop)

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[
        _Observations,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Apply an action in each copy, and continue to the end of the next interval.

        Parameters
        ----------
        actions
            Actions, shape (num_envs, numbers).

        Returns
        -------
        tuple
            Observations, rewards, all False, whether each episode has ended, and the intervals.

        Raises
        ------
        ActionError
            If the action of a running episode contains NaN, or if the array has another shape. It
            is a `ValueError`, too.
        """
        numbers = check_actions(actions, self._shape)
        if has_nan(numbers):
            refuse_nan(numbers[~self._over])
        stop = self._simulations.step(numbers)
        paid = stop.due[:, 0] & ~self._over
        count = np.count_nonzero(paid)
        if count == self.num_envs:
            rewards = self._reward(stop.intervals[:, 0])
        else:
            rewards = np.zeros(self.num_envs)
        if 0 < count < self.num_envs:
            rewards[paid] = self._reward(stop.intervals[paid, 0])
        if self._autoreset and self._over.any():
            stop = self._begin(np.flatnonzero(self._over).tolist())
        self._over = stop.over
        return (
            stop.observations,
            rewards,
            np.zeros(self.num_envs, bool),
            stop.over,
            self._step_info(stop),
        )

    def _begin(self, which: Sequence[int]) -> StepResult:
        episodes = [self._domain.episode(self._random[place]) for place in which]
        return self._simulations.begin(which, episodes)

    @staticmethod
    def _step_info(stop: StepResult) -> dict[str, Any]:
        return {"time_s": stop.time_s, "interval": stop.intervals[:, 0]}
