"""Web pages of browser flows: drawn by the engine, and measures of their load times."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from jostle.backends.base import Spec
from jostle.backends.kernel.quantiles import mean, ranked
from jostle.backends.kernel.traffic_draws import MOST, draw
from jostle.run_spec import FlowSpec

Page = tuple[int, list[int], int, int]
"""Bytes of the main object and of each other object; parse time and think time in ns."""

# `MOST_OBJECTS` of crates/run-spec/src/limits.rs.
_MOST_OBJECTS = 10_000
_AT_ONCE = 1 << 12
# In the order of drawing: quantities of the page, then of each object.
_OF_PAGE, _OF_OBJECT = ("main_bytes", "objects", "parse_ns", "think_ns"), "object_bytes"


def pages(seed: int, flow: FlowSpec, duration_ns: int) -> list[Page]:
    """Return the pages that a flow's browser requests cyclically.

    Enough for a run of this duration; empty for other sources.
    """
    source: Any = flow["source"]
    if source["kind"] != "web":
        return []
    count = _AT_ONCE
    while True:
        drawn = _drawn(source, seed, f"flow/{flow['name']}/pages", count)
        # Earliest request time of each page.
        times_ns = itertools.accumulate((page[2] + page[3] for page in drawn), initial=0)
        needed = [page for page, at_ns in zip(drawn, times_ns, strict=False) if at_ns < duration_ns]
        if len(needed) < len(drawn) or len(drawn) == 1 or count >= MOST:
            return needed[: source["pages"]]
        count *= 4


def _drawn(source: Mapping[str, Any], seed: int, stream: str, count: int) -> list[Page]:
    """Return the pages that `count` random numbers suffice for, in the order of `Pages::draw`.

    The number of values per page depends on a drawn value, so every quantity is drawn from all
    numbers. Constants use no number; if all quantities are constant, one page is returned.
    """
    columns = {
        name: None if isinstance(source[name], int) else draw([source[name]], seed, stream, count)
        for name in (*_OF_PAGE, _OF_OBJECT)
    }
    found: list[Page] = []
    at = 0

    def next_of(name: str) -> int:
        nonlocal at
        column = columns[name]
        if column is None:
            return int(source[name])
        at += 1
        return column[at - 1] if at <= count else 0

    while not found or at > 0:
        main_bytes, objects, parse_ns, think_ns = (next_of(name) for name in _OF_PAGE)
        sizes_bytes = [max(1, next_of(_OF_OBJECT)) for _ in range(min(objects, _MOST_OBJECTS))]
        if at > count:
            break
        found.append((max(1, main_bytes), sizes_bytes, parse_ns, think_ns))
    return found


def measures(loads_ns: Sequence[tuple[int, int | None]], duration_ns: int) -> dict[str, Any]:
    """Return the measures of `measures/web.rs`, by key.

    Parameters
    ----------
    loads_ns
        Request time of each page, and its load time if it was loaded.
    """
    requested = [load for load in loads_ns if load[0] < duration_ns]
    took_s = [
        took_ns / 1e9
        for asked_ns, took_ns in requested
        if took_ns is not None and asked_ns + took_ns <= duration_ns
    ]
    return {
        "page_load_time_p50_s": ranked(took_s, 0, 0.5),
        "page_load_time_mean_s": mean(took_s),
        "page_load_time_p95_s": ranked(took_s, 0, 0.95),
        "pages": float(len(took_s)),
        "pages_unfinished": float(len(requested) - len(took_s)),
    }


def add_page_loads(
    summaries: Sequence[Mapping[str, Any]], spec: Spec, events: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the summaries of flows with the measures of their page loads.

    Parameters
    ----------
    summaries
        Summaries of the engine, which does not measure pages of this backend.
    events
        Events of each flow, with `pages_ns` for browsers.
    """
    return [
        {**summary, **measures(seen.get("pages_ns", ()), spec["duration_ns"])}
        if flow["source"]["kind"] == "web"
        else dict(summary)
        for summary, flow, seen in zip(summaries, spec["flows"], events, strict=True)
    ]
