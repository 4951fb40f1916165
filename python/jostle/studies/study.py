"""A study that has been read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jostle.scenario import Scenario
from jostle.studies.models import Experiment, StudyFile, Value


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
        By name of the experiment.
    """

    id: str
    folder: Path
    file: StudyFile
    scenarios: Mapping[str, Scenario]

    def experiment_of(self, value: Value) -> tuple[str, Experiment]:
        """Name and experiment that a value is of."""
        name = value.experiment or next(iter(self.file.experiments))
        return name, self.file.experiments[name]

    def conditions(self, value: Value) -> list[int]:
        """Positions of the conditions that a value is of."""
        name, experiment = self.experiment_of(value)
        wanted = {experiment.keys[key]: label for key, label in value.where.items()}.items()
        every = enumerate(self.scenarios[name].conditions)
        return [index for index, condition in every if wanted <= dict(condition).items()]

    def labels(self, value: Value, key: str) -> list[str]:
        """Labels of a grid key, by its short name, that a value can have."""
        name, experiment = self.experiment_of(value)
        return list(self.scenarios[name].grid[experiment.keys[key]])
