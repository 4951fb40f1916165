"""Programs of external QUIC implementations: their location, build and recipes.

`sources/` contains jostle's own servers and clients, which use the implementations as libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.quic.program_paths import find_program, folder, search_path

__all__ = ["find_program", "folder", "search_path"]

__getattr__ = lazy_names(
    __name__,
    {
        "find_program": "program_paths",
        "folder": "program_paths",
        "search_path": "program_paths",
    },
)
