"""Modes and internal quantities of a controller, held against the series they are taken from."""

from __future__ import annotations

import polars as pl
import pytest
from jostle import Scenario, _core, run
from jostle.studies.consistency_check import value_mistakes
from jostle.studies.controller_states import ControllerStates, Seconds, internal_unit
from jostle.studies.models import Value

WHOLE = (0.0, 12.0)


@pytest.fixture(scope="module")
def finished():
    """A run of BBR version 3 with intervals below its round trip."""
    assert _core
    scenario = Scenario.from_dict(
        {
            "duration": "12 s",
            "sampling_interval": "5 ms",
            "bottleneck": {
                "rate": "20 Mbit/s",
                "queue": {"kind": "drop_tail", "limit": "2 BDP"},
            },
            "flows": [{"name": "test", "controller": "bbr3", "rtt": "40 ms", "start": "1 s"}],
        }
    )
    return run(scenario, store=None).results[0].run


@pytest.fixture(scope="module")
def states(finished):
    """Its states."""
    return ControllerStates(finished, "test")


def taken(
    states: ControllerStates, measure: str, span: Seconds = WHOLE, **keys: str | float
) -> float | None:
    return states.value(Value(measure=measure, **keys), span)  # type: ignore[arg-type]


def test_times_count_from_the_flows_start(states, finished):
    frame = finished.flows.filter(pl.col("mode") == "drain")
    first = float(frame["time_s"][0])
    assert taken(states, "mode_entered", mode="drain") == pytest.approx(first - 1.0)
    assert taken(states, "mode_left", mode="startup") == pytest.approx(first - 1.0)
    assert taken(states, "mode_entered", mode="nothing") is None


def test_a_mode_is_its_word_or_what_that_begins_with(states, finished):
    shares = [
        taken(states, "mode_time", mode=mode)
        for mode in ("handshake", "startup", "drain", "probe_bw", "probe_rtt")
    ]
    assert sum(shares) == pytest.approx(1.0)
    counted = finished.flows["mode"].str.starts_with("probe_bw_").sum()
    there = finished.flows["mode"].is_not_null().sum()
    assert taken(states, "mode_time", mode="probe_bw") == pytest.approx(counted / there)
    # "probe" is the beginning of a word's part, "prob" is not.
    assert taken(states, "mode_time", mode="probe") > 0
    assert taken(states, "mode_time", mode="prob") == 0


def test_visits_are_counted_with_what_follows(states):
    assert taken(states, "mode_visits", mode="startup") == 1
    assert taken(states, "mode_followed", mode="startup", then="drain") == 1.0
    assert taken(states, "mode_followed", mode="startup", then="probe_bw") == 0.0
    # draft-ietf-ccwg-bbr-06: every 5 s, for at least 200 ms.
    assert taken(states, "mode_visits", mode="probe_rtt") == 2
    assert 0.2 <= taken(states, "mode_length", mode="probe_rtt") < 0.4
    assert 1 <= taken(states, "mode_rounds", mode="probe_rtt") < 8


def test_a_window_shows_what_is_in_it(states):
    late = (3.0, 5.0)
    assert taken(states, "mode_visits", late, mode="startup") == 0
    assert taken(states, "mode_time", late, mode="probe_bw") == 1.0


def test_internal_quantities_are_taken_in_a_mode(states):
    gain = {"quantity": "pacing_gain", "mode": "drain"}
    assert taken(states, "internal", **gain) == pytest.approx(0.5)
    rate = taken(states, "internal", quantity="bottleneck_bps", take="last")
    assert rate == pytest.approx(20 * 1448 / 1514, rel=0.03)  # Mbit/s of payload
    least = taken(states, "internal", quantity="pacing_gain", take="min")
    most = taken(states, "internal", quantity="pacing_gain", take="max")
    assert least == pytest.approx(0.5)
    assert most == pytest.approx(2.77, rel=0.01)
    assert taken(states, "internal", quantity="nothing") is None


def test_a_bound_that_is_not_set_is_left_out(states):
    bound = {"quantity": "bw_shortterm_bps", "take": "min"}
    # Nothing is lost here, so that there is never such a bound; bbr3 shows it as 0.
    assert taken(states, "internal", **bound) == 0
    assert taken(states, "internal", **bound, unset=0) is None
    gain = {"quantity": "pacing_gain", "take": "min"}
    assert taken(states, "internal", **gain, unset=0.5) == pytest.approx(0.9, rel=0.01)


def test_a_controller_without_such_modes_has_no_value(states):
    assert taken(states, "mode_visits", mode="probe_up") == 0
    assert taken(states, "mode_visits", mode="probe_up", display="probe_bw") == 0
    assert taken(states, "mode_visits", mode="probe_up", display="slow_start") is None
    assert taken(states, "mode_time", mode="drain", display="slow_start") is None


@pytest.mark.parametrize(
    ("name", "unit"),
    [("bottleneck_bps", "Mbit/s"), ("min_rtt_s", "ms"), ("w_max_packets", "packets"), ("gain", "")],
)
def test_the_unit_ends_the_name(name, unit):
    assert internal_unit(name)[0] == unit


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"measure": "mode_time"}, "needs `mode`"),
        ({"measure": "internal"}, "needs `quantity`"),
        ({"measure": "mode_followed", "mode": "drain"}, "needs `then`"),
        ({"measure": "throughput", "mode": "drain"}, "of no matter"),
        ({"measure": "mode_time", "mode": "drain", "quantity": "x"}, "of no matter"),
        ({"measure": "mode_time", "mode": "drain", "unset": 0}, "`unset` is of no matter"),
        ({"measure": "throughput", "display": "drain"}, "`display` is of no matter"),
    ],
)
def test_what_does_not_go_together_is_told(given, said):
    scenario = Scenario.from_dict(
        {
            "duration": "1 s",
            "bottleneck": {"rate": "1 Mbit/s", "queue": "codel"},
            "flows": [{"name": "test", "controller": "bbr3", "rtt": "40 ms"}],
        }
    )
    found = [text for _, text in value_mistakes((), Value(flow="test", **given), scenario, {})]
    assert any(said in text for text in found), found
