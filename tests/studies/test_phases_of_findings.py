"""Findings of studies: a sentence with numbers of several time windows says so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jostle.studies.findings import references

NAMED = re.compile(r"from \d+ s on|after \d+ s|after a |after the ")
"""Words that name the time window of a number."""
STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*/study.toml"))


def mixed(study: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences whose numbers are of several windows that they do not name."""
    numbers = {number["id"]: number.get("window", "overall") for number in study["numbers"]}
    texts = [*study.get("findings", ())]
    texts += [number["finding"] for number in study["numbers"] if "finding" in number]
    for text in texts:
        for sentence in re.split(r"(?<=[.;:?])\s", text):
            used = {numbers[name.split(".")[0]] for name, _ in references(sentence)
                    if name.split(".")[0] in numbers}  # fmt: skip
            if len(used) > 1 and not NAMED.search(sentence):
                yield sentence


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.parent.name)
def test_a_sentence_names_its_phases(path: Path) -> None:
    assert list(mixed(tomllib.loads(path.read_text("utf-8")))) == []


def test_a_sentence_of_two_phases_is_found() -> None:
    study = {
        "numbers": [{"id": "rate", "window": "steady"}, {"id": "loss"}],
        "findings": ["It has {rate.bbr@linux} here. It loses {loss}."],
    }
    assert list(mixed(study)) == []
    study["findings"][0] = "It has {rate.bbr@linux}, and loses {loss.bbr}. So be it."
    assert list(mixed(study)) == ["It has {rate.bbr@linux}, and loses {loss.bbr}."]
    study["findings"][0] = "It loses {loss.bbr}, and has {rate.bbr@linux} from 20 s on."
    assert list(mixed(study)) == []
