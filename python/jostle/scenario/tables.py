"""What all tables of the scenario format have in common."""

from pydantic import BaseModel, ConfigDict

__all__ = ["Table"]


class Table(BaseModel):
    """A table that takes the keys it knows, and each in one form only."""

    # Validators are built on first use: importing the package stays cheap.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
