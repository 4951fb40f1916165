"""A small chart of a criterion's comparisons: values with intervals, and their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from jostle.results.number_format import estimate_text
from jostle.suites.evaluate import ComparisonResult, CriterionResult
from jostle.suites.result_documents import comparison_label

_WIDTH: Final = 680
_LEFT: Final = 350
_ROW: Final = 18
_MOST_ROWS: Final = 40
_MOST_LETTERS: Final = 62
_FAR: Final = 4.0
"""Multiple of the bound that is drawn at the edge."""


def drawing(rows: Sequence[tuple[str, CriterionResult]]) -> Markup:
    """Draw comparisons of a criterion, controller by controller; empty without comparisons.

    Each value is drawn relative to its bound, which is the line in the middle, because bounds
    differ between conditions and can depend on the baseline.
    """
    found = [(name, one) for name, row in rows for one in row.comparisons]
    if not found:
        return Markup("")
    # The worst comparisons are the most informative.
    found.sort(key=lambda pair: ([name for name, _ in rows].index(pair[0]), -pair[1].tested.excess))
    each = max(1, _MOST_ROWS // len(rows))
    kept = [pair for name, _ in rows for pair in [one for one in found if one[0] == name][:each]]
    height = _ROW * len(kept) + 26
    parts = [_line(at, name, one, several=len(rows) > 1) for at, (name, one) in enumerate(kept)]
    x = _x(1.0)
    axis = Markup(
        '<line class="bound" x1="{x}" x2="{x}" y1="0" y2="{y}"/>'
        '<text class="quiet" x="{x}" y="{below}" text-anchor="middle">bound</text>'
    ).format(x=x, y=height - 20, below=height - 6)
    more = len(found) - len(kept)
    note = Markup('<text class="quiet" x="0" y="{}">{} more, better ones</text>').format(
        height - 6, more
    )
    return Markup('<svg class="comparisons" viewBox="0 0 {} {}" role="img">{}{}{}</svg>').format(
        _WIDTH, height, axis, Markup("").join(parts), note if more else ""
    )


def _line(at: int, name: str, one: ComparisonResult, *, several: bool) -> Markup:
    y = _ROW * at + _ROW / 2
    ours, bound = one.tested.ours, one.tested.target
    told = comparison_label(one)
    label = f"{name}: {told}" if several and told else told or name
    short = label if len(label) <= _MOST_LETTERS else label[: _MOST_LETTERS - 1] + "…"
    text = Markup('<text x="0" y="{}">{}</text>').format(y + 4, short)
    if ours.value is None:
        return text + Markup('<text class="quiet" x="{}" y="{}">no value</text>').format(
            _LEFT, y + 4
        )
    middle = _x(_share(ours.value, bound))
    low, high = (middle if end is None else _x(_share(end, bound)) for end in (ours.low, ours.high))
    said = f"{label}: {one.measured} {estimate_text(ours, unit=True)} (bound {one.tested.relation})"
    return text + Markup(
        '<g class="{}"><title>{}</title><line x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<circle cx="{}" cy="{}" r="4"/></g>'
    ).format(one.verdict, said, low, high, y, y, middle, y)


def _share(value: float, bound: float) -> float:
    """Return the value relative to its bound; for a bound of 0, relative to 1 at the bound."""
    return value / bound if bound > 0 else 1 + value


def _x(share: float) -> float:
    """Return the position of a share of the bound: linear up to 2, then compressed to the edge."""
    inner = _WIDTH - _LEFT - 12
    if math.isinf(share) or share > _FAR:
        return _WIDTH - 8.0
    at = max(0.0, share)
    part = at / 2 * 0.8 if at <= 2 else 0.8 + 0.2 * (at - 2) / (_FAR - 2)
    return round(_LEFT + part * inner, 1)
