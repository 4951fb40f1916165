"""The packet simulator as a backend."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jostle.backends.base import Cancelled, RunRecord, Spec, canonical_json
from jostle.backends.captures import Captures
from jostle.backends.engine_record import EngineRecord, run_record
from jostle.errors import EngineError, InputError, RunCancelledError
from jostle.python_controllers.making import create as create_controller
from jostle.python_controllers.sources import is_python_controller
from jostle.run_spec import FlowSpec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_PATIENCE_S = 300.0
"""How long a run may take that sends nothing."""
_LEAST_PACKETS_PER_S = 20_000
"""Of the millions that a core forwards, on a machine with far too much to do."""
_LEAST_PYTHON_PACKETS_PER_S = 1_000
"""The same with controllers that are called at every ACK."""

MakeController = Callable[[str, Mapping[str, Any], int], object]
"""Makes a controller written in Python from its name, its parameters and a seed."""


class Engine(Protocol):
    """The compiled module `jostle._core`, or anything that stands in for it."""

    @property
    def ENGINE_VERSION(self) -> str:  # noqa: N802
        """Changes with every change of the engine's source."""

    def run(
        self,
        spec_json: str,
        cancelled: Cancelled | None = None,
        capture_folder: Path | None = None,
        make_controller: MakeController | None = None,
    ) -> EngineRecord:
        """Run one spec without holding the interpreter's lock."""

    def find_problem(
        self, spec_json: str
    ) -> tuple[str | None, str, tuple[int, int, int] | None] | None:
        """Find out what is wrong with a spec: place, message, a number and its bounds."""

    def draw_impairments(
        self, spec_json: str, link: int, points: int, cancelled: Cancelled | None = None
    ) -> Mapping[str, Any]:
        """Draw what a link's random parts will do in a run."""

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
        """Write what a packet socket of the kernel captured as a pcapng file."""

    @property
    def RECORD_VERSION(self) -> str:  # noqa: N802
        """Changes with every change of what measures."""

    def record_of_samples(
        self,
        spec_json: str,
        time_ns: npt.NDArray[np.int64],
        flows: Sequence[dict[str, Any]],
        links: Sequence[dict[str, Any]],
    ) -> EngineRecord:
        """Measure a run of which samples are known."""

    def registry(self) -> str:
        """Every algorithm, queue, … as a JSON document."""

    def run_spec_schema(self) -> str:
        """JSON Schema of a RunSpec."""


def load_engine() -> Engine:
    """Load the compiled engine.

    Raises
    ------
    EngineError
        When it was not built, or for another version of this package.
    """
    try:
        from jostle import _core as engine
    except ImportError as error:
        raise EngineError(f"the engine is not built ({error}): run `maturin develop`") from error
    missing = [
        name
        for name in (
            "ENGINE_VERSION", "RECORD_VERSION", "run", "registry", "find_problem", "Series",
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
    """See that a flow speaks no QUIC but the one that is built in."""
    quic = flow.get("quic")
    other = None if quic is None else quic.get("implementation")
    if other is not None:
        text = f'"{other["name"]}": programs need a kernel — run it with --backend kernel'
        raise InputError(f"flows.{flow['name']}.transport.implementation: {text}")


class SimBackend:
    """Runs a spec in virtual time, packet by packet.

    Parameters
    ----------
    engine
        The engine to use; the compiled one if absent.
    """

    name = "sim"

    def __init__(self, engine: Engine | None = None) -> None:
        self._given = engine
        self._engine = load_engine() if engine is None else engine

    def __reduce__(self) -> tuple[Any, ...]:
        # A compiled module cannot be sent: another process loads it anew.
        return SimBackend, (self._given,)

    @property
    def version(self) -> str:
        """Version of the engine."""
        return self._engine.ENGINE_VERSION

    def version_of(self, spec: Spec) -> str:
        """Give the version of all that runs `spec`, which is the engine's."""
        del spec
        return self.version

    def check(self, spec: Spec) -> None:
        """See that the engine takes `spec`; see `Backend.check`."""
        problem = self._engine.find_problem(canonical_json(spec))
        if problem is not None:
            place, message, _ = problem
            raise InputError(f"{place}: {message}" if place else message)
        for flow in spec["flows"]:
            _check_quic(flow)

    def patience_s(self, spec: Spec) -> float:
        """Seconds of real time after which a run of `spec` is stuck; see `Backend.patience_s`."""
        from jostle.backends.kernel.packets import packet_bytes
        from jostle.backends.kernel.playback import peak_bps

        sent_bits = sum(map(peak_bps, spec["links"])) * spec["duration_ns"] / 1e9
        packet_bits = 8 * min(map(packet_bytes, spec["flows"]))
        python = any(is_python_controller(flow["controller"]["name"]) for flow in spec["flows"])
        per_s = _LEAST_PYTHON_PACKETS_PER_S if python else _LEAST_PACKETS_PER_S
        return _PATIENCE_S + sent_bits / packet_bits / per_s

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        """Run `spec` to its end; see `Backend.run`."""
        started = time.perf_counter()
        captured = None if spec.get("capture") is None else Captures()
        folders = [] if captured is None else [captured.folder]
        try:
            record = self._run(spec, cancelled, folders)
        except BaseException as error:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end") from error
            if captured is not None and isinstance(error, OSError):
                raise captured.error(error) from error
            raise
        wall_s = time.perf_counter() - started
        return run_record(record, spec, self.name, self.version, wall_s=wall_s, captured=captured)

    def _run(
        self, spec: Spec, cancelled: Cancelled | None, folders: Sequence[Path]
    ) -> EngineRecord:
        text = canonical_json(spec)
        folder = folders[0] if folders else None
        if any(is_python_controller(flow["controller"]["name"]) for flow in spec["flows"]):
            return self._engine.run(text, cancelled, folder, create_controller)
        if folder is not None:
            return self._engine.run(text, cancelled, folder)
        return self._engine.run(text, cancelled)
