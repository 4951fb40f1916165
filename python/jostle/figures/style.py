"""How figures look: sized for a column of a two-column paper, legible at that size."""

from __future__ import annotations

from typing import Any

COLUMN_IN = 3.4
"""Width of a paper column in inches."""

# Okabe and Ito, "Color Universal Design" (2008), without the yellow that vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# Lines remain distinct in a black-and-white print.
DASHES = ("-", (0, (4.5, 1.4)), (0, (1.2, 1.0)), (0, (6, 1.4, 1.2, 1.4)))

GREY = "#555555"

RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],  # Comes with Matplotlib: the same everywhere.
    # A dollar in the name of a flow is a dollar.
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
