"""State of a controller over time: its modes and internal quantities.

Both are sampled at the ends of the sampling intervals. A mode that lasts for less than an interval
may be missed, so a scenario for these measures needs intervals shorter than one RTT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.stats.descriptive import Floats, drop_missing

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.studies.models import Value

Seconds = tuple[float, float]
"""A window: from and to, in s from the run's beginning."""
ROUNDS: Final = "round_count"
"""Quantity in which controllers count round trips."""
_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "_bps": ("Mbit/s", 1e-6),
    "_s": ("ms", 1e3),
    "_packets": ("packets", 1.0),
}
_TAKEN: Final[Mapping[str, Callable[[Floats], Any]]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    "last": lambda values: values[-1],
}


@dataclass(frozen=True)
class ModeVisit:
    """Consecutive sampling intervals in one mode.

    Attributes
    ----------
    mode
        Name of the mode.
    first, after
        Position of the first interval, and of the first interval after the visit.
    """

    mode: str
    first: int
    after: int


class ControllerStates:
    """Modes and quantities of a flow in a run.

    Parameters
    ----------
    run
        A finished run.
    flow
        Name of the flow.
    """

    def __init__(self, run: Run, flow: str) -> None:
        import polars as pl

        of = pl.col("flow") == flow
        frame = run.flows.filter(of & pl.col("mode").is_not_null())
        self._time_s: Floats = frame["time_s"].to_numpy()
        self._modes: list[str] = frame["mode"].cast(pl.String).to_list()
        inside = run.internals.filter(of)
        self._internals = inside.with_columns(pl.col("quantity").cast(pl.String))
        entry = next(one for one in run.summary["flows"] if one["name"] == flow)
        self._start_s = float(entry["start_s"])

    def value(self, value: Value, span: Seconds) -> float | None:
        """Return a measure of states over a window, in its unit; None without a value."""
        if value.display and not any(_is(one, value.display) for one in self._modes):
            return None
        if value.measure == "internal":
            return self._internal(value, span)
        if value.measure == "mode_time":
            return self._share(value.mode, span)
        return self._of_visits(value, list(self._visits(span)))

    def _share(self, mode: str, span: Seconds) -> float | None:
        inside = (self._time_s > span[0]) & (self._time_s <= span[1])
        there = np.array([_is(one, mode) for one in self._modes], dtype=bool)[inside]
        return float(np.mean(there)) if there.size else None

    def _of_visits(self, value: Value, visits: list[ModeVisit]) -> float | None:
        """Return a measure of visits to a mode. Except for counts, only ended visits are used."""
        every = [(at, one) for at, one in enumerate(visits) if _is(one.mode, value.mode)]
        if value.measure == "mode_visits":
            return float(len(every))
        if value.measure == "mode_entered":
            return self._since(every[0][1].first) if every else None
        ended = [(one, visits[at + 1]) for at, one in every if at + 1 < len(visits)]
        if not ended:
            return None
        match value.measure:
            case "mode_left":
                found = self._since(ended[0][0].after)
            case "mode_followed":
                found = float(np.mean([_is(then.mode, value.then) for _, then in ended]))
            case "mode_length":
                found = float(np.mean([self._length(one) for one, _ in ended]))
            case _:
                return self._rounds([one for one, _ in ended])
        return found

    def _visits(self, span: Seconds) -> Iterator[ModeVisit]:
        """Yield the visits to modes in a window, in order."""
        first = int(np.searchsorted(self._time_s, span[0], side="right"))
        end = int(np.searchsorted(self._time_s, span[1], side="right"))
        at = first
        while at < end:
            after = at
            while after < end and self._modes[after] == self._modes[at]:
                after += 1
            yield ModeVisit(self._modes[at], at, after)
            at = after

    def _since(self, at: int) -> float:
        return float(self._time_s[at] - self._start_s)

    def _length(self, one: ModeVisit) -> float:
        return float(self._time_s[one.after] - self._time_s[one.first])

    def _rounds(self, visits: list[ModeVisit]) -> float | None:
        times, counts = self._quantity(ROUNDS)
        if not times.size:
            return None
        ends = np.array([[self._time_s[one.first], self._time_s[one.after]] for one in visits])
        found = np.interp(ends, times, counts)
        return float(np.mean(found[:, 1] - found[:, 0]))

    def _internal(self, value: Value, span: Seconds) -> float | None:
        times, values = self._quantity(value.quantity)
        inside = (times > span[0]) & (times <= span[1])
        if value.mode:
            there = {
                float(t)
                for t, mode in zip(self._time_s, self._modes, strict=True)
                if _is(mode, value.mode)
            }
            inside &= np.array([float(t) in there for t in times], dtype=bool)
        if value.unset is not None:
            inside &= values != value.unset
        found = drop_missing(values[inside])
        return (
            float(_TAKEN[value.take](found)) * internal_unit(value.quantity)[1]
            if found.size
            else None
        )

    def _quantity(self, name: str) -> tuple[Floats, Floats]:
        import polars as pl

        frame = self._internals.filter(pl.col("quantity") == name)
        return frame["time_s"].to_numpy(), frame["value"].to_numpy()


def internal_unit(quantity: str) -> tuple[str, float]:
    """Return unit and factor of an internal quantity, from the ending of its name."""
    endings = (unit for ending, unit in _UNITS.items() if quantity.endswith(ending))
    return next(endings, ("", 1.0))


def _is(mode: str, wanted: str) -> bool:
    """Return whether a mode is `wanted`, or a sub-mode of it such as `probe_bw_up`."""
    return mode == wanted or mode.startswith(f"{wanted}_")
