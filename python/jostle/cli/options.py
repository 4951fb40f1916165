"""Options that several commands share, and functions that parse them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from jostle.backends.registry import BACKENDS, DEFAULT, backend_names, parse_backend
from jostle.cli import shell_completion
from jostle.errors import InputError
from jostle.safe_io.code_consent import ALLOW_CODE
from jostle.store import DEFAULT_STORE, STORE_VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

NO_STORE = "none"
"""Value of `--store` with which nothing is read from a store or added to it."""

SCENARIO, BACKEND, EXECUTION, OUTPUT = "Scenario", "Backend", "Execution and store", "Output"
_GROUPS = {
    "settings": SCENARIO,
    "repeats": SCENARIO,
    "seed": SCENARIO,
    "allow_code": SCENARIO,
    "backend": BACKEND,
    "backends": BACKEND,
    "jobs": EXECUTION,
    "store_path": EXECUTION,
    "outputs": OUTPUT,
    "as_json": OUTPUT,
    "as_csv": OUTPUT,
}
"""Heading of the help under which a shared option is listed, by the name of its parameter."""


class GroupedCommand(click.Command):
    """A command whose help lists its own options first, and shared ones under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one list per heading."""
        lists: dict[str, list[tuple[str, str]]] = {"Options": []}
        lists |= {heading: [] for heading in dict.fromkeys(_GROUPS.values())}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):
                continue
            row = parameter.get_help_record(ctx)
            if row is not None:
                lists[_GROUPS.get(parameter.name or "", "Options")].append(row)
        for heading, rows in lists.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class _Backend(click.ParamType):  # type: ignore[type-arg]
    """The name of a backend with its version or mode, checked and returned unchanged."""

    name = "backend"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse backends, modes and versions that do not exist."""
        try:
            parse_backend(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the names of backends with their modes."""
        return [CompletionItem(name) for name in backend_names() if name.startswith(incomplete)]


BACKEND_TYPE = _Backend()
_BACKEND_HELP = (
    "Run on this backend: "
    + "; ".join(f"{row.name}, {row.summary}" for row in BACKENDS.values())
    + " (kernel:6.12, kernel:jostle, kernel:realtime, kernel:native)."
)

jobs_option = click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Run at most this many at the same time; by default as many as there are cores.",
)


def _store_path(_context: click.Context, _parameter: click.Parameter, given: str) -> str | None:
    return None if given == NO_STORE else given


def _only_folder(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    if given == NO_STORE:
        raise InputError(f"--store {NO_STORE}: this command needs a store — name its folder")
    return given


store_option = click.option(
    "--store",
    "store_path",
    metavar="DIR|none",
    envvar=STORE_VARIABLE,
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    callback=_store_path,
    help="Keep finished runs in this folder and reuse them; `none` does neither.",
)
store_folder_option = click.option(
    "--store",
    "store_path",
    metavar="DIR",
    envvar=STORE_VARIABLE,
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    callback=_only_folder,
    help="Use the finished runs in this folder.",
)
backend_option = click.option(
    "--backend",
    metavar="NAME[:VERSION|MODE]",
    type=BACKEND_TYPE,
    default=DEFAULT,
    show_default=True,
    help=_BACKEND_HELP,
)
backends_option = click.option(
    "--backend",
    "backends",
    metavar="NAME[:VERSION|MODE]",
    type=BACKEND_TYPE,
    multiple=True,
    default=(DEFAULT,),
    show_default=True,
    help=f"{_BACKEND_HELP} Give it twice to compare both.",
)
settings_option = click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    shell_complete=shell_completion.settings,
    multiple=True,
    help="Override a key of the scenario, given by its path or a unique ending.",
)
repeats_option = click.option(
    "--repeats",
    metavar="N",
    type=click.IntRange(min=1),
    help="Run each condition this many times, instead of the file's number.",
)
allow_code_option = click.option(
    ALLOW_CODE,
    is_flag=True,
    help="Let files name code that runs with your rights: controllers in Python or C, QUIC "
    "programs, commands. Read that code first.",
)


def refuse_two_formats(context: click.Context, _: click.Parameter, value: bool) -> bool:
    """Refuse `--json` together with `--csv`: the output would be no document."""
    if value and (context.params.get("as_json") or context.params.get("as_csv")):
        raise click.UsageError("--json and --csv: choose one; -o writes any number of files")
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=refuse_two_formats,
    help="Print one JSON document instead of tables.",
)
csv_option = click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    callback=refuse_two_formats,
    help="Print all values, unrounded, as CSV instead of tables.",
)
candidates_option = click.option(
    "--candidates",
    metavar="NAMES",
    shell_complete=shell_completion.several("controllers"),
    default="linux",
    show_default=True,
    help="Try these controllers: `linux` (Linux's, and BBRv3), `all`, or names separated by "
    "commas.",
)
search_seed_option = click.option(
    "--search-seed",
    metavar="N",
    type=click.IntRange(0, 2**31),
    default=1,
    show_default=True,
    help="Seed the search with this number; runs have their own seeds.",
)


def single_value(
    _context: click.Context, parameter: click.Parameter, given: Sequence[str]
) -> str | None:
    """Return the only value of an option that other commands accept several times.

    Raises
    ------
    InputError
        If there are several.
    """
    if len(given) > 1:
        raise InputError(f"{parameter.opts[0]}: give it once")
    return given[0] if given else None


def plan_options(command: F) -> F:
    """Add the options of commands that run scenarios on one backend."""
    return backend_option(scenario_options(command))


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
        settings_option,
        repeats_option,
        click.option(
            "--seed",
            metavar="N",
            type=click.IntRange(0, 2**63 - 1),
            help="Give the first run this seed.",
        ),
        allow_code_option,
        jobs_option,
        store_option,
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
    values = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{option} {text}: write it as KEY=VALUE")
        values[key.strip()] = value.strip()
    return values


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
    given = {name: options.get(name) for name in ("repeats", "seed", "allow_code")}
    if options["backend"] != DEFAULT:
        given = {"backend": options["backend"], **given}
    return command_line_words({**given, "settings": options["settings"]})
