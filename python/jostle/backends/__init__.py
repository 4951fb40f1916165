"""Backends, which turn a RunSpec into a RunRecord."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.backends.base import (
        Backend,
        Cancelled,
        Run,
        RunRecord,
        Spec,
        canonical_json,
        run_id,
    )
    from jostle.backends.capture_files import CaptureError, Captures
    from jostle.backends.registry import BACKENDS, BackendRow, create
    from jostle.backends.sim import Engine, SimBackend, load_engine

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendRow",
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

__getattr__ = lazy_names(
    __name__,
    {
        "BACKENDS": "registry",
        "Backend": "base",
        "BackendRow": "registry",
        "Cancelled": "base",
        "CaptureError": "capture_files",
        "Captures": "capture_files",
        "Engine": "sim",
        "Run": "base",
        "RunRecord": "base",
        "SimBackend": "sim",
        "Spec": "base",
        "canonical_json": "base",
        "create": "registry",
        "load_engine": "sim",
        "run_id": "base",
    },
)
