"""Keys given by their end: `rate` for `bottleneck.rate`. All options with keys use this rule."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ambiguous", "matching_keys"]


def matching_keys(key: str, known: Iterable[str]) -> list[str]:
    """Return the key itself if it is known, else the known keys that end with it."""
    names = list(dict.fromkeys(known))
    return [key] if key in names else [name for name in names if name.endswith(f".{key}")]


def ambiguous(key: str, matches: Iterable[str]) -> str:
    """Return the message that several keys have the same end."""
    return f"several keys end with `{key}`: {', '.join(matches)}"
