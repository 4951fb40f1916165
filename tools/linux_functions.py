"""Compare the functions of Linux that jostle follows with another kernel source tree.

usage: python tools/linux_functions.py TREE [--against VERSION] [--add]

A comment names a function that the code follows as `tcp_input.c::tcp_enter_loss`: the end of its
file's path, and the function. `tools/references/linux_functions.tsv` has a row for each of them
with a hash of its text per kernel version. The command lists the functions whose text in TREE
differs from VERSION (default: the newest one of the table), and the items of jostle's code that
name them: read these again. It fails if there are any. With `--add` it writes the hashes of TREE
into the table, as a new column or in place of that version's.

The text that is hashed is the sequence of the function's tokens from its name on: comments, line
breaks, spaces, the return type and annotations such as `__bpf_kfunc` do not count. A definition
begins in the first column and ends with `}` in the first column.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from doc_blocks.source_texts import ROOT, files_with

TABLE: Final = "tools/references/linux_functions.tsv"
ABSENT: Final = "–"
_SOURCE_FOLDERS: Final = ("net", "include/net", "include/linux", "lib", "kernel/time")
_MENTION: Final = re.compile(r"(?P<file>[\w/-]+\.[ch])::(?P<function>\w+)")
_COMMENT: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|\w+|\S')
_DEFINITION: Final = re.compile(
    r"^(?!#|typedef|else|return|extern)[A-Za-z_][\w \t*\n]*?"
    r"\b(?P<name>\w+)\([^;{}]*?\)[^;{}()=]*\{.*?^\}",
    re.MULTILINE | re.DOTALL,
)
_ITEM: Final = re.compile(
    r"\s*(?:pub(?:\([a-z]+\))? |async |unsafe |default |const (?=fn))*"
    r"(?P<kind>fn|struct|enum|trait|const|static|type|impl|mod|def|class)\b[ <]*(?P<name>\w*)"
)


class Mention(NamedTuple):
    """A function of Linux, named in a comment.

    Attributes
    ----------
    place
        Path and item of jostle's code.
    file, function
        The end of the path in Linux, and the function.
    """

    place: str
    file: str
    function: str


def function_texts(source: str) -> dict[str, str]:
    """Return the tokens of each function of a C file, separated by spaces."""
    code = _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", source)
    return {
        match["name"]: " ".join(_TOKEN.findall(code, match.start("name"), match.end()))
        for match in _DEFINITION.finditer(code)
    }


def text_hash(text: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a function's tokens."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def mentions(root: Path = ROOT) -> Iterator[Mention]:
    """Yield the functions that comments, docstrings and pages name."""
    for name in files_with(".c::", ".h::", root=root):
        lines = (root / name).read_text("utf-8").split("\n")
        for number, line in enumerate(lines):
            for match in _MENTION.finditer(line) if "::" in line else ():
                yield Mention(f"{name}: {_item(lines, number)}", match["file"], match["function"])


def _item(lines: Sequence[str], number: int) -> str:
    """Return the item that a line of a comment describes or is part of."""
    after = number
    while after < len(lines) and re.match(r"\s*(?:///|#\[|//)", lines[after]):
        after += 1
    documented = lines[number].lstrip().startswith("///")
    places = [after] if documented else range(number, -1, -1)
    for place in places:
        if (match := _ITEM.match(lines[place])) and (documented or match["kind"] in {"fn", "def"}):
            return f"{match['kind']} {match['name']}".strip()
    return f"line {number + 1}"


def read_table(root: Path = ROOT) -> tuple[list[str], dict[tuple[str, str], list[str]]]:
    """Return the versions, and the hashes of each function by file and name."""
    header, *rows = (line.split("\t") for line in (root / TABLE).read_text("utf-8").splitlines())
    return header[2:], {(row[0], row[1]): row[2:] for row in rows}


def row_of(mention: Mention, rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the rows that a mention can mean: exactly one, in a complete table."""
    return [
        row for row in rows
        if row[1] == mention.function and f"/{row[0]}".endswith(f"/{mention.file}")
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Compare or add a kernel source tree, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path, help="folder of an unpacked kernel source")
    parser.add_argument("--against", metavar="VERSION", help="version of the table to compare with")
    parser.add_argument("--add", action="store_true", help="write the hashes of the tree")
    given = parser.parse_args(arguments)
    tree, named = _Tree(given.tree), list(mentions(root))
    if given.add:
        _add(tree, named, root)
        return 0
    versions, rows = read_table(root)
    against = given.against or versions[-1]
    if against not in versions:
        parser.error(f"--against {against}: the table has {', '.join(versions)}")
    column = versions.index(against)
    changed = {row: now for row, was in rows.items() if (now := tree.hash(*row)) != was[column]}
    for row, now in changed.items():
        found = "" if now != ABSENT else f", not found{tree.elsewhere(row[1])}"
        print(f"{row[0]}::{row[1]}{found}")
        places = {mention.place for mention in named if row in row_of(mention, [row])}
        print("".join(f"    {place}\n" for place in sorted(places)), end="")
    print(f"{len(changed)} of {len(rows)} functions differ between {against} and {tree.version}")
    return 1 if changed else 0


class _Tree:
    """A kernel source tree, whose files are read when they are needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, dict[str, str]] = {}
        makefile = (folder / "Makefile").read_text("utf-8")
        parts = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL) = (\d+)$", makefile, re.MULTILINE))
        self.version = ".".join(parts[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL"))

    def functions(self, file: str) -> dict[str, str]:
        """Return the functions of a file; none if it does not exist."""
        if file not in self._files:
            path = self._folder / file
            source = path.read_text("utf-8", errors="replace") if path.is_file() else ""
            self._files[file] = function_texts(source)
        return self._files[file]

    def hash(self, file: str, function: str) -> str:
        """Return the hash of a function, or `ABSENT`."""
        text = self.functions(file).get(function)
        return ABSENT if text is None else text_hash(text)

    def files(self) -> list[str]:
        """Return the paths of the C files in which functions are looked for."""
        found = (
            path.relative_to(self._folder).as_posix()
            for folder in _SOURCE_FOLDERS for path in (self._folder / folder).rglob("*.[ch]")
        )  # fmt: skip
        return sorted(set(found))

    def elsewhere(self, function: str) -> str:
        """Return in which other files a function is."""
        files = [name for name in self.files() if function in self.functions(name)]
        return f"; now in {', '.join(files)}" if files else ""


def _add(tree: _Tree, named: Sequence[Mention], root: Path) -> None:
    """Write the table with the hashes of a tree, and a row for each function that is named."""
    versions, rows = read_table(root)
    column = versions.index(tree.version) if tree.version in versions else len(versions)
    versions[column : column + 1] = [tree.version]
    new: dict[tuple[str, str], list[str]] = {}
    for mention in named:
        files = [row[0] for row in row_of(mention, list(rows))] or [
            file for file in tree.files()
            if f"/{file}".endswith(f"/{mention.file}") and mention.function in tree.functions(file)
        ]  # fmt: skip
        if len(files) != 1:
            raise SystemExit(f"{mention.place}: {mention.file}::{mention.function} is in {files}")
        row = (files[0], mention.function)
        hashes = [*rows.get(row, []), *[ABSENT] * len(versions)][: len(versions)]
        hashes[column] = tree.hash(*row)
        new[row] = hashes
    lines = [["file", "function", *versions], *([*row, *new[row]] for row in sorted(new))]
    (root / TABLE).write_text("".join("\t".join(line) + "\n" for line in lines), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
