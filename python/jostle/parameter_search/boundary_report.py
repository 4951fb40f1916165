"""Report on a claim's boundary: table, document and map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from jostle.errors import InputError
from jostle.figures.data import Curve, CurvesData, Multiples, RegionData
from jostle.parameter_search.boundary import SamplePoint, changes, estimate_of, vote
from jostle.results.condition_names import short_names
from jostle.results.expectation_text import expectation_entry
from jostle.results.number_format import count
from jostle.results.text_table import Table
from jostle.scenario.parsing.quantities import format_short, parse_quantity

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData
    from jostle.scenario.resolve.sample import Variable
    from jostle.stats.descriptive import Floats
    from jostle.studies.models import Claim

__all__ = ["BoundaryResult", "checked"]

_CELLS: Final = 120
_SLABS: Final = 3
_NAMED: Final = 5
"""Number of points with failed runs that are named."""


@dataclass(frozen=True)
class BoundaryResult:
    """The boundary of a claim.

    Attributes
    ----------
    claim
        The claim.
    variables
        The keys.
    places
        Points in the order of their runs; over one key, in the order of its values.
    """

    claim: Claim
    variables: tuple[Variable, ...]
    places: tuple[SamplePoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the document that `--json` prints."""
        found = estimate_of(self.places)
        told: dict[str, Any] = {
            "claim": self.claim.text,
            "keys": [variable.key for variable in self.variables],
            "holds": found.holds,
            "fails": found.fails,
            "open": found.open,
            "first_design": {"points": found.blind, "wrong": found.wrong},
            "points": [
                {
                    "values": one.labels,
                    "holds": one.judgement.holds,
                    "certain": one.judgement.certain,
                    **expectation_entry(one.judgement.parts[0], "value bound possible"),
                    "incomplete": one.judgement.incomplete or None,
                }
                for one in self.places
            ],
        }
        if len(self.variables) == 1:
            told["changes"] = [
                {"from": a.labels, "to": b.labels, "holds_before": a.judgement.holds}
                for a, b in changes(self.places)
            ]
        return told

    def table(self) -> Table:
        """Return a short table."""
        known = [one for one in self.places if one.judgement.holds is not None]
        yes = sum(bool(one.judgement.holds) for one in known)
        unsure = sum(not one.judgement.certain for one in known)
        found = estimate_of(self.places)
        notes = [
            f"{len(self.places)} points: the claim holds at {yes}, at {len(known) - yes} it does "
            f"not; at {unsure} the interval leaves it open (or one run gives none).",
        ]
        notes += self._unknown_notes()
        notes += self._failure_notes()
        if len(self.variables) == 1:
            return self._changes(notes)
        notes.append(
            f"Of the {found.blind} points that were chosen blindly {found.wrong} would be judged "
            "wrongly by the others."
        )
        rows = (
            ("holds", f"{100 * found.holds:.0f}"),
            ("does not hold", f"{100 * found.fails:.0f}"),
            ("open, near the boundary", f"{100 * found.open:.0f}"),
        )
        header = ("by the nearest points", "% of the ranges")
        return Table(header, rows, (), 1, self.claim.text, notes=tuple(notes))

    @property
    def is_complete(self) -> bool:
        """Whether no run failed."""
        return not self._incomplete

    @property
    def unknown(self) -> list[SamplePoint]:
        """Points at which runs have no value, or ended before an event that decides the claim."""
        return [
            one
            for one in self.places
            if one.judgement.holds is None and not one.judgement.incomplete
        ]

    def _unknown_notes(self) -> list[str]:
        if not self.unknown:
            return []
        return [
            f"At {count(len(self.unknown), 'point')} the claim is unknown, because runs ended too "
            "early or have no value: extend `duration`."
        ]

    @property
    def _incomplete(self) -> list[SamplePoint]:
        return [one for one in self.places if one.judgement.incomplete]

    def _failure_notes(self) -> list[str]:
        """Return remarks on the points with failed runs, of which the first are named."""
        failed = self._incomplete
        if not failed:
            return []
        more = len(failed) - _NAMED
        return [
            f"At {len(failed)} points runs failed, so that they are not judged.",
            *(
                f"{', '.join(f'{key} {label}' for key, label in one.labels.items())}: "
                f"{one.judgement.incomplete}"
                for one in failed[:_NAMED]
            ),
            *([f"and {more} more points"] if more > 0 else []),
        ]

    def _changes(self, notes: Sequence[str]) -> Table:
        (key,) = (variable.key for variable in self.variables)
        name = short_names([key])[key]
        rows = [
            (
                a.labels[key],
                b.labels[key],
                "holds no more" if a.judgement.holds else "begins to hold",
            )
            for a, b in changes(self.places)
        ]
        header = (f"{name} from", "to", "the claim")
        known = [one.judgement.holds is not None for one in self.places]
        if not rows and any(known):
            where = "over the whole range" if all(known) else "wherever it is known"
            notes = [f"It is the same {where}.", *notes]
        return Table(header, tuple(rows), (), 3, self.claim.text, notes=tuple(notes))

    def figure(self) -> FigureData:
        """Return the map; over one key, the value and its bound."""
        from jostle.figures.renderer import with_remarks

        return with_remarks(self._figure(), [*self._failure_notes(), *self._unknown_notes()])

    def _figure(self) -> FigureData:
        if len(self.variables) == 1:
            return self._line()
        caption = f"{self.claim.text}. Line: where the nearest points are of two minds."
        if len(self.variables) == 2:
            return self._region(list(self.places), None, caption)
        third = self.variables[2]
        name = short_names([variable.key for variable in self.variables])[third.key]
        parts = []
        for slab in range(_SLABS):
            low, high = slab / _SLABS, (slab + 1) / _SLABS
            last = slab == _SLABS - 1
            inside = [
                p for p in self.places if low <= p.point[2] < high or (last and p.point[2] == 1)
            ]
            middle = (low + high) / 2
            title = f"{name} {third.level(middle).label}"
            parts.append((title, self._region(inside, middle, "")))
        return Multiples(tuple(parts), caption)

    def _region(self, shown: list[SamplePoint], third: float | None, caption: str) -> RegionData:
        axes = [_Scale.of(variable) for variable in self.variables[:2]]
        names = short_names([variable.key for variable in self.variables])
        middles = (np.arange(_CELLS) + 0.5) / _CELLS
        across, up = np.meshgrid(middles, middles)
        at = [across.ravel(), up.ravel()]
        if third is not None:
            at.append(np.full(across.size, third))
        shares = vote(self.places, np.stack(at, axis=1)).reshape(across.shape)
        edges = np.linspace(0.0, 1.0, _CELLS + 1)
        labels = [axis.label(names[variable.key]) for axis, variable in
                  zip(axes, self.variables[:2], strict=True)]  # fmt: skip
        return RegionData(
            labels[0], labels[1],
            axes[0].axis_values(np.array([one.point[0] for one in shown])),
            axes[1].axis_values(np.array([one.point[1] for one in shown])),
            np.array([np.nan if one.judgement.holds is None else float(one.judgement.holds)
                      for one in shown]),
            np.array([one.judgement.certain for one in shown], dtype=np.bool_),
            axes[0].axis_values(edges), axes[1].axis_values(edges), shares,
            axes[0].log, axes[1].log, caption,
        )  # fmt: skip

    def _line(self) -> CurvesData:
        (variable,) = self.variables
        axis = _Scale.of(variable)
        shown = [(one, one.judgement.parts[0]) for one in self.places]
        there = [(one, part) for one, part in shown if part.ours.finite is not None]
        x = axis.axis_values(np.array([one.point[0] for one, _ in there]))
        ours = [part.ours for _, part in there]
        value, low, high = (
            np.array([getattr(one, end) for one in ours], dtype=np.float64)
            for end in ("finite", "low", "high")
        )
        bounds = np.array([part.target for _, part in there])
        ends, none = np.array([0, -1]), np.full(2, np.nan)
        bound = Curve("bound", x[ends], bounds[ends], none, none)
        curves = (Curve("runs", x, value, low, high), bound)
        name = short_names([variable.key])[variable.key]
        caption = ""
        if np.isfinite(low).any():
            caption = "Band: 95 % confidence interval of the mean over the runs."
        label = axis.label(name)
        return CurvesData(label, self.claim.text, curves, log_x=axis.log, caption=caption)


