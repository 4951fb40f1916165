"""Packet captures and logs of other tools, measured as results."""

from __future__ import annotations

from jostle.measurements.analysis import FLOWS, INTERVAL, analyze, files_of

__all__ = ["FLOWS", "INTERVAL", "analyze", "files_of"]
