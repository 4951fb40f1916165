"""The fitted network: values of the testbed's free parameters that a fit selected.

`fitted.json` in a study's folder contains the free parameters and their values, the changes of
scenarios, the claims that were used in the fit, and the outcome of all claims.
`jostle study fit-network --write` writes it. A study with this file has the setup `fitted`, which
is run like all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from jostle.studies.json_file import read_json_file
from jostle.studies.models import DataTable, ScenarioChange, Setup, SetupEvidence

FILE: Final = "fitted.json"
SCHEMA: Final = "jostle.fitted/1"
"""Name and version of the file format."""
FITTED: Final = "fitted"
"""Id of the setup."""
Half = Literal["fit", "held out"]


class Search(DataTable):
    """The search that selected the network.

    Attributes
    ----------
    sampler, seed
        Sampler that proposed values, and its seed.
    trials
        Number of networks that were tried.
    finalists
        Number of best networks that were run again with other seeds.
    lost
        Loss of the selected network on the claims of the fit, over all studies of the testbed:
        between a half and 1 for each claim that did not hold.
    """

    sampler: str
    seed: int
    trials: int
    finalists: int
    lost: float


class Value(DataTable):
    """A free parameter of the testbed.

    Attributes
    ----------
    text
        Description.
    tried
        Its range, or its values.
    described
        Value in the setup as described.
    value
        Fitted value.
    """

    text: str
    tried: str
    described: str
    value: str


class ClaimOutcome(DataTable):
    """Outcome of a claim.

    Attributes
    ----------
    holds
        Whether it holds; None if that is unknown.
    ours
        Value of the decisive comparison: the first that fails, or else the first. None without a
        value, and if it is infinite.
    """

    holds: bool | None
    ours: float | None = None


class ClaimScore(DataTable):
    """Outcome of a claim on the fitted network and on the network as described.

    Attributes
    ----------
    half
        Whether the claim was used in the fit.
    asked
        Relation that the claim requires.
    fitted, described
        Outcomes on the two networks, with the same number of runs.
    """

    half: Half
    asked: str
    fitted: ClaimOutcome
    described: ClaimOutcome


class Required(DataTable):
    """A published number that the fitted network must reproduce."""

    study: str
    published: float | None
    ours: float | None
    holds: bool | None


class FittedNetwork(DataTable):
    """A study's `fitted.json`.

    Attributes
    ----------
    testbed, title
        Path of the testbed file relative to the folder of studies, and its title.
    version, date
        Version of the engine, and date of the runs.
    search
        The search that selected the network.
    repeats
        Runs per condition, unless the study has fewer.
    values
        The free parameters by name.
    changes
        Changes of the study's scenarios.
    claims
        Outcomes by id; claims that do not depend on the testbed are absent.
    required
        Numbers of the testbed's studies that must be reproduced, by id.
    """

    format: Literal["jostle.fitted/1"] = Field(alias="schema")
    testbed: str
    title: str
    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    search: Search
    repeats: Annotated[int, Field(ge=1)]
    values: Mapping[str, Value]
    changes: tuple[ScenarioChange, ...]
    claims: Mapping[str, ClaimScore]
    required: Mapping[str, Required] = {}

    @property
    def split_by_claim(self) -> dict[str, str]:
        """Subset (`fit` or `held out`) of each claim, by id."""
        return {name: one.half for name, one in self.claims.items()}

    def setup(self) -> Setup:
        """Return the fitted network as a setup."""
        values = "; ".join(f"{one.text}: {one.value}" for one in self.values.values())
        seen = sum(one.half == "fit" for one in self.claims.values())
        support = SetupEvidence(
            quote=f"fitted to {seen} of {len(self.claims)} claims of this study",
            source=f"{self.testbed}, {self.search.trials} networks tried",
        )
        return Setup(
            id=FITTED,
            title=FITTED,
            text=f"{values}.",
            support=(support,),
            changes=self.changes,
            repeats=self.repeats,
        )


def read_fitted(folder: Path) -> FittedNetwork | None:
    """Read the fitted network of a study's folder; None if there is none.

    Raises
    ------
    InputError
        If `fitted.json` is not valid.
    """
    return read_json_file(FittedNetwork, folder / FILE, "network of a fit")


def document(fitted: FittedNetwork) -> dict[str, Any]:
    """Return the document of the file."""
    return fitted.model_dump(mode="json", by_alias=True, exclude_defaults=True)
