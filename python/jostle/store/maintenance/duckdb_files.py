"""The file system through which DuckDB reads the tables of a store."""

from __future__ import annotations

import io
import re
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
        return open_regular(file) if isinstance(file, Path) else io.BytesIO(file)

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


def _size(file: Path | bytes) -> int:
    return file.stat().st_size if isinstance(file, Path) else len(file)
