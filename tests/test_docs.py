"""The documentation names everything that there is, by its present name."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from jostle import _core
from jostle.cli import status
from jostle.cli.environment import Environment
from jostle.cli.registry_names import kinds_of
from jostle.results.measures import measures
from jostle.studies import models
from test_core import spec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from doc_blocks import page_rules  # noqa: E402

README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = ROOT / "docs" / "reference"
MEASURES_PAGE = (REFERENCE / "measures.md").read_text("utf-8")
ALGORITHM_PAGES = sorted((REFERENCE / "algorithms").glob("*.md"))
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("scenarios/*.md"),
        *ALGORITHM_PAGES,
    ]
)


def test_every_measure_is_on_the_page_of_measures() -> None:
    places = {f"{measure.scope} {measure.place}" for measure in measures().values()}
    assert places == set(re.findall(r"^<!-- generated: measures (.*) -->$", MEASURES_PAGE, re.M))
    assert all(measure.definition.endswith(".") for measure in measures().values())


def test_the_command_line_page_names_every_variable() -> None:
    page = (REFERENCE / "command-line.md").read_text("utf-8")
    table = page.partition("## Environment")[2]
    code = "".join(path.read_text("utf-8") for path in (ROOT / "python").rglob("*.py"))
    used = set(re.findall(r'"((?:JOSTLE|XDG|SUDO)_[A-Z0-9_]+|TMPDIR)"', code))
    assert {"JOSTLE_STORE", "JOSTLE_KERNEL"} < used
    assert {name for name in used if f"`{name}`" not in table} == set()


def test_the_page_on_file_formats_names_every_kind_of_figure() -> None:
    page = (REFERENCE / "file-formats.md").read_text("utf-8")
    kinds = get_args(models.FigureSpec.model_fields["kind"].annotation)
    relations = get_args(models.ClaimPart.model_fields["relation"].annotation)
    for name in (*kinds, *relations):
        assert f"`{name}`" in page, name


def test_every_column_of_the_series_is_named() -> None:
    record = _core.run(spec(1, record="acks"))
    assert record.acks is not None
    by_reason = re.compile("dropped_|marked_")
    for table in (record.flows, record.links, record.internals, record.acks):
        for column in table:
            assert f"`{column}`" in MEASURES_PAGE or by_reason.match(column) or column == "link"


def test_the_page_of_features_lists_every_kind_of_entry() -> None:
    page = (ROOT / "docs" / "reference" / "features.md").read_text("utf-8")
    for kind in kinds_of(Environment()):
        assert f"`jostle info list {kind}`" in page, kind


def test_the_page_on_start_ups_has_every_slow_start() -> None:
    measured = (ROOT / "docs" / "results" / "data" / "start-up.inc").read_text("utf-8")
    for row in json.loads(_core.registry())["slow_starts"]:
        assert f"| `{row['name']}` |" in measured, "run tools/results/measure_start_up.py"


def test_every_algorithm_has_a_page_and_every_page_an_algorithm() -> None:
    registry = json.loads(_core.registry())
    rows = [row for kind in ("controllers", "slow_starts", "peer_caches") for row in registry[kind]]
    pages = {path.stem: path.read_text("utf-8") for path in ALGORITHM_PAGES}
    assert set(pages) == {row["name"] for row in rows}
    for name, text in pages.items():
        assert f"<!-- generated: algorithm {name} -->\n" in text, name
        for heading in ("## How it works", "## Deviations", "## Validation"):
            body = text.partition(heading)[2].partition("\n## ")[0]
            assert len(body.split()) >= 2, f"{name}: {heading}"


def test_ancestors_are_in_the_registry_and_come_before() -> None:
    registry = json.loads(_core.registry())
    for kind, rows in registry.items():
        if isinstance(rows, list):
            ours = registry["controllers"] if kind == "quic_controllers" else []
            before = {row["name"] for row in ours}
            for row in rows:
                assert before.issuperset(row.get("based_on", ())), row["name"]
                before.add(row["name"])


def test_the_first_scenario_is_the_one_in_the_readme() -> None:
    shown = re.search(r"```toml\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert tomllib.loads(shown[1]) == tomllib.loads((ROOT / "scenarios/first.toml").read_text())


@pytest.mark.parametrize("page", ["docs/tutorials/first-scenario.md"])
def test_the_first_answer_is_the_one_that_is_shown(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = str(ROOT / "scenarios/first.toml")
    assert status(["run", scenario, "--phase", "together", "--store", "none"]) == 0
    shown = re.search(
        r"```console\n\$ [^\n]*\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL
    )
    assert shown is not None
    answer = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    for line in shown[1].splitlines():
        assert line.rstrip() in answer


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\"([^\"]+)\"", text)
    for target in (link or image for link, image in targets):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


GOOD = """# A page

