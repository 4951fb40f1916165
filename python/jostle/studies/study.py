"""A study that has been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jostle.errors import InputError, unknown
from jostle.scenario import Scenario
from jostle.studies.fitted import Fitted
from jostle.studies.models import Experiment, Reading, Reference, StudyFile, Value

DESCRIBED: Final = "described"
"""The reading that the scenarios have as they stand."""
LINUX: Final = "linux"
"""In references: what Linux gave of that."""


@dataclass(frozen=True)
class Study:
    """A study whose scenarios have been read and whose values all name something.

    Attributes
    ----------
    id
        Name of its folder.
    folder
        Where it is.
    file
        What it says.
    scenarios
        By name of the experiment, as `reading` has them.
    reading
        How the paper's set-up is taken.
    changed
        By reading: the scenarios that it changes, by name of the experiment.
    fitted
        The network that a fit of its testbed found, which is a reading; None if none is kept.
    """

    id: str
    folder: Path
    file: StudyFile
    scenarios: Mapping[str, Scenario]
    reading: str = DESCRIBED
    changed: Mapping[str, Mapping[str, Scenario]] = field(default_factory=dict)
    fitted: Fitted | None = None

    @property
    def readings(self) -> list[str]:
        """Names of all readings, the one that is described first."""
        return [DESCRIBED, *(reading.id for reading in self.file.readings)]

    def as_read(self, reading: str) -> Study:
        """Return the study with the scenarios of a reading.

        Raises
        ------
        InputError
            If it has no such reading.
        """
        if reading not in self.readings:
            text = unknown("reading", reading, self.readings)
            raise InputError(f"study {self.id}: {text}")
        if self.reading != DESCRIBED:
            raise ValueError("readings are told apart from what is described")
        scenarios = {**self.scenarios, **self.changed.get(reading, {})}
        return replace(self, reading=reading, scenarios=scenarios)

    @property
    def read(self) -> Reading | None:
        """The reading at hand; None for what is described."""
        return next((one for one in self.file.readings if one.id == self.reading), None)

    @property
    def halves(self) -> Mapping[str, str]:
        """Which half of the fit of its testbed each claim is of, by id; empty without a fit."""
        return {} if self.fitted is None else self.fitted.halves

    def experiment_of(self, value: Value) -> tuple[str, Experiment]:
        """Name and experiment that a value is of."""
        name = value.experiment or next(iter(self.file.experiments))
        return name, self.file.experiments[name]

    def conditions(self, value: Value) -> list[int]:
        """Positions of the conditions that a value is of."""
        name, _ = self.experiment_of(value)
        return self.matching(name, value.where)

    def matching(self, experiment: str, where: Mapping[str, str]) -> list[int]:
        """Positions of an experiment's conditions that have these labels, by short names."""
        keys = self.file.experiments[experiment].keys
        wanted = {keys[key]: label for key, label in where.items()}.items()
        every = enumerate(self.scenarios[experiment].conditions)
        return [index for index, condition in every if wanted <= dict(condition).items()]

    def reference_of(self, value: Value, condition: int) -> Value:
        """Give the value whose runs those of a value's condition are held against."""
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
        """Labels of a key, by its short name, that a value can have."""
        name, _ = self.experiment_of(value)
        return self.labels_of(name, key)

    def labels_of(self, experiment: str, key: str) -> list[str]:
        """Labels of a key of an experiment, by its short name: of the grid or the sample."""
        scenario, full = self.scenarios[experiment], self.file.experiments[experiment].keys[key]
        return list(dict.fromkeys({**scenario.grid, **scenario.sample}[full]))
