"""Files of networks and links, read once for all conditions of a scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from jostle.scenario.parsing.graph_files import GraphFile, read_graph
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.traces.mahimahi import LinkTrace, read_trace

if TYPE_CHECKING:
    from jostle.scenario.traces.recording import Recording

__all__ = ["TraceFiles"]

K = TypeVar("K")
T = TypeVar("T")


@dataclass
class TraceFiles:
    """Reader for the files that a scenario names, relative to its folder."""

    folder: Path
    _found: dict[tuple[str, object], object] = field(default_factory=dict)
    _last: tuple[object, object] | None = None

    def trace(self, name: str) -> LinkTrace:
        """Return the delivery opportunities in a file.

        Raises
        ------
        QuantityError
            If the file cannot be read, or is not in Mahimahi's format.
        """
        return self._once((name, "trace"), lambda: read_trace(self.folder / name))

    def recording(self, name: str, where: tuple[tuple[str, str], ...]) -> Recording:
        """Return the recording in a file of any format, limited to rows with given values.

        Raises
        ------
        QuantityError
            If the file cannot be read.
        """
        from jostle.scenario.traces.reader import read

        return self._once((name, where), lambda: read(self.folder / name, where=dict(where)))

    def graph(self, name: str) -> GraphFile:
        """Return the nodes and edges in a file.

        Raises
        ------
        QuantityError
            If the file cannot be read, or is not a graph.
        """
        return self._once((name, "graph"), lambda: read_graph(self.folder / name))

    def last(self, key: K, make: Callable[[K], T | None]) -> T | None:
        """Return `make(key)`, or the previous result if `key` equals the previous key."""
        if self._last is None or self._last[0] != key:
            made = make(key)
            self._last = None if made is None else (key, made)
        return None if self._last is None else self._last[1]  # type: ignore[return-value]

    def _once(self, key: tuple[str, object], make: Callable[[], T]) -> T:
        if key not in self._found:
            try:
                self._found[key] = make()
            except QuantityError as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, QuantityError):
            raise found
        return found  # type: ignore[return-value]
