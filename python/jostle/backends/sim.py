"""Simulator backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.base import Cancelled, RunRecord, Spec, canonical_json
from jostle.backends.capture_files import Captures
from jostle.backends.engine_record import EngineRecord, run_record
from jostle.errors import EngineError, InputError, RunCancelledError
from jostle.kernel_images.controller_modules import refuse_in_simulator
from jostle.run_spec import FlowSpec
from jostle.scenario.python_controllers.loader import create as create_controller
from jostle.scenario.python_controllers.source_files import (
    is_crate_controller,
    is_python_controller,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_PATIENCE_S = 300.0
"""Time allowed for a run without traffic."""
_LEAST_PACKETS_PER_S = 20_000
"""Minimum simulation speed on an overloaded machine. A core simulates millions of packets per
second."""
_LEAST_PYTHON_PACKETS_PER_S = 1_000
"""Minimum simulation speed with Python controllers, which are called for every ACK."""

MakeController = Callable[[str, Mapping[str, Any], int], object]
"""Creates a Python controller from its name, its parameters and a seed."""


class Engine(Protocol):
    """Interface of the compiled module `jostle._core`, for test doubles."""

    @property
    def ENGINE_VERSION(self) -> str:  # noqa: N802
        """Version, which changes with every change of the engine's source."""

    def run(
        self,
        spec_json: str,
        cancelled: Cancelled | None = None,
        capture_folder: Path | None = None,
        make_controller: MakeController | None = None,
        libraries: Mapping[str, Path] | None = None,
    ) -> EngineRecord:
        """Run one spec without holding the GIL."""

    def run_summary(
        self,
        spec_json: str,
        cancelled: Cancelled | None = None,
        make_controller: MakeController | None = None,
        libraries: Mapping[str, Path] | None = None,
    ) -> str:
        """Run one spec without captures; return its summary alone, as canonical JSON."""

    def find_problem(
        self, spec_json: str
    ) -> tuple[str | None, str, tuple[int, int, int] | None] | None:
        """Return the first error in a spec: location, message, and a number with its bounds."""

    def draw_impairments(
        self, spec_json: str, link: int, points: int, cancelled: Cancelled | None = None
    ) -> Mapping[str, Any]:
        """Draw the random impairments of a link in a run."""

    def capture_from_ring(
        self,
        spec_json: str,
        flow: int,
        end: str,
        *,
        system: str,
        start_ns: int,
        received: int,
        dropped: int,
        blocks: Path,
        folder: Path,
        secrets: str = "",
    ) -> int:
        """Write the packets captured by a packet socket of Linux as a pcapng file."""

    def host_capture_from_ring(
        self,
        name: str,
        address: str,
        *,
        comment: str,
        system: str,
        snap_bytes: int,
        start_ns: int,
        duration_ns: int,
        received: int,
        dropped: int,
        blocks: Path,
        file: Path,
    ) -> int:
        """Write the packets that a packet socket of Linux captured on a host as a pcapng file."""

    @property
    def METRICS_VERSION(self) -> str:  # noqa: N802
        """Hash of the sources that compute measures."""

    def record_of_samples(
        self,
        spec_json: str,
        time_ns: npt.NDArray[np.int64],
        flows: Sequence[dict[str, Any]],
        links: Sequence[dict[str, Any]],
    ) -> EngineRecord:
        """Compute the measures of a run from samples."""

    def registry(self) -> str:
        """Return all registries as a JSON document."""

    def run_spec_schema(self) -> str:
        """Return the JSON Schema of a RunSpec."""


def load_engine() -> Engine:
    """Load the compiled engine.

    Raises
    ------
    EngineError
        If it is not built, or was built for another version of this package.
    """
    try:
        from jostle import _core as engine
    except ImportError as error:
        raise EngineError(f"the engine is not built ({error}): run `maturin develop`") from error
    missing = [
        name
        for name in (
            "ENGINE_VERSION", "METRICS_VERSION", "run", "run_summary", "registry", "find_problem",
            "Series", "measure_columns",
            "draw_impairments", "record_of_samples", "toml_lines",
        )
        if not hasattr(engine, name)
    ]  # fmt: skip
    if missing:
        raise EngineError(
            f"the engine is too old (it lacks {', '.join(missing)}): run `maturin develop`"
        )
    return engine


