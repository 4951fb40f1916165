"""Scenarios as environments for reinforcement learning, in the interface of Gymnasium.

A flow of a scenario is governed by whoever steps the environment: at the end of every monitor
interval it gives an observation and takes an action. It needs the extra `gym`.

>>> import jostle.gym
>>> environment = jostle.gym.FlowEnv("scenarios/first.toml", "newcomer")
>>> observation, about = environment.reset(seed=1)
>>> observation.shape  # three features of each of the last ten intervals, as Aurora has them
(30,)
"""

from jostle.gym._gymnasium import gymnasium
from jostle.gym.design import AURORA, FEATURES, ORCA, Design
from jostle.gym.domain import Domain
from jostle.gym.environment import FlowEnv
from jostle.gym.policy import Policy, write_policy
from jostle.gym.rewards import INTERVAL, Intervals, Reward, aurora_reward, orca_reward
from jostle.gym.several import FlowsEnv
from jostle.gym.vector import FlowVectorEnv

__all__ = [
    "AURORA",
    "FEATURES",
    "INTERVAL",
    "ORCA",
    "Design",
    "Domain",
    "FlowEnv",
    "FlowVectorEnv",
    "FlowsEnv",
    "Intervals",
    "Policy",
    "Reward",
    "aurora_reward",
    "orca_reward",
    "write_policy",
]

gymnasium.register(
    "jostle/Flow-v0",
    entry_point="jostle.gym:FlowEnv",
    vector_entry_point="jostle.gym:FlowVectorEnv",
)
