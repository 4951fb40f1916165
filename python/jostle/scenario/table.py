"""What all tables of a scenario have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Table"]


class Table(BaseModel):
    """A table that has its own keys and no others."""

    # Validators are built on first use: importing the package stays cheap.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
