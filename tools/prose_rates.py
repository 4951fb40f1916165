"""Check how plainly the text of the repository is written.

usage: python tools/prose_rates.py [--list] [FILE…]

Reads documentation, texts of TOML files, comments, strings and names, and compares the rates of
patterns with the limits in `tools/prose.toml`. If a rate is beyond its limit, its lines are listed
with the phrase and a replacement, and the exit status is 1. `--list` lists all lines.

proselint finds the phrases. It reads whole files and counts nothing, so this script extracts the
text that people read and computes the rates.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from proselint.checks import __register__ as proselint_checks
from proselint.config import Config
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check
from proselint.registry.checks.engine import Fancy, RegexOptions
from proselint.registry.checks.types import ExistenceSimple
from proselint.tools import LintFile

ROOT: Final = Path(__file__).parents[1]
RULES: Final[Mapping[str, Any]] = tomllib.loads((ROOT / "tools" / "prose.toml").read_text("utf-8"))
LONG_SENTENCE_WORDS: Final = 35

_QUOTATION = re.compile(r'"[^"]*"|“[^”]*”|`+[^`]*`+')
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|\Z)", re.DOTALL)
_YOU = re.compile(r"\byour?\b", re.IGNORECASE)
_RUST_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*", re.MULTILINE | re.DOTALL)
_RUST_TEXT = re.compile(
    r"//[/!]?(?P<comment>[^\n]*)|\"(?P<string>(?:[^\"\\]|\\.)*)\"|'(?:[^'\\]|\\.)'", re.DOTALL
)
# Python and TOML have the same strings and comments.
_OTHER_TEXT = re.compile(
    r'#(?P<comment>[^\n]*)|"""(?P<long>.*?)"""|"(?P<string>(?:[^"\\\n]|\\.)*)"'
    r"|'(?P<single>(?:[^'\\\n]|\\.)*)'",
    re.DOTALL,
)
_DEFINITION = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:async )?"
    r"(?:fn|struct|enum|trait|type|mod|def|class|const|static) +([A-Za-z_]\w*)"
)
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Passage:
    """Text that a person reads, and the line where it begins.

    Attributes
    ----------
    addresses_reader
        Whether it counts for "you" and the length of sentences.
    """

    line: int
    text: str
    addresses_reader: bool = False


@dataclass(frozen=True)
class Finding:
    """A phrase that another should replace."""

    path: str
    line: int
    phrase: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: “{self.phrase}”: {self.replacement}"


@dataclass
class Report:
    """Counts and findings of a kind of text."""

    findings: list[Finding] = field(default_factory=list)
    long_sentences: list[Finding] = field(default_factory=list)
    units: int = 0
    words: int = 0
    you: int = 0
    sentences: int = 0

    def rates(self) -> dict[str, float]:
        """Return the value of each quantity that has a limit."""
        return {
            "patterns": 1000 * len(self.findings) / max(self.units, 1),
            "you": 1000 * self.you / max(self.words, 1),
            "long_sentences": 100 * len(self.long_sentences) / max(self.sentences, 1),
        }

    def failures(self, limits: Mapping[str, float]) -> list[str]:
        """Return the names of the quantities that are beyond their limits."""
        rates = self.rates()
        return [
            name
            for name, limit in limits.items()
            if (rates[name] < limit if name == "you" else rates[name] > limit)
        ]


def markdown_passages(source: str) -> Iterator[Passage]:
    """Yield the paragraphs, headings and table cells of a page, without quotations and code."""
    generated, quoted = False, 0
    around: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        if token.type == "html_block" and token.content.startswith("<!-- "):
            generated = token.content.startswith("<!-- generated")
        quoted += token.nesting if token.type.startswith("blockquote") else 0
        if token.nesting > 0:
            around.append(token.type)
        elif token.nesting < 0:
            around.pop()
        if token.type == "inline" and token.map and not quoted:
            text = _inline_text(token)
            in_paragraph = around[-1] == "paragraph_open"
            # "What it shows" is a good heading, so headings do not begin like sentences.
            if around[-1] in ("heading_open", "th_open"):
                text = f"# {text}"
            yield Passage(token.map[0] + 1, text, in_paragraph and not generated)


def code_passages(path: str, source: str) -> Iterator[Passage]:
    """Yield the comments and the strings of at least three words of a program or a TOML file."""
    for match in (_RUST_TEXT if path.endswith(".rs") else _OTHER_TEXT).finditer(source):
        text = match[match.lastgroup] if match.lastgroup else ""
        if match.lastgroup == "comment" or len(text.split()) > 2:
            yield Passage(1 + source.count("\n", 0, match.start(match.lastgroup or 0)), text)


def vague_names(path: str, source: str) -> tuple[int, list[Finding]]:
    """Return the number of definitions of a file, and those with a vague name."""
    rule = RULES["names"]
    words = set(rule["words"])
    count, findings = 0, []
    for number, line in enumerate(source.split("\n"), 1):
        if match := _DEFINITION.match(line):
            count += 1
            name = match[1]
            for allowed in rule["allow"]:
                name = name.replace(allowed, "")
            if words & {word.lower() for word in _NAME_WORD.findall(name)}:
                findings.append(Finding(path, number, match[1], rule["write"]))
    return count, findings


def check(kind: str, sources: Mapping[str, str]) -> Report:
    """Check the text of files.

    Parameters
    ----------
    kind
        A table of `kinds` in the rules.
    sources
        Content of each file by path.
    """
    rule = RULES["kinds"][kind]
    report = Report()
    for path, content in sources.items():
        source = _RUST_TESTS.sub("", content) if path.endswith(".rs") else content
        if rule["unit"] == "names":
            count, findings = vague_names(path, source)
            report.units += count
            report.findings += findings
            continue
        markdown = path.endswith(".md")
        passages = list(markdown_passages(source) if markdown else code_passages(path, source))
        text = _layout(passages, source.count("\n") + 1)
        findings = _find(path, text)
        if rule["unit"] == "lines":
            findings = list({finding.line: finding for finding in findings}.values())
            report.units += sum(1 for line in text.split("\n") if line.strip())
        else:
            report.units += len(text.split())
        report.findings += findings
        if not path.startswith(tuple(rule.get("without_you", ("",)))):
            _count_sentences(path, passages, report)
    return report


def _count_sentences(path: str, passages: Sequence[Passage], report: Report) -> None:
    """Add "you", words and sentences of the passages that address the reader."""
    for passage in passages:
        if not passage.addresses_reader:
            continue
        report.words += len(passage.text.split())
        report.you += len(_YOU.findall(passage.text))
        for sentence in _SENTENCE.finditer(passage.text):
            words = sentence[0].split()
            report.sentences += len(words) > 3
            if len(words) > LONG_SENTENCE_WORDS:
                line = passage.line + passage.text.count("\n", 0, sentence.start())
                fault = f"split this sentence of {len(words)} words"
                report.long_sentences.append(Finding(path, line, " ".join(words[:8]) + " …", fault))


def _layout(passages: Sequence[Passage], line_count: int) -> str:
    """Return the passages at their lines, without quotations and code."""
    lines: list[list[str]] = [[] for _ in range(line_count)]
    for passage in passages:
        text = _QUOTATION.sub(lambda match: "X" + "\n" * match[0].count("\n"), passage.text)
        for number, line in enumerate(text.split("\n"), passage.line - 1):
            lines[min(number, line_count - 1)].append(line.strip(" \\"))
    # Table cells of one line are apart.
    return "\n".join(" · ".join(parts) for parts in lines)


def _find(path: str, text: str) -> list[Finding]:
    if not text.strip():
        return []
    file = LintFile(path, text)
    return [
        Finding(
            path,
            result.pos[0],
            " ".join(file.content[slice(*result.check_result.span)].split()),
            result.check_result.message,
        )
        for result in file.lint(_CONFIG)
    ]


def _checks() -> Iterator[Check]:
    """Yield the patterns of the rules as checks of proselint."""
    for rule in RULES["patterns"]:
        for pattern in rule["find"]:
            kind = ExistenceSimple(pattern.replace(" ", "[ \n]"))
            options = RegexOptions(case_insensitive=not rule.get("case", False))
            engine = Fancy(options)
            yield Check(kind, engine, path="jostle", message=rule["write"])


def _inline_text(token: Token) -> str:
    parts = []
    for child in token.children or ():
        if child.type == "text":
            parts.append(child.content)
        elif child.type == "code_inline":
            parts.append("X")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)


def _files(kind: str, chosen: Sequence[str]) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
         *RULES["kinds"][kind]["files"]],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    names = {Path(name).resolve() for name in chosen}
    paths = [ROOT / name for name in listed if name and (ROOT / name).is_file()]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in paths
        if not names or path.resolve() in names
    }


CheckRegistry().register_many((*_checks(), *proselint_checks))
_CONFIG: Final = Config(
    max_errors=sys.maxsize,
    checks={"jostle": True} | dict.fromkeys(RULES["proselint"], True),
)


def main(words: Sequence[str] | None = None) -> int:
    """Print rates and limits, and the lines of every rate that is beyond its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="list all lines")
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these files")
    arguments = parser.parse_args(words)
    status = 0
    for kind, rule in RULES["kinds"].items():
        report = check(kind, _files(kind, arguments.files))
        if not report.units:
            continue
        rates, failures = report.rates(), report.failures(rule["limits"])
        values = ", ".join(
            f"{name} {rates[name]:.1f} (limit {limit})" for name, limit in rule["limits"].items()
        )
        print(f"{kind}: {report.units} {rule['unit']}; {values}")
        if failures:
            status = 1
            print(f"{kind}: beyond the limit: {', '.join(failures)}", file=sys.stderr)
        shown = report.findings if arguments.list or "patterns" in failures else []
        if "long_sentences" in failures or (arguments.list and "long_sentences" in rule["limits"]):
            shown = shown + report.long_sentences
        for finding in shown:
            print(finding, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
