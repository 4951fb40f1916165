"""Recorded operating points of Linux's flows: QUIC runs on Linux take an hour.

`linux-points.json` in a study's folder contains the points of every flow that a conformance needs.
With it the simulator is compared with Linux, and one implementation on Linux with another, without
a kernel. `tools/results/record_linux.py` writes it from the document of `jostle study run --backend
kernel`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
from pydantic import Field

from jostle.results.operating_points import OperatingPoints
from jostle.studies.json_file import read_json_file
from jostle.studies.models import DataTable

if TYPE_CHECKING:
    from jostle.studies.study import Study

FILE: Final = "linux-points.json"
SCHEMA: Final = "jostle.points/1"
"""Name and version of the file format."""
BACKEND: Final = "kernel"
PARTS: Final = 1000
"""Resolution: coordinates are integers in units of 1/1000 of the base RTT and of the rate."""

Coordinates = tuple[int | None, ...]


class ArchivedRun(DataTable):
    """Operating points of a flow in one run.

    Attributes
    ----------
    experiment, condition, flow, phase
        Identify the flow; the condition by its keys and labels, the phase empty for the first 95 %.
    seed
        Seed of the run.
    base_rtt_s, rate_bps
        Base RTT and rate of the flow's path.
    delay, throughput
        In thousandths of base RTT and rate.
    """

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
        """The points, relative to base RTT and rate of the path."""
        delay, throughput = (
            np.array([np.nan if one is None else one / PARTS for one in coordinates])
            for coordinates in (self.delay, self.throughput)
        )
        return OperatingPoints(delay, throughput, self.base_rtt_s, self.rate_bps)


class _File(DataTable):
    """`linux-points.json`: version of the backend, date, and points."""

    format: Literal["jostle.points/1"] = Field(alias="schema")
    version: str
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    runs: tuple[ArchivedRun, ...]


@dataclass(frozen=True)
class ArchivedOperatingPoints:
    """Recorded operating points of a study.

    Attributes
    ----------
    version, date
        Version of the backend, and date of the runs.
    runs
        Runs in the order of seeds, by experiment, flow, phase and condition.
    """

    version: str
    date: str
    runs: Mapping[tuple[str, str, str, frozenset[tuple[str, str]]], Sequence[ArchivedRun]]

    def of(
        self, experiment: str, flow: str, phase: str, condition: Mapping[str, str]
    ) -> Sequence[ArchivedRun]:
        """Return the runs of a flow under a condition; empty if none are recorded."""
        return self.runs.get((experiment, flow, phase, frozenset(condition.items())), ())


def read_archived_points(study: Study) -> ArchivedOperatingPoints | None:
    """Read the recorded operating points of a study; None if there are none.

    Raises
    ------
    InputError
        If the file is not valid.
    """
    file = read_json_file(_File, study.folder / FILE, "points of a study")
    if file is None:
        return None
    found: dict[tuple[str, str, str, frozenset[tuple[str, str]]], list[ArchivedRun]] = {}
    for one in sorted(file.runs, key=lambda one: one.seed):
        place_of = (one.experiment, one.flow, one.phase, frozenset(one.condition.items()))
        found.setdefault(place_of, []).append(one)
    return ArchivedOperatingPoints(file.version, file.date, found)
