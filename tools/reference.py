"""Fill in what is generated in the documentation, or check that it is current.

usage: python tools/reference.py [--check] [--all] [PAGE…]
       python tools/reference.py --results [NAME…] [--check] [--release]
       python tools/reference.py --made NAME…

Blocks and numbers between markers (`doc_blocks/markers.py`) in the Markdown files at the root and
below `docs/` are filled in by `doc_blocks/kinds.py` and `docs/numbers.toml`. Without `--all`,
figures and commands that are marked as slow are left unchanged. `--check` writes nothing and
fails with file, line, old and new text if something is out of date, or if a page breaks a rule of
`doc_blocks/page_rules.py`.

`--results` concerns the recorded results of `docs/results/MANIFEST.toml`. With `--check`, their
inputs and the behaviour of the engine are compared with the recorded ones; differences are
warnings, with `--release` errors. Without it, the named results are made anew; without names, all
but the long ones, which are listed with their time. `--made` records that you just made them.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

import jostle
from doc_blocks import kinds, manifest, page_rules
from doc_blocks.commands import CommandError, Runner
from doc_blocks.estimates import estimate_text
from doc_blocks.markers import DocsError, Part, parts
from doc_blocks.quoted_numbers import FILE, QuotedNumber, read_numbers
from jostle.errors import JostleError

ROOT: Final = Path(__file__).parents[1]
_MOST_LINES: Final = 24
"""Lines of a difference that are printed."""


def pages(root: Path = ROOT) -> list[Path]:
    """Return the Markdown files that may have generated text."""
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return sorted(path for path in found if "_build" not in path.relative_to(root).parts)


class Updater:
    """Fills in or checks pages.

    Parameters
    ----------
    root
        The repository.
    slow
        Whether slow commands and figures are carried out as well.
    check
        Whether pages and pictures are only compared.
    """

    def __init__(self, root: Path, *, slow: bool, check: bool) -> None:
        self.root = root
        self.slow = slow
        self.check = check
        self.runner = Runner(root)
        self._lock = threading.Lock()
        self._runs: dict[str, jostle.ResultSet] = {}
        self.numbers: dict[str, QuotedNumber] = read_numbers(root)

    def problems(self, paths: Sequence[Path]) -> list[str]:
        """Update or check pages, several at a time, and return what is wrong."""
        with ThreadPoolExecutor(self.runner.jobs) as pool:
            return [problem for found in pool.map(self._page, paths) for problem in found]

    def close(self) -> None:
        """End what commands left."""
        self.runner.close()

    def _page(self, path: Path) -> list[str]:
        source = path.read_text("utf-8")
        name = path.relative_to(self.root)
        if "<!-- generated:" not in source and "<!-- number:" not in source:
            return []
        try:
            found = parts(name, source)
        except DocsError as error:
            return [str(error)]
        page = kinds.Page(path, self.root, self.runner, self.slow, not self.check)
        problems, pieces = [], []
        for part in found:
            try:
                text = self._text(page, part)
            except (ValueError, CommandError) as error:
                problems.append(f"{name}:{part.line}: {part.kind} {part.arguments}: {error}")
                text = part.text
            if self.check and text != part.text:
                problems.append("\n".join(_stale(name, part, text)))
            pieces.append(part.with_text(text))
        new = "".join(pieces)
        if not self.check and new != source:
            path.write_text(new, "utf-8")
        return problems

    def _text(self, page: kinds.Page, part: Part) -> str:
        if not part.kind:
            return part.text
        if part.kind != "number":
            return kinds.body(page, part.kind, part.arguments, part.text)
        number = self.numbers.get(part.arguments)
        if number is None:
            raise ValueError(f"{FILE} defines no such number")
        if number.slow and not self.slow:
            return part.text
        try:
            if "scenario" in number.keys:
                return estimate_text(self._results(number.keys["scenario"]), number.keys)
            return number.text(self._source(number))
        except (ValueError, TypeError, ZeroDivisionError, JostleError, CommandError) as error:
            raise ValueError(f"{FILE}:{number.line}: {error}") from None

    def _results(self, scenario: str) -> jostle.ResultSet:
        """Run a scenario; its results are kept for other numbers."""
        path = self.root / scenario
        if not path.is_file():
            raise ValueError(f"no file `{scenario}`")
        with self._lock:
            if scenario not in self._runs:
                self._runs[scenario] = jostle.run(path, store=False)
            return self._runs[scenario]

    def _source(self, number: QuotedNumber) -> str:
        if number.command is None:
            path = self.root / number.keys["file"]
            if not path.is_file():
                raise ValueError(f"no file `{number.keys['file']}`")
            return path.read_text("utf-8")
        result = self.runner.run(number.command)
        if result.status != 0:
            said = (result.stderr or result.stdout).strip()
            raise CommandError(f"`{number.command}` ended with status {result.status}: {said}")
        return result.stdout


def _stale(name: Path, part: Part, text: str) -> Iterator[str]:
    """Yield what is out of date: place, old and new text."""
    title = f"{name}:{part.line}: {part.kind} {part.arguments}".rstrip()
    if "\n" not in part.text + text:
        yield f"{title}: is “{part.text}”, now “{text}”"
        return
    yield f"{title}: out of date; run `make reference`"
    changes = difflib.unified_diff(part.text.splitlines(), text.splitlines(), lineterm="", n=0)
    lines = [line for line in changes if not line.startswith(("---", "+++", "@@"))]
    yield from (f"    {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"    … and {len(lines) - _MOST_LINES} lines more"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Update or check, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail on differences")
    parser.add_argument("--all", action="store_true", help="slow commands and figures, too")
    parser.add_argument("--results", action="store_true", help="recorded results, not pages")
    parser.add_argument("--made", action="store_true", help="record results that you just made")
    parser.add_argument("--release", action="store_true", help="differences of results are errors")
    parser.add_argument("names", nargs="*", help="pages, or names of results")
    given = parser.parse_args(arguments)
    try:
        if given.results and given.check:
            return manifest.check(root, given.names, release=given.release)
        if given.results or given.made:
            if given.made and not given.names:
                parser.error("--made: name the results")
            return manifest.make(root, given.names, by_hand=given.made)

        updater = Updater(root, slow=given.all, check=given.check)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    try:
        problems = updater.problems([Path(name).resolve() for name in given.names] or pages(root))
        if given.check and not given.names:
            problems += page_rules.problems(root)
    finally:
        updater.close()
    print("\n".join(problems), end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
