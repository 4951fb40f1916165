"""Graphs of networks in GML and GraphML, as the Internet Topology Zoo has them.

A file of the Zoo is a list of nodes and edges. It is read in one pass that keeps what a scenario
uses and ends at a bound, which libraries for graphs do not have: networkx 3 reads all of a GML file
into nested tables first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from jostle.foreign_files import TABLE_BYTES, read_text
from jostle.scenario.text.units import QuantityError, quoted

__all__ = ["GraphEdge", "GraphFile", "GraphNode", "read_graph"]

_TOKEN: Final = re.compile(r'(?:\s++|#[^\n]*+)*+("[^"]*"|[\[\]]|[^\s\[\]"]+|\Z)')
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST: Final = {"node": 10_000, "edge": 100_000}
_DEEPEST: Final = 20
_KEYS: Final = {
    "node": ("id", "label", "Latitude", "Longitude"),
    "edge": ("source", "target", "LinkSpeedRaw", "LinkType"),
}
"""Keys that are read, of nodes and of edges."""
_NAMES: Final = {"graph", *_KEYS, *_KEYS["node"], *_KEYS["edge"]}
_DEGREES: Final = {"Latitude": 90, "Longitude": 360}
"""Largest magnitude of a coordinate; longitudes are written from 0 to 360, too."""
_LONGEST: Final = 200
"""Characters of a value: links are named after both of their ends."""
_SHOWN: Final = 40
"""Characters of a file's own text that a message quotes."""
_OPTICAL: Final = re.compile(r"OC-(\d{1,4})c?")
_OC_BPS: Final = 51_840_000
"""Line rate of an OC-1; an OC-n has n times as much (ITU-T G.707: STM-n has three)."""
_GRAPHML: Final = "http://graphml.graphdrawing.org/xmlns "


@dataclass(frozen=True)
class GraphNode:
    """A node: its label, and where it is in degrees, if that is known."""

    name: str
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True)
class GraphEdge:
    """An edge between two nodes by label, with its rate in bit/s if that is known."""

    one: str
    other: str
    rate_bps: int | None = None


@dataclass(frozen=True)
class GraphFile:
    """A graph as it stands in a file."""

    source: str
    nodes: Mapping[str, GraphNode]
    edges: tuple[GraphEdge, ...] = field(default=())


def read_graph(path: Path) -> GraphFile:
    """Read a graph.

    Parameters
    ----------
    path
        GML, or GraphML if it begins as XML. Nodes have a `label`, and may have `Latitude` and
        `Longitude`; edges may have `LinkSpeedRaw` in bit/s, or an optical carrier as `LinkType`.

    Raises
    ------
    QuantityError
        If it cannot be read; the text names the file, and the line.
    """
    place = f'graph "{path}"'
    try:
        text = read_text(path, TABLE_BYTES)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise QuantityError(f"{place}: {reason[0].lower()}{reason[1:]}") from None
    except ValueError:
        raise QuantityError(f"{place}: not a text file") from None
    text = text.removeprefix("\ufeff")
    found = _Elements(place)
    if text.lstrip().startswith("<"):
        _GraphmlReader(found).read(text)
    else:
        _read_gml(text, found)
    return found.graph(str(path))


@dataclass(frozen=True)
class _Element:
    """A node or an edge: its line, and the texts of its keys."""

    line: int
    values: dict[str, str] = field(default_factory=dict)