See [the page](page.md#a-page), [a part](#what--is-it-1), [RFC 9438](https://www.rfc-editor.org/).

## What — is *it*?

## What — is it?

`[](x)` and `{math}` are code.

```toml
x = "[](y)"
```
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a folder of documentation with one good page."""
    folder = tmp_path / "docs" / "howto"
    folder.mkdir(parents=True)
    (folder / "page.md").write_text(GOOD, "utf-8")
    toctree = ".. toctree::\n   :glob:\n\n   howto/*\n"
    (tmp_path / "docs" / "contents.rst").write_text(toctree, "utf-8")
    return tmp_path


def test_a_good_page_keeps_the_rules(docs: Path) -> None:
    assert list(page_rules.problems(docs)) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[](page.md)", "docs/howto/bad.md:3: a link without a text: (page.md)"),
        ("```{include} x.inc\n```", "docs/howto/bad.md:3: a directive, which GitHub shows as raw"),
        (":::{note}\n:::", "docs/howto/bad.md:3: a directive"),
        ("{cells}`cubic alone`", "docs/howto/bad.md:3: a role: {cells}"),
        ("a\n[x](none.md)", "docs/howto/bad.md:4: there is no none.md"),
        ("![x](../images/none.png)", "docs/howto/bad.md:3: there is no ../images/none.png"),
        ("[x](page.md#none)", "docs/howto/bad.md:3: there is no heading for page.md#none"),
        ("[x](#none)", "docs/howto/bad.md:3: there is no heading for #none"),
        ("word " * 45_001, "docs: 45"),
    ],
)
def test_a_page_that_breaks_a_rule_is_told(docs: Path, text: str, told: str) -> None:
    (docs / "docs" / "howto" / "bad.md").write_text(f"# Bad\n\n{text}\n", "utf-8")
    (problem,) = page_rules.problems(docs)
    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ("The share, 50.8 ± 5.2 %, rises to 51 % or 13 ms, from 45.6 % to 56 %.", ()),
        ("The share is `52.0 %` of 30 %. | 7 % |", ()),
        ("The share is 52.5 ± 4.1 %.", ("52.5", "4.1")),
        ("It falls\nfrom 0.13 % to 0.05 %.", ("0.13", "0.05")),
        ("| rate | 77 Mbit/s |\nIt is <!-- number: x -->77 %<!-- end --> of 30 Mbit/s.", ()),
    ],
)
def test_typed_numbers_of_a_tutorial_are_in_its_outputs(
    docs: Path, sentence: str, typed: tuple[str, ...]
) -> None:
    """A sentence keeps its typed numbers when the output next to it changes."""
    page = docs / "docs" / "tutorials" / "page.md"
    page.parent.mkdir()
    output = "<!-- generated: output jostle run x.toml -->\n50.8 ± 5.2  12.96\n<!-- end -->\n"
    design = "It keeps `0.3`, 30 % and 7 %."
    shown = f"# A page\n\n{output}\n{design}\n"
    page.write_text(shown, "utf-8")
    contents = docs / "docs" / "contents.rst"
    contents.write_text(contents.read_text("utf-8") + "   tutorials/*\n", "utf-8")
    before = list(page_rules.problems(docs))
    page.write_text(f"{shown}\n```text\n30 7\n```\n\n{sentence}\n", "utf-8")
    found = [line.split(": ", 1)[1] for line in page_rules.problems(docs)]
    assert len(before) == 2
    assert sorted(line.split(" ", 1)[0] for line in found) == sorted(typed)


def test_all_pages_are_in_the_contents_and_there_are_few(docs: Path) -> None:
    (docs / "docs" / "tutorials").mkdir()
    for number in range(36):
        (docs / "docs" / "tutorials" / f"{number}.md").write_text("# Text\n", "utf-8")
    found = list(page_rules.problems(docs))
    assert found[0] == "docs/contents.rst: tutorials/0.md is not in it"
    assert len(found) == 37
    assert found[-1] == "docs: 37 hand-written pages, of 36 at most"
    (docs / "docs" / "contents.rst").unlink()
    assert "docs/contents.rst: it is missing, and lists all pages" in page_rules.problems(docs)


def test_pages_that_are_generated_do_not_count(docs: Path) -> None:
    block = f"<!-- generated: options -->\n{'word ' * 50_000}\n<!-- end -->\n"
    for number in range(40):
        page = docs / "docs" / "howto" / f"{number}.md"
        page.write_text(f"# Page\n\n{block}", "utf-8")
    assert list(page_rules.problems(docs)) == []
