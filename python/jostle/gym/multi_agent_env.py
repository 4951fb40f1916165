"""Environment with several learners in one run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.errors import InputError
from jostle.gym._gymnasium import gymnasium
from jostle.gym.agent_design import AURORA, AgentDesign
from jostle.gym.episode_sampler import Draw, EpisodeSampler
from jostle.gym.episode_stepper import Simulations, StepResult, check_actions, refuse_nan
from jostle.gym.flow_env import NO_EPISODE, box, step_info
from jostle.gym.rewards import Reward, aurora_reward
from jostle.scenario import Scenario

__all__ = ["MultiFlowEnv"]

_Told = dict[str, dict[str, Any]]


class MultiFlowEnv:
    """A scenario in which your actions control several flows, each with its own intervals.

    The interface is PettingZoo's parallel environment, with one difference: intervals of learners
    end at different times. A step continues until an interval ends, and returns observations and
    rewards only for the learners whose interval ended. These learners act next; the others keep
    their last action. The last step returns all learners as truncated; a learner whose interval did
    not end has its last observation and reward 0.

    Parameters
    ----------
    scenario, reward, draw
        See `FlowEnv`.
    learners
        Design by flow name, or a list of flow names with Aurora's design.
    """

    metadata: dict[str, Any] = {"name": "jostle/Flows-v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        learners: Mapping[str, AgentDesign] | list[str],
        *,
        reward: Reward = aurora_reward,
        draw: Draw | None = None,
    ) -> None:
        designs = learners if isinstance(learners, Mapping) else dict.fromkeys(learners, AURORA)
        self.possible_agents = list(designs)
        self.agents: list[str] = []
        self._domain = EpisodeSampler(scenario, self.possible_agents, draw)
        self._simulations = Simulations(1, list(designs.values()), 1)
        self._reward = reward
        self._spaces = {
            name: (box(design.observation_bounds), box(design.bounds))
            for name, design in designs.items()
        }
        self._actions = {name: np.zeros(len(design.bounds)) for name, design in designs.items()}
        self._random = np.random.default_rng()
        self._due: list[str] = []

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of a learner's observations."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Return the space of a learner's actions."""
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, npt.NDArray[np.float32]], _Told]:
        """Start an episode. The same seed gives the same episode."""
        if seed is not None:
            self._random = gymnasium.utils.seeding.np_random(seed)[0]
        self._actions = {name: np.zeros_like(action) for name, action in self._actions.items()}
        self.agents = []
        episode = self._domain.episode(self._random)
        stop = self._simulations.begin([0], [episode])
        self.agents = list(self.possible_agents)
        observations, about = self._shown(stop)
        return observations, {name: {**it, "episode": episode.about} for name, it in about.items()}

    def step(
        self, actions: Mapping[str, npt.ArrayLike]
    ) -> tuple[
        dict[str, npt.NDArray[np.float32]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        _Told,
    ]:
        """Apply actions of learners whose intervals have ended, and continue to the next end.

        Parameters
        ----------
        actions
            Actions by learner. A learner without an action keeps its last one.

        Raises
        ------
        InputError
            If a learner without an observation gets an action.
        ActionError
            If an action is NaN, or not an array of the shape of its space. It is a `ValueError`,
            too.
        gymnasium.error.ResetNeeded
            If no episode is running.
        """
        if not self.agents:
            raise gymnasium.error.ResetNeeded(NO_EPISODE)
        checked = {}
        for name, action in actions.items():
            if name not in self._due:
                raise InputError(f"no interval of `{name}` has ended: act for {self._due}")
            checked[name] = check_actions(action, self._spaces[name][1].shape, f" of `{name}`")
            refuse_nan(checked[name], f" of `{name}`")
        self._actions.update(checked)
        stop = self._simulations.step(np.concatenate(list(self._actions.values())))
        observations, about = self._shown(stop)
        due = stop.due[0]
        values = np.zeros(len(due))
        values[due] = self._reward(stop.intervals[0, due])
        rewards = {name: float(values[self.possible_agents.index(name)]) for name in observations}
        over = bool(stop.over[0])
        if over:
            self.agents = []
        ended, cut = dict.fromkeys(observations, False), dict.fromkeys(observations, over)
        return observations, rewards, ended, cut, about

    def _shown(self, stop: StepResult) -> tuple[dict[str, npt.NDArray[np.float32]], _Told]:
        lengths = [len(self._spaces[name][0].low) for name in self.possible_agents]
        parts = np.split(stop.observations[0], np.cumsum(lengths)[:-1])
        over = bool(stop.over[0])
        shown = {name: i for i, name in enumerate(self.possible_agents) if over or stop.due[0, i]}
        self._due = [] if over else list(shown)
        about = {name: step_info(stop, 0, i) for name, i in shown.items()}
        return {name: parts[i] for name, i in shown.items()}, about
