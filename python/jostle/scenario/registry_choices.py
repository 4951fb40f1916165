"""Entries of a registry that a scenario names: controllers, queue disciplines, loss models."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from jostle.scenario import fields
from jostle.scenario.base_model import ScenarioTable
from jostle.scenario.dscp import Codepoints

__all__ = ["Algorithm", "Queue", "QueueClass", "RegistryChoice"]


class Algorithm(BaseModel):
    """A controller or slow start: a name, or a table with the name and parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """All keys except `name`."""
        return dict(self.model_extra or {})


class RegistryChoice(BaseModel):
    """A queue discipline or loss model: its kind, or a table with the kind and parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    kind: str

    @property
    def parameters(self) -> dict[str, Any]:
        """All keys except `kind`."""
        return dict(self.model_extra or {})


class QueueClass(ScenarioTable):
    """A class of flows with its own queue, and a weight or a priority."""

    weight: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """Weight of the class, with `drr`. Classes with packets waiting share the link in proportion to
    it. With `prio`, classes have priority in the order in which they are written."""
    dscp: Codepoints = ()
    """Codepoints of the class: `["EF", "CS6"]`, for flows that name no class."""
    queue: Annotated[RegistryChoice, BeforeValidator(fields.named("kind"))] | None = None
    """Queue of the class; by default `drop_tail` with the `limit` of the enclosing queue."""


class Queue(RegistryChoice):
    """A queue discipline: its kind, or a table with the kind, its parameters and its classes."""

    classes: dict[fields.Name, QueueClass] | None = None
    """Classes by name: `{ calls = { weight = 3, queue = "codel" }, default = {} }`."""
