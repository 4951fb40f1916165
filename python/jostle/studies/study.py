"""A study after loading and validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jostle.errors import InputError, unknown
from jostle.scenario import Scenario
from jostle.studies.models import Experiment, Reference, Setup, StudyFile, Value

DESCRIBED: Final = "described"
"""Id of the setup of the scenarios without changes."""
LINUX: Final = "linux"
"""In references: results of Linux with the described setup."""


@dataclass(frozen=True)
class Study:
    """A study whose scenarios and references have been checked.

    Attributes
    ----------
    id
        Name of its folder.
    folder
        Path of its folder.
    file
        Contents of `study.toml`.
    scenarios
        By name of the experiment, with the changes of `setup`.
    setup
        Id of the setup.
    changed
        By setup: the scenarios that it changes, by name of the experiment.
    """

    id: str
    folder: Path
    file: StudyFile
    scenarios: Mapping[str, Scenario]
    setup: str = DESCRIBED
    changed: Mapping[str, Mapping[str, Scenario]] = field(default_factory=dict)

    @property
    def setups(self) -> list[str]:
        """Ids of all setups, with the described one first."""
        return [DESCRIBED, *(setup.id for setup in self.file.setups)]

    def with_setup(self, setup: str) -> Study:
        """Return the study with the scenarios of a setup.

        Raises
        ------
        InputError
            If it has no such setup.
        """
        if setup not in self.setups:
            text = unknown("setup", setup, self.setups)
            raise InputError(f"study {self.id}: {text}")
        if self.setup != DESCRIBED:
            raise ValueError("this study already uses another setup")
        scenarios = {**self.scenarios, **self.changed.get(setup, {})}
        return replace(self, setup=setup, scenarios=scenarios)

    @property
    def alternative_setup(self) -> Setup | None:
        """The present setup; None for the described one."""
        return next((one for one in self.file.setups if one.id == self.setup), None)

    def experiment_of(self, value: Value) -> tuple[str, Experiment]:
        """Return name and definition of a value's experiment."""
        name = value.experiment or next(iter(self.file.experiments))
        return name, self.file.experiments[name]

    def conditions(self, value: Value) -> list[int]:
        """Return the positions of a value's conditions."""
        name, _ = self.experiment_of(value)
        return self.matching(name, value.where)

    def matching(self, experiment: str, where: Mapping[str, str]) -> list[int]:
        """Return the positions of an experiment's conditions with these labels, by short names."""
        keys = self.file.experiments[experiment].keys
        wanted = {keys[key]: label for key, label in where.items()}.items()
        every = enumerate(self.scenarios[experiment].conditions)
        return [index for index, condition in every if wanted <= dict(condition).items()]

    def pooled_keys(self, value: Value, axes: Sequence[str] = ()) -> list[str]:
        """Return the keys in which conditions of a value differ, by their names in the scenario.

        Keys that the value pools, and conditions that differ in `axes`, short names too, do not
        count.
        """
        name, experiment = self.experiment_of(value)
        apart = [experiment.keys[key] for key in (*value.pool, *axes) if key in experiment.keys]
        found: dict[str, None] = {}
        groups: dict[tuple[str, ...], dict[str, str]] = {}
        for index in self.conditions(value):
            labels = dict(self.scenarios[name].conditions[index])
            first = groups.setdefault(tuple(labels[key] for key in apart), labels)
            found.update((key, None) for key in labels if labels[key] != first[key])
        return list(found)

    def reference_of(self, value: Value, condition: int) -> Value:
        """Return the value with whose runs the runs of a value's condition are compared."""
        name, experiment = self.experiment_of(value)
        reference = value.reference or Reference()
        theirs = reference.experiment or name
        labels = self.scenarios[name].conditions[condition]
        here = {short: labels[key] for short, key in experiment.keys.items() if key in labels}
        keys = self.file.experiments[theirs].keys
        where = {key: label for key, label in here.items() if key in keys} | reference.where
        changed = {
            "experiment": theirs,
            "where": where,
            "flow": reference.flow or value.flow,
            "backend": reference.backend or value.backend,
            "reference": None,
        }
        return value.model_copy(update=changed)

    def labels(self, value: Value, key: str) -> list[str]:
        """Return the labels of a key, by its short name, that a value can have."""
        name, _ = self.experiment_of(value)
        return self.labels_of(name, key)

    def labels_of(self, experiment: str, key: str) -> list[str]:
        """Return the labels of an experiment's grid or sample key, by its short name."""
        scenario, full = self.scenarios[experiment], self.file.experiments[experiment].keys[key]
        return list(dict.fromkeys({**scenario.grid, **scenario.sample}[full]))
