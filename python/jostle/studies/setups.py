"""Scenarios of a study with each of its setups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jostle.errors import unknown
from jostle.scenario import Scenario, load
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import ScenarioError
from jostle.scenario.parsing.toml_file import TomlFile
from jostle.studies.consistency_check import PLAIN, Mistakes, check_paths, scenario_path_mistakes
from jostle.studies.models import Experiment, ScenarioChange, Setup, StudyFile
from jostle.studies.study import DESCRIBED, LINUX

Scenarios = dict[str, Scenario]
"""By name of the experiment."""
Placed = tuple[KeyPath, ScenarioChange]
"""A change, and its position in the file."""


def read_scenarios(
    file: StudyFile, toml: TomlFile, *, allow_code: bool
) -> tuple[Scenarios, dict[str, Scenarios]]:
    """Read the scenarios of a study.

    Parameters
    ----------
    file, toml
        The study, whose setups have been checked, and the text of `study.toml`.
    allow_code
        Whether scenarios may name foreign code; see `jostle.safe_io.code_consent`.

    Returns
    -------
    tuple
        Scenarios as described, and by setup the scenarios that it changes.

    Raises
    ------
    ScenarioError
        When a scenario, or its variant for a setup, is wrong.
    """
    reader = _Reader(file, toml, allow_code=allow_code)
    described = {name: reader.scenario(name, ()) for name in file.experiments}
    changed: dict[str, Scenarios] = {}
    for at, setup in enumerate(file.setups):
        placed = list(_changes(file, at))
        changed[setup.id] = {
            name: reader.scenario(name, there)
            for name in file.experiments
            if (there := [one for one in placed if name in (one[1].experiments or (name,))])
        }
    return described, changed


def _changes(file: StudyFile, at: int) -> Iterator[Placed]:
    """Yield the changes of the setups that a setup includes, then its own."""
    setup = file.setups[at]
    places = {one.id: index for index, one in enumerate(file.setups)}
    for other in setup.over:
        yield from _changes(file, places[other])
    for index, change in enumerate(setup.changes):
        yield ("setups", at, "changes", index), change


class _Reader:
    def __init__(self, file: StudyFile, toml: TomlFile, *, allow_code: bool) -> None:
        self._file = file
        self._folder = toml.path.parent
        self._toml = toml
        self._allow_code = allow_code
        self._loaded: dict[tuple[Path, str], Scenario] = {}

    def scenario(self, name: str, changes: Sequence[Placed]) -> Scenario:
        """Read the scenario of an experiment, and apply its changes and those from a setup."""
        experiment = self._file.experiments[name]
        path = self._folder / experiment.scenario
        check_paths(path, self._folder)
        own = [
            (("experiments", name, "changes", at), one) for at, one in enumerate(experiment.changes)
        ]
        every = [*own, *changes]
        for at, change in every:
            self._check_values(path, at, change)
        whole = [one for one in every if not one[1].where]
        scenario = self._load(path, whole)
        if len(whole) < len(every):
            scenario = self._by_condition(path, experiment, scenario, every)
        plain = self._load(path, []) if changes else scenario
        if scenario.grid != plain.grid:
            raise self._varied(experiment, changes[-1])
        return scenario

    def _varied(self, experiment: Experiment, placed: Placed) -> ScenarioError:
        text = (
            f"it changes what the grid of {experiment.scenario} varies — set the value of a label: "
            """'grid."KEY".LABEL'"""
        )
        return self._toml.error([(placed[0], text)])

    def _by_condition(
        self, path: Path, experiment: Experiment, scenario: Scenario, changes: Sequence[Placed]
    ) -> Scenario:
        """Combine scenarios with the changes of single conditions into one scenario."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for condition in scenario.conditions:
            there = tuple(
                at
                for at, (_, change) in enumerate(changes)
                if {experiment.keys[key]: label for key, label in change.where.items()}.items()
                <= dict(condition).items()
            )
            groups.setdefault(there, []).append(condition.index)
        used = {at for there in groups for at in there}
        for at, (place, change) in enumerate(changes):
            if at not in used:
                where = "; ".join(f"{key} = {label}" for key, label in change.where.items())
                text = f"no condition of {experiment.scenario} has {where}"
                raise self._toml.error([((*place, "where"), text)])
        for there, conditions in groups.items():
            other = self._load(path, [changes[at] for at in there])
            if other.grid != scenario.grid:
                raise self._varied(experiment, changes[there[-1]])
            scenario = scenario.with_runs_from(other, conditions)
        return scenario

    def _load(self, path: Path, changes: Sequence[Placed]) -> Scenario:
        overrides = {
            key: _as_toml(value) for _, change in changes for key, value in change.set.items()
        }
        key = path, repr(overrides)
        try:
            if key not in self._loaded:
                self._loaded[key] = load(path, overrides, allow_code=self._allow_code)
            return self._loaded[key]
        except ScenarioError as error:
            ours = [
                ((*at, "set", key), f"in {path.name}: {one.message}")
                for one in error.problems
                for at, change in changes
                for key in change.set
                if one.key.startswith(f"--set {key}=")
            ]
            if not ours:
                raise
            raise self._toml.error(ours) from None

    def _check_values(self, path: Path, at: KeyPath, change: ScenarioChange) -> None:
        where = (*at, "set")
        self._toml.check(scenario_path_mistakes(change.set, path.parent, self._folder, where))


