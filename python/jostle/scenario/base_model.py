"""Base class of all tables of the scenario format."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["ScenarioTable"]


class ScenarioTable(BaseModel):
    """A table that rejects unknown keys."""

    # `defer_build`: pydantic builds validators on first use, which keeps the import fast.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