def _check_quic(flow: FlowSpec) -> None:
    """Check that a flow uses the built-in QUIC implementation."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    if other is not None:
        text = f'"{other["name"]}": programs need a kernel — run it with --backend kernel'
        raise InputError(f"flows.{flow['name']}.transport.implementation: {text}")


def _has_python_controllers(spec: Spec) -> bool:
    return any(is_python_controller(flow["controller"]["name"]) for flow in spec["flows"])


def _libraries(spec: Spec) -> dict[str, Path]:
    """Return the libraries of the crates of a run, which most runs do not have."""
    if not any(is_crate_controller(flow["controller"]["name"]) for flow in spec["flows"]):
        return {}
    from jostle.backends.crate_libraries import libraries

    return libraries(spec)


class SimBackend:
    """Runs a spec in the packet simulator, in virtual time.

    Parameters
    ----------
    engine
        Engine to use. Default: the compiled one.
    """

    name = "sim"

    def __init__(self, engine: Engine | None = None) -> None:
        self._given = engine
        self._engine = load_engine() if engine is None else engine

    def __reduce__(self) -> tuple[Any, ...]:
        # A compiled module cannot be pickled; the other process loads it again.
        return SimBackend, (self._given,)

    @property
    def version(self) -> str:
        """Version of the engine."""
        return self._engine.ENGINE_VERSION

    def version_of(self, spec: Spec) -> str:
        """Return the version of the engine."""
        del spec
        return self.version

    def check(self, spec: Spec) -> None:
        """Check that the engine accepts `spec`; see `Backend.check`."""
        self._check_by_engine(spec)
        self._check_support(spec)

    def check_accepted(self, spec: Spec) -> None:
        """Check `spec`, in which the installed engine has found no problem; see `Backend.check`."""
        if self._given is not None:
            self._check_by_engine(spec)
        self._check_support(spec)

    def _check_by_engine(self, spec: Spec) -> None:
        problem = self._engine.find_problem(canonical_json(spec))
        if problem is not None:
            place, message, _ = problem
            raise InputError(f"{place}: {message}" if place else message)

    def _check_support(self, spec: Spec) -> None:
        refuse_in_simulator(spec["flows"])
        for flow in spec["flows"]:
            _check_quic(flow)

    def patience_s(self, spec: Spec) -> float:
        """Return the wall time after which a run of `spec` is stuck; see `Backend.patience_s`."""
        from jostle.backends.kernel.impairment_playback import peak_bps
        from jostle.backends.kernel.packet_sizes import packet_bytes

        # Connections of tunnels have the rate of the links below.
        links = [link for link in spec["links"] if link["capacity"]["kind"] != "tunnel"]
        sent_bits = sum(map(peak_bps, links)) * spec["duration_ns"] / 1e9
        packet_bits = 8 * min(map(packet_bytes, spec["flows"]))
        python = _has_python_controllers(spec)
        per_s = _LEAST_PYTHON_PACKETS_PER_S if python else _LEAST_PACKETS_PER_S
        return _PATIENCE_S + sent_bits / packet_bits / per_s

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        """Run `spec` to its end; see `Backend.run`."""
        started = time.perf_counter()
        captured = None if spec.get("capture") is None else Captures()
        folders = [] if captured is None else [captured.folder]
        try:
            text = canonical_json(spec)
            record = self._run(text, spec, cancelled, folders)
        except BaseException as error:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end") from error
            if captured is not None and isinstance(error, OSError):
                raise captured.error(error) from error
            raise
        wall_s = time.perf_counter() - started
        return run_record(
            record, spec, self.name, self.version, wall_s=wall_s, captured=captured, text=text
        )

    def run_summary(self, text: str, like: Spec, cancelled: Cancelled | None = None) -> str:
        """Run the spec of a text; return its summary alone, as canonical JSON.

        Parameters
        ----------
        text
            A spec without captures, as canonical JSON.
        like
            The same spec, perhaps with another seed.
        cancelled
            See `Backend.run`.

        Raises
        ------
        RunCancelledError
            If `cancelled` returned true before the end.
        """
        refuse_in_simulator(like["flows"])
        maker = create_controller if _has_python_controllers(like) else None
        try:
            return self._engine.run_summary(text, cancelled, maker, _libraries(like))
        except BaseException as error:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end") from error
            raise

    def _run(
        self, text: str, spec: Spec, cancelled: Cancelled | None, folders: Sequence[Path]
    ) -> EngineRecord:
        refuse_in_simulator(spec["flows"])
        folder = folders[0] if folders else None
        python, crates = _has_python_controllers(spec), _libraries(spec)
        if python or crates:
            make = create_controller if python else None
            return self._engine.run(text, cancelled, folder, make, crates)
        if folder is not None:
            return self._engine.run(text, cancelled, folder)
        return self._engine.run(text, cancelled)
