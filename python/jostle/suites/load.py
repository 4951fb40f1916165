"""Reading and validation of suites: `suite.toml`, and its scenarios with a controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jostle.errors import unknown
from jostle.scenario import Scenario
from jostle.scenario import load as load_scenario
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.studies.consistency_check import (
    PLAIN,
    check_paths,
    key_mistakes,
    outside,
    path_mistakes,
)
from jostle.studies.library import SUITES
from jostle.studies.load import mismatches, pool_mistakes, values
from jostle.studies.models import Claim, StudyFile
from jostle.studies.study import Study
from jostle.suites.controller_under_test import ControllerUnderTest
from jostle.suites.models import Criterion, Quick, SuiteExperiment, SuiteFile, SuitePart, SuiteValue
from jostle.suites.suite import Suite, as_experiment

_MODELS: Final = (SuiteFile, SuiteExperiment, Quick, Criterion, SuitePart, SuiteValue)
_KEYS: Final = sorted({key for model in _MODELS for key in model.model_fields})


def load(name: str, folder: Path = SUITES.installed, *, allow_code: bool = False) -> Suite:
    """Read a suite.

    Parameters
    ----------
    name
        Name of its folder.
    folder
        Folder of suites; by default, of those distributed with jostle.
    allow_code
        Whether its scenarios may name foreign code; see `jostle.safe_io.code_consent`.

    Raises
    ------
    InputError
        When there is no such suite.
    ScenarioError
        When the suite or one of its scenarios is wrong; the text names file, line and key.
    """
    toml, file = SUITES.read(name, folder, SuiteFile, _KEYS)
    path = toml.path
    toml.check(_mistakes(file, path.parent))
    scenarios = {
        name: _scenario(path.parent, one.scenario, allow_code=allow_code)
        for name, one in file.experiments.items()
    }
    suite = Suite(name, path.parent, file, scenarios)
    toml.check(key_mistakes(_as_study(file).experiments, scenarios))
    toml.check(_mismatches(suite, allow_code=allow_code))
    toml.check(_pool_mistakes(suite))
    return suite


def with_subject(
    suite: Suite, experiment: str, subject: ControllerUnderTest, *, allow_code: bool
) -> Scenario:
    """Read the scenario of an experiment, with a controller in the flows that are judged.

    Raises
    ------
    ScenarioError
        When the scenario cannot be run with it.
    """
    one = suite.file.experiments[experiment]
    other = next((file for kind, file in one.scenario_for.items() if kind == subject.kind), None)
    return load_scenario(
        suite.folder / (other or one.scenario),
        subject.overrides(one.flows_under_test, own_transport=other is not None),
        allow_code=allow_code,
        modules=subject.modules,
    )


def _scenario(folder: Path, name: str, *, allow_code: bool) -> Scenario:
    path = folder / name
    check_paths(path, folder)
    return load_scenario(path, allow_code=allow_code)


def _as_study(file: SuiteFile) -> StudyFile:
    """Return the suite as a study, for checks that both have in common."""
    return StudyFile.model_construct(
        title=file.title,
        paper=file.source,
        setup=file.setup,
        experiments={name: as_experiment(one) for name, one in file.experiments.items()},
    )


def _mistakes(file: SuiteFile, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes that do not depend on the scenarios."""
    counts = Counter(one.id for one in file.criteria)
    for at, one in enumerate(file.criteria):
        if counts[one.id] > 1:
            yield ("criteria", at, "id"), f'"{one.id}" is there {counts[one.id]} times'
        if not PLAIN.fullmatch(one.id.replace(".", "-")):
            text = "letters, digits, ., - and _, with a letter or digit first"
            yield ("criteria", at, "id"), f'"{one.id}" is no plain name; accepted: {text}'
    for name, experiment in file.experiments.items():
        if not PLAIN.fullmatch(name):
            yield ("experiments", name), f'"{name}" is no plain name'
        for kind, other in experiment.scenario_for.items():
            yield from outside(("experiments", name, "scenario_for", kind), folder, other)
    yield from path_mistakes(_as_study(file), folder)


def _mismatches(suite: Suite, *, allow_code: bool) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for names in the suite that its scenarios do not have."""
    for name, experiment in suite.file.experiments.items():
        scenario = suite.scenarios[name]
        flows = [flow.name for flow in scenario.file.flows]
        for flow in experiment.flows_under_test:
            if flow not in flows:
                yield ("experiments", name, "flows_under_test"), unknown("flow", flow, flows)
        yield from _of_transports(suite, name, allow_code=allow_code)
        for key, labels in experiment.quick.where.items():
            at: KeyPath = ("experiments", name, "quick", "where")
            if key not in experiment.keys:
                yield at, unknown("key", key, experiment.keys)
                continue
            there = scenario.grid.get(experiment.keys[key], ())
            yield from (
                ((*at, key), unknown(key, label, there)) for label in labels if label not in there
            )
    for at_criterion, criterion in enumerate(suite.criteria):
        for index, part in enumerate(criterion.parts):
            left = part.left and suite.experiment_of(part.left)
            keys = suite.file.experiments[left].keys if left in suite.file.experiments else {}
            for key in criterion.each:
                if index == 0 and key not in keys:
                    yield ("criteria", at_criterion, "each"), unknown("key", key, keys)
    yield from _of_values(suite)


def _of_transports(suite: Suite, name: str, *, allow_code: bool) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for scenarios of other transports that differ in more than keys of flows."""
    experiment, scenario = suite.file.experiments[name], suite.scenarios[name]
    flows = {flow.name for flow in scenario.file.flows}
    for kind, file in experiment.scenario_for.items():
        other = _scenario(suite.folder, file, allow_code=allow_code)
        there = {flow.name for flow in other.file.flows}
        if other.conditions != scenario.conditions or there != flows:
            text = f"{file} has other flows or another grid than {experiment.scenario}"
            yield ("experiments", name, "scenario_for", kind), text


def _pool_mistakes(suite: Suite) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for values whose conditions differ in more than a criterion's keys."""
    for at in range(len(suite.criteria)):
        said: dict[KeyPath, str] = {}
        study = suite.study(suite.scenarios, suite.scenarios, suite.cells(at))
        for path, value in values(study.file):
            place = ("criteria", at, *path[2:])
            said.update((place, text) for _, text in pool_mistakes(study, path, value))
        yield from said.items()


def _of_values(suite: Suite) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for names in values that do not exist, as for a study."""
    claims = tuple(
        Claim.model_construct(id=one.id, text=one.title, parts=one.parts) for one in suite.criteria
    )
    file = _as_study(suite.file).model_copy(update={"claims": claims})
    for path, text in mismatches(Study(suite.id, suite.folder, file, suite.scenarios)):
        yield ("criteria", *path[1:]), text