class _Elements:
    """Nodes and edges of a file while it is read."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.found: dict[str, list[_Element]] = {"node": [], "edge": []}
        self.around: list[str] = []
        self.element: _Element | None = None
        self.graphs = 0

    def wrong(self, line: int, message: str) -> QuantityError:
        """Return the error for what is wrong on a line."""
        return QuantityError(f"{self.place}, line {line}: {message}")

    def enter(self, kind: str, line: int) -> None:
        """Begin a list of GML, or an element of GraphML."""
        self.around.append(kind)
        if len(self.around) > _DEEPEST:
            raise self.wrong(line, f"nested too deeply — at most {_DEEPEST} levels")
        if kind == "graph":
            self.graphs += 1
            if self.graphs > 1:
                raise self.wrong(line, "a second graph — keep one")
        elif kind in _KEYS and self.around[-2:-1] == ["graph"]:
            if len(self.found[kind]) == _MOST[kind]:
                message = f"more than {_MOST[kind]} {kind}s — leave out those that no flow crosses"
                raise self.wrong(line, message)
            self.element = _Element(line)
            self.found[kind].append(self.element)

    def leave(self) -> None:
        """End what was begun last."""
        self.around.pop()
        if self.around[-1:] == ["graph"]:
            self.element = None

    def put(self, key: str, value: str, line: int) -> None:
        """Take the value of a key of what was begun last, if it is one that is read."""
        kind = self.around[-1] if self.around else ""
        if self.element is None or key not in _KEYS.get(kind, ()):
            return
        if key in self.element.values:
            raise self.wrong(line, f"this {kind} has two values of {key} — keep one")
        if len(value) > _LONGEST or _CONTROL.search(value):
            message = f"{key} is no text of at most {_LONGEST} characters on one line"
            raise self.wrong(line, message)
        self.element.values[key] = value

    def graph(self, source: str) -> GraphFile:
        """Return the graph that they are."""
        if not self.found["node"]:
            raise QuantityError(f"{self.place}: it has no nodes")
        names: dict[str, str] = {}
        nodes: dict[str, GraphNode] = {}
        labels = Counter(one.values.get("label") for one in self.found["node"])
        for element in self.found["node"]:
            identity = self._required(element, "id")
            label = element.values.get("label", identity)
            if identity in names:
                raise self.wrong(element.line, f'two nodes have the id "{identity[:_SHOWN]}"')
            # Two of the Zoo's nodes may be in one city.
            name = label if label not in nodes or labels[label] == 1 else f"{label} {identity}"
            if name in nodes:
                message = (
                    f'two nodes would be called "{name[:_SHOWN]}" — change one of their labels'
                )
                raise self.wrong(element.line, message)
            names[identity] = name
            nodes[name] = GraphNode(name, *(self._degrees(element, key) for key in _DEGREES))
        edges = [self._edge(element, names) for element in self.found["edge"]]
        # A cable from a node to itself carries nothing.
        return GraphFile(source, nodes, tuple(one for one in edges if one.one != one.other))

    def _required(self, element: _Element, key: str) -> str:
        if key not in element.values:
            raise self.wrong(element.line, f"{key} is missing")
        return element.values[key]

    def _number(self, element: _Element, key: str) -> float | None:
        given = element.values.get(key)
        if given is None:
            return None
        try:
            return float(given)
        except ValueError:
            message = f"{key} {quoted(given)} is not a number"
            raise self.wrong(element.line, message) from None

    def _degrees(self, element: _Element, key: str) -> float | None:
        value, most = self._number(element, key), _DEGREES[key]
        if value is not None and not -most <= value <= most:
            raise self.wrong(element.line, f"{key} {value:g} is not from {-most} to {most} degrees")
        return value

    def _edge(self, element: _Element, names: Mapping[str, str]) -> GraphEdge:
        ends = [self._required(element, key) for key in ("source", "target")]
        for end in ends:
            if end not in names:
                message = f'an edge ends at "{end[:_SHOWN]}", which is no node'
                raise self.wrong(element.line, message)
        rate = self._number(element, "LinkSpeedRaw")
        carrier = _OPTICAL.fullmatch(element.values.get("LinkType", ""))
        if rate is None and carrier is not None:
            rate = int(carrier[1]) * _OC_BPS
        if rate is not None and not 0 < rate < 1e15:
            raise self.wrong(element.line, f"LinkSpeedRaw {rate:g} is no rate in bit/s")
        return GraphEdge(names[ends[0]], names[ends[1]], None if rate is None else round(rate))


def _read_gml(text: str, found: _Elements) -> None:
    """Read `graph [ node [ id 0 label "A" ] edge [ source 0 target 1 ] ]`."""
    key, line = "", 1
    for line, token in _tokens(text, found):
        if not key:
            if token == "]" and found.around:
                found.leave()
            elif token in "[]" or token.startswith('"'):
                raise found.wrong(line, f"{quoted(token)} where a key is expected")
            else:
                key = token
            continue
        if token == "]":
            break
        if token == "[":
            found.enter(key, line)
        else:
            found.put(key, token.strip('"'), line)
        key = ""
    if key:
        # A file that is no graph is read as keys, too: it may hold a secret.
        shown = f'"{key}"' if key in _NAMES else quoted(key)
        raise found.wrong(line, f"{shown} has no value")
    if found.around:
        raise found.wrong(line, "a [ without its ]")
    if not found.graphs:
        raise QuantityError(f"{found.place}: no graph [ … ] in it")


def _tokens(text: str, found: _Elements) -> Iterator[tuple[int, str]]:
    """Yield the line of each token, and the token."""
    end, line = 0, 1
    for token in _TOKEN.finditer(text):
        if token.start() > end:
            break
        line += text.count("\n", end, token.start(1))
        if token[1]:
            yield line, token[1]
        line += token[1].count("\n")
        end = token.end()
    if end < len(text):
        raise found.wrong(line, "a text without its closing quote")


class _GraphmlReader:
    """Takes what expat finds in GraphML."""

    def __init__(self, found: _Elements) -> None:
        self.found = found
        self.names: dict[str, str] = {}
        self.key = ""
        self.text: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def read(self, text: str) -> None:
        """Read a file."""
        try:
            self.parser.Parse(text, True)
        except expat.ExpatError as error:
            raise self.found.wrong(error.lineno, "not XML") from None

    def _doctype(self, *_: object) -> None:
        message = "a document type — remove it: no graph needs one"
        raise self.found.wrong(self.parser.CurrentLineNumber, message)

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        kind, line = tag.removeprefix(_GRAPHML), self.parser.CurrentLineNumber
        self.found.enter(kind, line)
        if kind == "key":
            self.names[attributes.get("id", "")] = attributes.get("attr.name", "")
        elif kind == "data":
            self.key, self.text = self.names.get(attributes.get("key", ""), ""), []
        else:
            for key, value in attributes.items():
                self.found.put(key, value, line)

    def _characters(self, text: str) -> None:
        if self.key:
            self.text.append(text)

    def _end(self, tag: str) -> None:
        self.found.leave()
        if tag == f"{_GRAPHML}data":
            self.found.put(self.key, "".join(self.text).strip(), self.parser.CurrentLineNumber)
            self.key = ""
