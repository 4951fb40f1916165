"""Segments: many runs in one immutable folder, named by a hash of what it holds."""

from __future__ import annotations
