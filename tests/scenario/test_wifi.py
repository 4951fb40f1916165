"""The jitter of a bad Wi-Fi beside numbers drawn as its definition says."""

from __future__ import annotations

import bisect
import itertools
import math
import random

import pytest
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.wifi_jitter import jitter_quantiles

SCENARIO = """
duration = "5 s"
[bottleneck]
rate = "20 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
jitter = {}
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
"""


def poisson(mean: float, draw: random.Random) -> int:
    number, product = 0, draw.random()
    while product > math.exp(-mean):
        number, product = number + 1, product * draw.random()
    return number


def drawn_ms(average_ms: float, draw: random.Random) -> float:
    number = poisson(1, draw)
    delay_ms = number - (draw.random() if number else 0.0)
    if draw.random() < (average_ms - 1) / 90:
        number = poisson(12, draw)
        delay_ms += 7.5 * (number - (draw.random() if number > 1 else 0.0))
    return delay_ms


@pytest.mark.parametrize("average_ms", [1.0, 7.0, 12.0, 91.0])
def test_the_table_is_the_distribution_of_the_definition(average_ms):
    table = [(p, int(text.split()[0]) / 1e6) for p, text in jitter_quantiles(average_ms)]
    draw = random.Random(1)
    drawn = sorted(drawn_ms(average_ms, draw) for _ in range(40_000))
    # Kolmogorov's distance of 40,000 draws is above 0.0098 in one of a thousand.
    distances = [abs(bisect.bisect_right(drawn, at) / len(drawn) - p) for p, at in table[1:]]
    assert max(distances) < 0.0098
    mean = sum((a[1] + b[1]) / 2 * (b[0] - a[0]) for a, b in itertools.pairwise(table))
    chance = (average_ms - 1) / 90
    assert mean == pytest.approx(1 - (1 - math.exp(-1)) / 2 + chance * 86.25, rel=0.001)


def test_a_link_has_it_for_every_packet_and_in_order():
    text = SCENARIO.format('{ model = "wifi", average = "7 ms" }')
    jitter = load_text(text).plan(repeats=1).runs[0].spec["links"][0]["delay"]["jitter"]
    assert (jitter["correlation_ns"], jitter["reorder"]) == (0, False)
    assert jitter["quantiles"][1] == {"probability": pytest.approx(0.343, abs=0.001), "value_ns": 0}
    assert 200e6 < jitter["quantiles"][-1]["value_ns"] < 312e6


@pytest.mark.parametrize(
    ("jitter", "words"),
    [
        ('{ model = "wifi" }', "missing — write for example average"),
        ('{ model = "wify", average = "7 ms" }', '"wify" is not known here — accepted: "wifi"'),
        ('{ model = "wifi", average = "0.5 ms" }', 'from "1 ms" to "91 ms"'),
        ('{ model = "wifi", average = "7 ms", correlation = "1 s" }', "unknown key"),
    ],
)
def test_what_is_wrong_with_it(jitter, words):
    with pytest.raises(ScenarioError) as caught:
        load_text(SCENARIO.format(jitter))
    assert words in str(caught.value)
