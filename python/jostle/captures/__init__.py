"""Captures that somebody took, as results: the same measures, tables, figures and reports."""

from __future__ import annotations

from jostle.captures.analysis import FLOWS, INTERVAL, analyze, files_of

__all__ = ["FLOWS", "INTERVAL", "analyze", "files_of"]
