"""Which cases of a parametrised test every run of the tests has, and which are marked slow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Mark all cases but the first of every `step` as slow: `make nightly` runs all of them."""
    return [
        case if at % step == 0 else pytest.param(case, marks=pytest.mark.slow)
        for at, case in enumerate(cases)
    ]
