"""Suites: lists of criteria for congestion controllers, which are evaluated on runs."""

from __future__ import annotations

from jostle.suites.controller_under_test import ControllerUnderTest, subject
from jostle.suites.load import INSTALLED, load, names
from jostle.suites.suite import Suite

__all__ = ["INSTALLED", "ControllerUnderTest", "Suite", "load", "names", "subject"]
