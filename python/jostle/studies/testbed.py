"""A testbed: the partly unknown network of several studies.

`testbed.toml` in the folder of one of its studies lists the free parameters, their ranges, and the
keys of the scenarios that they set. All of its studies share one set of values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError, model_validator

from jostle.errors import InputError, unknown
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.toml_file import TomlFile
from jostle.scenario.resolve.grid import GridValue, label_of
from jostle.scenario.resolve.sample import Variable
from jostle.scenario.resolve.sample_ranges import RangeError, parse_range
from jostle.studies.consistency_check import PLAIN, Mistakes, format_model_errors
from jostle.studies.library import STUDIES
from jostle.studies.load import load
from jostle.studies.models import DataTable, ScenarioChange
from jostle.studies.setups import read_changes
from jostle.studies.study import Study
from jostle.studies.train_test_split import ClaimSplit, draw

FILE: Final = "testbed.toml"
_PLACE: Final = re.compile(r"\{([^{}]*)\}")


class FreeParameter(DataTable):
    """A parameter of the testbed that its papers do not state.

    Attributes
    ----------
    text
        Description.
    range
        Range, written as in a sample: `{ from = "1 ms", to = "1 s", scale = "log" }`.
    values
        Possible values, instead of a range.
    described
        Value in the studies as described, for the reader.
    """

    text: str
    range: dict[str, Any] | None = None
    values: tuple[Any, ...] = ()
    described: str = ""

    @model_validator(mode="after")
    def _check_exclusive(self) -> FreeParameter:
        if len(self.values) == 1 or (self.range is None) == (not self.values):
            raise ValueError("give either `range`, or two `values` or more")
        return self


class SearchedStudy(DataTable):
    """Runs of a study for every network that is tried.

    Attributes
    ----------
    repeats
        Experiment → runs per condition. Claims about other experiments are not used.
    """

    repeats: Annotated[dict[str, Annotated[int, Field(ge=1)]], Field(min_length=1)]


class FreeParameterBinding(ScenarioChange):
    """Keys that free parameters set; `{name}` in a value is replaced by the parameter's value.

    Attributes
    ----------
    studies
        Studies whose scenarios are changed; all of the testbed if absent.
    """

    studies: tuple[str, ...] = ()


class Required(DataTable):
    """Numbers of a study that the fitted network must reproduce.

    Attributes
    ----------
    study, experiment
        Study, and the experiment that measures the numbers.
    numbers
        Ids of the numbers.
    repeats
        Runs per condition.
    """

    study: str
    experiment: str
    numbers: Annotated[tuple[str, ...], Field(min_length=1)]
    repeats: Annotated[int, Field(ge=1)] = 2


class TestbedFile(DataTable):
    """A `testbed.toml`.

    Attributes
    ----------
    title
        Short title.
    seed
        Seed of the split of claims.
    repeats
        Runs per condition for the selected network, unless an experiment has fewer.
    studies
        Studies that were measured on the testbed.
    free
        Free parameters by name.
    changes
        Keys that the parameters set.
    required
        Numbers that must be reproduced, too.
    """

    __test__ = False

    title: str
    seed: int
    repeats: Annotated[int, Field(ge=1)] = 10
    studies: Annotated[dict[str, SearchedStudy], Field(min_length=1)]
    free: Annotated[dict[str, FreeParameter], Field(min_length=1)]
    changes: Annotated[tuple[FreeParameterBinding, ...], Field(min_length=1)]
    required: tuple[Required, ...] = ()


@dataclass(frozen=True)
class Testbed:
    """A testbed after loading and validation.

    Attributes
    ----------
    toml
        Text of the file.
    file
        Contents of the file.
    studies
        Its studies, by name.
    variables
        Variables of the search, by name of the free parameter.
    halves
        By study: claims for the fit, and claims that test it.
    allow_code
        Whether scenarios may name foreign code; see `jostle.safe_io.code_consent`.
    """

    __test__ = False

    toml: TomlFile
    file: TestbedFile
    studies: Mapping[str, Study]
    variables: Mapping[str, Variable]
    halves: Mapping[str, ClaimSplit]
    allow_code: bool = False

    def changes(self, study: str, values: Mapping[str, Any]) -> list[ScenarioChange]:
        """Return the changes of a study for given values of the free parameters."""
        return [
            ScenarioChange(
                set=_filled(one.set, values), where=one.where, experiments=one.experiments
            )
            for one in self.file.changes
            if study in (one.studies or (study,))
        ]

    def with_values(self, study: str, values: Mapping[str, Any]) -> Study:
        """Return a study on the network with given values.

        Raises
        ------
        ScenarioError
            If the values cannot be applied to its scenarios.
        """
        one = self.studies[study]
        toml = TomlFile.read(one.folder / STUDIES.file)
        changed = read_changes(
            one.file, toml, self.changes(study, values), allow_code=self.allow_code
        )
        return replace(one, scenarios={**one.scenarios, **changed})


def load_testbed(folder: Path, *, allow_code: bool = False) -> Testbed:
    """Read the testbed in a study's folder.

    Raises
    ------
    InputError
        When there is no testbed.
    ScenarioError
        When the testbed or one of its studies is wrong.
    """
    path = folder / FILE
    if not path.is_file():
        there = sorted(one.parent.name for one in folder.parent.glob(f"*/{FILE}"))
        known = f"; there is one of {', '.join(there)}" if there else ""
        raise InputError(f"study {folder.name} has no {FILE}{known}")
    toml = TomlFile.read(path)
    try:
        file = TestbedFile.model_validate(toml.document)
    except ValidationError as error:
        raise toml.error(format_model_errors(error, _keys())) from None
    toml.check(_mistakes(file))
    studies = {name: load(name, folder.parent, allow_code=allow_code) for name in file.studies}
    toml.check(_mismatches(file, studies))
    variables = dict(_variables(file, toml))
    halves = {
        name: draw(study, file.studies[name].repeats, file.seed) for name, study in studies.items()
    }
    found = Testbed(toml, file, studies, variables, halves, allow_code)
    for share in (0.0, 1.0):
        ends = {name: one.level(share).value for name, one in variables.items()}
        for name in studies:
            found.with_values(name, ends)
    return found


def _keys() -> list[str]:
    every = (TestbedFile, SearchedStudy, FreeParameter, FreeParameterBinding, Required)
    return sorted({key for model in every for key in model.model_fields})


def _mistakes(file: TestbedFile) -> Mistakes:
    for name in file.studies:
        if not PLAIN.fullmatch(name):
            yield ("studies", name), "name a study by its folder, next to this one"
    for name in file.free:
        if not PLAIN.fullmatch(name):
            yield ("free", name), "accepted: letters, digits, - and _, with a letter or digit first"
        if not any(name in _names(one.set) for one in file.changes):
            yield ("free", name), "no change sets a key to it"
    for at, change in enumerate(file.changes):
        yield from _change_mistakes(file, ("changes", at), change)
    for at, required in enumerate(file.required):
        if required.study not in file.studies:
            yield ("required", at, "study"), unknown("study", required.study, file.studies)


def _change_mistakes(file: TestbedFile, at: KeyPath, change: FreeParameterBinding) -> Mistakes:
    for name in _names(change.set):
        if name not in file.free:
            yield (*at, "set"), unknown("free quantity", name, file.free)
    for study in change.studies:
        if study not in file.studies:
            yield (*at, "studies"), unknown("study", study, file.studies)


def _mismatches(file: TestbedFile, studies: Mapping[str, Study]) -> Mistakes:
    for name, study in studies.items():
        experiments = study.file.experiments
        for one in file.studies[name].repeats:
            if one not in experiments:
                yield ("studies", name, "repeats"), unknown("experiment", one, experiments)
        yield from _change_mismatches(file, name, study)
    for at, required in enumerate(file.required):
        study = studies[required.study]
        if required.experiment not in study.file.experiments:
            text = unknown("experiment", required.experiment, study.file.experiments)
            yield ("required", at, "experiment"), text
            continue
        numbers = {one.id: study.experiment_of(one)[0] for one in study.file.numbers}
        for number in required.numbers:
            if number not in numbers:
                yield ("required", at, "numbers"), unknown("number", number, numbers)
            elif numbers[number] != required.experiment:
                text = f"`{number}` is measured by the experiment `{numbers[number]}`"
                yield ("required", at, "numbers"), text


def _change_mismatches(file: TestbedFile, name: str, study: Study) -> Mistakes:
    """Yield mistakes for names in changes that a study does not have."""
    for at, change in enumerate(file.changes):
        if name not in (change.studies or (name,)):
            continue
        place: KeyPath = ("changes", at)
        for one in change.experiments:
            if one not in study.file.experiments:
                yield (*place, "experiments"), unknown("experiment", one, study.file.experiments)
                continue
            keys = study.file.experiments[one].keys
            for key in change.where:
                if key not in keys:
                    yield (*place, "where"), unknown("key", key, keys)


def _variables(file: TestbedFile, toml: TomlFile) -> Iterator[tuple[str, Variable]]:
    for name, free in file.free.items():
        if free.range is None:
            levels = tuple(GridValue(label_of(one), one, ("free", name)) for one in free.values)
            yield name, Variable(name, (), None, levels)
            continue
        try:
            drawn = parse_range(free.range)
        except RangeError as error:
            raise toml.error([(("free", name, "range"), str(error))]) from None
        yield name, Variable(name, (), drawn, ())


def _names(value: Any) -> Iterator[str]:
    """Yield the free parameters that a value names."""
    match value:
        case dict():
            for one in value.values():
                yield from _names(one)
        case list() | tuple():
            for one in value:
                yield from _names(one)
        case str():
            yield from _PLACE.findall(value)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Replace parameter names by values; a text that is only a name becomes the value itself."""
    match value:
        case dict():
            return {key: _filled(one, values) for key, one in value.items()}
        case list() | tuple():
            return [_filled(one, values) for one in value]
        case str():
            whole = _PLACE.fullmatch(value)
            if whole:
                return values[whole[1]]
            return _PLACE.sub(lambda found: str(values[found[1]]), value)
        case _:
            return value
