"""Format of `suite.toml`: scenarios, criteria and bounds. Like a study, a suite is data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from jostle.studies.models import ClaimPart, DataTable, ScenarioRuns, Value

Level = Literal["must", "should", "explore"]
LEVELS: Final[tuple[Level, ...]] = ("must", "should", "explore")
"""Levels of requirements, the strongest first."""


class Quick(DataTable):
    """Reduced runs of an experiment for a quick run.

    Attributes
    ----------
    repeats
        Runs per condition.
    where
        Short name of a grid key → labels; selects conditions with one of them.
    skip
        Whether a quick run omits the experiment.
    """

    repeats: Annotated[int, Field(ge=1)] = 1
    where: Mapping[str, tuple[str, ...]] = {}
    skip: bool = False


class SuiteExperiment(ScenarioRuns):
    """A scenario of the suite.

    Attributes
    ----------
    flows_under_test
        Names of the flows that get the controller under test, as in the scenario; empty for an
        experiment that is only a comparison.
    scenario_for
        Kind of transport → file that is run instead if the flows under test have this transport.
        It expresses the keys of TCP by keys of the other transport. If the command names only the
        kind, the transport keys of its flows are kept.
    quick
        Reduced runs for a quick run.
    """

    flows_under_test: tuple[str, ...]
    scenario_for: Mapping[Literal["quic"], str] = {}
    quick: Quick = Quick()


class SuiteValue(Value):
    """A value as in a study, from runs with the controller under test or with the baseline.

    Attributes
    ----------
    of
        Which runs.
    """

    of: Literal["subject", "baseline"] = "subject"


class SuitePart(ClaimPart):
    """A comparison as in a study's claim, of `SuiteValue`s."""

    left: SuiteValue | None = None
    right: float | SuiteValue | None = None
    order: tuple[SuiteValue, ...] = ()


class Criterion(DataTable):
    """A requirement for a controller.

    Attributes
    ----------
    id, title
        Name and short title.
    level
        Level of the requirement.
    section
        Section of the source.
    requirement
        The requirement, in a sentence.
    project_bound
        Whether the bound is ours because the source gives none.
    why
        Reason for the bound.
    each
        Short names of grid keys. Each combination of their labels is judged separately, and all
        must meet the criterion.
    parts
        Comparisons that must hold.
    unknown
        Reason why the criterion cannot be tested, instead of `parts`.
    """

    id: str
    title: str
    level: Level
    section: str
    requirement: str
    project_bound: bool = False
    why: str = ""
    each: tuple[str, ...] = ()
    parts: tuple[SuitePart, ...] = ()
    unknown: str = ""

    @model_validator(mode="after")
    def _judged_or_not(self) -> Criterion:
        if bool(self.parts) == bool(self.unknown):
            raise ValueError("give `parts`, or say in `unknown` why there are none")
        if self.parts and not self.why:
            raise ValueError("say in `why` where the bound is from")
        if any(part.relation == "order" for part in self.parts):
            raise ValueError("a criterion has bounds: `above`, `below` or `about`")
        return self


class SuiteFile(DataTable):
    """A suite.

    Attributes
    ----------
    title, source
        Short title, and the document on which the suite is based.
    summary
        The requirements in one sentence.
    setup
        Markdown file with the choices that were made.
    not_covered
        Requirements of the source that the suite does not test, a sentence each.
    defaults
        Default keys of every value.
    experiments, criteria
        Scenarios to run, and criteria to test.
    """

    title: str
    source: str
    summary: str
    setup: str = "setup.md"
    not_covered: tuple[str, ...] = ()
    defaults: SuiteValue = SuiteValue()
    experiments: Annotated[dict[str, SuiteExperiment], Field(min_length=1)]
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
