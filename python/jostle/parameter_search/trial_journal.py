"""The trials of a search in a store, line by line, as Optuna writes and reads them.

    .tuning/NAME.journal  a line of JSON per change of the study
    .tuning/NAME.lock     locked while lines are added

Optuna's own file would be written through a link that another user of the store has made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from jostle.errors import StoreError
from jostle.safe_io.folder_lock import locked_file
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import STORED_BYTES

__all__ = ["Journal"]


class Journal:
    """A backend of Optuna's `JournalStorage`.

    Parameters
    ----------
    path
        The file: in a folder of a store, both of which are made if they are missing.

    Raises
    ------
    StoreError
        When it cannot be opened, or is a link.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = f"{path.stem}.lock"
        self._read_lines, self._read_bytes = 0, 0
        with self._opened(make=True):
            pass

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Return the changes from a number on."""
        begin = self._read_bytes if log_number_from == self._read_lines else 0
        skipped = 0 if begin else log_number_from
        with self._opened() as (_, file):
            size = os.fstat(file.fileno()).st_size
            if size > STORED_BYTES:
                raise StoreError(f"{self._path} is too large for a journal of trials: remove it")
            file.seek(begin)
            content = file.read(max(size - begin, 0))
        # Another process may be adding a line.
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()[skipped:]
        self._read_lines, self._read_bytes = log_number_from + len(lines), begin + len(whole)
        try:
            yield from [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self._path} is no journal of trials: remove it") from error

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add changes."""
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        with (
            self._opened() as (folder, file),
            locked_file(folder, self._lock, str(self._path), StoreError),
        ):
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[tuple[OpenFolder, BinaryIO]]:
        store, inside = self._path.parents[1], self._path.parent.name
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if make else 0)
        try:
            with OpenFolder.below(store, inside, make=make) as folder:
                descriptor = folder.open_own_file(self._path.name, flags, 0o666)
                with os.fdopen(descriptor, "r+b") as file:
                    yield folder, file
        except OSError as error:
            raise StoreError(f"cannot use {self._path}: {error.strerror}") from error
