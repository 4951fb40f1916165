"""Style of figures: sized for a column of a two-column paper, and legible at that size."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

COLUMN_IN = 3.4
PAGE_WIDTH_IN = 7.0
"""Width of a paper column in inches."""

# Okabe and Ito, "Color Universal Design" (2008), without yellow, which is faint on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Dashes keep lines distinct in black-and-white print.
DASHES = ("-", (0, (4.5, 1.4)), (0, (1.2, 1.0)), (0, (6, 1.4, 1.2, 1.4)))

DARK = (6, 0)
"""Indices of the darkest colour and of the solid line, for aggregates."""

GREY = "#555555"

PUBLISHED = "published"
"""Name of values of a paper in legends."""
PUBLISHED_MARK: dict[str, Any] = {
    "linestyle": "", "marker": "D", "markersize": 4, "markerfacecolor": "white",
    "markeredgecolor": "black", "markeredgewidth": 0.8, "zorder": 5,
}  # fmt: skip

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # bundled with Matplotlib
    # Names of flows may contain dollar signs.
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#333333",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "jostle",
    "savefig.dpi": 300,
    "figure.dpi": 150,
}


@contextmanager
def look() -> Iterator[None]:
    """Use the settings of jostle's figures instead of the user's within the block."""
    import matplotlib as mpl

    # Reading the `backend` setting would load one, but each figure has a canvas.
    settings: Any = {
        key: mpl.rcParamsDefault[key] for key in mpl.rcParamsDefault if key != "backend"
    }
    with mpl.rc_context(settings | RC):
        yield


PAGE_IN = 9.2
"""Maximum height of a figure on a page of A4 or letter, with its caption."""

LETTER_IN = 0.058
"""Average width of a legend letter."""


def add_caption(figure: Figure, caption: str) -> None:
    """Write a caption below a figure, wrapped to its width."""
    if caption:
        wide = int(figure.get_size_inches()[0] / 0.047)
        text = textwrap.fill(caption, max(wide, 20))
        figure.supxlabel(text, x=0.01, ha="left", fontsize=6, color=GREY, linespacing=1.15)


def wrapped(label: str, room_in: float) -> str:
    """Wrap an axis or scale label to a width, without a break within its unit."""
    words, bracket, unit = label.rpartition(" (")
    lines = textwrap.wrap(words or label, max(int(room_in / LETTER_IN), 10))
    if bracket and words:
        last = f"{lines[-1]}{bracket}{unit}"
        fits = len(last) * LETTER_IN <= room_in
        lines[-1:] = [last] if fits else [lines[-1], bracket.strip() + unit]
    return "\n".join(lines)


def legend_columns(labels: Sequence[str], width_in: float) -> int:
    """Return the number of legend columns for which the longest label leaves room."""
    longest = max((len(label) for label in labels), default=1)
    entry_in = longest * LETTER_IN + 0.42
    return max(1, min(len(labels), int(width_in / entry_in)))


def shortened(label: str, width_in: float) -> str:
    """Shorten a label that is too wide, in the middle, where names differ least."""
    most = max(int((width_in - 0.42) / LETTER_IN), 8)
    if len(label) <= most:
        return label
    half = (most - 1) // 2
    return f"{label[: most - 1 - half]}…{label[-half:]}"
