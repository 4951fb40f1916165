"""Names of conditions."""

from __future__ import annotations

import pytest
from jostle.errors import InputError, unknown
from jostle.results.condition_names import labels, slugs
from jostle.results.measures import measure


def test_a_single_key_goes_without_saying():
    key = "flows.newcomer.controller"
    conditions = [{key: "bbr"}, {key: "cubic (hystart = false)"}]
    assert labels(conditions) == ["bbr", "cubic (hystart = false)"]
    assert slugs(conditions) == ["bbr", "cubic-hystart-false"]


def test_several_keys_are_named_as_briefly_as_possible():
    conditions = [
        {"flows.a.rtt": "10 ms", "flows.b.rtt": "20 ms", "bottleneck.rate": "5 Mbit/s"},
    ]
    assert labels(conditions) == ["a.rtt 10 ms, b.rtt 20 ms, rate 5 Mbit/s"]


def test_without_a_grid_there_is_nothing_to_say():
    assert labels([{}]) == [""]
    assert slugs([{}]) == [""]


def test_file_names_are_plain_and_unique():
    conditions = [{"k": value} for value in ("1.5 BDP", "a/b", "a\\b", "../x", "Ünï")]
    assert slugs(conditions) == ["1.5-bdp", "a-b", "a-b-2", "x", "n"]
    assert slugs([{"k": "é"}, {"k": "ü"}]) == ["condition-1", "condition-2"]


def test_measures_are_found_by_name_and_by_key():
    assert measure("goodput") is measure("goodput_bps")
    assert measure("queue_length").scope == "link"
    with pytest.raises(InputError, match="did you mean `goodput`"):
        measure("godput")


def test_unknown_lists_what_there_is():
    assert unknown("phase", "zzz", ["overall"]) == "no phase `zzz`: there is overall"
    assert unknown("phase", "zzz", []) == "no phase `zzz`: there is none"
