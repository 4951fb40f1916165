"""Contents of the blocks of each kind.

`output [--slow] [--status N] [--lines 1-8,12] COMMAND`
    The command and what it prints. Of the lines that are left out, `…` remains. A command that is
    to fail has its exit status, and its messages are printed, too.
`file PATH`
    A file in a fenced block. A fragment of Markdown (`.inc`) is inserted unchanged.
`figure PATH COMMAND`
    The command writes the picture PATH below `docs/images/`. The block holds its image link.
`keys TABLE`, `registry KIND`, `measures [SCOPE PLACE]`, `profiles`, `features`, `captures`,
`options [COMMAND]`
    Tables of the reference. Of `keys`, the columns *Default* and *Meaning* are written by hand.
`algorithm NAME`, `family-tree`
    Facts and a figure of an algorithm, and the figure of all controllers.
`python [NAME…]`
    Signatures and docstrings.
`rfc NUMBER`, `rfcs`
    Where the sections of an RFC are implemented and tested, and the list of these pages.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from doc_blocks import algorithms, rfc_references, tables
from doc_blocks.commands import CommandError, Result, Runner, words
from doc_blocks.pictures import same_picture
from doc_blocks.python_reference import python_reference

_LANGUAGES: Final = {
    ".toml": "toml", ".py": "python", ".rs": "rust", ".json": "json", ".csv": "text",
    ".sh": "console", ".xml": "xml", ".yml": "yaml",
}  # fmt: skip


@dataclass
class Page:
    """A page whose blocks are filled in.

    Attributes
    ----------
    path
        The page.
    root
        The repository.
    runner
        Carries out commands.
    slow
        Whether commands that take long, and figures, are carried out.
    write
        Whether pictures are written; if not, they are compared.
    before
        Results of the page's commands so far.
    """

    path: Path
    root: Path
    runner: Runner
    slow: bool
    write: bool
    before: list[Result] = field(default_factory=list)

    def run(self, command: str, status: int = 0) -> Result:
        """Carry out a command after the earlier ones of the page.

        Raises
        ------
        CommandError
            When it ends with another status.
        """
        result = self.runner.run(command, self.before)
        self.before.append(result)
        if result.status != status:
            said = (result.stderr or result.stdout).strip()
            raise CommandError(f"`{command}` ended with status {result.status}: {said}")
        return result

    def relative(self, path: Path) -> str:
        """Return the link from the page to a file."""
        up = self.path.parent.resolve()
        steps = 0
        while not path.resolve().is_relative_to(up):
            up, steps = up.parent, steps + 1
        return "../" * steps + path.resolve().relative_to(up).as_posix()


_COMMANDS: Final = {"output", "figure"}
"""Kinds whose blocks are the output of commands, which run in other processes."""
_PARSER: Final = threading.Lock()


def body(page: Page, kind: str, arguments: str, written: str) -> str:
    """Return the contents of a block: the present ones if its command is left out.

    Raises
    ------
    ValueError
        When the kind, an argument or a file is not known; see also `CommandError`.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of block `{kind}`: one of {', '.join(KINDS)}")
    if kind in _COMMANDS:
        return KINDS[kind](page, arguments, written).strip("\n")
    # The parser of Python 3.11 is not safe in several threads (CPython issue 106905).
    with _PARSER:
        return KINDS[kind](page, arguments, written).strip("\n")


def _output(page: Page, arguments: str, written: str) -> str:
    options, command = _output_options(arguments)
    if options.slow and not page.slow:
        words(command)
        return written
    result = page.run(command, options.status)
    printed = result.stdout + (result.stderr if options.status else "")
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    if options.lines:
        lines = list(_chosen(lines, options.lines))
    return _fenced("console", "\n".join([f"$ {command}", *lines]))


def _output_options(arguments: str) -> tuple[argparse.Namespace, str]:
    options = argparse.Namespace(slow=False, status=0, lines="")
    rest = arguments
    while match := re.match(r"--(slow|status|lines)\s+(.*)", rest):
        name, rest = match[1], match[2]
        if name == "slow":
            options.slow = True
            continue
        value, _, rest = rest.partition(" ")
        if not re.fullmatch(r"\d+" if name == "status" else r"\d+(-\d*)?(,\d+(-\d*)?)*", value):
            raise ValueError(f"--{name} {value}: not a {'status' if name == 'status' else 'range'}")
        setattr(options, name, int(value) if name == "status" else value)
    return options, rest.strip()


def _chosen(lines: list[str], ranges: str) -> Iterable[str]:
    """Yield the lines of ranges such as `1-8,12`, and `…` for lines between and after them."""
    after = 0
    for piece in ranges.split(","):
        first, dash, last = piece.partition("-")
        low, high = int(first), int(last or (len(lines) if dash else first))
        if low > len(lines):
            raise ValueError(f"--lines {ranges}: the output has {len(lines)} lines")
        if low > after + 1:
            yield "…"
        yield from lines[low - 1 : high]
        after = high
    if after < len(lines):
        yield "…"


