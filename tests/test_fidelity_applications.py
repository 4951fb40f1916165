"""What those who use an application notice: compared, judged and written down."""

from __future__ import annotations

import jostle
import pytest
from jostle.cli.verdict_lines import validation_verdict
from jostle.fidelity import TOLERANCES, Comparison, compare, observe
from jostle.fidelity.applications import APPLICATIONS, TITLES, application_of
from jostle.fidelity.document import document
from jostle.fidelity.markdown import page
from jostle.fidelity.tables import comparison_rows, not_judged
from jostle.results.measures import measure
from jostle.scenario import load_text

SCENARIO = """
title = "All of them"
duration = "6 s"
repeats = 2
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "fq_codel"
[[flows]]
name = "bulk"
controller = "cubic"
rtt = "40 ms"
[[flows]]
name = "voice"
controller = "none"
rtt = "40 ms"
source = { kind = "cbr", codec = "g711" }
[[flows]]
name = "pings"
controller = "none"
rtt = "40 ms"
source = { kind = "ping", size = "56 B", period = "50 ms" }
[[flows]]
name = "camera"
controller = "cubic"
rtt = "40 ms"
source.kind = "media"
source.fps = 30
source.key_frame_size = "10 kB"
source.delta_frame_size = "2 kB"
source.deadline = "60 ms"
[[flows]]
name = "film"
controller = "cubic"
rtt = "40 ms"
source = { kind = "video" }
[[flows]]
name = "reader"
controller = "cubic"
rtt = "40 ms"
[flows.source]
kind        = "web"
main_object = "20 kB"
object_count = 3
object_size = "10 kB"
parse_time = "10 ms"
think_time = "200 ms"
[[flows]]
name = "short"
count = 2
controller = "cubic"
rtt = "40 ms"
size = { distribution = "exponential", mean = "50 kB" }
arrivals = { rate = "4 /s" }
"""

CARRIED = ["call", "pings", "frames", "film", "pages", "transfers", "transfers"]


@pytest.fixture(scope="module")
def sides() -> tuple[jostle.ResultSet, jostle.ResultSet]:
    """One side, and one with twice the way back."""
    far = SCENARIO.replace('rtt = "40 ms"', 'rtt = "80 ms"')
    there, here = (jostle.run(load_text(text), store=None) for text in (far, SCENARIO))
    return here, there


@pytest.fixture(scope="module")
def alike(sides: tuple[jostle.ResultSet, jostle.ResultSet]) -> Comparison:
    here, _ = sides
    return compare("alike", here, here)


@pytest.fixture(scope="module")
def apart(sides: tuple[jostle.ResultSet, jostle.ResultSet]) -> Comparison:
    here, there = sides
    return compare("apart", here, there)


def test_a_flow_is_judged_by_what_it_carries(alike: Comparison) -> None:
    (cell,) = alike.cells
    assert cell.kind == "applications"
    assert [flow.application for flow in cell.flows] == [None, *CARRIED]
    for flow in cell.flows:
        judged = [m.quantity.name for m in flow.measures if m.tolerance is not None]
        carried = flow.application
        expected = TOLERANCES["applications"] if carried is None else APPLICATIONS[carried]
        assert judged == [tolerance.quantity for tolerance in expected]
    assert cell.within


def test_every_tolerance_is_of_a_measure_that_runs_have(
    sides: tuple[jostle.ResultSet, jostle.ResultSet],
) -> None:
    run = sides[0].results[0].run
    seen = observe(run)
    for flow in run.spec["flows"][1:]:
        carried = application_of(flow)
        assert carried is not None
        for name in (tolerance.quantity for tolerance in APPLICATIONS[carried]):
            row = measure(name)
            who = flow["group"] if row.scope == "group" else flow["name"]
            expected = row.of_summary(run.summary, "overall", who)
            assert seen[flow["name"]].of(name) == expected
            # Percentiles of transfers are not known where the last ones were still on their way.
            assert expected is not None or name == "completion_time_p95", name
    assert set(CARRIED) == set(TITLES) == set(APPLICATIONS)