def _as_toml(value: Any) -> str:
    """Format a value as TOML, which differs from JSON in tables only."""
    match value:
        case dict():
            pairs = (f"{_as_toml(key)} = {_as_toml(one)}" for key, one in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case list():
            return f"[{', '.join(_as_toml(one) for one in value)}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def setup_mistakes(file: StudyFile) -> Mistakes:
    """Yield mistakes in setups and in the list of the paper's figures."""
    for name, experiment in file.experiments.items():
        for at, change in enumerate(experiment.changes):
            path: KeyPath = ("experiments", name, "changes", at)
            yield from _change_mistakes(file, path, change, [name])
            if change.experiments:
                yield (*path, "experiments"), "these changes are of one experiment"
    seen = [DESCRIBED, LINUX]
    for at, setup in enumerate(file.setups):
        yield from _setup_mistakes(file, ("setups", at), setup, seen)
        seen.append(setup.id)
    ids = {one.id for table in (file.numbers, file.claims, file.figures) for one in table}
    items: list[str] = []
    for at, covered in enumerate(file.coverage):
        for name in covered.ours:
            if name not in ids:
                yield ("coverage", at, "ours"), unknown("figure, number or claim", name, ids)
        if covered.item in items:
            yield ("coverage", at, "item"), f'"{covered.item}" is there twice'
        items.append(covered.item)


def _setup_mistakes(
    file: StudyFile, path: KeyPath, setup: Setup, before: Sequence[str]
) -> Mistakes:
    if not PLAIN.fullmatch(setup.id):
        text = "letters, digits, - and _, with a letter or digit first"
        yield (*path, "id"), f'"{setup.id}" is no plain name; accepted: {text}'
    if setup.id in before:
        yield (*path, "id"), f'"{setup.id}" is there already'
    for other in setup.over:
        if other not in before[2:]:
            yield (*path, "over"), unknown("earlier setup", other, before[2:])
    for at, change in enumerate(setup.changes):
        names = change.experiments or tuple(file.experiments)
        yield from _change_mistakes(file, (*path, "changes", at), change, names)
    claims = [claim.id for claim in file.claims]
    for key in ("fitted_to", "held_out"):
        for name in getattr(setup, key):
            if name not in claims:
                yield (*path, key), unknown("claim", name, claims)
    figures = [figure.id for figure in file.figures]
    for name in setup.figures:
        if name not in figures:
            yield (*path, "figures"), unknown("figure", name, figures)


def _change_mistakes(
    file: StudyFile, path: KeyPath, change: ScenarioChange, names: Iterable[str]
) -> Mistakes:
    for name in names:
        if name not in file.experiments:
            yield (*path, "experiments"), unknown("experiment", name, file.experiments)
            continue
        keys: Mapping[str, str] = file.experiments[name].keys
        for key in change.where:
            if key not in keys:
                yield (*path, "where"), unknown("key", key, keys)
