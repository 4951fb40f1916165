"""A suite after loading and validation, and its study for one controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jostle.scenario import Scenario
from jostle.studies.models import Claim, Experiment, StudyFile, Value
from jostle.studies.study import Study
from jostle.suites.models import Criterion, SuiteExperiment, SuiteFile, SuitePart, SuiteValue

BASELINE: Final = "@baseline"
"""Suffix of the names of experiments whose flows have the baseline's controller."""

Labels = Mapping[str, str]
"""Short name of a grid key → label."""


@dataclass(frozen=True)
class Cell:
    """A criterion for one combination of labels.

    Attributes
    ----------
    criterion
        Position in the suite.
    where
        The labels.
    """

    criterion: int
    where: Labels


@dataclass(frozen=True)
class Suite:
    """A suite whose scenarios and references have been checked.

    Attributes
    ----------
    id
        Name of its folder.
    folder
        Path of its folder.
    file
        Contents of `suite.toml`.
    scenarios
        By name of the experiment, with their original controllers.
    """

    id: str
    folder: Path
    file: SuiteFile
    scenarios: Mapping[str, Scenario]

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """Criteria of the suite."""
        return self.file.criteria

    def needed(self, *, quick: bool = False, only: frozenset[str] = frozenset()) -> dict[str, bool]:
        """Return the experiments to run, and whether the baseline is run, too.

        Parameters
        ----------
        quick
            Whether it is a quick run.
        only
            Ids of the requested criteria; all if empty.
        """
        found: dict[str, bool] = {}
        for criterion in self.criteria:
            if only and criterion.id not in only:
                continue
            for value in _values(criterion):
                name = self.experiment_of(value)
                if quick and self.file.experiments[name].quick.skip:
                    continue
                found[name] = found.get(name, False) or value.of == "baseline"
        return {name: found[name] for name in self.file.experiments if name in found}

    def experiments_of(self, at: int) -> set[str]:
        """Return the names of the experiments from which a criterion takes values."""
        return {self.experiment_of(value) for value in _values(self.criteria[at])}

    def experiment_of(self, value: Value) -> str:
        """Return the name of a value's experiment."""
        return value.experiment or next(iter(self.file.experiments))

    def runs_condition(self, experiment: str, condition: int, *, quick: bool) -> bool:
        """Return whether a condition of an experiment is run."""
        one = self.file.experiments[experiment]
        if not quick:
            return True
        labels = self.scenarios[experiment].conditions[condition]
        wanted = ((one.keys[key], among) for key, among in one.quick.where.items())
        return not one.quick.skip and all(labels[key] in among for key, among in wanted)

    def _judged_keys(self, at: int) -> tuple[str, ...]:
        """Return the short names of the keys whose labels a criterion judges separately.

        They are the keys of `each`, and others in which conditions differ: without `pool`, every
        condition has to meet the criterion.
        """
        criterion = self.criteria[at]
        left = next(_values(criterion))
        experiment = self.file.experiments[self.experiment_of(left)]
        short = {key: word for word, key in experiment.keys.items()}
        others = self.study(self.scenarios, {}, []).pooled_keys(left, criterion.each)
        return (*criterion.each, *(short[key] for key in others if key in short))

    def cells(self, at: int, *, quick: bool = False) -> list[Cell]:
        """Return the combinations of labels for which a criterion is judged separately."""
        criterion = self.criteria[at]
        if not criterion.parts:
            return []
        left = next(_values(criterion))
        name = self.experiment_of(left)
        keys = self.file.experiments[name].keys
        scenario = self.scenarios[name]
        each = self._judged_keys(at)
        run = {
            tuple(condition[keys[key]] for key in each)
            for index, condition in enumerate(scenario.conditions)
            if self.runs_condition(name, index, quick=quick)
            and all(condition[keys[key]] == label for key, label in left.where.items())
        }
        # A product over `each` would grow without bound if one key were named many times.
        labels = {**scenario.grid, **scenario.sample}
        places = [{label: at for at, label in enumerate(labels[keys[key]])} for key in each]

        def order(combination: tuple[str, ...]) -> list[int]:
            return [place[label] for place, label in zip(places, combination, strict=True)]

        return [
            Cell(at, dict(zip(each, combination, strict=True)))
            for combination in sorted(run, key=order)
        ]

    def study(
        self, subject: Mapping[str, Scenario], baseline: Mapping[str, Scenario], cells: list[Cell]
    ) -> Study:
        """Return a study with a claim for every cell, and two experiments if there is a baseline.

        Parameters
        ----------
        subject, baseline
            Scenarios with the controller under test and with the baseline, by experiment.
        cells
            Cells to judge; claims are in the same order.
        """
        scenarios = {**subject, **{name + BASELINE: one for name, one in baseline.items()}}
        experiments = {
            name: as_experiment(self.file.experiments[name.removesuffix(BASELINE)])
            for name in scenarios
        }
        claims = tuple(
            Claim(
                id=str(at),
                text=self.criteria[cell.criterion].title,
                parts=self._filled_comparisons(cell),
            )
            for at, cell in enumerate(cells)
        )
        # Experiments that are not run are omitted; a study needs at least one.
        file = StudyFile.model_construct(
            title=self.file.title, paper=self.file.source, setup=self.file.setup,
            experiments=experiments, claims=claims,
        )  # fmt: skip
        return Study(self.id, self.folder, file, scenarios)

    def _filled_comparisons(self, cell: Cell) -> tuple[SuitePart, ...]:
        return tuple(
            part.model_copy(
                update={
                    side: self.placed(value, cell.where)
                    for side, value in (("left", part.left), ("right", part.right))
                    if isinstance(value, SuiteValue)
                }
            )
            for part in self.criteria[cell.criterion].parts
        )

    def placed(self, value: SuiteValue, where: Labels) -> SuiteValue:
        """Return a value with its experiment and conditions filled in."""
        name = self.experiment_of(value)
        keys = self.file.experiments[name].keys
        here = {key: label for key, label in where.items() if key in keys}
        changed = {
            "experiment": name + (BASELINE if value.of == "baseline" else ""),
            "where": {**here, **value.where},
        }
        return value.model_copy(update=changed)


def as_experiment(one: SuiteExperiment) -> Experiment:
    """Convert an experiment of a suite to one of a study."""
    return Experiment(
        scenario=one.scenario, keys=one.keys, windows=one.windows, backends=one.backends
    )


def _values(criterion: Criterion) -> Iterator[SuiteValue]:
    """Yield every value of a criterion, beginning with the first part's left side."""
    for part in criterion.parts:
        for value in (part.left, part.right):
            if isinstance(value, SuiteValue):
                yield value
