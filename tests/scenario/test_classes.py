"""Queues with classes: which flows are in which class, and what is said when that is not clear."""

from __future__ import annotations

from typing import Any

import pytest
from jostle.scenario import ScenarioError, load_text
from jostle.scenario.schema import json_schema

LINK = """
duration = "5 s"
[bottleneck]
rate = "20 Mbit/s"
queue = {{ kind = "drr", limit = "1 BDP", quantum = "1000 B", classes = {} }}
"""
FLOWS = """
[[flows]]
name = "calls"
controller = "cubic"
rtt = "40 ms"
count = 2
[[flows]]
name = "download"
controller = "cubic"
rtt = "40 ms"
"""


def classes_of(classes: str, flows: str = FLOWS) -> list[dict[str, Any]]:
    found = load_text(LINK.format(classes) + flows).plan(repeats=1).runs[0].spec["links"][0]
    return list(found["classes"] or ())


def problem(classes: str, flows: str = FLOWS) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_text(LINK.format(classes) + flows)
    return str(caught.value)


def test_flows_are_in_the_class_of_their_name_the_one_they_name_or_the_default():
    other = FLOWS.replace('"download"', '"download"\nclass = "bulk"')
    for flows, last in ((FLOWS, "default"), (other, "bulk")):
        found = classes_of(
            f'{{ calls = {{ weight = 2.5, queue = "codel" }}, {last} = {{ }} }}', flows
        )
        assert [one["name"] for one in found] == ["calls", last]
        assert [one["flows"] for one in found] == [[0, 1], [2]]
        assert [one["quantum_bytes"] for one in found] == [2500, 1000]
        assert [one["queue"]["kind"] for one in found] == ["codel", "drop_tail"]
        # A BDP is 100 kB here.
        assert found[1]["queue"]["parameters"] == {"limit": {"bytes": 100_000}}


def test_limits_of_classes_are_in_bdp_as_well():
    inner = '{ kind = "drop_tail", limit = "2 BDP" }'
    (found,) = classes_of(f"{{ default = {{ queue = {inner} }} }}")
    assert found["queue"]["parameters"] == {"limit": {"bytes": 200_000}}


def test_a_condition_without_its_flows_leaves_a_class_empty():
    found = classes_of("{ calls = {}, download = {} }", FLOWS.replace("count = 2", "count = 0"))
    assert [one["flows"] for one in found] == [[], [0]]


@pytest.mark.parametrize(
    ("classes", "flows", "words"),
    [
        ("{ calls = {} }", FLOWS, 'no class "download" for the flow "download"'),
        (
            "{ calls = {}, bulk = {} }",
            FLOWS.replace('"download"', '"download"\nclass = "bluk"'),
            'no class "bluk" for the flow "download" — did you mean "bulk"?',
        ),
        ("{}", FLOWS, "no class — write one or more"),
        ("{ default = { weight = 0.1 } }", FLOWS, "is 100 B per round — accepted: 256 B"),
        ("{ default = { weight = 0 } }", FLOWS, "0 is out of range — at least 0.001"),
        ("{ default = { wieght = 1 } }", FLOWS, 'unknown key — did you mean "weight"?'),
        ('{ default = { queue = "cdl" } }', FLOWS, 'there is no queue "cdl"'),
        ('{ default = { queue = "drr" } }', FLOWS, "classes have queues without classes"),
        ("{ default = { queue = { kind = 'codel', target = 5 } } }", FLOWS, "target"),
    ],
)
def test_what_is_wrong_with_classes(classes, flows, words):
    assert words in problem(classes, flows)


def test_only_some_queues_have_classes():
    text = LINK.replace('"drr"', '"codel"').replace(', quantum = "1000 B"', "")
    with pytest.raises(ScenarioError, match='"codel" has no classes — kinds that have: drr'):
        load_text(text.format("{ default = {} }") + FLOWS)


def test_a_class_that_no_queue_has():
    flows = FLOWS.replace('"download"', '"download"\nclass = "bulk"')
    words = 'no queue on the way of this flow has a class "bulk"'
    assert words in problem("{ calls = {}, default = {} }", flows)
    # A queue without classes is another condition of the same scenario.
    text = LINK.replace(", classes = {}", "").format() + flows
    assert load_text(text).plan(repeats=1).runs[0].spec["links"][0]["classes"] is None


def test_editors_know_classes():
    import jsonschema

    document = {
        "duration": "5 s",
        "bottleneck": {
            "rate": "1 Mbit/s",
            "queue": {"kind": "drr", "classes": {"a": {"weight": 2, "queue": "codel"}}},
        },
        "flows": [{"name": "a", "controller": "cubic", "rtt": "1 ms", "class": "a"}],
    }
    jsonschema.validate(document, json_schema())
    document["bottleneck"]["queue"]["kind"] = "codel"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema())
