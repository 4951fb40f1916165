"""What a backend is, and what comes out of a run."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.captures import Captures
from jostle.backends.tables import Table, frame_of
from jostle.run_spec import RunSpec

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

Spec = RunSpec
"""One run, fully resolved: a RunSpec as plain data (see `jostle schema run`)."""

Cancelled = Callable[[], bool]
"""Whether the user has asked for the run to stop."""


class Run(Protocol):
    """A finished run, in memory or in a store.

    The frames hold one row per (interval, flow), (interval, link), (sample) and (ACK); what has
    no value is null.
    """

    @property
    def run_id(self) -> str:
        """Name of the run: the same spec, backend and engine have the same name."""

    @property
    def spec(self) -> Spec:
        """What was run."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Measures per flow, link and phase, and fairness per phase."""

    @property
    def flows(self) -> pl.DataFrame:
        """Series of the flows."""

    @property
    def links(self) -> pl.DataFrame:
        """Series of the links."""

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers: time_s, flow, quantity, value."""

    @property
    def acks(self) -> pl.DataFrame | None:
        """Every ACK that reached a sender, if the spec asks for them."""

    @property
    def transfers(self) -> pl.DataFrame | None:
        """Every transfer of the flows that are many connections; None if there are none."""

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host (`flow.sender`, `flow.receiver`) → pcapng file, if the spec asks for them."""


@dataclass(frozen=True)
class RunRecord:
    """A run as a backend returns it; see `Run` for the frames.

    Attributes
    ----------
    backend, backend_version
        What ran it. The version (see `Backend.version_of`) changes with everything that can change
        a result.
    tables
        By the names of `TABLES`; the first three are always there.
    wall_s
        Seconds of real time that the run took. Never part of what is compared.
    captured
        The files of its captures.
    """

    spec: Spec
    backend: str
    backend_version: str
    summary: Mapping[str, Any]
    tables: Mapping[str, Table | pl.DataFrame]
    wall_s: float
    captured: Captures | None = None

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return run_id(self.spec, self.backend, self.backend_version)

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host → pcapng file; there as long as this record, or until a store takes them over."""
        return {} if self.captured is None else self.captured.files

    @property
    def flows(self) -> pl.DataFrame:
        """Series of the flows."""
        return frame_of(self.tables["flows"])

    @property
    def links(self) -> pl.DataFrame:
        """Series of the links."""
        return frame_of(self.tables["links"])

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers."""
        return frame_of(self.tables["internals"])

    @property
    def acks(self) -> pl.DataFrame | None:
        """Every ACK that reached a sender, if the spec asks for them."""
        return frame_of(self.tables["acks"]) if "acks" in self.tables else None

    @property
    def transfers(self) -> pl.DataFrame | None:
        """Every transfer of the flows that are many connections; None if there are none."""
        return frame_of(self.tables["transfers"]) if "transfers" in self.tables else None


class Backend(Protocol):
    """Runs one RunSpec at a time; may be called from several threads at once."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def version(self) -> str:
        """Changes with everything that can change a result."""

    def version_of(self, spec: Spec) -> str:
        """Give the version of all that runs `spec`: `version`, and of what else it starts."""

    def check(self, spec: Spec) -> None:
        """See that `spec` can be run here, before anything starts.

        Raises
        ------
        InputError
            When it cannot; the text names the scenario's keys that stand in the way.
        """

    def patience_s(self, spec: Spec) -> float:
        """Seconds of real time after which a run of `spec` is stuck, on the slowest of machines."""

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        """Run `spec` to its end.

        Raises
        ------
        RunCancelledError
            When `cancelled` became true before the end.
        """


@dataclass(frozen=True)
class Lack:
    """Why a machine cannot carry runs out.

    Attributes
    ----------
    why
        In words.
    can_be_sent
        Whether that is all, and can be had from the machine that asks.
    """

    why: str
    can_be_sent: bool


class Needs(Protocol):
    """What a backend needs of a machine beside jostle: what its `on_workers` returns, if any.

    It pickles, and is asked on the machine in question.
    """

    def lacks(self) -> Lack | None:
        """Say what is not there; None if nothing."""

    def supply(self) -> Callable[[], None]:
        """Pack what can be sent: called on a machine that lacks it, the result puts it there.

        Raises
        ------
        InputError
            When it cannot be sent.
        """


_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: object) -> str:
    """Write `value` as JSON that depends on nothing but its meaning."""
    return _CANONICAL.encode(value)


def run_id(spec: Spec, backend: str, backend_version: str) -> str:
    """Name of a run: 32 hexadecimal digits from the spec, the backend and its version."""
    return named(canonical_json(spec), backend, backend_version)


def named(spec: str, backend: str, backend_version: str) -> str:
    """Name of the run of a spec that is canonical JSON already; see `run_id`."""
    before, after = _around(backend, backend_version)
    return hashlib.sha256(f"{before}{spec}{after}".encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=64)
def _around(backend: str, backend_version: str) -> tuple[str, str]:
    """Canonical JSON of an object of the three, before and after the specification."""
    before = f'{{"backend":{canonical_json(backend)},"spec":'
    return before, f',"version":{canonical_json(backend_version)}}}'
