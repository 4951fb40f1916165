"""Links that thin ACKs out: what they drop, and what it costs whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jostle.backends import SimBackend
from jostle.scenario import load_text

DOWNLOAD = (Path(__file__).parents[1] / "scenarios/ack-thinning.toml").read_text()
LOSSLESS = {"downlink.loss": '"0 %"', "flows.download.size": '"20 MB"'}


def run(controller: str, most: int, **overrides: str) -> dict[str, Any]:
    """Summary of a download, of which one ACK stands for at most so many."""
    text = DOWNLOAD.partition("\n[grid]")[0]
    given = {
        "flows.download.controller": f'"{controller}"',
        "uplink.ack_thinning.max_acks": str(most),
    }
    planned = load_text(text, overrides={**given, **overrides}).plan(repeats=1)
    return SimBackend().run(planned.runs[0].spec).summary


def overall(summary: dict[str, Any], kind: str, position: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = summary[kind][position]["phases"]["overall"]
    return found


def goodput_bps(controller: str, most: int) -> float:
    return float(overall(run(controller, most), "flows")["goodput_bps"])


def filtered(most: int, **overrides: str) -> int:
    summary = run("cubic", most, **{**LOSSLESS, **overrides})
    assert summary["flows"][0]["unfinished"] == 0
    return int(overall(summary, "links", 1)["dropped_ack_filter_packets"])


def test_one_ack_stands_for_many():
    # 20 MB are 13,812 packets. A receiver acknowledges one or two with an ACK.
    assert filtered(1) == 0
    least, most = 13_812 / 2, 13_812
    assert least * 3 / 4 < filtered(4) < most * 3 / 4
    assert least * 15 / 16 < filtered(16) < most * 15 / 16


def test_a_time_that_is_over_ends_the_wait():
    # At 50 Mbit/s packets come every 242 us, and ACKs every 484 us when the window is large: nine
    # within 4 ms.
    hold = {"uplink.ack_thinning.max_delay": '"4 ms"'}
    assert 13_812 / 2 * 7 / 9 < filtered(1024, **hold) < 13_812 * 9 / 10


@pytest.mark.parametrize("controller", ["cubic", "bbr"])
def test_who_counts_packets_hardly_loses(controller):
    plain, thinned = (goodput_bps(controller, most) for most in (1, 16))
    assert thinned > 0.9 * plain


@pytest.mark.parametrize("controller", ["hybla", "vegas"])
def test_who_counts_acks_or_delays_loses(controller):
    plain, thinned = (goodput_bps(controller, most) for most in (1, 16))
    assert thinned < 0.75 * plain
