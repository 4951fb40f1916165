"""Dependencies of the commands, which tests can replace."""

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
    """Dependencies of the commands.

    Attributes
    ----------
    engine
        Engine; by default the compiled one.
    """

    engine: Engine | None = None

    def load_engine(self) -> Engine:
        """Return the engine, and load it if necessary."""
        from jostle.backends import load_engine

        return self.engine if self.engine is not None else load_engine()

    def backend(self, name: str) -> Backend:
        """Create the backend of a name such as `kernel:6.12`; see `jostle.backends.create`."""
        from jostle.backends import SimBackend, create
        from jostle.backends.registry import parse_backend

        kind, chosen = parse_backend(name)
        if kind == SimBackend.name and self.engine is not None:
            return SimBackend(self.engine)
        return create(kind, **chosen)

    def load_scenario(
        self, file: str, overrides: Mapping[str, str], *, allow_code: bool = False
    ) -> Scenario:
        """Load a scenario with the engine's registry, and Python controllers if allowed."""
        from jostle import scenario

        registry = None
        if self.engine is not None:
            registry = scenario.Registry.from_json(
                self.engine.registry(), find_problem=self.engine.find_problem
            )
        return scenario.load(file, overrides, registry=registry, allow_code=allow_code)

    def registry(self) -> dict[str, list[dict[str, Any]]]:
        """Registry entries by kind (`controllers`, `queues`, …)."""
        document = json.loads(self.load_engine().registry())
        return {kind: rows for kind, rows in document.items() if isinstance(rows, list)}
