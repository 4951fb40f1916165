"""Interface of backends, and the record of a run."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.capture_files import Captures
from jostle.backends.record_tables import Table, frame_of
from jostle.run_spec import RunSpec

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

RUN_ID_DIGITS = 32
"""Number of hexadecimal digits of the name of a run."""

Spec = RunSpec
"""One run, fully resolved: a RunSpec as plain data (see `jostle info schema run`)."""

Cancelled = Callable[[], bool]
"""Returns whether the user has requested to stop the run."""


class Run(Protocol):
    """A finished run, in memory or in a store.

    The frames contain one row per (interval, flow), (interval, link), (sample) and (ACK). Missing
    values are null.
    """

    @property
    def run_id(self) -> str:
        """Name of the run; equal for the same spec, backend and backend version."""

    @property
    def spec(self) -> Spec:
        """Specification of the run."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Measures per flow, link and phase, and fairness per phase."""

    @property
    def flows(self) -> pl.DataFrame:
        """Time series of the flows."""

    @property
    def links(self) -> pl.DataFrame:
        """Time series of the links."""

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers: time_s, flow, quantity, value."""

    @property
    def acks(self) -> pl.DataFrame | None:
        """One row per ACK that reached a sender, if the spec requests them."""

    @property
    def transfers(self) -> pl.DataFrame | None:
        """One row per transfer of multi-connection flows; None without such flows."""

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host (`flow.sender`, `flow.receiver`) → pcapng file, if the spec requests captures."""


@dataclass(frozen=True)
class RunRecord:
    """Record of a run, as returned by a backend; see `Run` for the frames.

    Attributes
    ----------
    backend, backend_version
        Backend that ran the spec. The version (see `Backend.version_of`) changes with every change
        that can affect a result.
    tables
        Tables by the names of `TABLES`; the first three are always present.
    wall_s
        Wall time of the run in seconds; not compared between runs.
    captured
        Capture files.
    given_text
        The spec as canonical JSON, if the backend has it.
    """

    spec: Spec
    backend: str
    backend_version: str
    summary: Mapping[str, Any]
    tables: Mapping[str, Table | pl.DataFrame]
    wall_s: float
    captured: Captures | None = None
    given_text: str | None = field(default=None, repr=False, compare=False)

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return named(self.spec_text, self.backend, self.backend_version)

    @property
    def spec_text(self) -> str:
        """The spec as canonical JSON."""
        return canonical_json(self.spec) if self.given_text is None else self.given_text

    @property
    def summary_text(self) -> str:
        """The summary as canonical JSON."""
        return text_of(self.summary)

    @property
    def captures(self) -> Mapping[str, Path]:
        """Host → pcapng file. Valid until the record is deleted or a store takes the files."""
        return {} if self.captured is None else self.captured.files

    @property
    def flows(self) -> pl.DataFrame:
        """Time series of the flows."""
        return frame_of(self.tables["flows"])

    @property
    def links(self) -> pl.DataFrame:
        """Time series of the links."""
        return frame_of(self.tables["links"])

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers."""
        return frame_of(self.tables["internals"])

    @property
    def acks(self) -> pl.DataFrame | None:
        """One row per ACK that reached a sender, if the spec requests them."""
        return frame_of(self.tables["acks"]) if "acks" in self.tables else None

    @property
    def transfers(self) -> pl.DataFrame | None:
        """One row per transfer of multi-connection flows; None without such flows."""
        return frame_of(self.tables["transfers"]) if "transfers" in self.tables else None


class Backend(Protocol):
    """Backend that runs one RunSpec at a time; thread-safe."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def version(self) -> str:
        """Version, which changes with every change that can affect a result."""

    def version_of(self, spec: Spec) -> str:
        """Return `version`, and the versions of other programs that `spec` starts."""

    def check(self, spec: Spec) -> None:
        """Check that this backend can run `spec`, before the run starts.

        Raises
        ------
        InputError
            If it cannot. The message names the scenario keys that are not supported.
        """

    def patience_s(self, spec: Spec) -> float:
        """Return the wall time in seconds after which a run of `spec` is considered stuck."""

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        """Run `spec` to its end.

        Raises
        ------
        RunCancelledError
            If `cancelled` returned true before the end.
        """


@dataclass(frozen=True)
class MissingRequirement:
    """Reason why a machine cannot run the backend.

    Attributes
    ----------
    why
        Message for the user.
    can_be_sent
        Whether the requirement can be copied from the machine of the client.
    """

    why: str
    can_be_sent: bool


class WorkerRequirements(Protocol):
    """Requirements of a backend on other machines, as returned by its `on_workers`.

    It is pickled and checked on the other machine.
    """

    def lacks(self) -> MissingRequirement | None:
        """Return the missing requirement; None if the machine meets all."""

    def supply(self) -> Callable[[], None]:
        """Pack the requirement. The returned function, called on another machine, installs it.

        Raises
        ------
        InputError
            If it cannot be copied.
        """


_CANONICAL = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    allow_nan=False,
    check_circular=False,
)


def canonical_json(value: object) -> str:
    """Return the canonical JSON of `value`: equal values have equal text."""
    return _CANONICAL.encode(value)


class JsonObject(Mapping[str, Any]):
    """An object of canonical JSON, decoded when a value is asked for.

    Parameters
    ----------
    text
        Canonical JSON of an object.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @functools.cached_property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self.text)
        return values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[type[JsonObject], tuple[str]]:
        return JsonObject, (self.text,)


def text_of(value: Mapping[str, Any]) -> str:
    """Return an object as canonical JSON; the text of one that has never been decoded."""
    return value.text if isinstance(value, JsonObject) else canonical_json(value)


def run_id(spec: Spec, backend: str, backend_version: str) -> str:
    """Return the name of a run: 32 hexadecimal digits of a hash of spec, backend and version."""
    return named(canonical_json(spec), backend, backend_version)


def named(spec: str, backend: str, backend_version: str) -> str:
    """Return the name of a run whose spec is given as canonical JSON; see `run_id`."""
    from jostle import _core

    return _core.names_of_specs([spec], [hashed_around(backend, backend_version)])[0]


@functools.lru_cache(maxsize=64)
def hashed_around(backend: str, backend_version: str) -> tuple[str, str]:
    """Return the canonical JSON that is hashed for a run's name, before and after the spec."""
    before = f'{{"backend":{canonical_json(backend)},"spec":'
    return before, f',"version":{canonical_json(backend_version)}}}'
