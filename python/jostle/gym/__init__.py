"""Scenarios as environments for reinforcement learning, with the interface of Gymnasium.

Your code controls a flow of a scenario: at the end of every monitor interval it receives an
observation and returns an action. This package needs the extra `gym`.

>>> import jostle.gym
>>> environment = jostle.gym.FlowEnv("scenarios/first.toml", "newcomer")
>>> observation, about = environment.reset(seed=1)
>>> observation.shape  # three features of each of the last ten intervals, as Aurora has them
(30,)
"""

from jostle.gym._gymnasium import gymnasium
from jostle.gym.agent_design import AURORA, FEATURES, ORCA, AgentDesign
from jostle.gym.episode_sampler import EpisodeSampler
from jostle.gym.episode_stepper import ActionError
from jostle.gym.flow_env import FlowEnv
from jostle.gym.multi_agent_env import MultiFlowEnv
from jostle.gym.policy import Policy, write_policy
from jostle.gym.rewards import INTERVAL, Intervals, Reward, aurora_reward, orca_reward
from jostle.gym.vector_env import FlowVectorEnv

__all__ = [
    "AURORA",
    "FEATURES",
    "INTERVAL",
    "ORCA",
    "ActionError",
    "AgentDesign",
    "EpisodeSampler",
    "FlowEnv",
    "FlowVectorEnv",
    "Intervals",
    "MultiFlowEnv",
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
