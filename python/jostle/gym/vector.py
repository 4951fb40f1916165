"""Many episodes of one flow at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.gym._gymnasium import gymnasium
from jostle.gym.design import AURORA, Design
from jostle.gym.domain import Domain, Draw
from jostle.gym.environment import box
from jostle.gym.rewards import Reward, aurora_reward
from jostle.gym.stepping import Simulations, Stop
from jostle.scenario import Scenario

__all__ = ["FlowVectorEnv"]

_Observations = npt.NDArray[np.float32]


class FlowVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """As `FlowEnv`, many times over: steps are carried out by threads, without Python's lock.

    An episode that is over begins anew with the step after (`AutoresetMode.NEXT_STEP`), whose
    action does nothing and whose reward is 0; or it waits for a reset. Each
    place has random numbers of its own, so that the same seed gives the same episodes whatever the
    number of threads.

    Parameters
    ----------
    scenario, learner, design, reward, draw
        As for `FlowEnv`.
    num_envs
        How many.
    threads
        Threads that carry steps out; as many as there are cores if absent.
    autoreset
        Whether episodes begin anew. Without it (`AutoresetMode.DISABLED`) steps do nothing to one
        that is over, and their rewards are 0.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        learner: str,
        *,
        num_envs: int = 1,
        design: Design = AURORA,
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
        self._domain = Domain(scenario, [learner], draw)
        self._simulations = Simulations(num_envs, [design], min(threads, num_envs))
        self._reward = reward
        self.single_observation_space = box(design.observation_bounds)
        self.single_action_space = box(design.bounds)
        self.observation_space = gymnasium.vector.utils.batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._over = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[_Observations, dict[str, Any]]:
        """Begin all episodes, or some.

        Parameters
        ----------
        seed
            Seed of the first, the others' following; or one for each. `FlowEnv` has the same
            episodes with them.
        options
            `reset_mask`, of shape (num_envs,): the episodes that begin; all if absent.
        """
        super().reset()
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        if seed is not None:
            seeds = range(seed, seed + self.num_envs) if isinstance(seed, int) else seed
            self._random = [gymnasium.utils.seeding.np_random(each)[0] for each in seeds]
        stop = self._begin(np.flatnonzero(mask).tolist())
        self._over = stop.over
        return stop.observations, self._told(stop)

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[
        _Observations,
        npt.NDArray[np.float64],
        npt.NDArray[np.bool_],
        npt.NDArray[np.bool_],
        dict[str, Any],
    ]:
        """Act in each, and go on to the ends of the next intervals.

        Parameters
        ----------
        actions
            Of shape (num_envs, numbers).

        Returns
        -------
        tuple
            Observations, rewards, all False, whether each episode is over, and the intervals.
        """
        stop = self._simulations.step(actions)
        rewards = self._reward(stop.intervals[:, 0])
        rewards[self._over] = 0.0
        if self._autoreset and self._over.any():
            stop = self._begin(np.flatnonzero(self._over).tolist())
        self._over = stop.over
        return (
            stop.observations,
            rewards,
            np.zeros(self.num_envs, bool),
            stop.over,
            self._told(stop),
        )

    def _begin(self, which: Sequence[int]) -> Stop:
        episodes = [self._domain.episode(self._random[place]) for place in which]
        return self._simulations.begin(which, episodes)

    @staticmethod
    def _told(stop: Stop) -> dict[str, Any]:
        return {"time_s": stop.time_s, "interval": stop.intervals[:, 0]}
