"""Measured numbers in sentences that were typed, and that no output on their page shows.

A number with a marker is defined in `docs/numbers.toml` and is filled in. A typed number has to be
a rounded number of an output, a file or code on its page, or the end of an interval there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from doc_blocks.markers import Part, outside_fences

FOLDER: Final = "tutorials"
"""Folder of the pages whose sentences describe outputs on the same page."""
_NUMBER: Final = r"\d+(?:\.\d+)?"
_TYPED: Final = re.compile(rf"(?<![\w.±])({_NUMBER})(?= ?(?:%|ms\b|s\b|Mbit/s|kB|MB|×)| ?±)")
_INTERVAL: Final = re.compile(rf"({_NUMBER}) ± ({_NUMBER})")
_CODE: Final = re.compile(r"`[^`]*`")


def typed_numbers(page: Sequence[Part]) -> Iterator[tuple[int, str]]:
    """Yield the line of each typed number that the page does not show, and what is wrong with it.

    A page without outputs has no such numbers, and tables may contain true values to compare with.
    """
    if not any(part.kind == "output" for part in page):
        return
    known: set[float] = set()
    sentences: list[tuple[int, str]] = []
    for part in page:
        if part.kind:
            known |= _shown(part.text)
            continue
        for line, piece, is_code in outside_fences(part.line, part.text):
            codes = [piece] if is_code else _CODE.findall(piece)
            known.update(number for code in codes for number in _shown(code))
            if not is_code:
                sentences.append((line, _CODE.sub(_blank, piece)))
    for first, text in sentences:
        for at, line in enumerate(text.split("\n")):
            if line.startswith("|"):
                continue
            for typed in _TYPED.findall(line):
                if not _is_rounded(typed, known):
                    message = f"{typed} is in no output of this page: update it, or use a number"
                    yield first + at, message


def _shown(text: str) -> set[float]:
    found = {float(number) for number in re.findall(_NUMBER, text)}
    for value, half in _INTERVAL.findall(text):
        found |= {float(value) - float(half), float(value) + float(half)}
    return found


def _blank(code: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "·", code[0])


def _is_rounded(typed: str, known: set[float]) -> bool:
    decimals = len(typed.partition(".")[2])
    return any(abs(number - float(typed)) <= 0.5 * 10**-decimals + 1e-9 for number in known)
