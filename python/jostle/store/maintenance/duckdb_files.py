"""The file system through which DuckDB reads the tables of a store."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from fsspec import AbstractFileSystem  # type: ignore[import-untyped]

from jostle.safe_io.untrusted_files import open_regular


class TableFiles(AbstractFileSystem):  # type: ignore[misc]
    """Files of tables under addresses without anything of their paths; none can be written.

    Attributes
    ----------
    tables
        Name of a table → its files: paths, or contents.
    size_bytes
        Of all files together.
    """

    protocol = "jostle"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Sequence[Path | bytes]] = {}
        self.size_bytes = 0

    def add(self, table: str, files: Sequence[Path | bytes]) -> None:
        """Add a table."""
        self.tables[table] = files
        self.size_bytes += sum(map(_size, files))

    def addresses(self, table: str) -> list[str]:
        """Addresses of a table's files."""
        return [f"{self.protocol}://{table}/{at}" for at in range(len(self.tables[table]))]

    def with_paths(self, text: str) -> str:
        """Replace the addresses of files in a text with their paths."""
        address = rf"{self.protocol}://(?:{'|'.join(map(re.escape, self.tables))})/\d+"
        return re.sub(address, self._path, text)

    def _path(self, address: re.Match[str]) -> str:
        file = self._file(address[0])
        return str(file) if isinstance(file, Path) else address[0]

    def _open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
        if mode != "rb":
            raise PermissionError("a question writes no files")
        file = self._file(path)
        return SharedFile(open_regular(file) if isinstance(file, Path) else io.BytesIO(file))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Size of a file."""
        return {"name": path, "size": _size(self._file(path)), "type": "file"}

    def glob(self, path: str, **_: Any) -> list[str]:
        """Return the address itself: nothing in it is a pattern."""
        return [path]

    def modified(self, path: str) -> datetime:
        """Return the same for all: nothing in a store changes."""
        del path
        return datetime.fromtimestamp(0, UTC)

    def _file(self, path: str) -> Path | bytes:
        table, _, at = self._strip_protocol(path).partition("/")
        if table not in self.tables or not at.isdecimal() or int(at) >= len(self.tables[table]):
            raise FileNotFoundError(path)
        return self.tables[table][int(at)]


class SharedFile(io.RawIOBase, BinaryIO):
    """A file with a separate position for each thread.

    DuckDB reads parts of a file from several threads with the same handle. Each read is a `seek`
    and a `read`, between which another thread can run.

    Parameters
    ----------
    file
        The file, which is closed with this one.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._lock = threading.Lock()
        # DuckDB's threads have no lasting `threading.local`, so the key is the thread's number.
        self._positions: dict[int, int] = {}

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of this thread."""
        return self._positions.get(threading.get_ident(), 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Change the position of this thread."""
        with self._lock:
            self._file.seek(self.tell())
            self._positions[threading.get_ident()] = self._file.seek(offset, whence)
            return self.tell()

    def read(self, size: int | None = -1) -> bytes:
        """Read from the position of this thread."""
        with self._lock:
            self._file.seek(self.tell())
            content = self._file.read(-1 if size is None else size)
            self._positions[threading.get_ident()] = self._file.tell()
            return content

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _size(file: Path | bytes) -> int:
    return file.stat().st_size if isinstance(file, Path) else len(file)
