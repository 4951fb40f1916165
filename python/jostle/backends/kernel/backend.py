"""The real Linux TCP stack as a backend."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from typing import Any

from jostle.backends.base import Cancelled, RunRecord, Spec, canonical_json
from jostle.backends.kernel import capabilities, captures, job, packets, programs
from jostle.backends.kernel.controllers import Defaults, defaults_of
from jostle.backends.kernel.playback import JITTER_POINTS, DrawnImpairments, peak_bps
from jostle.backends.kernel.record import record
from jostle.backends.kernel.runner import PROGRAM, KernelRunError, carried_out
from jostle.backends.kernel.workers import KernelNeeds
from jostle.backends.sim import Engine, load_engine
from jostle.errors import RunCancelledError
from jostle.kernel_images import Image, Kind, find

# A guest that passes packets at a tenth of its usual speed is not stuck.
_PATIENCE_S = 120.0
_LEAST_PACKETS_PER_S = 3_000
# A packet of QUIC costs several system calls of a process and its encryption.
_LEAST_QUIC_PACKETS_PER_S = 200
_MANY_CONNECTIONS_S = 3600.0
"""How much longer a run may take whose connections come and go, however many those are."""
# Two threads that come and go, and two sockets: 5 ms on a machine that has nothing else to do.
_PER_CONNECTION_S = 0.1


class KernelBackend:
    """Runs a spec on the real TCP stack, in network namespaces joined by `tc`.

    Parameters
    ----------
    kernel
        `virtual`: User-Mode Linux in virtual time; `realtime`: the distribution's, in real time;
        `native`: this machine's own kernel, as root.
    kernel_version
        Its version: `6.1`, `6.12`; see `jostle.kernel_images.find`.
    image
        The kernel itself, instead of one that is looked for.
    engine
        Knows controllers' defaults, and draws what links do by chance; the compiled one if absent.

    Raises
    ------
    jostle.kernel_images.KernelMissingError
        When there is no such kernel.
    """

    name = "kernel"

    def __init__(
        self,
        kernel: Kind = "virtual",
        kernel_version: str | None = None,
        *,
        image: Image | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.image = find(kernel, kernel_version) if image is None else image
        self._engine = engine

    def __reduce__(self) -> tuple[Any, ...]:
        # What is loaded stays here: another process loads it anew.
        return functools.partial(KernelBackend, image=self.image, engine=self._engine), ()

    @functools.cached_property
    def version(self) -> str:
        """Kernel, and a hash of all that decides what is measured in it."""
        return f"{self.image.identity}+{_program_hash()}.{self._loaded.RECORD_VERSION}"

    def version_of(self, spec: Spec) -> str:
        """Give `version`, with those of what carries flows of `spec` over QUIC.

        Of other people's programs a hash, of jostle's own the engine's.
        """
        carried = {programs.digest(flow) for flow in spec["flows"] if programs.is_program(flow)}
        if any(map(job.is_own_quic, spec["flows"])):
            carried.add(self._loaded.ENGINE_VERSION)
        return "+".join([self.version, *sorted(carried)])

    @functools.cached_property
    def _loaded(self) -> Engine:
        return load_engine() if self._engine is None else self._engine

    @functools.cached_property
    def _defaults(self) -> Defaults:
        return defaults_of(json.loads(self._loaded.registry()))

    def _draw(self, spec_json: str, link: int, cancelled: Cancelled | None) -> DrawnImpairments:
        # An hour of jitter that changes within microseconds takes minutes to draw.
        try:
            return self._loaded.draw_impairments(spec_json, link, JITTER_POINTS, cancelled)
        except BaseException as error:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end") from error
            raise

    def check(self, spec: Spec) -> None:
        """See that `spec` can be run here; see `Backend.check`."""
        capabilities.check(spec, self._defaults, self.image.kind)

    def on_workers(self) -> KernelNeeds:
        """Say what a machine needs to carry runs out; see `Needs`."""
        return KernelNeeds(self.image, self.image.identity)

    def patience_s(self, spec: Spec) -> float:
        """Seconds of real time after which a run of `spec` is stuck; see `Backend.patience_s`.

        A guest that is stuck is ended before that. Where runs are carried out one at a time they
        wait for each other, and none is stuck.
        """
        if self.image.kind != "virtual":
            return math.inf
        many = any(flow.get("arrivals") is not None for flow in spec["flows"])
        return 2 * timeout_s(spec, self.image.kind) + (_MANY_CONNECTIONS_S if many else 0.0)

    def run(self, spec: Spec, cancelled: Cancelled | None = None) -> RunRecord:
        """Run `spec` to its end; see `Backend.run`.

        Raises
        ------
        KernelRunError
            When the guest fails; the text says why.
        """
        self.check(spec)
        text = canonical_json(spec)
        work = job.build(spec, self.image, self._defaults)
        done = carried_out(
            work,
            job.files(spec, self.image, lambda link: self._draw(text, link, cancelled)),
            self.image,
            memory_mb=job.memory_mb(spec),
            seed=spec["seed"],
            timeout_s=timeout_s(spec, self.image.kind)
            + job.connections_of(work) * _PER_CONNECTION_S,
            cancelled=cancelled,
        )
        with done as (folder, wall_s):
            try:
                version = self.version_of(spec)
                made = record(spec, folder, self.name, version, wall_s, engine=self._loaded)
                captured = captures.captured(spec, folder, self.image, self._loaded)
                return dataclasses.replace(made, captured=captured)
            except (OSError, ValueError) as error:
                raise KernelRunError(f"what the guest left cannot be read: {error}") from error


def timeout_s(spec: Spec, kind: Kind) -> float:
    """Seconds of real time after which a run is stuck."""
    duration_s: float = spec["duration_ns"] / 1e9
    if kind != "virtual":
        return _PATIENCE_S + 2 * duration_s
    packet_bits = 8 * min(map(packets.packet_bytes, spec["flows"]))
    sent_packets = sum(map(peak_bps, spec["links"])) * duration_s / packet_bits
    quic = any(flow["transport"] == "quic" for flow in spec["flows"])
    per_s = _LEAST_QUIC_PACKETS_PER_S if quic else _LEAST_PACKETS_PER_S
    return _PATIENCE_S + sent_packets / per_s + duration_s


@functools.cache
def _program_hash() -> str:
    """Hash of everything here: the guest program, the network it is told to build, the record."""
    whole = hashlib.sha256()
    for path in sorted(PROGRAM.parent.rglob("*.py")):
        whole.update(path.relative_to(PROGRAM.parent).as_posix().encode() + b"\0")
        whole.update(path.read_bytes())
    return whole.hexdigest()[:12]
