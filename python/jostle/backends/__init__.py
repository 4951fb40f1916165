"""Backends, which turn a RunSpec into a RunRecord."""

from __future__ import annotations

from jostle.backends.base import Backend, Cancelled, Run, RunRecord, Spec, canonical_json, run_id
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
