"""Named links, and how the keys beside a profile's name override it."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.scenario.models import LINK_TABLES
from jostle.scenario.text.positions import KeyPath
from jostle.scenario.text.problems import Report, did_you_mean
from jostle.scenario.text.units import parse_span

__all__ = ["fill_in", "merge", "profile_rtt_ns", "profiles"]


@functools.cache
def profiles() -> Mapping[str, Mapping[str, Any]]:
    """All profiles by name, as written in ``profiles.toml``."""
    return tomllib.loads(Path(__file__).with_name("profiles.toml").read_text("utf-8"))


def profile_rtt_ns(name: str) -> int:
    """Default round trip of flows that cross a link of profile `name`."""
    return parse_span(profiles()[name]["rtt"])


def fill_in(document: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Return a copy of `document` in which every link with a profile has all of its keys.

    Unknown profiles are reported and taken out.
    """
    filled = dict(document)
    for table in LINK_TABLES:
        if isinstance(document.get(table), dict):
            filled[table] = _link(document[table], (table,), report)
    if isinstance(document.get("links"), list):
        filled["links"] = [
            _link(link, ("links", index), report) if isinstance(link, dict) else link
            for index, link in enumerate(document["links"])
        ]
    return filled


def merge(profile: Mapping[str, Any], link: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of `link` over those of `profile`.

    A table beside a profile changes the keys that it names; one that names a `kind` or a
    `model` replaces the profile's table. A trace replaces the profile's rate, and either of them
    the rate of its slots.
    """
    merged = {key: value for key, value in profile.items() if key not in ("rtt", "summary")}
    if "trace" in link:
        merged.pop("rate", None)
    if "slots" in merged and not {"rate", "trace"}.isdisjoint(link):
        merged["slots"] = {k: v for k, v in merged["slots"].items() if k != "rate"}
    for key, value in link.items():
        below = merged.get(key)
        replaces = isinstance(value, dict) and not {"kind", "model", "file"}.isdisjoint(value)
        if isinstance(value, dict) and isinstance(below, dict) and not replaces:
            merged[key] = {**below, **value}
        else:
            merged[key] = value
    return merged


def _link(link: dict[str, Any], path: KeyPath, report: Report) -> dict[str, Any]:
    name = link.get("profile")
    if not isinstance(name, str):
        return link
    known = profiles()
    if name in known:
        return merge(known[name], link)
    hint = did_you_mean(name, tuple(known))
    report.add((*path, "profile"), f'there is no profile "{name}" — {hint}')
    return {key: value for key, value in link.items() if key != "profile"}
