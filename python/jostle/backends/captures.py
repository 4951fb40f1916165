"""Files with packets, and qlogs: where they are between a run and the store."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.errors import JostleError
from jostle.locked_folders import TemporaryFolder

_ENDING = ".pcapng"
_LOG_ENDING = ".sqlog"


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
            self._own(TemporaryFolder("capture"))
        except OSError as error:
            raise self.error(error) from error

    def _own(self, folder: TemporaryFolder) -> None:
        self.folder = folder.path
        self._temporary = folder
        self._removal = weakref.finalize(self, folder.remove)

    def __reduce__(self) -> tuple[Any, ...]:
        # The folder goes with the copy, to the process that reads it.
        self._removal.detach()
        return _taken_over, (self._temporary.hand_over(),)

    @property
    def files(self) -> Mapping[str, Path]:
        """Host → file; see `files`."""
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
    captures._own(TemporaryFolder.taken_over(folder))
    return captures


def files(folder: Path) -> Mapping[str, Path]:
    """Host → file with its packets, `HOST.sqlog` → its qlog; none if the folder is not there."""
    packets = {path.name.removesuffix(_ENDING): path for path in sorted(folder.glob(f"*{_ENDING}"))}
    return packets | {path.name: path for path in sorted(folder.glob(f"*{_LOG_ENDING}"))}
