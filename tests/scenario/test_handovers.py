"""Handovers of a link: which rates and delays they make, and what comes of them in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jostle
import pytest
from jostle.scenario import ScenarioError, load_text

SCENARIO = """
duration = "8 s"
[bottleneck]
rate = {rate}
delay = {delay}
queue = {{ kind = "drop_tail", limit = "400 kB" }}
{link}
[[flows]]
name = "voice"
controller = "none"
rtt = "160 ms"
source = {{ kind = "cbr", rate = "1 Mbit/s", size = "1000 B" }}
"""


def text(link: str, rate: str = '"20 Mbit/s"', delay: str = '"80 ms"') -> str:
    return SCENARIO.format(link=link, rate=rate, delay=delay)


def link_of(link: str, **others: str) -> dict[str, Any]:
    return dict(load_text(text(link, **others)).plan(repeats=1).runs[0].spec["links"][0])


def steps(link: dict[str, Any]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    capacity = link["capacity"]
    rates = [(it["at_ns"] // 10**6, it["rate_bps"] // 10**6) for it in capacity["steps"]]
    delays = link["delay"]["steps"]
    return rates, [(it["at_ns"] // 10**6, it["delay_ns"] // 10**6) for it in delays]


TWO = """handovers = [
    { at = "2 s", gap = "100 ms", rate = "10 Mbit/s", delay = "20 ms" },
    { at = "5 s", gap = "50 ms", delay = "90 ms" },
]"""


def test_a_gap_carries_nothing_and_then_it_is_another_link():
    link = link_of(TWO)
    rates = [(0, 20), (2_000, 0), (2_100, 10), (5_000, 0), (5_050, 10)]
    assert steps(link) == (rates, [(0, 80), (2_100, 20), (5_050, 90)])
    assert link["delay"]["jitter"] is None


def test_gaps_interrupt_rates_that_have_steps():
    link = link_of(
        'handovers = [{ at = "3 s", gap = "2 s" }]',
        rate='[["0 s", "20 Mbit/s"], ["4 s", "8 Mbit/s"], ["6 s", "9 Mbit/s"]]',
        delay='[["0 s", "80 ms"], ["4 s", "70 ms"]]',
    )
    rates = [(0, 20), (3_000, 0), (5_000, 8), (6_000, 9)]
    assert steps(link) == (rates, [(0, 80), (4_000, 70)])


def test_one_without_a_gap_or_another_rate_leaves_the_rate_alone():
    link = link_of('handovers = [{ at = "3 s", delay = "10 ms" }]')
    assert link["capacity"] == {"kind": "constant", "rate_bps": 20_000_000}


def test_reordering_is_a_jitter_of_nothing():
    link = link_of(TWO.replace('ms" }', 'ms", reorder = true }'))
    jitter = link["delay"]["jitter"]
    assert {it["value_ns"] for it in jitter["quantiles"]} == {0}
    assert jitter["reorder"] is True


@pytest.mark.parametrize(
    ("link", "others", "message"),
    [
        (TWO.replace('"5 s"', '"2.1 s"'), {}, 'at "2100 ms" the one before it is not over'),
        (TWO.replace('"90 ms" }', '"90 ms", reorder = true }'), {}, "at all handovers of a link"),
        (TWO, {"rate": '[["0 s", "9 Mbit/s"], ["1 s", "8 Mbit/s"]]'}, "place of a constant one"),
        (TWO, {"delay": '[["0 s", "9 ms"], ["1 s", "8 ms"]]'}, "place of a constant one"),
        (
            TWO,
            {"rate": '{ mean = "9 Mbit/s", deviation = "1 Mbit/s", correlation = "1 s" }'},
            "they are of a rate that is constant or has steps",
        ),
        (TWO + '\nreassignment = { every = "1 s" }', {}, "there are `reassignment` as well"),
        (
            'handovers = [{ at = "2 s", delay = "10 ms", reorder = true }]\njitter = '
            '{ quantiles = { "0 %" = "0 ms", "100 %" = "1 ms" }, correlation = "0 s" }',
            {},
            "jitter that keeps packets in their order",
        ),
    ],
)
def test_what_cannot_be_is_said(link: str, others: dict[str, str], message: str):
    with pytest.raises(ScenarioError, match="bottleneck") as caught:
        load_text(text(link, **others))
    assert message in str(caught.value)


def arrivals(reorder: bool, folder: Path) -> list[int]:
    """Datagrams that arrive in every 10 ms around a handover at 4 s from 80 ms to 20 ms."""
    word = str(reorder).lower()
    link = f'handovers = [{{ at = "4 s", gap = "10 ms", delay = "20 ms", reorder = {word} }}]'
    scenario = load_text(
        text(f"{link}").replace("[bottleneck]", 'sampling_interval = "10 ms"\n[bottleneck]')
    )
    series = jostle.run(scenario, store=folder).series("voice", "throughput")
    rows = [(round(at * 100), bps) for at, bps in series.rows() if 4.0 < at < 4.145]
    bits = (1000 + 42) * 8
    return [round(bps * 0.01 / bits) for _, bps in rows]


def test_what_takes_the_new_way_waits_for_the_old_one_or_overtakes_it(tmp_path: Path):
    in_order, freely = (arrivals(reorder, tmp_path / str(reorder)) for reorder in (False, True))
    # A datagram every 8 ms: the last of the old way, sent before 4 s, arrives by 4.08 s; those of
    # the new one, sent from 4.01 s on, arrive from 4.03 s on, or held back to where the old end.
    assert sum(in_order) == sum(freely)
    assert sum(in_order[3:7]) < sum(freely[3:7])
    assert max(in_order) >= 6 > max(freely[:8])
