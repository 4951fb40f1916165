"""Kernel backend."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from jostle.backends import crate_libraries
from jostle.backends.base import Cancelled, RunRecord, Spec, canonical_json
from jostle.backends.kernel import (
    bridged_controllers,
    capabilities,
    captures,
    job,
    packet_sizes,
    quic_programs,
)
from jostle.backends.kernel.controllers import Defaults, defaults_of
from jostle.backends.kernel.guest.sampling import moments_ns
from jostle.backends.kernel.impairment_playback import JITTER_POINTS, DrawnImpairments, peak_bps
from jostle.backends.kernel.kernel_controllers import KernelOffer, modules_of
from jostle.backends.kernel.remote_workers import KernelNeeds
from jostle.backends.kernel.run_record import record
from jostle.backends.kernel.runner import PROGRAM, KernelRunError, run_job
from jostle.backends.sim import Engine, load_engine
from jostle.controller_crates.build import kernel_object
from jostle.errors import RunCancelledError
from jostle.kernel_images import Image, Kind, find
from jostle.kernel_images.bridge import BridgeModule, bridge_module
from jostle.kernel_images.kinds import OWN_CONTROLLERS
from jostle.run_spec import FlowSpec

# A guest at a tenth of its usual packet rate is not considered stuck.
_PATIENCE_S = 120.0
_LEAST_PACKETS_PER_S = 3_000
# A QUIC packet costs several system calls and its encryption.
_LEAST_QUIC_PACKETS_PER_S = 200
_MANY_CONNECTIONS_S = 3600.0
"""Additional time for runs with arrivals, for any number of connections."""
# A connection creates two threads and two sockets: 5 ms on an idle machine.
_PER_CONNECTION_S = 0.1


class KernelBackend:
    """Runs a spec on the Linux TCP stack, in network namespaces connected by `tc`.

    Parameters
    ----------
    kernel
        `virtual`: User-Mode Linux in virtual time; `realtime`: the distribution's kernel in real
        time; `native`: this machine's kernel, as root.
    kernel_version
        Version of the kernel, such as `6.1`; see `jostle.kernel_images.find`.
    controllers
        `jostle`: jostle's code also for controllers that Linux has; None for Linux's.
    image
        Kernel to use, instead of a search by version.
    engine
        Engine for controller defaults and random impairments. Default: the compiled one.
    bridges
        Modules with controllers of jostle and of crates for this kernel, by name. Default:
        compiled when a run needs them.

    Raises
    ------
    jostle.kernel_images.KernelMissingError
        If there is no such kernel.
    """

    name = "kernel"

    def __init__(
        self,
        kernel: Kind = "virtual",
        kernel_version: str | None = None,
        controllers: str | None = None,
        *,
        image: Image | None = None,
        engine: Engine | None = None,
        bridges: Mapping[str, BridgeModule] | None = None,
    ) -> None:
        self.image = find(kernel, kernel_version) if image is None else image
        self._engine = engine
        self._controllers = controllers
        self._bridges = dict(bridges or {})
        self._offer = KernelOffer(
            self.image,
            prefers_jostle=controllers == OWN_CONTROLLERS,
            has_bridge=bool(bridges),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Loaded objects are not pickled; the other process loads them again. A module is compiled
        # on one machine only.
        return functools.partial(
            KernelBackend,
            controllers=self._controllers,
            image=self.image,
            engine=self._engine,
            bridges=self._bridges,
        ), ()

    @functools.cached_property
    def version(self) -> str:
        """Identity of the kernel, and a hash of all sources that affect the measurements."""
        return f"{self.image.identity}+{_program_hash()}.{self._loaded.METRICS_VERSION}"

    def version_of(self, spec: Spec) -> str:
        """Return `version`, with the hashes of the programs and kernel modules that `spec` needs.

        External programs and modules have a hash; jostle's own QUIC has the engine's version.
        """
        carried = {
            quic_programs.digest(flow) for flow in spec["flows"] if quic_programs.is_program(flow)
        }
        if any(map(job.is_own_quic, spec["flows"])):
            carried.add(self._loaded.ENGINE_VERSION)
        for loaded in modules_of(spec, self.image):
            carried.add(f"{loaded.module.name}-{loaded.module.facts['sha256'][:12]}")
        modules = self._modules(spec)
        carried.update(module.identity for module in modules)
        if modules and self._offer.prefers_jostle:
            carried.add(OWN_CONTROLLERS)
        return "+".join([self.version, *sorted(carried)])

    @functools.cached_property
    def _loaded(self) -> Engine:
        return load_engine() if self._engine is None else self._engine

    @functools.cached_property
    def _defaults(self) -> Defaults:
        return defaults_of(json.loads(self._loaded.registry()))

    def _modules(self, spec: Spec) -> list[BridgeModule]:
        """Return the modules with the controllers of a run that the kernel lacks."""
        bridged = job.plan(spec, self._offer, self._defaults, self.image.kind).bridged
        return [self._module(name, flows[0]) for name, flows in bridged.items()]

    def _module(self, name: str, flow: FlowSpec) -> BridgeModule:
        known = self._bridges.get(name)
        if known is None or known.kernel_sha256 != self.image.digest:
            own = name == bridged_controllers.MODULE_NAME
            content = None if own else kernel_object(crate_libraries.crate_of(flow))
            known = self._bridges[name] = bridge_module(self.image, name, content)
        return known

    def _draw(self, spec_json: str, link: int, cancelled: Cancelled | None) -> DrawnImpairments:
        # Drawing an hour of jitter with a correlation time of microseconds takes minutes.
        try:
            return self._loaded.draw_impairments(spec_json, link, JITTER_POINTS, cancelled)
        except BaseException as error:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end") from error
            raise

    def check(self, spec: Spec) -> None:
        """Check that this kernel can run `spec`; see `Backend.check`."""
        capabilities.check(spec, self._defaults, self.image.kind, self._offer)

    def on_workers(self) -> KernelNeeds:
        """Return the requirements on other machines; see `WorkerRequirements`."""
        return KernelNeeds(self.image, self.image.identity)

    def patience_s(self, spec: Spec) -> float:
        """Return the wall time after which a run of `spec` is stuck; see `Backend.patience_s`.

        The guest's own timeout is shorter. Real-time runs have no limit, because they wait for each
        other.
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
            If the guest failed. The message gives the reason.
        """
        self.check(spec)
        text = canonical_json(spec)
        work = job.build(spec, self.image, self._defaults, self._offer)
        files = job.files(spec, self.image, lambda link: self._draw(text, link, cancelled))
        for module in self._modules(spec):
            files[bridged_controllers.file_name(module.name)] = module.content
        done = run_job(
            work,
            files,
            self.image,
            memory_mb=job.memory_mb(spec),
            seed=spec["seed"],
            timeout_s=timeout_s(spec, self.image.kind)
            + job.connections_of(work) * _PER_CONNECTION_S,
            cancelled=cancelled,
            modules=[loaded.module.name for loaded in modules_of(spec, self.image)],
        )
        with done as (folder, wall_s):
            try:
                version = self.version_of(spec)
                due_ns = None if self.image.kind == "virtual" else moments_ns(work)
                recorded = record(
                    spec, folder, self.name, version, wall_s, engine=self._loaded, moments_ns=due_ns
                )
                captured = captures.read_captures(spec, folder, self.image, self._loaded)
                return dataclasses.replace(recorded, captured=captured)
            except (OSError, ValueError) as error:
                raise KernelRunError(f"what the guest left cannot be read: {error}") from error


def timeout_s(spec: Spec, kind: Kind) -> float:
    """Return the wall time in seconds after which a run is stuck."""
    duration_s: float = spec["duration_ns"] / 1e9
    if kind != "virtual":
        return _PATIENCE_S + 2 * duration_s
    packet_bits = 8 * min(map(packet_sizes.packet_bytes, spec["flows"]))
    sent_packets = sum(map(peak_bps, spec["links"])) * duration_s / packet_bits
    quic = any(flow["transport"] == "quic" for flow in spec["flows"])
    per_s = _LEAST_QUIC_PACKETS_PER_S if quic else _LEAST_PACKETS_PER_S
    return _PATIENCE_S + sent_packets / per_s + duration_s


@functools.cache
def _program_hash() -> str:
    """Hash all Python sources of this package, including the guest program."""
    checksum = hashlib.sha256()
    for path in sorted(PROGRAM.parent.rglob("*.py")):
        checksum.update(path.relative_to(PROGRAM.parent).as_posix().encode() + b"\0")
        checksum.update(path.read_bytes())
    return checksum.hexdigest()[:12]
