"""Availability of external QUIC implementations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jostle.quic.program_paths import find_program
from jostle.quic.recipes import Recipe, recipes


@dataclass(frozen=True)
class ImplementationStatus:
    """Availability of an implementation.

    Attributes
    ----------
    server, client
        Paths of its programs; None if a program is missing.
    advice
        How to install missing programs; empty if there are none.
    """

    name: str
    title: str
    controllers: Sequence[str]
    server: str | None
    client: str | None
    advice: str

    @property
    def available(self) -> bool:
        """Whether both programs exist."""
        return not self.advice

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `jostle setup status --json` prints."""
        return {**asdict(self), "available": self.available}


def states() -> list[ImplementationStatus]:
    """Return the status of each recipe's implementation, by name."""
    return [_state(name, recipe) for name, recipe in sorted(recipes().items())]


def _state(name: str, recipe: Recipe) -> ImplementationStatus:
    server, client = find_program(name, recipe.server[0]), find_program(name, recipe.client[0])
    there = server is not None and client is not None
    controllers = sorted(recipe.controllers)
    return ImplementationStatus(
        name, recipe.title, controllers, server, client, "" if there else recipe.advice
    )
