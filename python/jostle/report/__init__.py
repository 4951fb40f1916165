"""A report: one self-contained HTML file."""

from __future__ import annotations

from jostle.report.html import render, write_report

__all__ = ["render", "write_report"]
