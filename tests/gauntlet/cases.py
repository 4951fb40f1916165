"""Cases of the gauntlet: rows of the registry, transports and situations."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle import _core
from jostle.scenario.resolve.key_paths import changed, find
from jostle.studies.setups import _as_toml as as_toml

__all__ = [
    "SITUATIONS",
    "TESTED",
    "TRANSPORTS",
    "Case",
    "full_product",
    "is_sampled",
    "quick_cases",
    "rows",
]

FOLDER: Final = Path(__file__).parent
SITUATIONS: Final[Mapping[str, dict[str, Any]]] = tomllib.loads(
    (FOLDER / "situations.toml").read_text("utf-8")
)
TRANSPORTS: Final = ("tcp", "quic")
TESTED: Final = "tested"
_SHARE: Final = 4
"""Of so many situations each row has one over QUIC when `make test` runs."""
_EARLIER: Final = {"name": "earlier", "controller": "cubic", "size": "100 kB"}
"""Connection from whose end a peer cache takes what it knows."""


@dataclass(frozen=True)
class Case:
    """One run of the gauntlet.

    Attributes
    ----------
    row
        Name of a controller, or `slow_start:NAME` or `peer_cache:NAME`.
    kind
        Name of the situation.
    changes
        Keys of the scenario and their values, as for `--set`.
    """

    row: str
    transport: str
    kind: str
    changes: Mapping[str, Any]

    def __str__(self) -> str:
        changes = ", ".join(f"{key} = {as_toml(value)}" for key, value in self.changes.items())
        return f"{self.row} over {self.transport}, {self.kind}" + (changes and f" ({changes})")

    @property
    def document(self) -> dict[str, Any]:
        """Scenario of the run."""
        document = {"title": str(self), "sampling_interval": "500 ms", "seed": 1}
        document |= deepcopy(SITUATIONS[self.kind]["scenario"])
        for key, value in self.changes.items():
            for path in find(document, key):
                document = changed(document, path, value)
        flows = [dict(flow) for flow in document["flows"]]
        tested = next(flow for flow in flows if flow["name"] == TESTED)
        kind, _, name = self.row.rpartition(":")
        tested |= {"controller": "cubic", "transport": self.transport} | {
            kind or "controller": name
        }
        if kind == "peer_cache":
            tested |= {"peer": "10.0.0.1", "after": "earlier"}
            earlier = {"rtt": tested["rtt"], "transport": self.transport, kind: name}
            flows.insert(0, _EARLIER | {"peer": tested["peer"]} | earlier)
        return document | {"flows": flows}

    @property
    def recovered(self) -> Mapping[str, float]:
        """Least share of the utilisation before, for phases that have their own."""
        found: Mapping[str, float] = SITUATIONS[self.kind].get("recovered", {})
        return found

    @property
    def toml(self) -> str:
        """The scenario as a file that `jostle run` accepts in the folder of this module."""
        return "\n".join(f"{key} = {as_toml(value)}" for key, value in self.document.items())


def rows() -> list[str]:
    """Return all controllers, slow starts and peer caches of the registry."""
    registry = json.loads(_core.registry())
    return [
        prefix + row["name"]
        for kind, prefix in [
            ("controllers", ""),
            ("slow_starts", "slow_start:"),
            ("peer_caches", "peer_cache:"),
        ]
        for row in registry[kind]
    ]


def _of_rows(changes: Any) -> Iterator[Case]:
    for kind, row, transport in itertools.product(SITUATIONS, rows(), TRANSPORTS):
        for change in changes(SITUATIONS[kind], f"{kind} {row} {transport}"):
            yield Case(row, transport, kind, change)


def quick_cases() -> list[Case]:
    """Return one case for each row, transport and kind of situation.

    A hash chooses the variant, so that a new row changes no case of another row.
    """

    def changes(situation: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        return [situation["quick"][_digest(name) % len(situation["quick"])]]

    return list(_of_rows(changes))


def is_sampled(case: Case) -> bool:
    """Return whether `make test` has a quick case: all over TCP, a share of those over QUIC.

    A run over QUIC takes six times the CPU time of one over TCP. Each row has equally many.
    """
    place = list(SITUATIONS).index(case.kind)
    return case.transport != "quic" or (_digest(case.row) + place) % _SHARE == 0


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def full_product() -> list[Case]:
    """Return every combination of row, transport and values of a situation's grid."""

    def changes(situation: Mapping[str, Any], _: str) -> Iterator[dict[str, Any]]:
        grid = situation["grid"]
        for values in itertools.product(*grid.values()):
            yield dict(zip(grid, values, strict=True))

    return list(_of_rows(changes))
