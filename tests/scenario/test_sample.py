"""Samples: ranges with units, designs of points, constraints."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jostle.scenario import Scenario, ScenarioError
from jostle.scenario.parsing.quantities import QuantityError, parse_quantity, parse_rate, parse_span
from jostle.scenario.resolve.sample_constraints import parse_constraint
from jostle.scenario.resolve.sample_ranges import parse_range

Read = Callable[..., Scenario]
SAMPLE = """
[sample]
points = 32
"bottleneck.rate" = { from = "1 Mbit/s", to = "1 Gbit/s", scale = "log" }
"flows.*.rtt" = { from = "20 ms", to = "60 ms" }
"flows.second.controller" = ["cubic", "reno"]
"""


def test_each_point_is_a_condition_with_its_values_in_its_name_and_in_its_runs(read: Read) -> None:
    plan = read(add=SAMPLE).plan(repeats=2)
    assert len(plan.conditions) == 32
    for planned in plan.runs:
        condition = plan.conditions[planned.condition]
        assert list(condition) == ["bottleneck.rate", "flows.*.rtt", "flows.second.controller"]
        capacity = planned.spec["links"][0]["capacity"]
        assert capacity["rate_bps"] == parse_rate(condition["bottleneck.rate"])
        first, second = planned.spec["flows"]
        assert first["base_delay_ns"] == second["base_delay_ns"]
        assert first["base_delay_ns"] == parse_span(condition["flows.*.rtt"])
        assert second["controller"]["name"] == condition["flows.second.controller"]


@pytest.mark.parametrize("method", ["sobol", "latin_hypercube"])
def test_designs_have_one_point_in_every_slice_of_every_range(read: Read, method: str) -> None:
    """Both put one of n points into each n-th of a range (of n = 2^k, for Sobol)."""
    sample = read(add=SAMPLE.replace("points = 32", f'points = 32\nmethod = "{method}"')).sample
    rates = [math.log(parse_rate(label) / 1e6, 1000) for label in sample["bottleneck.rate"]]
    rtts = [(parse_span(label) / 1e6 - 20) / 40 for label in sample["flows.*.rtt"]]
    for shares in (rates, rtts):
        # Values have four digits, which can move one over the edge of its slice by so much.
        slices = sorted(share * 32 for share in shares)
        assert all(at - 0.02 <= place <= at + 1.02 for at, place in enumerate(slices))
    assert sample["flows.second.controller"].count("cubic") == 16


@pytest.mark.parametrize("method", ["sobol", "latin_hypercube", "random"])
def test_a_seed_is_a_design(read: Read, method: str) -> None:
    def labels(seed: int) -> list[dict[str, str]]:
        own = f'points = 9\nseed = {seed}\nmethod = "{method}"'
        return [dict(c) for c in read(add=SAMPLE.replace("points = 32", own)).conditions]

    assert labels(1) == labels(1)
    assert labels(1) != labels(2)


@pytest.mark.parametrize("method", ["sobol", "latin_hypercube", "random"])
def test_points_that_break_a_constraint_are_replaced(read: Read, method: str) -> None:
    own = f"""points = 32
