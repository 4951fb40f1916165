"""Programs of QUIC implementations that no package holds: where they are, and how they are built.

What is ours of them, a server and a client over the library of somebody else, is in `sources/`.
"""

from __future__ import annotations

from jostle.quic_programs.places import folder, search_path, which

__all__ = ["folder", "search_path", "which"]
