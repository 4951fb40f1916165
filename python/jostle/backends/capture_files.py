"""Packet captures and qlogs of a run, before they are moved to the store."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.errors import JostleError
from jostle.safe_io.scratch_folder import TemporaryFolder

_ENDING = ".pcapng"
_LOG_ENDING = ".sqlog"


class CaptureError(JostleError):
    """The captures of a run cannot be written."""


class Captures:
    """Captures of a run in a temporary folder, which is removed with the last reference.

    Raises
    ------
    CaptureError
        If the folder cannot be created.
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
        # The folder is handed over to the process that receives the copy.
        self._removal.detach()
        return _adopt_captures, (self._temporary.hand_over(),)

    @property
    def files(self) -> Mapping[str, Path]:
        """Capture files by host; see `capture_files`."""
        return capture_files(self.folder)

    @staticmethod
    def error(why: OSError) -> CaptureError:
        """Return the error for a file that cannot be written."""
        return CaptureError(
            f"cannot write captured packets to {tempfile.gettempdir()}: {why.strerror or why}; "
            "if it is full, free some space or set TMPDIR"
        )


def _adopt_captures(folder: Path) -> Captures:
    captures = Captures.__new__(Captures)
    captures._own(TemporaryFolder.adopt(folder))
    return captures


def capture_files(folder: Path) -> Mapping[str, Path]:
    """Return the pcapng file of each host, and `HOST.sqlog` → qlog. Empty without the folder."""
    packets = {path.name.removesuffix(_ENDING): path for path in sorted(folder.glob(f"*{_ENDING}"))}
    return packets | {path.name: path for path in sorted(folder.glob(f"*{_LOG_ENDING}"))}
