"""Suites: lists of criteria for congestion controllers, which are evaluated on runs."""

from __future__ import annotations

from jostle.studies.library import SUITES
from jostle.suites.controller_under_test import ControllerUnderTest, subject
from jostle.suites.load import load
from jostle.suites.suite import Suite

__all__ = ["SUITES", "ControllerUnderTest", "Suite", "load", "subject"]
