"""Options that several commands share, and functions that parse them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from jostle.backends.registry import BACKENDS, DEFAULT, all_options
from jostle.cli import shell_completion
from jostle.errors import InputError
from jostle.safe_io.code_consent import ALLOW_CODE
from jostle.store import DEFAULT_STORE, STORE_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Runs at the same time; as many as there are cores if absent.",
)
store_option = click.option(
    "--store",
    "store_path",
    metavar="DIR",
    envvar=STORE_VARIABLE,
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    help="Folder of finished runs.",
)
backend_option = click.option(
    "--backend",
    type=click.Choice(list(BACKENDS)),
    default=DEFAULT,
    show_default=True,
    help="What runs them: "
    + "; ".join(f"{row.name}, {row.summary}" for row in BACKENDS.values())
    + ".",
)
settings_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    shell_complete=shell_completion.settings,
    multiple=True,
    help="Override a key of the scenario.",
)
allow_code_option = click.option(
    ALLOW_CODE,
    is_flag=True,
    help="Let files name code that runs with your rights: controllers in Python, QUIC programs. "
    "Read that code first.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."
)
search_seed_option = click.option(
    "--search-seed", type=click.IntRange(0, 2**31), default=1, show_default=True,
    help="Of what proposes values; runs have their own.",
)  # fmt: skip
junit_option = click.option(
    "--junit", metavar="FILE", help="Write JUnit XML, for continuous integration."
)


def plan_options(command: F) -> F:
    """Add the options of commands that run scenarios on one backend."""
    return backend_option(backend_options(scenario_options(command)))


def backend_options(command: F) -> F:
    """Add the options of backends."""
    for option in reversed(all_options()):
        command = click.option(
            f"--{option.name.replace('_', '-')}",
            type=click.Choice(option.choices) if option.choices else str,
            metavar=None if option.choices else option.name.rpartition("_")[2].upper(),
            help=option.summary,
        )(command)
    return command


def backend_choice(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the backend options from all options of a command."""
    return {option.name: given[option.name] for option in all_options()}


def scenario_options(command: F) -> F:
    """Add the options of commands that run scenarios on any backend."""
    options = [
        click.argument(
            "files",
            metavar="FILE…",
            nargs=-1,
            required=True,
            shell_complete=shell_completion.scenario_files,
        ),
        click.option(
            "--repeats",
            type=click.IntRange(min=1),
            help="Runs per condition, one seed each, whatever the scenario's `repeat_until` says.",
        ),
        click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Seed of the first run."),
        settings_option,
        jobs_option,
        store_option,
        click.option(
            "--no-cache",
            is_flag=True,
            help="Run everything, neither using the store nor adding to it.",
        ),
        allow_code_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def keyed(option: str, given: Sequence[str]) -> dict[str, str]:
    """Split each `KEY=VALUE` given for an option.

    Raises
    ------
    InputError
        If an argument has another form.
    """
    found = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{option} {one}: write it as KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def overrides_of(settings: Sequence[str]) -> dict[str, str]:
    """Return the values of `--set` by key."""
    return keyed("--set", settings)


def command_line_words(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of a command line, without absent options."""
    words = []
    for name, value in options.items():
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words += [option] if value else []
        else:
            values = value if name == "settings" else [value] if value is not None else []
            words += [word for each in values for word in (option, str(each))]
    return words


def options_of_a_report(options: Mapping[str, Any]) -> list[str]:
    """Return the options on which results depend, as words of a command line."""
    given = backend_choice(options) | {
        name: options.get(name) for name in ("repeats", "seed", "allow_code")
    }
    if options["backend"] != DEFAULT:
        given = {"backend": options["backend"], **given}
    return command_line_words({**given, "settings": options["settings"]})
