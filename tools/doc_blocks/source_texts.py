"""Texts of the repository in which references to RFCs and to Linux are checked."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_FOLDERS: Final = (
    "crates", "python", "docs", "scenarios", "studies", "suites", "tests", "tools", "benches",
    "fuzz",
)  # fmt: skip
_LEFT_OUT: Final = (
    "docs/results/", "docs/reference/rfcs/", "tests/formats/",
    "python/jostle/kernel_images/module/",
)  # fmt: skip
"""Recorded and generated texts, and code of which each byte names a kernel image."""
_ENDINGS: Final = (".rs", ".py", ".md", ".toml", ".txt")
_BREAK: Final = re.compile(r"[ \t]*\n[ \t]*(?:(?://[/!]?|#|\*)[ \t]*)?")


def continuous(text: str) -> str:
    """Return a text with its lines joined, without the marks that begin lines of comments."""
    return _BREAK.sub(" ", text)


def passages(text: str, word: str) -> str:
    """Return the lines that have a word, each joined with its neighbours."""
    lines = text.split("\n")
    near = {i + step for i, line in enumerate(lines) if word in line for step in (-1, 0, 1)}
    kept = (line if i in near else "\f" for i, line in enumerate(lines))
    return continuous("\n".join(kept))


def files_with(*words: str, root: Path = ROOT) -> list[str]:
    """Return the paths of files that have one of the words."""
    given = [argument for word in words for argument in ("-e", word)]
    files = [f"{folder}/*{ending}" for folder in _FOLDERS for ending in _ENDINGS]
    command = ["git", "grep", "-lzF", "--untracked", *given, "--", *files]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    return [name for name in sorted(listed.split("\0")) if name and not name.startswith(_LEFT_OUT)]


@cache
def texts(word: str) -> tuple[tuple[str, str], ...]:
    """Return path and passages of each file that has a word."""
    return tuple(
        (name, passages((ROOT / name).read_text("utf-8"), word)) for name in files_with(word)
    )
