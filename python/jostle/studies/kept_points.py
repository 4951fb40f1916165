"""Operating points of Linux's flows, kept beside a study: runs of QUIC there take an hour.

`linux-points.json` in a study's folder has them for every flow that a conformance needs, so that
the simulator is held against Linux, and one stack on Linux against another, without a kernel.
`docs/record_linux.py` writes it from the document of `jostle study --backend kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jostle.errors import InputError
from jostle.foreign_files import TEXT_BYTES, read_text
from jostle.results.operating_points import OperatingPoints

if TYPE_CHECKING:
    from jostle.studies.study import Study

FILE: Final = "linux-points.json"
SCHEMA: Final = "jostle.points/1"
"""Name and version of the file's format."""
BACKEND: Final = "kernel"
PARTS: Final = 1000
"""Of a base RTT and of the rate: points are whole numbers of them."""

Coordinates = tuple[int | None, ...]


class KeptRun(BaseModel):
    """Points of a flow of one run.

    Attributes
    ----------
    experiment, condition, flow, phase
        Whose they are; the condition by its keys and labels, the phase empty for the first 95 %.
    seed
        Of the run.
    base_rtt_s, rate_bps
        Of the flow's quiet path.
    delay, throughput
        In thousandths of these.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    experiment: str
    condition: Mapping[str, str]
    flow: str
    phase: str
    seed: int
    base_rtt_s: Annotated[float, Field(gt=0)]
    rate_bps: Annotated[float, Field(gt=0)]
    delay: Coordinates
    throughput: Coordinates

    @property
    def points(self) -> OperatingPoints:
        """The points, in parts of what the path has."""
        delay, throughput = (
            np.array([np.nan if one is None else one / PARTS for one in coordinates])
            for coordinates in (self.delay, self.throughput)
        )
        return OperatingPoints(delay, throughput, self.base_rtt_s, self.rate_bps)


class _File(BaseModel):
    """`linux-points.json`: what ran, when, and its points."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["jostle.points/1"] = Field(alias="schema")
    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    runs: tuple[KeptRun, ...]


@dataclass(frozen=True)
class KeptPoints:
    """What is kept of a study.

    Attributes
    ----------
    version, date
        Of the backend, and the day of the runs.
    runs
        In the order of seeds, by experiment, flow, phase and condition.
    """

    version: str
    date: str
    runs: Mapping[tuple[str, str, str, frozenset[tuple[str, str]]], Sequence[KeptRun]]

    def of(
        self, experiment: str, flow: str, phase: str, condition: Mapping[str, str]
    ) -> Sequence[KeptRun]:
        """Give the runs of a flow under a condition; none if nothing is kept of it."""
        return self.runs.get((experiment, flow, phase, frozenset(condition.items())), ())


def kept_points(study: Study) -> KeptPoints | None:
    """Read what is kept beside a study; None if nothing is.

    Raises
    ------
    InputError
        If the file is there and is none.
    """
    path = study.folder / FILE
    # A link could lead out of the folder.
    if path.is_symlink() or not path.is_file():
        return None
    try:
        file = _File.model_validate_json(read_text(path, TEXT_BYTES))
    except (OSError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        place = "" if first is None else ".".join(str(step) for step in first["loc"])
        why = str(error) if first is None else f"{place}: {first['msg']}"
        raise InputError(f"{path}: no points of a study: {why}") from error
    found: dict[tuple[str, str, str, frozenset[tuple[str, str]]], list[KeptRun]] = {}
    for one in sorted(file.runs, key=lambda one: one.seed):
        place_of = (one.experiment, one.flow, one.phase, frozenset(one.condition.items()))
        found.setdefault(place_of, []).append(one)
    return KeptPoints(file.version, file.date, found)
