"""Scenarios as environments."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import jostle
import jostle.gym
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.utils.env_checker import check_env
from jostle import _core
from jostle.errors import InputError
from jostle.gym import AURORA, INTERVAL, ORCA, AgentDesign, FlowEnv, FlowVectorEnv, MultiFlowEnv

SCENARIO = jostle.Scenario.from_toml("""
duration = "4 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "2 BDP" }
loss = { kind = "independent", probability = 0.001 }
[[flows]]
name = "learner"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "other"
controller = "cubic"
rtt = "40 ms"
start = "2 s"
[grid]
"bottleneck.rate" = ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"]
""")


def an_episode(environment: Any, seed: int | None, actions: float | None = None) -> list[Any]:
    """Everything that an episode shows, as numbers and texts."""
    random = np.random.default_rng(3)
    observation, about = environment.reset(seed=seed)
    shown = [observation.tolist(), about["episode"]]
    truncated = False
    while not truncated:
        low, high = environment.action_space.low, environment.action_space.high
        action = random.uniform(low, high) if actions is None else np.full(len(low), actions)
        observation, reward, terminated, truncated, about = environment.step(action)
        assert not terminated
        assert environment.observation_space.contains(observation)
        shown.append([observation.tolist(), reward, about])
    return shown


@pytest.mark.parametrize("design", [AURORA, ORCA], ids=["aurora", "orca"])
def test_the_checker_of_gymnasium_is_content(design: AgentDesign) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It would have every action space between -1 and 1.
        warnings.filterwarnings("ignore", message=".*normalize.*|.*symmetric.*")
        check_env(FlowEnv(SCENARIO, "learner", design=design), skip_render_check=True)


@pytest.mark.parametrize("design", [AURORA, ORCA], ids=["aurora", "orca"])
def test_the_same_seed_gives_the_same_episode(design: AgentDesign) -> None:
    one = FlowEnv(SCENARIO, "learner", design=design)
    other = FlowEnv(SCENARIO, "learner", design=design)
    first = an_episode(one, 5)
    assert len(first) > 50
    assert an_episode(other, 5) == first
    # What comes next is drawn from the same seed.
    assert an_episode(one, None) == an_episode(other, None)
    assert an_episode(one, 5) == first
    assert an_episode(one, 6) != first


def test_episodes_are_drawn_from_the_grid() -> None:
    environment = FlowEnv(SCENARIO, "learner")
    rates = {environment.reset(seed=seed)[1]["episode"]["bottleneck.rate"] for seed in range(20)}
    assert rates == {"5 Mbit/s", "10 Mbit/s", "20 Mbit/s"}


def test_further_keys_are_drawn_by_a_function() -> None:
    def draw(random: np.random.Generator) -> dict[str, Any]:
        return {"flows.learner.rtt": f"{random.integers(20, 200)} ms"}

    environment = FlowEnv(SCENARIO, "learner", draw=draw)
    _, about = environment.reset(seed=1)
    rtt_ms = float(about["episode"]["flows.learner.rtt"].split()[0])
    assert 0.9 * rtt_ms < 1e3 * about["interval"]["least_rtt_s"] < 1.5 * rtt_ms
    assert an_episode(environment, 1) == an_episode(environment, 1)


def test_a_drawn_key_of_the_grid_no_longer_varies() -> None:
    def draw(random: np.random.Generator) -> dict[str, Any]:
        return {"bottleneck.rate": f"{random.integers(30, 40)} Mbit/s"}

    environment = FlowEnv(SCENARIO, "learner", draw=draw)
    for seed in range(5):
        rate = environment.reset(seed=seed)[1]["episode"]["bottleneck.rate"]
        assert 30 <= float(rate.split()[0]) < 40


def test_the_other_keys_of_the_grid_still_vary() -> None:
    scenario = SCENARIO.set(
        {
            "grid": {
                "bottleneck.rate": ["5 Mbit/s", "10 Mbit/s"],
                "flows.other.start": ["1 s", "2 s"],
            }
        }
    )
    environment = FlowEnv(scenario, "learner", draw=lambda _: {"bottleneck.rate": "30 Mbit/s"})
    episodes = [environment.reset(seed=seed)[1]["episode"] for seed in range(10)]
    assert {one["flows.other.start"] for one in episodes} == {"1 s", "2 s"}
    assert {one["bottleneck.rate"] for one in episodes} == {"30 Mbit/s"}


def of_vector(environment: FlowVectorEnv, steps: int) -> list[npt.NDArray[Any]]:
    observations, _ = environment.reset(seed=11)
    shown: list[npt.NDArray[Any]] = [observations]
    random = np.random.default_rng(4)
    low, high = environment.single_action_space.low, environment.single_action_space.high
    for _ in range(steps):
        actions = random.uniform(low, high, (environment.num_envs, len(low)))
        observations, rewards, _, truncations, _ = environment.step(actions)
        shown += [observations, rewards, truncations]
    return shown


def test_threads_make_no_difference() -> None:
    shown = [
        of_vector(FlowVectorEnv(SCENARIO, "learner", num_envs=5, design=ORCA, threads=threads), 250)
        for threads in (1, 3)
    ]
    for one, other in zip(*shown, strict=True):
        np.testing.assert_array_equal(one, other)
    assert any(each.any() for each in shown[0][3::3]), "no episode ended"


def test_a_vector_has_the_episodes_of_single_environments() -> None:
    vector = FlowVectorEnv(SCENARIO, "learner", num_envs=3, threads=2)
    singles = [FlowEnv(SCENARIO, "learner") for _ in range(3)]
    observations, _ = vector.reset(seed=20)
    for seed, single, observation in zip((20, 21, 22), singles, observations, strict=True):
        np.testing.assert_array_equal(single.reset(seed=seed)[0], observation)
    over = np.zeros(3, bool)
    random = np.random.default_rng(9)
    for _ in range(400):
        actions = random.uniform(-1, 1, (3, 1))
        observations, rewards, _, truncations, _ = vector.step(actions)
        for i, single in enumerate(singles):
            if over[i]:
                # The step after the last begins anew.
                observation, reward, truncated = single.reset()[0], 0.0, False
            else:
                observation, reward, _, truncated, _ = single.step(actions[i])
            np.testing.assert_array_equal(observation, observations[i])
            assert (reward, truncated) == (rewards[i], truncations[i])
        over = truncations
    assert over.shape == (3,)


def test_episodes_can_wait_for_a_reset() -> None:
    vector = FlowVectorEnv(SCENARIO, "learner", num_envs=2, design=ORCA, autoreset=False)
    first, _ = vector.reset(seed=[8, 9])
    over = np.zeros(2, bool)
    while not over.all():
        observations, rewards, _, truncations, _ = vector.step(np.zeros((2, 1)))
        assert (rewards[over] == 0).all()
        assert truncations[over].all()
        over = truncations
    again, _ = vector.reset(seed=[8, 9], options={"reset_mask": np.array([True, False])})
    np.testing.assert_array_equal(again, [first[0], observations[1]])
    assert vector.step(np.zeros((2, 1)))[3].tolist() == [False, True]


def test_gymnasium_makes_them() -> None:
    environment = gymnasium.make("jostle/Flow-v0", scenario=SCENARIO, learner="learner")
    assert environment.reset(seed=1)[0].shape == (30,)
    vector = gymnasium.make_vec("jostle/Flow-v0", 2, scenario=SCENARIO, learner="learner")
    assert vector.reset(seed=1)[0].shape == (2, 30)


def test_actions_do_what_they_say() -> None:
    environment = FlowEnv(SCENARIO, "learner")
    _, about = environment.reset(seed=1)
    before = about["interval"]["pacing_bps"]
    _, _, _, _, about = environment.step([2.0])
    assert about["interval"]["pacing_bps"] == pytest.approx(before * 1.05, abs=2)
    _, _, _, _, about = environment.step([-2.0])
    assert about["interval"]["pacing_bps"] == pytest.approx(before, abs=2)
    # Beyond its bounds an action is held within them.
    _, _, _, _, about = environment.step([1e9])
    assert about["interval"]["pacing_bps"] == pytest.approx(before * 1.25, abs=2)

    absolute = AgentDesign(("rtt_ratio",), 1, "1000 ms", "absolute")
    environment = FlowEnv(SCENARIO, "learner", design=absolute)
    environment.reset(seed=1)
    _, _, _, _, about = environment.step([5.0, 1.0])
    assert about["interval"]["cwnd_packets"] == 32
    assert about["interval"]["pacing_bps"] == 2e6
    assert about["interval"]["sending_bps"] == pytest.approx(2e6, rel=0.02)

    window = AgentDesign(("rtt_ratio",), 1, "200 ms", "window 1")
    environment = FlowEnv(SCENARIO, "learner", design=window)
    environment.reset(seed=1)
    _, _, _, _, about = environment.step([1.0])
    assert about["interval"]["cwnd_packets"] == 20


def test_orca_that_leaves_cubic_alone_is_cubic() -> None:
    """With 4^0 as its factor.

    A wake-up has the sender look once more at what it holds back for a larger burst, so that single
    packets leave some microseconds earlier.
    """
    scenario = SCENARIO.set({"sampling_interval": "1 s"})
    engine = FlowEnv(scenario, "learner", design=ORCA)
    an_episode(engine, 2, 0.0)
    record = engine._simulations.finish(0)
    rate = engine.reset(seed=2)[1]["episode"]
    spec = scenario.set({"bottleneck.rate": rate["bottleneck.rate"]})
    planned = spec.plan(repeats=1, seed=rate["seed"]).runs[0]
    from_cubic = _core.run(json.dumps(planned.spec))
    for column in ("cwnd_bytes", "goodput_bps", "srtt_s"):
        np.testing.assert_allclose(record.flows[column], from_cubic.flows[column], rtol=1e-4)


def interval(**values: float) -> npt.NDArray[Any]:
    it = np.zeros(1, INTERVAL)
    for name, value in values.items():
        it[name] = value
    return it


def test_rewards_are_those_of_the_papers() -> None:
    # 300 packets in 1.5 s at 80 ms, 3 % lost: 10 × 200 − 1000 × 0.08 − 2000 × 0.03.
    it = interval(duration_s=1.5, acked_packets=300, lost_packets=300 * 3 / 97, rtt_mean_s=0.08)
    assert jostle.gym.aurora_reward(it)[0] == pytest.approx((2000 - 80 - 60) / 1000)
    # 8 of at most 10 Mbit/s, 0.4 of them lost; 60 ms where 50 are free: 6/10; 100 ms: 5/8 of that.
    of_orca = {
        "duration_s": 1.0, "lost_packets": 50.0, "packet_bytes": 1000.0, "delivery_bps": 8e6,
        "most_delivery_bps": 10e6, "least_rtt_s": 0.05,
    }  # fmt: skip
    assert jostle.gym.orca_reward(interval(**of_orca, srtt_s=0.06))[0] == pytest.approx(0.6)
    assert jostle.gym.orca_reward(interval(**of_orca, srtt_s=0.1))[0] == pytest.approx(0.375)
    assert jostle.gym.orca_reward(interval())[0] == 0.0


def test_several_learn_in_one_run() -> None:
    environment = MultiFlowEnv(SCENARIO, {"learner": AURORA, "other": ORCA})

    def run() -> list[Any]:
        observations, _ = environment.reset(seed=4)
        # The other one opens later.
        assert list(observations) == ["learner"]
        shown: list[Any] = []
        acted = {"learner": 0, "other": 0}
        while environment.agents:
            actions = {name: np.array([0.5]) for name in observations}
            observations, rewards, _, _, about = environment.step(actions)
            for name, observation in observations.items():
                assert environment.observation_space(name).contains(observation)
                acted[name] += 1
            shown.append((sorted(rewards.items()), [it["time_s"] for it in about.values()]))
        assert acted["other"] == pytest.approx(2 / 0.02, abs=6)
        assert acted["learner"] > 50
        return shown

    assert run() == run()


def test_a_learner_can_speak_quic() -> None:
    environment = FlowEnv(SCENARIO.set({"flows.learner.transport": "quic"}), "learner", design=ORCA)
    shown = an_episode(environment, 1, 0.0)
    delivered = [about["interval"]["delivery_bps"] for _, _, about in shown[2:]]
    assert max(delivered) > 4e6


def test_mistakes_are_named() -> None:
    with pytest.raises(InputError, match="no flow `learned`; did you mean `learner`"):
        FlowEnv(SCENARIO, "learned")
    for change, message in [
        ({"features": ("rtt",)}, "line 2: no feature `rtt`"),
        ({"features": ()}, "an observation has 1 to 4096 numbers"),
        ({"history": 0}, "line 3: `0` is no whole number from 1 to 4096"),
        ({"interval": "20"}, "line 4: expected `interval NUMBER rtt`"),
        ({"interval": "0.1 ms"}, "an interval has 1 to 10000 ms"),
        ({"action": "jump"}, "line 5: expected `action rate SCALE`"),
        ({"action": "rate -1"}, "a scale is above 0 and at most 10"),
        ({"action": "rate x"}, "`x` is no number"),
    ]:
        given: dict[str, Any] = {
            "features": AURORA.features, "history": 10, "interval": "1 rtt", "action": "cubic",
        }  # fmt: skip
        with pytest.raises(InputError, match=message):
            AgentDesign(**{**given, **change})
    several = MultiFlowEnv(SCENARIO, ["learner", "other"])
    several.reset(seed=1)
    with pytest.raises(InputError, match="no interval of `other` has ended"):
        several.step({"other": [0.0]})


def test_policies_are_written_and_asked(tmp_path: Path) -> None:
    design = AgentDesign(("rtt_ratio", "loss_ratio"), 1, "1 rtt", "rate 0.1")
    random = np.random.default_rng(1)
    first, second = random.normal(size=(3, 2)), random.normal(size=(1, 3))
    layers = [("tanh", first, [0.1, 0.2, 0.3]), ("linear", second, [0.5])]
    jostle.gym.write_policy(tmp_path / "a.policy", design, layers, about="made\nby hand")
    observation = np.array([1.5, 0.25], np.float32)
    expected = second @ np.tanh(first @ observation + [0.1, 0.2, 0.3]) + 0.5
    policy = jostle.gym.Policy(tmp_path / "a.policy")
    np.testing.assert_allclose(policy(observation), expected, rtol=1e-12)
    with pytest.raises(InputError, match="2 numbers come in, not 3"):
        jostle.gym.write_policy(tmp_path / "b.policy", design, layers[1:])
    with pytest.raises(InputError, match="its last layer has to have 1 outputs"):
        jostle.gym.write_policy(tmp_path / "b.policy", design, layers[:1])
    assert not (tmp_path / "b.policy").exists()


def test_without_gymnasium_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import jostle.gym"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "jostle[gym]"' in done.stderr


def test_the_example_trains_and_its_policy_runs(tmp_path: Path) -> None:
    path = Path(__file__).parents[1] / "examples" / "learn" / "learn.py"
    found = importlib.util.spec_from_file_location("learn", path)
    assert found is not None
    assert found.loader is not None
    learn = importlib.util.module_from_spec(found)
    found.loader.exec_module(learn)
    weights, curve = learn.train(2, 4, 2, seed=1)
    assert [after for after, _ in curve] == [0, 2]
    again, same = learn.train(2, 4, 2, seed=1)
    np.testing.assert_array_equal(again, weights)
    assert same == curve
    learn.write(tmp_path / "trained.policy", weights, "Trained for a moment.")
    for overrides in ({}, {"flows.first.transport": "quic"}):
        scenario = jostle.load(
            path.parent / "beside-cubic.toml",
            {
                "duration": "4 s",
                "phases": "{ all = ['1 s', '4 s'] }",
                "flows.second.start": "1 s",
                "flows.first.controller": '{ name = "learned", policy = "%s" }'
                % (tmp_path / "trained.policy"),
                "bottleneck.rate": "5 Mbit/s",
                "bottleneck.queue.limit": "1 BDP",
                **overrides,
            },
        )
        results = jostle.run(scenario, store=False, repeats=1)
        assert not results.failures
        first = results.flows.filter(results.flows["flow"] == "first")
        assert first["controller"].unique().to_list() == ["learned"]
        assert (first["sent_packets"] > 0).all()


SHORT = SCENARIO.set({"flows.learner.size": "20 kB"})
TWENTY_MS = AgentDesign(("rtt_ratio",), 1, "20 ms", "window 1")


def acked_packets(intervals: npt.NDArray[Any]) -> npt.NDArray[Any]:
    assert (intervals["duration_s"] > 0).all()
    return np.array(intervals["acked_packets"])


def test_no_interval_is_paid_twice_if_the_flow_ends_before_the_run() -> None:
    environment = FlowEnv(SHORT, "learner", design=TWENTY_MS, reward=acked_packets)
    _, about = environment.reset(seed=1)
    total, truncated = about["interval"]["acked_packets"], False
    while not truncated:
        _, reward, _, truncated, about = environment.step([0.0])
        total += reward
    assert (reward, about["interval"]["duration_s"]) == (0.0, 0.0)
    # 20 kB are 14 segments.
    assert total == 14
    vector = FlowVectorEnv(
        SHORT, "learner", num_envs=2, design=TWENTY_MS, reward=acked_packets, autoreset=False
    )
    _, about = vector.reset(seed=1)
    totals, over = about["interval"]["acked_packets"].copy(), np.zeros(2, bool)
    while not over.all():
        _, rewards, _, over, _ = vector.step(np.zeros((2, 1)))
        totals += rewards
    assert totals.tolist() == [14, 14]


def test_every_learner_of_several_is_truncated_once() -> None:
    scenario = SCENARIO.set({"flows.other.start": "1 s", "flows.other.stop": "2 s"})
    environment = MultiFlowEnv(scenario, ["learner", "other"], reward=acked_packets)
    observations, _ = environment.reset(seed=1)
    truncated: list[str] = []
    while environment.agents:
        acting = list(observations)
        observations, rewards, _, cut, about = environment.step({name: [0.0] for name in acting})
        assert set(observations) == set(rewards) == set(cut) == set(about)
        truncated += [name for name, over in cut.items() if over]
    assert sorted(truncated) == ["learner", "other"]
    assert rewards["other"] == 0.0
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step({})


def test_an_episode_without_a_step_is_refused() -> None:
    drawn = {"duration": "0.01 s", "flows.other.start": "0 s"}
    too_short = FlowEnv(SCENARIO, "learner", draw=lambda _: drawn)
    with pytest.raises(InputError, match=r"before a learner has had two intervals.*0\.01 s"):
        too_short.reset(seed=1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        too_short.step([0.0])
    several = FlowVectorEnv(SCENARIO.set(drawn), "learner", num_envs=2)
    with pytest.raises(InputError, match="before a learner has had two intervals"):
        several.reset(seed=1)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([np.nan], "NaN; has the policy diverged"),
        (None, r"expected an array of shape \(1,\), not None"),
        ("x", "'x' is not an array of numbers"),
        ([0.1, 0.2], r"expected an array of shape \(1,\), not an array of shape \(2,\)"),
        ([[0.1]], r"expected an array of shape \(1,\), not an array of shape \(1, 1\)"),
    ],
)
def test_invalid_actions_are_refused(action: Any, message: str) -> None:
    environment = FlowEnv(SCENARIO, "learner")
    environment.reset(seed=1)
    with pytest.raises(ValueError, match=message):
        environment.step(action)
    several = MultiFlowEnv(SCENARIO, ["learner", "other"])
    several.reset(seed=1)
    with pytest.raises(ValueError, match=rf"`learner`: .*{message}"):
        several.step({"learner": action})
    # The action of a refused step is not kept.
    several.step({})


def test_invalid_actions_of_a_vector_are_refused() -> None:
    vector = FlowVectorEnv(SHORT, "learner", num_envs=2, design=TWENTY_MS, autoreset=False)
    vector.reset(seed=1)
    with pytest.raises(ValueError, match="NaN"):
        vector.step([[0.0], [np.nan]])
    with pytest.raises(ValueError, match=r"expected an array of shape \(2, 1\)"):
        vector.step([0.0, 0.0])
    over = np.zeros(2, bool)
    while not over.all():
        _, _, _, over, _ = vector.step([[0.0], [np.inf]])
    # Actions of finished episodes are ignored.
    vector.step([[0.0], [np.nan]])


@pytest.mark.parametrize("key", ["seed", "repeats", "max_repeats"])
def test_a_drawn_key_without_effect_is_refused(key: str) -> None:
    with pytest.raises(InputError, match=f"`draw` returned `{key}`, which has no effect"):
        FlowEnv(SCENARIO, "learner", draw=lambda _: {key: "7"})
    with pytest.raises(InputError, match="`draw` has to return a mapping"):
        FlowEnv(SCENARIO, "learner", draw=lambda _: None)  # type: ignore[arg-type,return-value]
