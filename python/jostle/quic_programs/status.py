"""Which implementations can carry a flow here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jostle.implementations import Recipe, recipes
from jostle.quic_programs.places import which

SCHEMA = "jostle.quic/1"
"""Of what `jostle quic status --json` prints."""


@dataclass(frozen=True)
class State:
    """What is known of an implementation.

    Attributes
    ----------
    server, client
        Paths of its programs; None where one is not there.
    advice
        How to get what is missing; empty if nothing is.
    """

    name: str
    title: str
    controllers: Sequence[str]
    server: str | None
    client: str | None
    advice: str

    @property
    def available(self) -> bool:
        """Whether both programs are there."""
        return not self.advice

    def to_dict(self) -> dict[str, Any]:
        """As `jostle quic status --json` prints it."""
        return {**asdict(self), "available": self.available}


def states() -> list[State]:
    """State of each recipe's implementation, by name."""
    return [_state(name, recipe) for name, recipe in sorted(recipes().items())]


def _state(name: str, recipe: Recipe) -> State:
    server, client = which(name, recipe.server[0]), which(name, recipe.client[0])
    there = server is not None and client is not None
    controllers = sorted(recipe.controllers)
    return State(name, recipe.title, controllers, server, client, "" if there else recipe.advice)
