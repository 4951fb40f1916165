"""What the commands work with, so that a test can put something else in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostle.backends import Backend, Engine
    from jostle.scenario import Scenario


@dataclass(frozen=True)
class Environment:
    """What the commands work with.

    Attributes
    ----------
    engine
        The engine; the compiled one if absent.
    """

    engine: Engine | None = None

    def load_engine(self) -> Engine:
        """Return the engine, loaded now if need be."""
        from jostle.backends import load_engine

        return self.engine if self.engine is not None else load_engine()

    def backend(self, name: str, options: Mapping[str, str | None] | None = None) -> Backend:
        """Make the backend called `name`; see `jostle.backends.create`."""
        from jostle.backends import SimBackend, create

        chosen = options or {}
        if name == SimBackend.name and self.engine is not None and not any(chosen.values()):
            return SimBackend(self.engine)
        return create(name, **chosen)

    def load_scenario(
        self, file: str, overrides: Mapping[str, str], *, allow_code: bool = False
    ) -> Scenario:
        """Read a scenario that may name what the engine has, and Python code if that is allowed."""
        from jostle import scenario

        registry = None
        if self.engine is not None:
            registry = scenario.Registry.from_json(
                self.engine.registry(), find_problem=self.engine.find_problem
            )
        return scenario.load(file, overrides, registry=registry, allow_code=allow_code)

    def registry(self) -> dict[str, list[dict[str, Any]]]:
        """Kind (`controllers`, `queues`, …) → rows."""
        document = json.loads(self.load_engine().registry())
        return {kind: rows for kind, rows in document.items() if isinstance(rows, list)}
