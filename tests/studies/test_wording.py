"""Numbers as people read them."""

from __future__ import annotations

import pytest
from jostle.results.number_format import estimate_text
from jostle.stats import Estimate


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.41, 0.38, 0.44, "0.41 ± 0.03 s"),
        (0.41, 0.40, 0.50, "0.41 (0.40 … 0.50) s"),
        (0.41, 0.41 - 1.7e-16, 0.41 + 1.7e-16, "0.41 ± 0.00 s"),
        (1234.5, None, None, "1234 s"),
    ],
)
def test_an_interval_is_as_exact_as_it_was_measured(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert estimate_text(Estimate(value, low, high, 3, "s", ""), unit=True) == text
