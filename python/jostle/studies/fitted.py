"""The network that a fit of the testbed found, kept beside a study: another way to take its set-up.

`fitted.json` in a study's folder holds it: what is free and which values it has, the changes of
scenarios that make it, which claims the fit saw, and what became of all. `jostle testbed --write`
writes it. A study that has one has the reading `fitted`, which is run and judged as all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jostle.errors import InputError
from jostle.foreign_files import TEXT_BYTES, read_text
from jostle.studies.models import Change, Reading, Support

FILE: Final = "fitted.json"
SCHEMA: Final = "jostle.fitted/1"
"""Name and version of the file's format."""
FITTED: Final = "fitted"
"""Name of the reading."""
Half = Literal["fit", "held out"]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Search(_Table):
    """How it was found.

    Attributes
    ----------
    sampler, seed
        What proposed values.
    trials
        Networks that were tried.
    finalists
        The best of them that were run again with other seeds.
    lost
        What the claims of the fit lost in the one that was taken, over all studies of the testbed:
        between a half and 1 each that did not hold.
    """

    sampler: str
    seed: int
    trials: int
    finalists: int
    lost: float


class Value(_Table):
    """A free quantity.

    Attributes
    ----------
    text
        What it is.
    tried
        Its range, or its values.
    described
        What the study has as described.
    value
        What was found.
    """

    text: str
    tried: str
    described: str
    value: str


class Answer(_Table):
    """What runs say of a claim.

    Attributes
    ----------
    holds
        Whether it does; None if no run tells.
    ours
        The comparison that decides: the first that fails, or else the first. None without a value,
        and where it is infinite.
    """

    holds: bool | None
    ours: float | None = None


class Claimed(_Table):
    """What became of a claim over the network that was found, and over that described.

    Attributes
    ----------
    half
        Whether the fit saw it.
    asked
        What it asks for.
    fitted, described
        With as many runs of both.
    """

    half: Half
    asked: str
    fitted: Answer
    described: Answer


class Required(_Table):
    """A published number that had to be reproduced."""

    study: str
    published: float | None
    ours: float | None
    holds: bool | None


class Fitted(_Table):
    """A study's `fitted.json`.

    Attributes
    ----------
    testbed, title
        The file that says what was free, from the folder of studies, and its title.
    version, date
        Of the engine, and the day of the runs.
    search
        How it was found.
    repeats
        Runs per condition, where the study has more.
    values
        What was free, by name.
    changes
        Of the study's scenarios.
    claims
        By id; those that the testbed has nothing to do with are absent.
    required
        Numbers of the testbed's studies that had to be reproduced, by id.
    """

    format: Literal["jostle.fitted/1"] = Field(alias="schema")
    testbed: str
    title: str
    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    search: Search
    repeats: Annotated[int, Field(ge=1)]
    values: Mapping[str, Value]
    changes: tuple[Change, ...]
    claims: Mapping[str, Claimed]
    required: Mapping[str, Required] = {}

    @property
    def halves(self) -> dict[str, str]:
        """Half of each claim, by id."""
        return {name: one.half for name, one in self.claims.items()}

    def reading(self) -> Reading:
        """Give it as a reading."""
        values = "; ".join(f"{one.text}: {one.value}" for one in self.values.values())
        seen = sum(one.half == "fit" for one in self.claims.values())
        support = Support(
            quote=f"fitted to {seen} of {len(self.claims)} claims of this study",
            source=f"{self.testbed}, {self.search.trials} networks tried",
        )
        return Reading(
            id=FITTED,
            title=FITTED,
            text=f"{values}.",
            support=(support,),
            changes=self.changes,
            repeats=self.repeats,
        )


def read_fitted(folder: Path) -> Fitted | None:
    """Read what is kept in a study's folder; None if nothing is.

    Raises
    ------
    InputError
        If `fitted.json` is there and is none.
    """
    path = folder / FILE
    # A link could lead out of the folder.
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return Fitted.model_validate_json(read_text(path, TEXT_BYTES))
    except (OSError, ValueError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            why = f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
        raise InputError(f"{path}: no network of a fit: {why}") from error


def document(fitted: Fitted) -> dict[str, Any]:
    """Give it as its file has it."""
    return fitted.model_dump(mode="json", by_alias=True, exclude_defaults=True)
