"""What a `suite.toml` holds: scenarios, criteria and bounds. Everything is data, as in a study."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from jostle.backends import BACKENDS
from jostle.errors import unknown
from jostle.studies.models import Part, Value, Window

Level = Literal["must", "should", "explore"]
LEVELS: Final[tuple[Level, ...]] = ("must", "should", "explore")
"""How strongly a criterion is asked for, the strongest first."""


def _known_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(unknown("backend", name, BACKENDS))
    return name


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Quick(_Table):
    """What of an experiment a quick look runs.

    Attributes
    ----------
    repeats
        Runs per condition.
    where
        Short name of a grid key → labels; conditions that have one of them.
    skip
        Whether it runs nothing.
    """

    repeats: Annotated[int, Field(ge=1)] = 1
    where: dict[str, tuple[str, ...]] = {}
    skip: bool = False


class SuiteExperiment(_Table):
    """A scenario of the suite.

    Attributes
    ----------
    scenario
        File beside the suite.
    subject
        Names of the flows that get the controller that is judged, as the scenario writes them; none
        of what only serves to compare with.
    keys
        Short name → key of the scenario's grid.
    over
        Kind of transport → file that is run instead where the flows that are judged have this
        transport: what keys of TCP say is said there by those of the other. The transport of its
        flows stays if the command names no more than the kind.
    windows, backends, repeats, kernel_repeats
        As those of a study's experiment.
    quick
        What a quick look runs of it.
    """

    scenario: str
    subject: tuple[str, ...]
    keys: dict[str, str] = {}
    over: dict[Literal["quic"], str] = {}
    windows: dict[str, Window] = {}
    backends: tuple[Annotated[str, AfterValidator(_known_backend)], ...] = tuple(BACKENDS)
    repeats: Annotated[int, Field(ge=1)] | None = None
    kernel_repeats: Annotated[int, Field(ge=1)] | None = None
    quick: Quick = Quick()


class SuiteValue(Value):
    """A value of a study, of the runs with the controller that is judged or with the baseline.

    Attributes
    ----------
    of
        Whose runs.
    """

    of: Literal["subject", "baseline"] = "subject"


class SuitePart(Part):
    """A comparison of a study's claim, between such values."""

    left: SuiteValue | None = None
    right: float | SuiteValue | None = None
    order: tuple[SuiteValue, ...] = ()


class Criterion(_Table):
    """Something that is asked of a controller.

    Attributes
    ----------
    id, title
        Name, and what it is in a few words.
    level
        How strongly it is asked for.
    section
        Where the source asks for it.
    asks
        What it asks for, in a sentence.
    ours
        Whether the bound is ours, because the source gives none.
    why
        The reason for the bound.
    each
        Short names of grid keys: every combination of their labels is judged by itself, and the
        criterion is met if all are.
    parts
        What has to be true.
    unknown
        Why nothing can be said of it here; instead of `parts`.
    """

    id: str
    title: str
    level: Level
    section: str
    asks: str
    ours: bool = False
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


class SuiteFile(_Table):
    """A suite.

    Attributes
    ----------
    title, source
        In a few words, and what it is made from.
    summary
        What it asks, in a sentence.
    setup
        Markdown file with the choices that were made.
    left_out
        What of the source the suite does not have, a sentence each.
    defaults
        Keys that every value has unless it says otherwise.
    experiments, criteria
        What is run, and what is asked of it.
    """

    title: str
    source: str
    summary: str
    setup: str = "setup.md"
    left_out: tuple[str, ...] = ()
    defaults: SuiteValue = SuiteValue()
    experiments: Annotated[dict[str, SuiteExperiment], Field(min_length=1)]
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
