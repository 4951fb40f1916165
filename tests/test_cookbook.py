"""The cookbook: its page is of its questions, and every command on it runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import jostle
import pytest
from jostle.cli import status
from jostle.kernel_images import Image

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "results"))

import cook  # noqa: E402

QUESTIONS = {question["id"]: question for question in cook.questions()}


def test_there_are_fifteen_and_each_has_its_scenario() -> None:
    assert len(QUESTIONS) == 15
    used = {question["scenario"] for question in QUESTIONS.values()}
    assert used == {path.name for path in (ROOT / cook.SCENARIOS).glob("*.toml")}
    for question in QUESTIONS.values():
        assert 2 <= len(re.findall(r"\.(?: |$)", question["text"])) <= 5, question["id"]
        assert not re.search(
            r"\d+(\.\d+)? (Mbit/s|%)", re.sub(r"\{\w+\}", "", question["text"])
        ) or (question["id"] in {"loss", "steps"}), "numbers come from the runs"


def test_the_page_is_of_these_questions() -> None:
    page = (ROOT / "docs" / "cookbook.md").read_text("utf-8")
    for question in QUESTIONS.values():
        assert f"## {question['asks']}\n" in page
        for words in cook.commands(question):
            assert f"$ {shlex.join(['jostle', *words])}\n" in page
        picture = ROOT / "docs" / "images" / "cookbook" / f"{question['id']}.png"
        assert question.get("validate") or picture.stat().st_size > 2000
    assert not re.search(r"\{\w+\}", page)


def test_the_numbers_of_a_text_are_of_one_phase() -> None:
    for question in QUESTIONS.values():
        cook.phase_of(question)
    mixed = QUESTIONS["satellite-buffer"]
    lost = mixed["values"]["bbr_lost"] | {"phase": "overall"}
    mixed = mixed | {"values": mixed["values"] | {"bbr_lost": lost}}
    with pytest.raises(ValueError, match="satellite-buffer: numbers of several phases: overall, s"):
        cook.phase_of(mixed)


@pytest.mark.slow
@pytest.mark.parametrize("name", [q for q in QUESTIONS if not QUESTIONS[q].get("validate")])
def test_the_page_has_the_numbers_of_the_runs(name: str) -> None:
    question = QUESTIONS[name]
    results = jostle.run(ROOT / cook.SCENARIOS / question["scenario"], store=False)
    page = (ROOT / "docs" / "cookbook.md").read_text("utf-8")
    assert cook.page(question, results) in page, "run tools/results/cook.py"


@pytest.mark.parametrize("name", [q for q in QUESTIONS if not QUESTIONS[q].get("validate")])
def test_its_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two runs of each condition: what they show is the page's business."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    question = QUESTIONS[name]
    for words in cook.commands(question):
        assert status([*words, "--repeats", "2"]) == 0, words
    assert Path(f"{name}.png").stat().st_size > 2000
    results = jostle.run(ROOT / cook.SCENARIOS / question["scenario"], repeats=2,
                         store=".jostle/store")  # fmt: skip
    text = cook.page(question, results)
    assert not re.search(r"\{\w+\}", text), "every number is found"
    phase = cook.phase_of(question)
    named = "of the whole run" if phase == "overall" else f"of the phase `{phase}`, "
    assert f"These numbers are {named}" in text


def test_the_command_on_the_kernel_runs(
    virtual_kernel: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (words,) = cook.commands(QUESTIONS["both"])
    assert status(words) == 0
    assert list(Path("pictures").glob("*.png"))
