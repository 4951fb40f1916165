"""The phase that compares flows comes first, the complete run last."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.results.compared_phase import compared_phase, in_reading_order


def _summary(**senders: tuple[float, ...]) -> dict[str, Any]:
    """Return a summary with the throughput of each flow, by phase."""
    flows = max((len(rates) for rates in senders.values()), default=1)
    return {
        "fairness": {"overall": {}, **{name: {} for name in senders}},
        "flows": [
            {"phases": {name: {"throughput_bps": rates[flow]} for name, rates in senders.items()}}
            for flow in range(flows)
        ],
    }


@pytest.mark.parametrize(
    ("senders", "first"),
    [
        ({}, "overall"),
        ({"alone": (1.0, 0.0), "together": (1.0, 2.0)}, "together"),
        ({"together": (1.0, 2.0), "after": (0.0, 2.0)}, "together"),
        ({"start_up": (1.0, 2.0), "steady": (1.0, 2.0)}, "steady"),
    ],
)
def test_most_flows_send_in_the_phase_that_compares(
    senders: dict[str, tuple[float, ...]], first: str
) -> None:
    assert compared_phase(_summary(**senders)) == first


def test_other_phases_keep_their_order() -> None:
    order = in_reading_order(["overall", "a", "b", "c"], "b")
    assert order == ["b", "a", "c", "overall"]
    assert in_reading_order(["overall"], "overall") == ["overall"]
