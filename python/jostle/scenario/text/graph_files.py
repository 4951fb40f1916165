"""Graphs of networks in GML and GraphML, as the Internet Topology Zoo has them.

Read by a hundred lines of our own, for a file of the Zoo is a list of nodes and edges; a library
for graphs would be the largest package of all that jostle needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from jostle.foreign_files import TABLE_BYTES, read_text
from jostle.scenario.text.units import QuantityError

__all__ = ["GraphEdge", "GraphFile", "GraphNode", "read_graph"]

_TOKEN: Final = re.compile(r'\s+|#[^\n]*|(?P<text>"[^"]*")|(?P<mark>[\[\]])|(?P<word>[^\s\[\]"]+)')
_MOST_NODES: Final = 10_000
_DEEPEST: Final = 20
_OPTICAL: Final = re.compile(r"OC-(\d{1,4})c?")
_OC_BPS: Final = 51_840_000
"""Line rate of an OC-1; an OC-n has n times as much (ITU-T G.707: STM-n has three)."""
_GRAPHML: Final = "{http://graphml.graphdrawing.org/xmlns}"


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
        If it cannot be read; the text names the file, and the line of GML.
    """
    place = f'graph "{path}"'
    try:
        text = read_text(path, TABLE_BYTES)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise QuantityError(f"{place}: {reason[0].lower()}{reason[1:]}") from None
    except ValueError:
        raise QuantityError(f"{place}: not a text file") from None
    text = text.lstrip("\ufeff \n\t")
    nodes, edges = _graphml(text, place) if text.startswith("<") else _gml(text, place)
    return _graph(str(path), place, nodes, edges)


def _graph(
    source: str, place: str, nodes: list[dict[str, Any]], edges: list[dict[str, Any]]
) -> GraphFile:
    if not nodes:
        raise QuantityError(f"{place}: it has no nodes")
    if len(nodes) > _MOST_NODES:
        raise QuantityError(f"{place}: {len(nodes)} nodes — at most {_MOST_NODES}")
    labels: dict[str, str] = {}
    found: dict[str, GraphNode] = {}
    for node in nodes:
        identity = str(node.get("id", ""))
        label = str(node.get("label", identity))
        if identity in labels:
            raise QuantityError(f'{place}: two nodes have the id "{identity}"')
        # Two of the Zoo's nodes may be in one city.
        name = label if label not in found else f"{label} {identity}"
        labels[identity] = name
        latitude, longitude = (_number(node, key, place) for key in ("Latitude", "Longitude"))
        found[name] = GraphNode(name, latitude, longitude)
    joined = []
    for edge in edges:
        ends = [str(edge.get(key, "")) for key in ("source", "target")]
        for end in ends:
            if end not in labels:
                raise QuantityError(f'{place}: an edge ends at "{end}", which is no node')
        rate = _number(edge, "LinkSpeedRaw", place)
        carrier = _OPTICAL.fullmatch(str(edge.get("LinkType", "")))
        if rate is None and carrier is not None:
            rate = int(carrier[1]) * _OC_BPS
        if rate is not None and not 0 < rate < 1e15:
            raise QuantityError(f"{place}: LinkSpeedRaw {rate:g} is no rate in bit/s")
        if ends[0] != ends[1]:
            bps = None if rate is None else round(rate)
            joined.append(GraphEdge(labels[ends[0]], labels[ends[1]], bps))
    return GraphFile(source, found, tuple(joined))


def _number(table: Mapping[str, Any], key: str, place: str) -> float | None:
    given = table.get(key)
    if given is None:
        return None
    try:
        return float(given)
    except (TypeError, ValueError):
        raise QuantityError(f'{place}: {key} "{given}" is not a number') from None


def _gml(text: str, place: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read `graph [ node [ id 0 label "A" ] edge [ source 0 target 1 ] ]`."""
    tokens = _tokens(text, place)
    whole = _list(tokens, place, 0)
    graph = next((value for key, value in whole if key == "graph"), None)
    if not isinstance(graph, list):
        raise QuantityError(f"{place}: no graph [ … ] in it")

    def tables(kind: str) -> list[dict[str, Any]]:
        return [dict(value) for key, value in graph if key == kind and isinstance(value, list)]

    return tables("node"), tables("edge")


def _tokens(text: str, place: str) -> Iterator[tuple[int, str]]:
    """Yield the line of each token, and the token."""
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise QuantityError(f"{place}, line {line}: a text without its closing quote")
        if found.lastgroup is not None:
            yield line, found[0]
        line += found[0].count("\n")
        at = found.end()


def _list(tokens: Iterator[tuple[int, str]], place: str, depth: int) -> list[tuple[str, Any]]:
    if depth > _DEEPEST:
        raise QuantityError(f"{place}: nested too deeply")
    pairs: list[tuple[str, Any]] = []
    line = 1
    for at, key in tokens:
        line = at
        if key == "]" and depth:
            return pairs
        if key in "[]" or key.startswith('"'):
            raise QuantityError(f"{place}, line {line}: {key} where a key is expected")
        line, value = next(tokens, (at, "]"))
        if value == "]":
            raise QuantityError(f'{place}, line {line}: "{key}" has no value')
        if value == "[":
            pairs.append((key, _list(tokens, place, depth + 1)))
        else:
            pairs.append((key, value.strip('"')))
    if depth:
        raise QuantityError(f"{place}, line {line}: a [ without its ]")
    return pairs


def _graphml(text: str, place: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise QuantityError(f"{place}: a document type — no graph needs one")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise QuantityError(f"{place}, line {error.position[0]}: not XML") from None
    names = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{_GRAPHML}key")}

    def tables(kind: str) -> list[dict[str, Any]]:
        found = []
        for element in root.iter(f"{_GRAPHML}{kind}"):
            data = {
                names.get(one.get("key", ""), ""): (one.text or "").strip()
                for one in element.iter(f"{_GRAPHML}data")
            }
            found.append({**data, **element.attrib})
        return found

    return tables("node"), tables("edge")
