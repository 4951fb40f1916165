"""Keys given by a unique end, on the command line and in Python."""

from __future__ import annotations

import pytest
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.resolve.key_paths import full_key

TEXT = """
duration = "10 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "50 kB" }
[[flows]]
name = "old"
controller = "cubic"
rtt = "20 ms"
[[flows]]
name = "new"
controller = { name = "bbr" }
rtt = "40 ms"
[grid]
"flows.new.rtt" = ["40 ms", "80 ms"]
"""
DOCUMENT = load_text(TEXT).document


@pytest.mark.parametrize(
    ("key", "full"),
    [
        ("rate", "bottleneck.rate"),
        ("queue.limit", "bottleneck.queue.limit"),
        ("limit", "bottleneck.queue.limit"),
        ("new.controller", "flows.new.controller"),
        ("new.controller.name", "flows.new.controller.name"),
        ("new.slow_start", "flows.new.slow_start"),
        ("new.rtt", "flows.new.rtt"),
        ("duration", "duration"),
        ("flows.*.controller", "flows.*.controller"),
        ("flows.none.controller", "flows.none.controller"),
        ("absent.controller", "absent.controller"),
    ],
)
def test_a_unique_end_is_enough(key: str, full: str) -> None:
    assert full_key(DOCUMENT, key) == full


def test_an_override_takes_a_unique_end() -> None:
    short = load_text(TEXT, overrides={"rate": "20 Mbit/s", "new.rtt": "60 ms"})
    long = load_text(TEXT, overrides={"bottleneck.rate": "20 Mbit/s", "flows.new.rtt": "60 ms"})
    assert short.document == long.document
    assert [run.spec for run in short.plan().runs] == [run.spec for run in long.plan().runs]
    assert short.document["bottleneck"]["rate"] == "20 Mbit/s"
    assert short.grid == {}


def test_an_ambiguous_end_lists_the_keys() -> None:
    with pytest.raises(ScenarioError) as error:
        load_text(TEXT, overrides={"controller": "reno"})
    message = "several keys end with `controller`: flows.old.controller, flows.new.controller"
    assert message in str(error.value)
    with pytest.raises(ValueError, match="several keys end with `rtt`"):
        load_text(TEXT).variable("rtt", ["1 ms", "2 ms"])


def test_a_tuned_key_takes_a_unique_end() -> None:
    assert load_text(TEXT).variable("old.controller.beta").key == "flows.old.controller.beta"


def test_a_key_of_many_parts_is_refused_at_once() -> None:
    key = "flows.new." + "x." * 100_000 + "rtt"
    for overrides, text in (({key: "1 ms"}, TEXT), ({}, f'{TEXT}"{key}" = ["1 ms"]\n')):
        with pytest.raises(ScenarioError, match="too long for a key"):
            load_text(text, overrides=overrides)