@dataclass(frozen=True)
class _Scale:
    """Conversion of positions in a range to values on an axis."""

    low: float
    high: float
    stretched: bool
    unit: str

    @classmethod
    def of(cls, variable: Variable) -> _Scale:
        drawn = variable.range
        assert drawn is not None
        unit, base = "", 1.0
        if drawn.kind in ("time", "rate", "size"):
            unit = format_short(drawn.high, drawn.kind).split(" ")[1]
            base = float(parse_quantity(f"1 {unit}")[0])
        else:
            unit = {"packets": "packets", "bdp": "BDP", "percent": "%"}.get(drawn.kind, "")
        return cls(drawn.low / base, drawn.high / base, drawn.log, unit)

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic: for a wide, logarithmic range."""
        return self.stretched

    def axis_values(self, shares: Floats) -> Floats:
        """Convert positions in the range to the unit of the axis."""
        if self.stretched:
            found: Floats = self.low * (self.high / self.low) ** shares
            return found
        return self.low + (self.high - self.low) * shares

    def label(self, name: str) -> str:
        """Return the name with the unit."""
        return f"{name} ({self.unit})" if self.unit else name


def checked(variables: Sequence[Variable]) -> None:
    """Check that every key has a continuous range.

    Raises
    ------
    InputError
        When a key has choices.
    """
    for variable in variables:
        if variable.range is None:
            raise InputError(
                f'"{variable.key}" has choices, between which is nothing: choose one by --set, or '
                "move it to the grid"
            )