def test_what_is_farther_away_takes_longer(apart: Comparison) -> None:
    (cell,) = apart.cells
    outside = {(flow.name, m.quantity.name) for flow, m in cell.judged if not m.within}
    assert ("pings", "rtt") in outside
    assert ("reader", "page_load_time") in outside
    # What goes down takes the link's delay, and what is more is on the way back.
    assert ("voice", "one_way_delay") not in outside
    assert not cell.within


def test_the_page_has_a_row_for_every_quantity(alike: Comparison, apart: Comparison) -> None:
    text = page([alike, apart], (), "jostle validate x.toml")
    assert "- a call: one-way delay within 10 % or 1 ms, or inside the 95 % interval" in text
    assert "- next to an application: goodput within 5 %" in text
    assert "| web pages | median page load time | 2 | 1 | 50.0 % |" in text
    assert "| pings | RTT | 2 | 1 | 50.0 % |" in text
    rows = [line for line in text.splitlines() if line.startswith("|  | pings | RTT |")]
    assert len(rows) == 2
    assert ["**" in row for row in rows] == [False, True]


def test_tables_and_documents_have_them(apart: Comparison) -> None:
    rows = comparison_rows(apart).rows
    assert any("median page load time (s)" in row for row in rows)
    found = document([apart])
    assert found["tolerances"]["pings"]["rtt"]["relative"] == 0.1
    measures = {
        flow["name"]: flow["measures"] for flow in found["scenarios"][0]["conditions"][0]["flows"]
    }
    assert measures["pings"]["rtt"]["within"] is False
    assert set(measures["short-1"]) == {one.quantity for one in APPLICATIONS["transfers"]}


DATAGRAMS = """
title = "Datagrams"
duration = "4 s"
[bottleneck]
rate = "10 Mbit/s"
queue = "fq_codel"
[[flows]]
name = "samples"
controller = "none"
rtt = "40 ms"
source = { kind = "cbr", rate = "1 Mbit/s", size = "1000 B" }
"""


def test_datagrams_without_a_codec_have_no_mos() -> None:
    sides = jostle.run(load_text(DATAGRAMS), store=None)
    found = compare("datagrams", sides, sides)
    assert [m.quantity.name for m in found.cells[0].flows[0].measures] == ["one_way_delay"]
    assert validation_verdict([found]) == "1 of 1 cell is within the tolerances in one-way delay"


def test_what_neither_side_has_is_not_judged() -> None:
    lossy = DATAGRAMS.replace("[[flows]]", 'loss = "100 %"\n[[flows]]')
    sides = jostle.run(load_text(lossy), store=None)
    found = compare("datagrams", sides, sides)
    (cell,) = found.cells
    (delay,) = cell.flows[0].measures
    assert (delay.within, delay.excess, cell.judged, cell.within) == (None, None, (), False)
    assert [row[-1] for row in comparison_rows(found).rows] == ["not judged"]
    assert not_judged([found]) == (
        "Not judged, because neither side has a value: one-way delay of samples."
    )
    assert validation_verdict([found]) == (
        "0 of 1 cell is within the tolerances; not judged: one-way delay"
    )
    text = page([found], (), "")
    assert "| `datagrams` | not judged: neither side has a value |" in text
    assert "| samples | one-way delay | – ms | – |" in text
    # TCP's goodput of 0 is a value.
    bulk = '[[flows]]\nname = "bulk"\ncontroller = "cubic"\nrtt = "40 ms"\n'
    sides = jostle.run(load_text(lossy + bulk), store=None)
    found = compare("datagrams", sides, sides)
    assert validation_verdict([found]).startswith(
        "1 of 1 cell is within the tolerances in goodput;"
    )
