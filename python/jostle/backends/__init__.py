"""Backends: whatever turns one RunSpec into one RunRecord."""

from __future__ import annotations

from jostle.backends.base import Backend, Cancelled, Run, RunRecord, Spec, canonical_json, run_id
from jostle.backends.sim import Engine, SimBackend, load_engine
from jostle.errors import InputError

__all__ = [
    "BACKENDS",
    "Backend",
    "Cancelled",
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

BACKENDS = {"sim": SimBackend}
"""Backends by name."""


def create(name: str) -> Backend:
    """Make the backend called `name`.

    Raises
    ------
    InputError
        When there is no such backend.
    EngineError
        When its engine is missing.
    """
    try:
        backend = BACKENDS[name]
    except KeyError:
        raise InputError(f"no backend `{name}`: choose one of {', '.join(BACKENDS)}") from None
    return backend()
