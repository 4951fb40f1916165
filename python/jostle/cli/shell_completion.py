"""Shell completion: scenario files, and names from the registries.

Registries are loaded only when a shell requests completions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from jostle.cli.environment import Environment
from jostle.cli.registry_names import kinds_of, profiles_of, studies_of, suites_of
from jostle.safe_io.terminal_text import echo

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHELLS = ("bash", "zsh", "fish")
_VALUES = {"controller": "controllers", "slow_start": "slow_starts", "kind": "queues",
           "queue": "queues", "peer_cache": "peer_caches"}  # fmt: skip
"""Registry of the values of a scenario key, by the key's last component."""


@click.command(short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: commands, options, files and names.

    bash: eval "$(jostle completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc; fish:
    jostle completion fish > ~/.config/fish/completions/jostle.fish
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
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the value of `KEY=VALUE` if the key accepts a name."""
    key, equals, begun = incomplete.partition("=")
    kind = _VALUES.get(key.rpartition(".")[2])
    return _items(_names((kind,)), begun, key + equals) if equals and kind else []


def kinds(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the kinds that `jostle list` accepts."""
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
    found = _items([("list", "what there is"), *suites_of()], incomplete)
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
