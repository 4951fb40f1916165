"""Writing of figures: atomic, and with the same bytes for the same figure."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError
from jostle.figures.style import look
from jostle.safe_io.atomic_write import write_atomically
from jostle.safe_io.figure_formats import FORMATS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Metadata that changes with the time of writing or the version of Matplotlib.
_NO_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}

# Matplotlib writes each point of a curve on a new line, which makes files of thousands of lines.
_SVG_STEP = re.compile(rb" *\n(?=[MLCQ] -?[0-9])")


def to_bytes(figure: Figure, format: str) -> bytes:  # noqa: A002
    """Return a figure as `png`, `svg` or `pdf` bytes."""
    if format not in FORMATS:
        raise InputError(f"no figure format `{format}`: choose one of {', '.join(FORMATS)}")
    buffer = io.BytesIO()
    with look():
        # A higher compression level saves few bytes and takes as long as everything else.
        packed: dict[str, Any] = {"pil_kwargs": {"compress_level": 4}} if format == "png" else {}
        figure.savefig(buffer, format=format, metadata=_NO_METADATA[format], **packed)
    content = buffer.getvalue()
    return _SVG_STEP.sub(b" ", content) if format == "svg" else content


def save(
    figure: Figure, stem: str | os.PathLike[str], formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Write `figure` to `stem`.png, `stem`.svg, … and return the paths.

    Raises
    ------
    InputError
        If a format is unknown or a file cannot be written.
    """
    contents = {f".{suffix}": to_bytes(figure, suffix) for suffix in formats}
    paths = []
    for suffix, content in contents.items():
        path = Path(os.fspath(stem) + suffix)
        write_atomically(path, content)
        paths.append(path)
    return paths
