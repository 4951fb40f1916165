"""Suites: lists of criteria for a congestion controller, held against runs with that controller."""

from __future__ import annotations

from jostle.suites.load import INSTALLED, load, names
from jostle.suites.subject import Subject, subject
from jostle.suites.suite import Suite

__all__ = ["INSTALLED", "Subject", "Suite", "load", "names", "subject"]
