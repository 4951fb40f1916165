"""Draws the confusion matrix of `identify-results.inc`: `images/identify-matrix.png`.

python tools/results/draw_identification.py
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from jostle.figures.data import HeatMapData
from jostle.figures.renderer import render_figure
from jostle.figures.save import save

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "results" / "data"
TAKEN = re.compile(r"\| (\S+) \| ((?:\S+ \d+(?:, )?)+) \| \d+ ?% \|")


def matrix(text: str) -> HeatMapData:
    """Parse the last table: senders in rows, identified controllers in columns."""
    rows = {sender: taken.split(", ") for sender, taken in TAKEN.findall(text)}
    names = list(rows)
    values = np.zeros((len(names), len(names)))
    for sender, taken in rows.items():
        for one in taken:
            name, count = one.split(" ")
            values[names.index(sender), names.index(name)] = int(count)
    values *= 100 / values.sum(axis=1, keepdims=True)
    return HeatMapData(
        "Links on which a sender is taken for it", "%", tuple(names), tuple(names),
        np.where(values > 0, values, np.nan), 0.0, 100.0, False, ("never", "always"),
        "Sender, on Linux", "Taken for",
    )  # fmt: skip


def draw() -> None:
    """Write the figure."""
    text = (DATA / "identify-results.inc").read_text("utf-8")
    save(render_figure(matrix(text)), DOCS / "images" / "identify-matrix")


if __name__ == "__main__":
    draw()
