"""The prose linter: phrases that it finds, phrases that it allows, lines, rates and limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
import prose_rates  # noqa: E402

PAIRS = [
    ("The report tells how long it took.", "The report contains the duration."),
    ("The sender is told.", "The sender is notified."),
    ("Whoever receives the packet answers.", "The receiver answers."),
    ("What became of the packet is unknown.", "The outcome of the packet is unknown."),
    ("The flow hears of the loss.", "The flow is notified of the loss."),
    ("The default stands in the table.", "The default is in the table; the host stands up."),
    ("Each has a queue of its own.", "Each has a separate queue. Its own queue is short."),
    ("Cubic is beside BBR.", "Cubic is next to BBR. See beside-cubic.toml."),
    ("The segment is sent again.", "The segment is retransmitted."),
    ("It depends on repairs of losses.", "It depends on retransmissions."),
    ("The RTT of the quiet path is 20 ms.", "The base RTT is 20 ms."),
    ("They differ by more than chance.", "They differ by more than 5 %."),
    ("A loss brings cwnd down.", "A loss reduces cwnd. Packets bring data."),
    ("It is held against Linux.", "It is checked against Linux. The lock is held."),
    ("The trace cannot be had.", "The trace is not available."),
    ("The file is kept as it is.", "The file is kept unchanged."),
    ("It stops for lack of data.", "It stops without data."),
    ("The delay is that of the link.", "The link adds that delay."),
    ("The bug is mended.", "The bug is fixed. A recommended value."),
    ("It fails without a word.", "It fails silently."),
    ("The flow is held back by the window.", "The flow is receive-window-limited."),
    ("The link goes over to another path.", "The link switches to another path."),
    ("It is full. What waits is lost.", "It is full. What does the sender do?"),
    ("It is an exact same thing.", "It is the same thing."),
]  # fmt: skip


def findings(text: str, path: str = "page.md", kind: str = "docs") -> list[prose_rates.Finding]:
    return prose_rates.check(kind, {path: text}).findings


@pytest.mark.parametrize(("bad", "good"), PAIRS)
def test_each_rule_finds_its_phrase_and_allows_the_replacement(bad: str, good: str):
    assert len(findings(bad)) == 1
    assert findings(bad)[0].replacement
    assert findings(good) == []


def test_every_pattern_has_a_phrase_that_it_alone_finds():
    """Otherwise a pattern could be broken unnoticed."""
    found = {findings(bad)[0].replacement for bad, _ in PAIRS}
    assert {rule["write"] for rule in prose_rates.RULES["patterns"]} <= found


def test_quotations_code_and_headings_are_not_checked():
    assert findings('Write "fixed", not "mended" or “mended”.') == []
    assert findings("Run `mend` first.\n\n```\nmend\n```\n\n> mended\n") == []
    assert findings("# What it shows\n\n| What | Use |\n| --- | --- |\n| a | b |\n") == []
    assert len(findings("# What is mended\n")) == 1


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("page.md", "mended\n\nfine\nmended, and sent\nagain\n\n- mended\n", [1, 4, 4, 7]),
        ("page.md", "| a | b |\n| --- | --- |\n| c | mended |\n", [3]),
        ("page.md", "fine\n\n\n\nWhat waits is lost.\n", [5]),
        ("rules.toml", "# mended\na = 'x'\nb = \"it was # mended\"\n", [1, 3]),
        ("rules.toml", 'c = """\nThis was\nmended"""\n', [3]),
        ("code.py", 'def f():\n    """Do this.\n\n    Mended.\n    """\n', [4]),
        ("code.py", 'f("it is mended")  # fine\ng()  # mended\n', [1, 2]),
        ("code.rs", "//! mended\nfn f() { g('\"'); } // mended\n", [1, 2]),
        ("code.rs", 'const A: &str = "it is \\\n    mended";\n', [2]),
    ],
)
def test_findings_have_the_line_of_the_phrase(path: str, text: str, lines: list[int]):
    found = findings(text, path)
    assert [finding.line for finding in found] == lines
    assert all(finding.path == path for finding in found)


def test_names_of_code_and_tests_at_the_end_of_a_file_are_not_text():
    assert findings("mended = beside\nfn = 'mended'\n", "code.py") == []
    assert findings("#[cfg(test)]\nmod tests {\n // mended\n}\n", "code.rs") == []
    assert len(findings("#[cfg(test)]\nmod tests;\n// mended\n", "code.rs")) == 1


def test_vague_names_are_found_by_their_words():
    text = "class Told: ...\ndef send_again(): ...\ndef one_way(): ...\nclass LinkPart: ...\n"
    report = prose_rates.check("names", {"code.py": text})
    assert [(finding.phrase, finding.line) for finding in report.findings] == [
        ("Told", 1),
        ("LinkPart", 4),
    ]
    assert report.rates()["patterns"] == 500


def test_rates_count_the_prose_of_a_page_and_not_its_generated_blocks():
    long = "word " * 36
    page = f"You send a packet. Fine words follow here.\n{long}end.\n"
    page += f"\n<!-- generated: x -->\n\n{long}.\n\n<!-- end -->\n"
    report = prose_rates.check("docs", {"page.md": page})
    assert (report.you, report.words, report.sentences) == (1, 45, 3)
    assert [finding.line for finding in report.long_sentences] == [2]
    assert report.rates()["long_sentences"] == pytest.approx(100 / 3)
    assert report.failures({"long_sentences": 33}) == ["long_sentences"]
    assert report.failures({"long_sentences": 34}) == []
    assert report.failures({"you": 22}) == []
    assert report.failures({"you": 23}) == ["you"]


def test_a_comment_counts_once_per_line():
    report = prose_rates.check("code", {"code.py": "# mended beside\n# fine\n"})
    assert report.rates()["patterns"] == 500


def test_the_repository_is_within_its_limits():
    """The limits are those of the style guide in CONTRIBUTING.md."""
    tables = prose_rates.RULES["kinds"]
    assert tables["docs"]["limits"] == {"patterns": 1, "you": 5, "long_sentences": 8}
    for kind, limit in (("algorithms", 1), ("texts", 1), ("code", 6), ("names", 6)):
        assert tables[kind]["limits"] == {"patterns": limit}


def test_the_command_fails_with_the_lines_beyond_a_limit(tmp_path, monkeypatch, capsys):
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / "a.md").write_text("You wait.\n\nIt is mended.\n", "utf-8")
    (tmp_path / "b.md").write_text("You wait for a packet.\n", "utf-8")
    monkeypatch.setattr(prose_rates, "ROOT", tmp_path)
    assert prose_rates.main([]) == 1
    assert capsys.readouterr() == (
        "docs: 10 words; patterns 100.0 (limit 1), you 200.0 (limit 5), "
        "long_sentences 0.0 (limit 8)\n",
        "docs: beyond the limit: patterns\na.md:3: “mended”: fix, repair\n",
    )
    assert prose_rates.main([str(tmp_path / "b.md")]) == 0
