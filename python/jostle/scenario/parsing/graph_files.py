"""Network graphs in GML and GraphML, the formats of the Internet Topology Zoo.

A file is a list of nodes and edges. The reader makes one pass, keeps only the keys that a scenario
uses, and limits the size. Graph libraries do not limit it: networkx 3 first reads a complete GML
file into nested tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from jostle.safe_io.untrusted_files import TABLE_BYTES, read_text
from jostle.scenario.parsing.quantities import QuantityError, quoted

__all__ = ["GraphEdge", "GraphFile", "GraphNode", "read_graph"]

_TOKEN: Final = re.compile(r'(?:\s++|#[^\n]*+)*+("[^"]*"|[\[\]]|[^\s\[\]"]+|\Z)')
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST: Final = {"node": 10_000, "edge": 100_000}
_DEEPEST: Final = 20
_KEYS: Final = {
    "node": ("id", "label", "Latitude", "Longitude"),
    "edge": ("source", "target", "LinkSpeedRaw", "LinkType"),
}
"""Keys that are read from nodes and edges; all others are ignored."""
_NAMES: Final = {"graph", *_KEYS, *_KEYS["node"], *_KEYS["edge"]}
_DEGREES: Final = {"Latitude": 90, "Longitude": 360}
"""Largest magnitude of a coordinate; longitudes may also be written from 0 to 360."""
_LONGEST: Final = 200
"""Maximum length of a value in characters; link names contain both node names."""
_SHOWN: Final = 40
"""Maximum number of characters of a file's text that an error message quotes."""
_OPTICAL: Final = re.compile(r"OC-(\d{1,4})c?")
_OC_BPS: Final = 51_840_000
"""Line rate of OC-1. OC-n has n times this rate (ITU-T G.707: STM-n has three times OC-n)."""
_GRAPHML: Final = "http://graphml.graphdrawing.org/xmlns "


@dataclass(frozen=True)
class GraphNode:
    """A node: its label, and its position in degrees if known."""

    name: str
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True)
class GraphEdge:
    """An edge between two nodes given by label, with its rate in bit/s if known."""

    one: str
    other: str
    rate_bps: int | None = None


@dataclass(frozen=True)
class GraphFile:
    """A graph read from a file."""

    source: str
    nodes: Mapping[str, GraphNode]
    edges: tuple[GraphEdge, ...] = field(default=())


def read_graph(path: Path) -> GraphFile:
    """Read a graph from a file.

    Parameters
    ----------
    path
        GML file, or GraphML if the content begins like XML. Nodes have a `label` and may have
        `Latitude` and `Longitude`; edges may have `LinkSpeedRaw` in bit/s, or an optical carrier as
        `LinkType`.

    Raises
    ------
    QuantityError
        If the file cannot be read; the message names the file and the line.
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
    """A node or an edge: its line, and the text of its keys."""

    line: int
    values: dict[str, str] = field(default_factory=dict)


class _Elements:
    """Nodes and edges collected while a file is read."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.found: dict[str, list[_Element]] = {"node": [], "edge": []}
        self.around: list[str] = []
        self.element: _Element | None = None
        self.graphs = 0

    def wrong(self, line: int, message: str) -> QuantityError:
        """Return the error for a problem on a line."""
        return QuantityError(f"{self.place}, line {line}: {message}")

    def enter(self, kind: str, line: int) -> None:
        """Begin a GML list or a GraphML element."""
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
        """End the innermost list or element."""
        self.around.pop()
        if self.around[-1:] == ["graph"]:
            self.element = None

    def put(self, key: str, value: str, line: int) -> None:
        """Store the value of a key of the innermost element, if the key is one of `_KEYS`."""
        kind = self.around[-1] if self.around else ""
        # Labels of the Topology Zoo may end with blanks, which no name of a scenario may.
        value = value.strip()
        if self.element is None or key not in _KEYS.get(kind, ()):
            return
        if key in self.element.values:
            raise self.wrong(line, f"this {kind} has two values of {key} — keep one")
        if len(value) > _LONGEST or _CONTROL.search(value):
            message = f"{key} is no text of at most {_LONGEST} characters on one line"
            raise self.wrong(line, message)
        self.element.values[key] = value

    def graph(self, source: str) -> GraphFile:
        """Return the graph of the collected nodes and edges."""
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
            # Several nodes of a Zoo file may have the same city as label.
            name = label if label not in nodes or labels[label] == 1 else f"{label} {identity}"
            if name in nodes:
                message = (
                    f'two nodes would be called "{name[:_SHOWN]}" — change one of their labels'
                )
                raise self.wrong(element.line, message)
            names[identity] = name
            nodes[name] = GraphNode(name, *(self._degrees(element, key) for key in _DEGREES))
        edges = [self._edge(element, names) for element in self.found["edge"]]
        # Drop self-loops: no flow uses them.
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
        # The file may be no graph and contain a secret. Quote known keys only.
        shown = f'"{key}"' if key in _NAMES else quoted(key)
        raise found.wrong(line, f"{shown} has no value")
    if found.around:
        raise found.wrong(line, "a [ without its ]")
    if not found.graphs:
        raise QuantityError(f"{found.place}: no graph [ … ] in it")


def _tokens(text: str, found: _Elements) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each token."""
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
    """Handler of expat's events for GraphML."""

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
        """Parse the text of a file."""
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
            self.found.put(self.key, "".join(self.text), self.parser.CurrentLineNumber)
            self.key = ""