method = "{method}"
where = ["bottleneck.rate * flows.first.rtt <= 100 kB", 'flows.second.controller != "reno"']"""
    conditions = read(add=SAMPLE.replace("points = 32", own)).conditions
    assert len(conditions) == 32
    for one in conditions:
        assert parse_rate(one["bottleneck.rate"]) * parse_span(one["flows.*.rtt"]) / 8e9 <= 1e5
        assert one["flows.second.controller"] == "cubic"


def test_a_sample_lies_at_every_value_of_a_grid(read: Read) -> None:
    grid = '[grid]\n"bottleneck.queue.limit" = ["1 BDP", "2 BDP"]\n'
    scenario = read(add=grid + SAMPLE)
    labels = [tuple(condition.values()) for condition in scenario.conditions]
    assert len(labels) == 64
    assert [label[0] for label in labels] == ["1 BDP"] * 32 + ["2 BDP"] * 32
    assert [label[1:] for label in labels[:32]] == [label[1:] for label in labels[32:]]
    assert list(scenario.grid) == ["bottleneck.queue.limit"]


def test_what_is_set_is_sampled_no_longer(read: Read) -> None:
    scenario = read(add=SAMPLE, overrides={"bottleneck.rate": "5 Mbit/s", "sample.points": "4"})
    assert list(scenario.sample) == ["flows.*.rtt", "flows.second.controller"]
    assert len(scenario.conditions) == 4
    without = scenario.set({"flows.*.rtt": "20 ms", "flows.second.controller": "bbr"})
    assert without.design is None
    assert len(without.conditions) == 1
    with pytest.raises(ScenarioError, match=r"the sample samples \"flows\.\*\.rtt\" — set that"):
        scenario.set({"flows.first.rtt": "20 ms"})


def test_the_same_point_is_one_condition(read: Read) -> None:
    sample = '[sample]\npoints = 16\n"flows.first.count" = { from = 1, to = 4 }\n'
    counts = [condition["flows.first.count"] for condition in read(add=sample).conditions]
    assert sorted(counts) == ["1", "2", "3", "4"]


def test_points_can_be_given(read: Read) -> None:
    scenario = read(add=SAMPLE).with_points(((0.0, 0.0, 0.0), (1.0, 0.5, 1.0)))
    assert [tuple(c.values()) for c in scenario.conditions] == [
        ("1 Mbit/s", "20 ms", "cubic"),
        ("1 Gbit/s", "40 ms", "reno"),
    ]


def test_given_points_stay_when_a_key_is_set(read: Read) -> None:
    scenario = read(add=SAMPLE).with_points(((0.0, 0.5, 1.0), (0.25, 1.0, 0.0)))
    assert [tuple(c.values()) for c in scenario.set(duration="3 s").conditions] == [
        tuple(c.values()) for c in scenario.conditions
    ]
    fixed = scenario.set({"bottleneck.rate": "5 Mbit/s"})
    assert [tuple(c.values()) for c in fixed.conditions] == [("40 ms", "reno"), ("60 ms", "cubic")]
    for points in (((0.0, 0.5),), ((0.0, 0.5, 1.5),), ((0.0, 0.5, float("nan")),)):
        with pytest.raises(ValueError, match="is no point"):
            scenario.with_points(points)


ENDS = st.sampled_from(["3 ms", "1 s", "17 ns", "1.234567 ms", "2 h"])


@given(ENDS, ENDS, st.floats(0, 1), st.sampled_from(["log", "linear"]))
def test_values_lie_within_their_range_and_rise(a: str, b: str, share: float, scale: str) -> None:
    low, high = sorted((a, b), key=parse_span)
    if low == high:
        return
    drawn = parse_range({"from": low, "to": high, "scale": scale})
    values = [parse_span(drawn.at(one)) for one in sorted((0.0, share, 1.0))]
    assert values[0] == parse_span(low)
    assert values[-1] == parse_span(high)
    assert all(one <= other for one, other in pairwise(values))


def test_whole_numbers_are_equally_likely() -> None:
    drawn = parse_range({"from": 1, "to": 4})
    assert [drawn.at(at / 8) for at in range(9)] == [1, 1, 2, 2, 3, 3, 4, 4, 4]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a.rate * a.rtt <= 25 kB", True),
        ("a.rate * a.rtt < 25 kB", False),
        ("25 kB == a.rate * a.rtt", True),
        ("a.rtt / 5 < 1 s / 250", False),
        ("a.rtt / 5 == 1 s / 250", True),
        ("a.limit / a.rate > 2 ms", True),
        ("a.loss >= 0.01", True),
        ("a.loss > 1 %", False),
        ('a.name == "x"', True),
        ('a."na-me" != a.name', True),
    ],
)
def test_comparisons_follow_units(text: str, holds: bool) -> None:
    values = {
        "a.rate": "10 Mbit/s",
        "a.rtt": "20 ms",
        "a.limit": "2 packets",
        "a.loss": "1 %",
        "a.name": "x",
        'a."na-me"': "y",
    }
    assert parse_constraint(text).holds(values) is holds


@given(st.text(alphabet='ab.*/<>=! "0123456789msMbit%_()', max_size=40))
def test_no_text_is_run(text: str) -> None:
    try:
        constraint = parse_constraint(text)
        constraint.holds(dict.fromkeys(constraint.keys, "3 ms"))
    except QuantityError as error:
        assert str(error)  # noqa: PT017 (either outcome is right)


def test_quantities_of_any_kind() -> None:
    assert parse_quantity("1.5 Mbit/s") == (1_500_000, "rate")
    assert parse_quantity(3) == (3, "number")
    assert parse_quantity("3 packets") == (3, "packets")
    with pytest.raises(QuantityError, match='did you mean "Mbit/s"'):
        parse_quantity("3 Mbps")
