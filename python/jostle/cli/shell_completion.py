"""Shell completion: scenario files, and names from the registries.

Registries are loaded only when a shell requests completions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from jostle.cli.environment import Environment
from jostle.cli.registry_names import kinds_of, profiles_of, studies_of, suites_of
from jostle.safe_io.terminal_text import echo

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHELLS = ("bash", "zsh", "fish")
_VALUES = {"controller": "controllers", "slow_start": "slow_starts", "kind": "queues",
           "queue": "queues", "peer_cache": "peer_caches"}  # fmt: skip
"""Registry of the values of a scenario key, by the key's last component."""


_WORD_BREAKS = "=:"
"""Characters of COMP_WORDBREAKS at which bash divides a word, and which values contain."""


class _Bash(BashComplete):
    """Completion for bash, which divides `KEY=VALUE` and `kernel:realtime` into three words."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)",
        "COMPREPLY+=($value)\n            [[ $value == *= ]] && compopt -o nospace 2>/dev/null",
    )
    _cut = 0

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words before the cursor, and the word at the cursor."""
        last = int(os.environ["COMP_CWORD"])
        words = [*split_arg_string(os.environ["COMP_WORDS"]), ""][: last + 1]
        joined: list[str] = []
        after_break = False
        for word in words:
            is_break = word != "" and not word.strip(_WORD_BREAKS)
            if joined and (is_break or after_break):
                joined[-1] += word
            else:
                joined.append(word)
            after_break = is_break
        *before, incomplete = joined
        # bash inserts a reply after the last break.
        divided = incomplete != words[-1]
        self._cut = len(incomplete) - len(words[-1].strip(_WORD_BREAKS)) if divided else 0
        return before[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a reply without the part of the word before bash's last break."""
        return f"{item.type},{item.value[self._cut :]}"


add_completion_class(_Bash)


@click.command(short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: commands, options, files and names.

    bash: eval "$(jostle setup completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc;
    fish: jostle setup completion fish > ~/.config/fish/completions/jostle.fish

    Example: jostle setup completion bash
    """
    script = get_completion_class(shell)
    assert script is not None
    name = "jostle"
    text = script(context.find_root().command, {}, name, f"_{name.upper()}_COMPLETE").source()
    # Click's fish script cuts names and descriptions at the second comma.
    echo(text.replace('(string split "," $completion)', '(string split --max 1 "," $completion)'))


def scenario_files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete folders and TOML files."""
    folder, _, begun = incomplete.rpartition("/")
    below = Path(folder or ("/" if incomplete.startswith("/") else "."))
    try:
        entries = sorted(below.iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if "/" in incomplete else ""
    found = []
    for entry in entries:
        if not entry.name.startswith(begun) or (entry.name.startswith(".") and not begun):
            continue
        if entry.is_dir():
            found.append(CompletionItem(f"{prefix}{entry.name}/"))
        elif entry.suffix == ".toml":
            found.append(CompletionItem(prefix + entry.name))
    return found


def registered(*kinds: str) -> Completer:
    """Return a completer for names of some registries, or of all."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return _items(_names(kinds), incomplete)

    return complete


def several(*kinds: str) -> Completer:
    """Return a completer for the last name of a comma-separated list."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",")
        return _items(_names(kinds), begun, before + comma)

    return complete


def settings(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete a key of the scenario file, and the value of `KEY=VALUE` if it is a name."""
    key, equals, begun = incomplete.partition("=")
    if not equals:
        return _items(((f"{name}=", "") for name in _keys_of(context)), incomplete)
    kind = _VALUES.get(key.rpartition(".")[2])
    return _items(_names((kind,)), begun, key + equals) if kind else []


def _keys_of(context: click.Context) -> list[str]:
    """Return the keys of the scenario file that the command line names so far."""
    from jostle.scenario.parsing.problems import ScenarioError
    from jostle.scenario.parsing.toml_document import parse, read_text
    from jostle.scenario.resolve.key_paths import keys_of

    # An option without its value ends the parsing; the words before it are then in `args`.
    words: list[Any] = [
        *(context.params.get("files") or ()), context.params.get("file"), *context.args
    ]  # fmt: skip
    path = next((word for word in words if word and Path(word).suffix == ".toml"), None)
    if path is None:
        return []
    try:
        return keys_of(parse(read_text(Path(path)), str(path))[1])
    except ScenarioError:
        return []


def kinds(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the kinds that `jostle info list` accepts."""
    return _items([(kind, "") for kind in kinds_of(Environment())], incomplete)


def studies(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete IDs of studies, and paths."""
    found = _items([("all", "every study"), *studies_of()], incomplete)
    return found or scenario_files(context, parameter, incomplete)


def suites(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete IDs of suites, and paths."""
    found = _items(suites_of(), incomplete)
    return found or scenario_files(context, parameter, incomplete)


def first_scenarios(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of templates."""
    from jostle.scenario import templates

    return _items([(name, templates.summary(name)) for name in templates.names()], incomplete)


def _names(wanted: Iterable[str]) -> list[tuple[str, str]]:
    registry = Environment().registry()
    chosen = tuple(wanted)
    rows = [
        (row["name"], row.get("summary") or row.get("title") or "")
        for kind, rows in registry.items()
        if not chosen or kind in chosen
        for row in rows
    ]
    if chosen:
        return rows
    return [*rows, *((name, str(keys["summary"])) for name, keys in profiles_of().items())]


def _items(names: Iterable[tuple[str, str]], begun: str, before: str = "") -> list[CompletionItem]:
    return [
        CompletionItem(before + name, help=summary or None)
        for name, summary in dict(names).items()
        if name.startswith(begun)
    ]
