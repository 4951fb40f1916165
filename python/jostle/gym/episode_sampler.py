"""Sampling of episodes: random conditions of a scenario."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jostle import scenario as scenarios
from jostle.errors import InputError, unknown
from jostle.kernel_images.controller_modules import refuse_in_simulator
from jostle.scenario import Scenario

__all__ = ["Draw", "Episode", "EpisodeSampler"]

Draw = Callable[[np.random.Generator], Mapping[str, Any]]
"""Draws values of a scenario's keys: `{"bottleneck.rate": f"{random.integers(5, 50)} Mbit/s"}`."""

_LEARNER: Final = "jostle:learner"
"""Name in place of the learners' controllers; it is not in the registry."""


_WITHOUT_EFFECT: Final = frozenset({"seed", "repeats", "repeat_until", "max_repeats"})
"""Keys of a scenario that an episode ignores."""


class Episode:
    """A run that can be started.

    Attributes
    ----------
    spec_json
        RunSpec of the run.
    flows
        Positions of the learners' flows.
    about
        Drawn values: labels of the condition, and seed of the run.
    """

    def __init__(self, spec_json: str, flows: Sequence[int], about: Mapping[str, Any]) -> None:
        self.spec_json = spec_json
        self.flows = list(flows)
        self.about = dict(about)


class EpisodeSampler:
    """A scenario from which episodes are drawn: a condition and a seed.

    Parameters
    ----------
    scenario
        A scenario, or its file. All conditions of its grid are equally likely.
    learners
        Names of the flows that your code controls. Their controllers in the scenario are ignored,
        but a controller's own transport, such as QUIC, is kept.
    draw
        Function that draws values of keys, for ranges that a grid cannot list. A key of the grid
        that it draws no longer varies. It adds some milliseconds per episode.

    Raises
    ------
    InputError
        If a flow does not exist, or if `draw` returns a key without effect.
    ScenarioError
        If the scenario has problems.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        learners: Sequence[str],
        draw: Draw | None = None,
    ) -> None:
        if isinstance(scenario, str | os.PathLike):
            scenario = scenarios.load(Path(scenario))
        self._scenario = scenario
        self.learners = tuple(learners)
        self._draw = draw
        # Draw one episode, to check that the flows exist.
        self.episode(np.random.default_rng(0))

    def _drawn(self, random: np.random.Generator) -> dict[str, Any]:
        if self._draw is None:
            return {}
        drawn = self._draw(random)
        if not isinstance(drawn, Mapping):
            raise InputError(f"`draw` has to return a mapping of keys to values, not {drawn!r}")
        for key in _WITHOUT_EFFECT & drawn.keys():
            raise InputError(
                f"`draw` returned `{key}`, which has no effect: an episode is one run, and its seed"
                " follows from the seed of `reset`"
            )
        return dict(drawn)

    def episode(self, random: np.random.Generator) -> Episode:
        """Draw an episode."""
        seed = int(random.integers(2**63 - 1))
        drawn = self._drawn(random)
        scenario = self._scenario.set(drawn) if drawn else self._scenario
        # A drawn key no longer varies, so this plan may have fewer conditions than the file.
        plan = scenario.plan(repeats=1, seed=seed)
        conditions = len(plan.conditions)
        which = int(random.integers(conditions)) if conditions > 1 else 0
        planned = plan.runs[which]
        spec = dict(planned.spec)
        names = [flow["name"] for flow in planned.spec["flows"]]
        for name in self.learners:
            if name not in names:
                raise InputError(unknown("flow", name, names))
        refuse_in_simulator(
            flow for flow in planned.spec["flows"] if flow["name"] not in self.learners
        )
        learner = {"name": _LEARNER, "parameters": {}}
        spec["flows"] = [
            {**flow, "controller": learner, "slow_start": None}
            if flow["name"] in self.learners
            else flow
            for flow in planned.spec["flows"]
        ]
        about = {**plan.conditions[which], **drawn, "seed": seed}
        return Episode(json.dumps(spec), [names.index(name) for name in self.learners], about)
