"""Recordings of a link: samples of rate, delay and loss over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from jostle.scenario.parsing.problems import did_you_mean
from jostle.scenario.parsing.quantities import QuantityError

__all__ = [
    "GAPS",
    "MOST_STEPS",
    "Column",
    "Floats",
    "Gaps",
    "Quantity",
    "Recording",
    "TraceExtract",
    "check_steps",
    "cut",
    "spans",
]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Quantity = Literal["rate", "delay", "loss"]
Gaps = Literal["close", "hold", "stop"]

GAPS: Final[Mapping[Gaps, str]] = {
    "close": "cut out, what follows comes at once",
    "hold": "the value before them holds",
    "stop": "nothing is carried",
}
"""Ways to handle periods without a sample, with their descriptions."""

UNITS: Final[Mapping[Quantity, tuple[str, float]]] = {
    "rate": ("Mbit/s", 1e6),
    "delay": ("ms", 1e-3),
    "loss": ("", 1.0),
}
"""Assumed unit of a column without one, and its factor to bit/s, seconds or a probability."""

MOST_STEPS: Final = 2_000_000
"""Maximum number of steps of equal length, because a file of ten bytes can ask for a billion."""
_LONG: Final = 3.0
"""Distance between samples, in multiples of the median distance, from which there is a gap."""
_ROUNDING: Final = 0.01
"""Tolerated distance between the end of a sample and the next start, in median distances."""


@dataclass(frozen=True)
class Column:
    """Samples of one quantity.

    Attributes
    ----------
    name, quantity
        Name in the file, and quantity.
    values
        Shape (n,): bit/s, seconds, or a probability; NaN where the file has no value.
    """

    name: str
    quantity: Quantity
    values: Floats


@dataclass(frozen=True)
class Recording:
    """Samples read from a file.

    Attributes
    ----------
    source, format
        Name of the file, and its format.
    start_s, end_s
        Time interval of each sample, shape (n,); the first starts at 0.
    columns
        Columns of known quantity: rate, delay or loss.
    others
        Numeric columns of unknown quantity, by name, in the file's unit.
    opportunities_ms
        Delivery opportunities, if the file contains them.
    notes
        Assumptions made by the parser.
    """

    source: str
    format: str
    start_s: Floats
    end_s: Floats
    columns: tuple[Column, ...]
    others: Mapping[str, Floats] = field(default_factory=dict)
    opportunities_ms: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    def column(self, quantity: Quantity, name: str | None = None) -> Column:
        """Return the column with a name, or the only column of a quantity.

        Raises
        ------
        QuantityError
            If there is no such column, or several.
        """
        fitting = [one for one in self.columns if one.quantity == quantity]
        if name is None:
            if len(fitting) == 1:
                return fitting[0]
            names = ", ".join(f'"{one.name}"' for one in fitting)
            wrong = f"several are a {quantity}: {names}" if fitting else f"none is a {quantity}"
            hint = 'write for example column = "…"'
            raise QuantityError(f'trace "{self.source}": of its columns {wrong} — {hint}')
        found = next((one for one in self.columns if one.name == name), None)
        if found is not None and found.quantity != quantity:
            message = f'its column "{name}" is a {found.quantity}, not a {quantity}'
            raise QuantityError(f'trace "{self.source}": {message}')
        if found is None and name in self.others:
            _, factor = UNITS[quantity]
            found = checked(Column(name, quantity, self.others[name] * factor), self.source)
        if found is None:
            known = [one.name for one in self.columns] + list(self.others)
            message = f'there is no column "{name}" — {did_you_mean(name, known)}'
            raise QuantityError(f'trace "{self.source}": {message}')
        return found

    @property
    def length_s(self) -> float:
        """Time from the start of the first sample to the end of the last."""
        return float(self.end_s[-1])

    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Periods without a sample, as (start, end) in seconds."""
        if self.start_s.size < 2:
            return ()
        slack = _ROUNDING * float(np.median(self.end_s - self.start_s))
        missing = np.flatnonzero(self.start_s[1:] - self.end_s[:-1] > slack)
        return tuple((float(self.end_s[i]), float(self.start_s[i + 1])) for i in missing)


def check_steps(steps: float, source: str) -> None:
    """Check that a recording does not have too many steps of equal length.

    Raises
    ------
    QuantityError
        If there are more than `MOST_STEPS`.
    """
    if not steps <= MOST_STEPS:
        raise QuantityError(
            f'trace "{source}": {steps:.3g} steps: at most {MOST_STEPS} are made — choose a longer '
            "--bin or a shorter part"
        )


