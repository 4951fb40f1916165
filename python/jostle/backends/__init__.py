"""Backends: whatever turns one RunSpec into one RunRecord."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.backends.base import Backend, Cancelled, Run, RunRecord, Spec, canonical_json, run_id
from jostle.backends.captures import CaptureError, Captures
from jostle.backends.sim import Engine, SimBackend, load_engine
from jostle.errors import InputError

if TYPE_CHECKING:
    from jostle.kernel_images import Kind

__all__ = [
    "BACKENDS",
    "Backend",
    "Cancelled",
    "CaptureError",
    "Captures",
    "Engine",
    "Run",
    "RunRecord",
    "SimBackend",
    "Spec",
    "canonical_json",
    "create",
    "load_engine",
    "run_id",
]

BACKENDS = ("sim", "kernel")
"""Names of the backends."""


def create(name: str, *, kernel: Kind | None = None, kernel_version: str | None = None) -> Backend:
    """Make the backend called `name`.

    Parameters
    ----------
    kernel, kernel_version
        Of the backend `kernel`: which one, in virtual time if absent; see
        `jostle.kernel_images.find`.

    Raises
    ------
    InputError
        When there is no such backend, or no such kernel.
    EngineError
        When its engine is missing.
    """
    if name not in BACKENDS:
        raise InputError(f"no backend `{name}`: choose one of {', '.join(BACKENDS)}")
    if name == "kernel":
        from jostle.backends.kernel import KernelBackend

        return KernelBackend(kernel or "virtual", kernel_version)
    if kernel is not None or kernel_version is not None:
        raise InputError(f"the backend `{name}` has no kernel to choose: use the backend `kernel`")
    return SimBackend()
