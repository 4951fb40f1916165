"""Link profiles, and the rules by which a scenario's keys override a profile."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.scenario.models import LINK_TABLES
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import parse_span

__all__ = ["fill_in", "merge", "profile_rtt_ns", "profiles"]


@functools.cache
def profiles() -> Mapping[str, Mapping[str, Any]]:
    """Return all profiles by name, from ``profiles.toml``."""
    return tomllib.loads(Path(__file__).with_name("profiles.toml").read_text("utf-8"))


def profile_rtt_ns(name: str) -> int:
    """Return the default RTT of flows that cross a link with profile `name`."""
    return parse_span(profiles()[name]["rtt"])


def fill_in(document: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Return a copy of `document` in which links with a profile have all of its keys.

    Unknown profiles are reported and removed.
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
    """Return the keys of `profile`, overridden by the keys of `link`.

    A table in `link` changes only the keys that it sets, but a table with a `kind`, `model` or
    `file` replaces the profile's table. A trace replaces the profile's rate. A rate or a trace
    replaces the rate of the profile's slots.
    """
    merged = {key: value for key, value in profile.items() if key not in ("rtt", "summary")}
    if "trace" in link:
        merged.pop("rate", None)
    if "reassignment" in merged and not {"rate", "trace"}.isdisjoint(link):
        merged["reassignment"] = {k: v for k, v in merged["reassignment"].items() if k != "rate"}
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
