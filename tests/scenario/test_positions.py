import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jostle.scenario.parsing.key_lines import KeyPath, Lines, line_of, positions
from jostle.scenario.parsing.problems import ScenarioError
from jostle.scenario.parsing.toml_document import parse

TEXT = '''# comment [not.a.table]
title = "a # b [c] = d"

[phases]
a = ["0 s",
     "1 s"]   # trailing, with ] and "
"quoted key" = [ "x" ]
'literal' = 1
dotted.inner."more" = 2

[[flows]]
name = "x"
source = { kind = "bulk", nested = { deep = [1, 2] } }

[flows.controller]
name = """multi
line \\""" with quotes"""
after = true

[[flows]]
path = [
  # a comment ]
  "one", # another
  ["two",
   'three'],
]
text = \'\'\'literal
''\'\'\'
end = 1979-05-27T07:32:00Z
[flows.extra.deep]
k = -1.5e3
'''


def every_path(node: Any, path: KeyPath = ()) -> list[KeyPath]:
    items = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, value in items:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += every_path(value, (*path, key))
    return found


def test_lines_are_those_of_the_text() -> None:
    lines = positions(TEXT)
    expected = {
        ("title",): 2,
        ("phases",): 4,
        ("phases", "a"): 5,
        ("phases", "a", 0): 5,
        ("phases", "a", 1): 6,
        ("phases", "quoted key"): 7,
        ("phases", "literal"): 8,
        ("phases", "dotted", "inner", "more"): 9,
        ("flows",): 11,
        ("flows", 0): 11,
        ("flows", 0, "source", "nested", "deep", 1): 13,
        ("flows", 0, "controller"): 15,
        ("flows", 0, "controller", "after"): 18,
        ("flows", 1): 20,
        ("flows", 1, "path"): 21,
        ("flows", 1, "path", 0): 23,
        ("flows", 1, "path", 1): 24,
        ("flows", 1, "path", 1, 1): 25,
        ("flows", 1, "text"): 27,
        ("flows", 1, "end"): 29,
        ("flows", 1, "extra", "deep"): 30,
        ("flows", 1, "extra", "deep", "k"): 31,
    }
    assert {path: line_of(lines, path) for path in expected} == expected


def test_a_missing_key_stands_where_its_table_begins() -> None:
    lines = positions(TEXT)
    assert line_of(lines, ("flows", 1, "rtt")) == 20
    assert line_of(lines, ("nowhere", "at", "all")) == 1


SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.toml"))


@pytest.mark.parametrize("text", [TEXT, *(p.read_text() for p in SCENARIOS)])
def test_exactly_the_paths_that_tomllib_finds_have_a_line(text: str) -> None:
    found = flat(positions(text))
    assert set(found) == set(every_path(tomllib.loads(text)))
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


def flat(lines: Lines, path: KeyPath = ()) -> dict[KeyPath, int]:
    found: dict[KeyPath, int] = {}
    for key, (line, below) in lines.items():
        found[(*path, key)] = line
        found |= flat(below or {}, (*path, key))
    return found


def test_a_table_that_is_written_twice_stands_where_it_begins() -> None:
    lines = positions("\n[a.b]\nx = 1\n[a]\ny = 2\n\n[c]\nd.e = 1\nd.f = 2\n")
    assert line_of(lines, ("a",)) == 2
    assert line_of(lines, ("a", "y")) == 5
    assert (line_of(lines, ("c", "d")), line_of(lines, ("c", "d", "f"))) == (8, 9)


@pytest.mark.parametrize("text", ["a." * 20_000 + "a = 1", "a = " + "[" * 5_000 + "]" * 5_000])
def test_nesting_without_end_is_refused_at_once(text: str) -> None:
    began_s = time.monotonic()
    with pytest.raises(ScenarioError, match="nested too deeply"):
        parse(text, "deep.toml")
    assert time.monotonic() - began_s < 1.0


def test_numbers_have_no_bounds() -> None:
    text = f"a = [{2**64},\n -{2**70}, 1e999]\nb = 0x{2**80:x}\n[c]\nd = 1\n"
    lines = positions(text)
    assert line_of(lines, ("a", 1)) == 2
    assert (line_of(lines, ("b",)), line_of(lines, ("c", "d"))) == (3, 5)
    assert positions("a = ") == {}


def test_a_long_list_is_read_at_once() -> None:
    began_s = time.monotonic()
    lines = positions("a = [\n" + "1,\n" * 100_000 + "]")
    assert line_of(lines, ("a", 99_999)) == 100_001
    assert time.monotonic() - began_s < 2.0
