"""Circles of imports, in Python and in Rust: files that cannot be understood one by one."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

Graph = Mapping[str, set[str]]
"""Name of a module → names of those that it uses."""


def circle(graph: Graph) -> list[str]:
    """One circle of a graph, from a module back to itself; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


@functools.cache
def python_graph(folder: Path) -> Graph:
    """Who imports whom in a package: at the top, in functions and for type checkers alone."""
    modules = {_dotted(path, folder.parent): path for path in folder.rglob("*.py")}
    graph = {}
    for name, path in modules.items():
        used = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                used |= {one if one in modules else node.module for one in names}
        graph[name] = used & (modules.keys() - {name})
    return graph


def _dotted(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_COMMENT = re.compile(r"//[^\n]*")
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"')
_TESTS = re.compile(r"#\[cfg\(test\)\][\s\S]*")
_USE = re.compile(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def rust_graph(crate: Path) -> Graph:
    """Which module of a crate names something that another one defines; tests do not count.

    A name that a module passes on (`pub use`) leads to where it is defined.
    """
    return _Crate(crate / "src").graph()


class _Crate:
    def __init__(self, source: Path) -> None:
        self._texts: dict[tuple[str, ...], str] = {}
        for path in source.rglob("*.rs"):
            parts = path.relative_to(source).with_suffix("").parts
            place = () if parts == ("lib",) else parts[:-1] if parts[-1] == "mod" else parts
            if parts[-1] != "tests":
                self._texts[place] = _TESTS.sub(
                    "", _TEXT.sub('""', _COMMENT.sub("", path.read_text()))
                )
        self._passed = {
            place: {name: path for _, name, path in self._uses(place)} for place in self._texts
        }

    def graph(self) -> Graph:
        graph = {}
        for place, text in self._texts.items():
            body = _USE.sub("", text)
            mentioned = set(re.findall(r"\w+", body))
            named = [
                path
                for is_public, name, path in self._uses(place)
                # What is only passed on is not used.
                if not is_public or name in mentioned
            ]
            named += filter(None, (self._absolute(place, path) for path in _PATH.findall(body)))
            homes = {self._home(path) for path in named} - {place}
            graph["::".join(place)] = {"::".join(home) for home in homes}
        return graph

    def _uses(self, place: tuple[str, ...]) -> Iterator[tuple[bool, str, tuple[str, ...]]]:
        """Whether others see a name of a module, the name, and the path of what it stands for."""
        for public, statement in _USE.findall(self._texts[place]):
            for path, name in _leaves(re.sub(r"\s+", " ", statement)):
                absolute = self._absolute(place, path)
                if absolute is not None:
                    yield bool(public), name, absolute

    def _absolute(self, place: tuple[str, ...], path: str) -> tuple[str, ...] | None:
        first, *rest = path.split("::")
        if first == "crate":
            return tuple(rest)
        if first == "self":
            return (*place, *rest)
        if first == "super":
            while rest[:1] == ["super"]:
                place, rest = place[:-1], rest[1:]
            return (*place[:-1], *rest)
        # A child, named without `self`.
        return (*place, first, *rest) if (*place, first) in self._texts else None

    def _home(self, path: tuple[str, ...], depth: int = 0) -> tuple[str, ...]:
        """Module in which what a path names is defined."""
        place: tuple[str, ...] = ()
        for number, step in enumerate(path):
            if (*place, step) in self._texts:
                place = (*place, step)
                continue
            passed = self._passed[place].get(step)
            if passed is not None and depth < 10 and passed != path:
                return self._home((*passed, *path[number + 1 :]), depth + 1)
            break
        return place


def _leaves(tree: str) -> Iterable[tuple[str, str]]:
    """Paths of a use tree, and what they are called: `a::{b, c as d}` has two."""
    tree = tree.strip()
    if "{" in tree:
        head, _, rest = tree.partition("{")
        depth, start = 0, 0
        inner = rest[: rest.rindex("}")]
        for at, character in enumerate(inner + ","):
            depth += {"{": 1, "}": -1}.get(character, 0)
            if character == "," and depth == 0:
                if inner[start:at].strip():
                    yield from _leaves(head + inner[start:at].strip())
                start = at + 1
        return
    path, _, name = tree.partition(" as ")
    path = path.strip().removesuffix("::self")
    yield path, (name or path.rsplit("::", 1)[-1]).strip()