def spans(start_s: Floats) -> tuple[Floats, float | None]:
    """Return the end of each sample if only the starts are known: the start of the next sample.

    If the next sample is more than three median distances away, the sample ends after one median
    distance.

    Returns
    -------
    end_s, usual_s
        Ends, shape (n,), and the median distance. A single sample lasts 1 s and has no distance.
    """
    if start_s.size < 2:
        return start_s + 1.0, None
    distance = np.diff(start_s)
    usual_s = float(np.median(distance))
    lasting = np.where(distance > _LONG * usual_s, usual_s, distance)
    return start_s + np.append(lasting, usual_s), usual_s


def checked(column: Column, source: str) -> Column:
    """Return the column if its values are valid for its quantity.

    Raises
    ------
    QuantityError
        If a value is negative, a probability exceeds 1, or there is no value.
    """
    present = column.values[~np.isnan(column.values)]
    place = f'trace "{source}", column "{column.name}"'
    if not present.size:
        raise QuantityError(f"{place}: it holds no number")
    if np.isinf(present).any():
        raise QuantityError(f"{place}: it holds an infinite value")
    if present.min() < 0:
        raise QuantityError(f"{place}: a {column.quantity} below 0")
    if column.quantity == "loss" and present.max() > 1:
        hint = 'a column of percentages ends in "_percent" or "(%)"'
        raise QuantityError(f"{place}: a loss of {present.max():g} — {hint}")
    return column


@dataclass(frozen=True)
class TraceExtract:
    """A column as steps without gaps.

    Attributes
    ----------
    time_s, values
        Start and value of each step, shape (n,); the first starts at 0.
    length_s
        End of the last step.
    """

    time_s: Floats
    values: Floats
    length_s: float

    @property
    def lasting_s(self) -> Floats:
        """Duration of each step, shape (n,)."""
        return np.diff(np.append(self.time_s, self.length_s))


def cut(
    recording: Recording,
    column: Column,
    gaps: Gaps | None,
    from_s: float = 0.0,
    to_s: float | None = None,
) -> TraceExtract:
    """Convert a part of a column to steps. A missing value is replaced by the previous one.

    Parameters
    ----------
    recording, column
        Recording, and one of its columns.
    gaps
        Handling of gaps; None if there must be no gaps.
    from_s, to_s
        Start and end of the part, in time of the recording.

    Raises
    ------
    QuantityError
        If the part is empty, or has gaps and `gaps` is None.
    """
    place = f'trace "{recording.source}"'
    whole = recording.length_s
    end_s = whole if to_s is None else min(to_s, whole)
    inside = (recording.end_s > from_s) & (recording.start_s < end_s)
    if not inside.any():
        raise QuantityError(
            f"{place}: nothing from {from_s:g} s to {end_s:g} s; it has {whole:g} s"
        )
    part = replace(
        recording,
        start_s=np.maximum(recording.start_s[inside], from_s),
        end_s=np.minimum(recording.end_s[inside], end_s),
    )
    values = _fill_gaps(column.values[inside])
    holes = part.gaps()
    if holes and gaps is None:
        total_s = sum(end - start for start, end in holes)
        choice = ", ".join(f'"{name}" ({meaning})' for name, meaning in GAPS.items())
        many = "a gap" if len(holes) == 1 else f"{len(holes)} gaps"
        message = f"{many} of {total_s:g} s in all, the first after {holes[0][0]:g} s"
        raise QuantityError(f"{place}: {message} — say what that is by gaps: {choice}")
    if gaps == "stop" and column.quantity == "delay":
        raise QuantityError(f'{place}: gaps = "stop" is of a rate or a loss; a delay can "hold"')
    if gaps == "close" or not holes:
        lasting = part.end_s - part.start_s
        starts = np.concatenate(([0.0], np.cumsum(lasting)))
        return _merged(starts[:-1], values, float(starts[-1]))
    starts, length_s = part.start_s - from_s, float(part.end_s[-1]) - from_s
    if gaps == "stop":
        nothing = 1.0 if column.quantity == "loss" else 0.0
        at = np.array([start for start, _ in holes]) - from_s
        starts = np.concatenate((starts, at))
        values = np.concatenate((values, np.full(len(holes), nothing)))
        order = np.argsort(starts, kind="stable")
        starts, values = starts[order], values[order]
    starts[0] = 0.0
    return _merged(starts, values, length_s)


def _merged(time_s: Floats, values: Floats, length_s: float) -> TraceExtract:
    """Drop steps of zero length, and merge steps of equal value."""
    keep = np.append(np.diff(time_s) > 0, length_s > time_s[-1])
    time_s, values = time_s[keep], values[keep]
    changes = np.append(True, np.diff(values) != 0)
    return TraceExtract(time_s[changes], values[changes], length_s)


def _fill_gaps(values: Floats) -> Floats:
    """Replace missing values by the previous value, and at the start by the first value."""
    present = ~np.isnan(values)
    if present.all():
        return values
    if not present.any():
        raise QuantityError("no value in this part of the trace")
    last = np.maximum.accumulate(np.where(present, np.arange(values.size), -1))
    return values[np.where(last < 0, np.argmax(present), last)]
