"""Train a small policy to share a link, and write it to a file for the controller `learned`.

    pip install "jostle[gym,tune]"
    python examples/learn/learn.py trained.policy
    jostle run examples/learn/beside-cubic.toml

A network of six inputs and four neurons decides once per RTT by how much the window grows or
shrinks, up to a factor of two. Its reward per interval is the logarithm of its
delivery rate minus the logarithm of the mean RTT, minus losses: proportional fairness with a price
for delay.
It sees paths of 2 to 16 Mbit/s, alone in half of the episodes and next to Cubic in the others.

The search is CMA-ES (Hansen & Ostermeier 2001; the package `cmaes`): it draws 14 networks at a
time, tries each in the same 8 episodes, and moves to where the better ones were. For a network of
33 weights and episodes that take a hundredth of a second that needs no gradients, no model of what
an action is worth, and no library that has them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cmaes import CMA
from jostle.gym import AgentDesign, FlowVectorEnv, Intervals, write_policy

FOLDER = Path(__file__).parent
DESIGN = AgentDesign(
    features=("rtt_gradient", "rtt_ratio", "loss_ratio"),
    history=2,
    interval="1 rtt",
    action="window 1",
)
NEURONS = 4
INPUTS = DESIGN.history * len(DESIGN.features)
WEIGHTS = (INPUTS + 1) * NEURONS + NEURONS + 1
DELAY_PRICE = 0.5
LOSS_PRICE = 5.0
HELD_OUT = 2**31
"""Seed of the first episode that the search never sees."""
LOOK_EVERY = 4

Numbers = npt.NDArray[np.float64]


def reward(intervals: Intervals) -> Numbers:
    """Return log(delivery rate in Mbit/s) less the prices of delay and of losses."""
    rate = np.log(np.maximum(intervals["delivery_bps"], 1e4) / 1e6)
    delay = np.log(intervals["rtt_mean_s"] / intervals["least_rtt_s"])
    known = np.maximum(intervals["acked_packets"] + intervals["lost_packets"], 1)
    return np.asarray(rate - DELAY_PRICE * delay - LOSS_PRICE * intervals["lost_packets"] / known)


def layers(weights: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Cut weights into both layers of networks: weights and biases; of shape (networks, …)."""
    cuts = np.cumsum([INPUTS * NEURONS, NEURONS, NEURONS])
    first, bias, second, last = np.split(weights, cuts, axis=-1)
    shape = (*weights.shape[:-1], NEURONS, INPUTS)
    return first.reshape(shape), bias, second[..., None, :], last


def worth(environment: FlowVectorEnv, networks: Numbers, seeds: list[int]) -> Numbers:
    """Return the mean reward per second of each network: each sees the episodes of all seeds."""
    count = len(networks)
    first, bias, second, last = layers(networks)
    observations, about = environment.reset(seed=seeds * count)
    rewards, over = np.zeros(count * len(seeds)), np.zeros(count * len(seeds), bool)
    time_s = np.zeros(len(over))
    while not over.all():
        seen = observations.reshape(count, len(seeds), INPUTS, 1)
        hidden = np.tanh(first[:, None] @ seen + bias[:, None, :, None])
        actions = (second[:, None] @ hidden)[..., 0] + last[:, None, :]
        observations, values, _, truncated, about = environment.step(actions.reshape(-1, 1))
        # Intervals are as long as RTTs: what counts is time.
        rewards += np.where(over, 0.0, values * about["interval"]["duration_s"])
        time_s += np.where(over, 0.0, about["interval"]["duration_s"])
        over = truncated
    return np.asarray((rewards / time_s).reshape(count, -1).mean(axis=1))


def train(
    generations: int, networks: int, episodes: int, seed: int
) -> tuple[Numbers, list[tuple[int, float]]]:
    """Search for weights; prints how it goes.

    Returns
    -------
    weights
        The mean of the search after its last generation.
    curve
        Reward per second of that mean in episodes that the search does not see, the same each time:
        after how many generations, and the reward.
    """
    environment = FlowVectorEnv(
        FOLDER / "train.toml",
        "learner",
        num_envs=networks * episodes,
        design=DESIGN,
        reward=reward,
        autoreset=False,
    )
    search = CMA(mean=np.zeros(WEIGHTS), sigma=0.5, population_size=networks, seed=seed)
    random = np.random.default_rng(seed)
    unseen = [HELD_OUT + at for at in range(networks * episodes)]
    curve = []
    start = time.monotonic()
    for generation in range(generations):
        if generation % LOOK_EVERY == 0:
            curve.append((generation, float(worth(environment, search.mean[None], unseen)[0])))
        drawn = np.array([search.ask() for _ in range(networks)])
        # The same episodes for all: what differs is the network and not its luck.
        seeds = random.integers(2**31, size=episodes).tolist()
        worths = worth(environment, drawn, seeds)
        search.tell([(one, -value) for one, value in zip(drawn, worths, strict=True)])
        if generation % 10 == 0 or generation == generations - 1:
            took = time.monotonic() - start
            print(
                f"{generation:4} {took:6.0f} s  mean {worths.mean():.3f}  best {worths.max():.3f}",
                flush=True,
            )
    curve.append((generations, float(worth(environment, search.mean[None], unseen)[0])))
    return np.asarray(search.mean), curve


def write(path: Path, weights: Numbers, about: str) -> None:
    """Write the network of some weights to a file."""
    first, bias, second, last = layers(weights)
    write_policy(path, DESIGN, [("tanh", first, bias), ("linear", second, last)], about=about)


def main() -> None:
    """Train, and write the policy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policy", type=Path, help="file for the policy")
    parser.add_argument("--curve", type=Path, help="CSV file for how the reward grew")
    parser.add_argument("--generations", type=int, default=80)
    parser.add_argument("--networks", type=int, default=14)
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    weights, curve = train(given.generations, given.networks, given.episodes, given.seed)
    about = (
        f"Trained by examples/learn/learn.py: {given.generations} generations of {given.networks} "
        f"networks, {given.episodes} episodes each, seed {given.seed}."
    )
    write(given.policy, weights, about)
    if given.curve is not None:
        rows = ["generation,reward_per_s", *(f"{after},{reached!r}" for after, reached in curve)]
        given.curve.write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
