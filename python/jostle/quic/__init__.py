"""Programs of external QUIC implementations: their location, build and recipes.

`sources/` contains jostle's own servers and clients, which use the implementations as libraries.
"""

from __future__ import annotations

from jostle.quic.program_paths import find_program, folder, search_path

__all__ = ["find_program", "folder", "search_path"]
