"""Files with the headers of packets: where they are between a run and the store."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.errors import JostleError

_ENDING = ".pcapng"


class CaptureError(JostleError):
    """The packets of a run cannot be written."""


class Captures:
    """A run's captures, in a temporary folder that goes when nobody needs them any more.

    Raises
    ------
    CaptureError
        When there is no room for one.
    """

    def __init__(self) -> None:
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="jostle-capture-"))
        except OSError as error:
            raise self.error(error) from error
        self._own()

    def _own(self) -> None:
        self._removal = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    def __reduce__(self) -> tuple[Any, ...]:
        # The folder goes with the copy, to the process that reads it.
        self._removal.detach()
        return _taken_over, (self.folder,)

    @property
    def files(self) -> Mapping[str, Path]:
        """Host → file."""
        return files(self.folder)

    @staticmethod
    def error(why: OSError) -> CaptureError:
        """Say why a file cannot be written."""
        return CaptureError(
            f"cannot write captured packets to {tempfile.gettempdir()}: {why.strerror or why}; "
            "if it is full, free some space or set TMPDIR"
        )


def _taken_over(folder: Path) -> Captures:
    captures = Captures.__new__(Captures)
    captures.folder = folder
    captures._own()
    return captures


def files(folder: Path) -> Mapping[str, Path]:
    """Host → file, by name; none if the folder is not there."""
    return {path.name.removesuffix(_ENDING): path for path in sorted(folder.glob(f"*{_ENDING}"))}
