"""Names of commands and options: earlier ones say the present one, and each has one meaning."""

from __future__ import annotations

import ast
import contextlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from jostle.cli import cli, status
from jostle.cli.renamed import COMMANDS, OPTIONS

_ROOT = Path(__file__).parents[1]
MOST_COMMANDS = 20
MOST_OPTIONS = 296


def commands(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its path."""
    for name, command in group.commands.items():
        path = f"{before}{name}"
        yield path, command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} ")


EVERY = dict(commands())


def options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def test_the_number_of_commands_and_options_is_limited() -> None:
    assert len(cli.commands) <= MOST_COMMANDS
    assert sum(len(options(command)) for command in EVERY.values()) <= MOST_OPTIONS


@pytest.mark.parametrize(("old", "new"), COMMANDS.items())
def test_an_earlier_command_says_the_present_one(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status([*old.split(), "something", "--some-option"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"error: `jostle {old}` is now `jostle {new}`\n"
    words = re.split(r" (?=FILE|-)", new)[0]
    assert words in EVERY
    assert old not in EVERY


def _old_options() -> Iterator[tuple[str, str, str]]:
    """Yield each earlier option with a command that had it, and its hint."""
    any_command = {"--figures": "run", "--figure": "link generate", "--junit": "suite run",
                   "--step": "link show", "--columns": "run", "--limit": "run"}  # fmt: skip
    for old, by_command in OPTIONS.items():
        for command, new in by_command.items():
            if (old, command) != ("--csv", ""):
                yield old, command or any_command.get(old, "plot"), new


@pytest.mark.parametrize(("old", "command", "new"), list(_old_options()))
def test_an_earlier_option_says_the_present_one(
    old: str, command: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status([*command.split(), "file", old, "value"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: `{old}` is now ")
    assert captured.err.count("\n") == 1
    assert new in captured.err
    name = new.split(maxsplit=1)[0]
    known = {
        option for one in options(EVERY[command]) for option in (*one.opts, *one.secondary_opts)
    }
    if name.startswith("-"):
        assert name in known
    else:
        assert new in EVERY or "-o" in new
    assert old not in known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "a.toml", "--csv", "-"], "`--csv -` is now `--csv`"),
        (["run", "a.toml", "--csv", "a.csv"], "`--csv FILE` is now `-o FILE.csv`"),
        (
            ["study", "geo-solo"],
            "`jostle study geo-solo` is now `jostle study run geo-solo`",
        ),
        (["suite", "harm"], "`jostle suite harm` is now `jostle suite run harm`"),
    ],
)
def test_an_earlier_form_says_the_present_one(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(words) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_an_option_that_never_existed_has_no_hint(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run", "a.toml", "--kerneel", "x"], ["plot", "a.toml", "--limit", "2"]):
        assert status(words) == 2
        assert "No such option" in capsys.readouterr().err


def test_an_option_takes_a_value_in_all_commands_or_in_none() -> None:
    kinds: dict[str, set[bool]] = {}
    for command in EVERY.values():
        for option in options(command):
            for name in option.opts:
                kinds.setdefault(name, set()).add(option.is_flag)
    assert {name for name, flags in kinds.items() if len(flags) > 1} == set()


@pytest.mark.parametrize(("path", "command"), EVERY.items())
def test_every_help_is_short_and_has_one_example(path: str, command: click.Command) -> None:
    assert command.help is not None
    lines = command.help.splitlines()
    examples = re.findall(r"^\s*Example: (.*)$", command.help, re.M)
    assert len(examples) == 1
    assert f"jostle {path}" in examples[0] or isinstance(command, click.Group)
    first = lines[0].strip()
    assert not re.match(r"\w+(s|ed|ing)\b", first) or first.split()[0] in ("Compress",), first
    for option in options(command):
        assert option.help, f"{path} {option.opts}"


EXAMPLES = {
    path: shlex.split(found[1])
    for path, command in EVERY.items()
    if (found := re.search(r"Example: (?:sudo )?jostle ([^>\n]*)", command.help or ""))
}
_STARTED_HERE = ("run", "plot", "compare", "search", "advise", "study", "suite", "info")
"""Commands whose examples name only files of the repository and entries of the registries."""


class _RunsStartError(Exception):
    """The example is complete: its runs would start."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.slow if path == "suite scorecard" else ())
        for path in EXAMPLES
    ],
)
def test_every_example_names_options_and_things_that_exist(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = EXAMPLES[path]
    if not isinstance(EVERY[path], click.Group):
        EVERY[path].make_context(path, words[len(path.split()) :])
    if words[0] not in _STARTED_HERE:
        return

    def start(*_: object) -> None:
        raise _RunsStartError

    monkeypatch.setattr("jostle.runner.session.Session.carry_out", start)
    monkeypatch.setenv("JOSTLE_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    for folder in ("scenarios", "studies", "suites"):
        (tmp_path / folder).symlink_to(_ROOT / folder)
    with contextlib.suppress(_RunsStartError):
        assert status(words) == 0, capsys.readouterr().err


def test_without_arguments_three_commands_to_start_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert status([]) == 0
    shown = re.findall(r"^  jostle (\w+)", capsys.readouterr().out, re.M)
    assert shown == ["new", "run", "info"]
    assert set(shown) <= set(EVERY)


_OF_RENAMED = {
    _ROOT / "python/jostle/cli/renamed.py",
    _ROOT / "python/jostle/safe_io/code_consent.py",
}
_OF_OTHERS = frozenset(
    f"--{name}"
    for name in ("list", "max", "out", "reinstall", "tls-ca-file", "tls-cert", "tls-key", "with")
)
"""Options of other programs that texts name."""
_RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.S)


def _texts() -> Iterator[tuple[Path, str]]:
    """Yield every string literal of the package and of the engine, docstrings included."""
    for path in sorted((_ROOT / "python/jostle").rglob("*.py")):
        if path in _OF_RENAMED:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value
    for path in sorted((_ROOT / "crates").glob("*/src/**/*.rs")):
        code = re.sub(r"^\s*//.*$", "", path.read_text("utf-8"), flags=re.M)
        for text in _RUST_TEXT.findall(code):
            yield path, text


def test_texts_name_commands_that_exist() -> None:
    wrong = []
    for path, text in _texts():
        for words in re.findall(r"`jostle ((?:[a-z][a-z-]*\b ?)+)", text):
            command: click.Command | None = cli
            for word in words.split():
                if not isinstance(command, click.Group):
                    break
                command = command.commands.get(word)
            if command is None:
                wrong.append(f"{path.relative_to(_ROOT)}: jostle {words}")
    assert not wrong, "\n".join(wrong)


def test_texts_name_options_that_exist() -> None:
    known = {name for command in EVERY.values() for one in options(command)
             for name in (*one.opts, *one.secondary_opts)} | {"--help", "--version"}  # fmt: skip
    wrong = [
        f"{path.relative_to(_ROOT)}: {name}"
        for path, text in _texts()
        for name in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)
        # A text of several words is a message; a single word is an argument of another program.
        if len(text.split()) > 1 and name not in known | _OF_OTHERS
    ]
    assert not wrong, "\n".join(wrong)


def _documented() -> Iterator[tuple[Path, str]]:
    """Yield the commands in the documentation, and those that make recorded results."""
    for path in sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")]):
        text = path.read_text("utf-8").replace("\\\n", " ")
        for found in re.findall(r"^\s*\$ jostle (.+)$|`jostle ([^`\n]+)`", text, re.M):
            yield path, "".join(found)
    path = _ROOT / "docs/results/MANIFEST.toml"
    for entry in tomllib.loads(path.read_text("utf-8")).values():
        for command in entry["commands"]:
            if command.startswith("jostle "):
                yield path, command.removeprefix("jostle ")


def test_documents_use_options_that_exist() -> None:
    wrong = []
    for path, line in _documented():
        command: click.Command = cli
        words = line.split()
        while words and isinstance(command, click.Group) and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        known = {name for one in options(command) for name in (*one.opts, *one.secondary_opts)}
        # Behind `--` begins the command of another program.
        given = re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", " ".join(words).partition(" -- ")[0])
        wrong += [
            f"{path.relative_to(_ROOT)}: jostle {line}: {name}"
            for name in given
            if name not in known | {"--help", "--version"}
        ]
    assert not wrong, "\n".join(wrong)
