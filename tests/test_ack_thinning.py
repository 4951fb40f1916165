"""Links that thin ACKs out: what they drop, what it costs whom, and who refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.scenario import loads

DOWNLOAD = (Path(__file__).parents[1] / "scenarios/ack-thinning.toml").read_text()


def run(controller: str, most: int, **overrides: str) -> dict[str, Any]:
    """Summary of a download, of which one ACK stands for at most so many."""
    text = DOWNLOAD.partition("\n[grid]")[0]
    given = {"flows.download.controller": f'"{controller}"', "uplink.ack_thinning.most": str(most)}
    planned = loads(text, overrides={**given, **overrides}).plan(repeats=1)
    return SimBackend().run(planned.runs[0].spec).summary


def overall(summary: dict[str, Any], kind: str, position: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = summary[kind][position]["phases"]["overall"]
    return found


def completion_s(summary: dict[str, Any]) -> float:
    return float(overall(summary, "flows")["completion_s"])


def test_one_ack_stands_for_many():
    dropped = [
        overall(run("cubic", most), "links", 1)["dropped_ack_filter_packets"] for most in (1, 4, 16)
    ]
    # 20 MB are 13,812 packets, and every second one gets an ACK; more where some came out of order.
    acks = 20e6 / 1448 / 2
    assert dropped[0] == 0
    assert dropped[1] == pytest.approx(acks * 3 / 4, rel=0.1)
    assert dropped[2] == pytest.approx(acks * 15 / 16, rel=0.1)


def test_a_time_that_is_over_ends_the_wait():
    # At 50 Mbit/s packets come every 242 us, ACKs every 484 us: nine of them within 4 ms.
    hold = {"uplink.ack_thinning.hold": '"4 ms"'}
    dropped = overall(run("cubic", 1024, **hold), "links", 1)["dropped_ack_filter_packets"]
    assert dropped == pytest.approx(20e6 / 1448 / 2 * 8 / 9, rel=0.1)


@pytest.mark.parametrize("controller", ["cubic", "reno", "bbr"])
def test_who_counts_packets_hardly_loses(controller):
    plain, thinned = (completion_s(run(controller, most)) for most in (1, 16))
    assert thinned < 1.1 * plain


def test_who_counts_acks_loses():
    plain, thinned = (completion_s(run("hybla", most)) for most in (1, 16))
    assert thinned > 1.2 * plain
