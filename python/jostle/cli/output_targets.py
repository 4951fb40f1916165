"""The option `-o`: files and folders whose ending chooses their content.

Endings are checked when the command line is parsed, and folders before anything runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from jostle.cli.output_folders import make_folder, make_folder_of
from jostle.errors import InputError
from jostle.safe_io.broken_pipe import outlive_readers
from jostle.safe_io.figure_formats import FORMATS
from jostle.safe_io.terminal_text import echo
from jostle.safe_io.untrusted_files import reserved_outputs

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from jostle.figures.renderer import FigureData

F = TypeVar("F", bound=Callable[..., Any])

FOLDER: Final = "/"
"""Ending of a folder of figures."""
TABLE: Final = {".csv": "all values as CSV", ".parquet": "all values as Parquet"}
DOCUMENT: Final = {".json": "the document of --json"}
JUNIT: Final = {".xml": "JUnit XML"}
FIGURE: Final = {f".{ending}": "the figure" for ending in FORMATS}
FIGURES: Final = {FOLDER: "all figures (PNG; DIR/*.svg and DIR/*.pdf for other formats)"}
ANY: Final = ""
"""Ending of files that have any other ending."""


@dataclass(frozen=True)
class Outputs:
    """The files and folders of `-o`."""

    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.paths)

    def prepare(self) -> None:
        """Create the folders of all files, and check that they are writable.

        Raises
        ------
        InputError
            If a file or folder cannot be written.
        """
        if self.paths:
            outlive_readers()
        for path in self.paths:
            if _ending(path) == FOLDER:
                make_folder(path.rpartition("/")[0] or "/")
            else:
                make_folder_of(path)

    def reserve(self, names: Sequence[str]) -> None:
        """Refuse to read files of these names in the folders during the present command."""
        _reserve([str(folder / name) for folder in self.folders() for name in names])

    def with_ending(self, *endings: str) -> list[str]:
        """Return the files with one of these endings, such as `.csv`."""
        return [path for path in self.paths if _ending(path) in endings]

    def folders(self) -> dict[Path, tuple[str, ...]]:
        """Return the folders of figures, each with its formats."""
        formats: dict[Path, tuple[str, ...]] = {}
        for path in self.with_ending(FOLDER):
            folder = Path(path.rpartition("/")[0] or "/")
            ending = path.rpartition("*.")[2] if path.endswith(_PATTERNS) else FORMATS[0]
            formats[folder] = (*formats.get(folder, ()), ending)
        return formats

    def write_table(self, frame: Callable[[], pl.DataFrame]) -> None:
        """Write a frame to all files of tables."""
        made = None
        for path in self.with_ending(*TABLE):
            made = frame() if made is None else made
            _write(path, _table_bytes(made, _ending(path)))
            echo(f"{_ending(path)[1:]}: {path}", err=True)

    def write_document(self, document: Callable[[], object]) -> None:
        """Write a document to all JSON files."""
        for path in self.with_ending(*DOCUMENT):
            text = json.dumps(document(), indent=1, ensure_ascii=False, allow_nan=False)
            _write(path, f"{text}\n".encode())
            echo(f"json: {path}", err=True)

    def write_text(
        self, ending: str, label: str, text: Callable[[Path], str], *, quiet: bool
    ) -> None:
        """Write the text for each file with an ending, and print their paths."""
        for path in self.with_ending(ending):
            _write(path, text(Path(path)).encode())
            echo(f"{label}: {path}", err=quiet)

    def write_figure(self, data: FigureData, *, quiet: bool) -> None:
        """Draw a figure into all files of figures, and print their paths."""
        from jostle.figures.renderer import render_figure

        if self.with_ending(*FIGURE):
            self.write_drawing(render_figure(data), quiet=quiet)

    def write_drawing(self, drawing: Figure, *, quiet: bool) -> None:
        """Write a drawing to all files of figures, and print their paths."""
        from jostle.figures.save import to_bytes

        for path in self.with_ending(*FIGURE):
            _write(path, to_bytes(drawing, _ending(path)[1:]))
            echo(f"figure: {path}", err=quiet)


_PATTERNS: Final = tuple(f"/*.{ending}" for ending in FORMATS)


def _ending(path: str) -> str:
    if path.endswith(("/", *_PATTERNS)):
        return FOLDER
    return Path(path).suffix.lower()


def _reserve(paths: Sequence[str]) -> None:
    click.get_current_context().with_resource(reserved_outputs(paths))


def _write(path: str, content: bytes) -> None:
    from jostle.safe_io.atomic_write import write_atomically

    make_folder_of(path)
    write_atomically(Path(path), content)


def _table_bytes(frame: pl.DataFrame, ending: str) -> bytes:
    import io

    buffer = io.BytesIO()
    if ending == ".csv":
        frame.write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    return buffer.getvalue()


def output_option(
    *contents: Mapping[str, str], default: str = "", required: bool = False
) -> Callable[[F], F]:
    """Return the option `-o` of a command.

    Parameters
    ----------
    contents
        Content by ending, such as `TABLE` and `FIGURE`.
    default
        Default file, for the help.
    required
        Whether the option has to be given.
    """
    accepted = {ending: text for content in contents for ending, text in content.items()}

    def parsed(
        _context: click.Context, _parameter: click.Parameter, given: Sequence[str]
    ) -> Outputs:
        for path in given:
            if _ending(path) not in accepted and ANY not in accepted:
                raise InputError(f"-o {path}: {_wrong(path, accepted)}")
        outputs = Outputs(tuple(dict.fromkeys(given)))
        _reserve([path for path in outputs.paths if _ending(path) != FOLDER])
        if outputs:
            outlive_readers()
        return outputs

    return click.option(
        "-o",
        "outputs",
        metavar="FILE",
        multiple=True,
        required=required,
        callback=parsed,
        help=f"Write to this file; its ending chooses the content: {_listed(accepted)}."
        + (f"  [default: {default}]" if default else ""),
    )


def _wrong(path: str, accepted: Mapping[str, str]) -> str:
    endings = ", ".join(ending for ending in accepted if ending != FOLDER)
    more = " or / for a folder" if FOLDER in accepted else ""
    shown = Path(path).suffix
    what = f"no content has the ending {shown}" if shown else "no ending"
    return f"{what} — end it with {endings}{more}"


def _listed(accepted: Mapping[str, str]) -> str:
    by_text: dict[str, list[str]] = {}
    for ending, text in accepted.items():
        by_text.setdefault(text, []).append("DIR/" if ending == FOLDER else ending or "other")
    return "; ".join(f"{', '.join(endings)} {text}" for text, endings in by_text.items())
