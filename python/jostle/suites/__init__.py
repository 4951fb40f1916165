"""Suites: lists of criteria for congestion controllers, which are evaluated on runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.suites.controller_under_test import ControllerUnderTest, subject
    from jostle.suites.suite import Suite

__all__ = ["ControllerUnderTest", "Suite", "subject"]

__getattr__ = lazy_names(
    __name__,
    {
        "ControllerUnderTest": "controller_under_test",
        "Suite": "suite",
        "subject": "controller_under_test",
    },
)
