"""QUIC of other people: the recipes that come with jostle, and the words that start programs."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PLACES = ("www", "downloads", "qlog")
"""Placeholders that stand for folders of a run."""

VALUES = (
    "address", "port", "bytes", "controller", "window", "mtu", "seed", "key", "certificate",
)  # fmt: skip
"""Placeholders that stand for values of a flow."""

_RECIPES = Path(__file__).with_suffix(".toml")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Recipe:
    """How an implementation is used.

    Attributes
    ----------
    server, client
        Program and arguments of each, with placeholders.
    controllers
        Its word for each controller that it has.
    install
        How its programs are installed.
    environment
        Variables for both.
    """

    title: str
    server: Sequence[str]
    client: Sequence[str]
    controllers: Mapping[str, str]
    install: str
    environment: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def recipes() -> Mapping[str, Recipe]:
    """All recipes, by name."""
    known = tomllib.loads(_RECIPES.read_text("utf-8"))
    return {name: Recipe(**recipe) for name, recipe in known.items()}


def unknown_placeholders(words: Iterable[str]) -> Iterator[str]:
    """List the placeholders in `words` that stand for nothing."""
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in (*VALUES, *PLACES):
                yield name


def filled(words: Iterable[str], stand_for: Mapping[str, str]) -> list[str]:
    """Replace the placeholders that `stand_for` has; others stay."""

    def value(match: re.Match[str]) -> str:
        return stand_for.get(match[1], match[0])

    return [_PLACEHOLDER.sub(value, word) for word in words]
