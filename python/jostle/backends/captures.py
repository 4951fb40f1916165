"""Files with the headers of packets: where they are between a run and the store."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from jostle.errors import JostleError
from jostle.locked_folders import temporary_folder

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
            stack = ExitStack()
            self.folder = stack.enter_context(temporary_folder("capture"))
        except OSError as error:
            raise self.error(error) from error
        weakref.finalize(self, stack.close)

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


def files(folder: Path) -> Mapping[str, Path]:
    """Host → file, by name; none if the folder is not there."""
    return {path.name.removesuffix(_ENDING): path for path in sorted(folder.glob(f"*{_ENDING}"))}