def _file(page: Page, arguments: str, _: str) -> str:
    path = page.root / arguments
    if not path.is_file() or not path.resolve().is_relative_to(page.root.resolve()):
        raise ValueError(f"no file `{arguments}` in the repository")
    text = path.read_text("utf-8").strip("\n")
    if path.suffix == ".inc":
        return text
    return _fenced(_LANGUAGES.get(path.suffix, "text"), text)


def _fenced(language: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _figure(page: Page, arguments: str, written: str) -> str:
    name, _, command = arguments.partition(" ")
    picture = _picture(page, name)
    targets = re.findall(r"!\[([^\]]+)\]\(([^)\s]+)", written)
    if [(page.path.parent / target).resolve() for _, target in targets] != [picture.resolve()]:
        raise ValueError(
            f"write the image link of {name}: ![what it shows]({page.relative(picture)})"
        )
    of = [picture.name if word.endswith(name) else word for word in words(command)]
    if not page.slow:
        if not picture.exists():
            raise ValueError(f"there is no picture {name}: run `make results`")
        return written
    result = page.run(shlex.join(of))
    _keep(page, result.folder / picture.name, picture)
    return written


def _picture(page: Page, name: str) -> Path:
    picture = page.root / "docs" / name.removeprefix("docs/")
    if not picture.resolve().is_relative_to((page.root / "docs" / "images").resolve()):
        raise ValueError(f"{name}: pictures are below docs/images/")
    return picture


def _keep(page: Page, drawn: Path, picture: Path) -> None:
    """Write a picture, or compare it with the written one."""
    name = picture.relative_to(page.root).as_posix()
    if not drawn.is_file():
        raise ValueError(f"the command wrote no {drawn.name}")
    if picture.exists() and same_picture(drawn, picture):
        return
    if not page.write:
        raise ValueError(f"{name} is not what its command draws now: run `make results`")
    picture.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(drawn, picture)


def _keys(_: Page, arguments: str, written: str) -> str:
    return "\n".join(tables.key_table(arguments, written))


def _registry(page: Page, arguments: str, _: str) -> str:
    folder = page.relative(algorithms.pages_folder(page.root / "docs"))
    return "\n".join(tables.registry_table(arguments, folder))


def _measures(_: Page, arguments: str, __: str) -> str:
    scope, _, place = arguments.partition(" ")
    return "\n".join(tables.measure_table(scope, place))


def _options(_: Page, arguments: str, __: str) -> str:
    return "\n".join(tables.option_tables(arguments.split()))


def _algorithm(page: Page, arguments: str, _: str) -> str:
    stem = algorithms.file_stem(arguments)
    picture = page.root / "docs" / "images" / "algorithms" / f"{stem}.svg"
    results = algorithms.algorithm_run(arguments)
    if page.slow:
        drawn = page.runner.folder() / stem
        algorithms.draw_algorithm(arguments, results, drawn)
        _keep(page, drawn.with_suffix(".svg"), picture)
    elif not picture.exists():
        raise ValueError(f"there is no picture {picture.name}: run `make results`")
    facts = "\n".join(algorithms.algorithm_facts(arguments, results))
    link = f"![{algorithms.alt_text(arguments)}]({page.relative(picture)})"
    return f"{facts}\n{link}\n\n{algorithms.caption(arguments)}"


def _family_tree(page: Page, _: str, __: str) -> str:
    picture = page.root / "docs" / "images" / "family-tree.svg"
    drawn = page.runner.folder() / "family-tree"
    algorithms.draw_family_tree(drawn)
    _keep(page, drawn.with_suffix(".svg"), picture)
    link = page.relative(picture)
    return f"![Controllers by group, with arrows to those that build on them]({link})"


def _without_arguments(lines: Callable[[], Iterable[str]]) -> Callable[[Page, str, str], str]:
    def of(_: Page, arguments: str, __: str) -> str:
        if arguments:
            raise ValueError(f"`{arguments}`: this kind of block has no arguments")
        return "\n".join(lines())

    return of


def _python(_: Page, arguments: str, __: str) -> str:
    return "\n".join(python_reference(arguments.split()))


def _rfc(page: Page, arguments: str, written: str) -> str:
    return rfc_references.Sections(arguments, page.root).table()


KINDS: Final[Mapping[str, Callable[[Page, str, str], str]]] = {
    "output": _output,
    "file": _file,
    "figure": _figure,
    "keys": _keys,
    "registry": _registry,
    "measures": _measures,
    "profiles": _without_arguments(tables.profile_table),
    "features": _without_arguments(tables.feature_table),
    "captures": _without_arguments(tables.capture_table),
    "code-sources": _without_arguments(tables.code_source_table),
    "family-tree": _family_tree,
    "algorithm": _algorithm,
    "options": _options,
    "python": _python,
    "rfc": _rfc,
    "rfcs": _without_arguments(rfc_references.list_of_pages),
}
"""Kind → function of the page, the arguments and what is written that returns the new text."""
