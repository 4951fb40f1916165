"""Options shared by commands that search: the scenario, figures, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli.environment import Environment
from jostle.cli.options import backend_choice, json_option, overrides_of
from jostle.cli.output_folders import make_folder_of
from jostle.cli.plot import stem_of
from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.cli.table_options import formats_option
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData
    from jostle.runner.session import Session
    from jostle.scenario import Scenario

F = TypeVar("F", bound=Callable[..., Any])


def search_output_options(command: F) -> F:
    """Add the options for the output of a result."""
    for option in (
        formats_option,
        click.option(
            "--output",
            "-o",
            metavar="FILE",
            help="Draw the answer into this file; its ending (.png, .svg, .pdf) is a format unless "
            "--format is given.",
        ),
        json_option,
    ):
        command = option(command)
    return command


def scenario_of(environment: Environment, options: Mapping[str, Any]) -> Scenario:
    """Load the single scenario of a command.

    Raises
    ------
    InputError
        If there are several files, or the scenario has problems.
    """
    from jostle.scenario import ScenarioError

    if len(options["files"]) != 1:
        raise InputError("this is about one scenario: give one FILE")
    return load(environment, options["files"][0], options, ScenarioError)


def load(
    environment: Environment, file: str, options: Mapping[str, Any], wrong: type[Exception]
) -> Scenario:
    """Load a scenario with the values set on the command line."""
    overrides = overrides_of(options["settings"])
    try:
        return environment.load_scenario(file, overrides, allow_code=options["allow_code"])
    except wrong as error:
        raise InputError(str(error)) from error


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def draw(data: FigureData, output: str, formats: tuple[str, ...], *, quiet: bool) -> None:
    """Draw a figure into files, and print their paths."""
    from jostle.figures.renderer import render_figure
    from jostle.figures.save import save

    stem, endings = stem_of(output, formats)
    make_folder_of(stem)
    for path in save(render_figure(data), stem, endings):
        echo(f"figure: {path}", err=quiet)


@contextmanager
def session_of(environment: Environment, options: Mapping[str, Any]) -> Iterator[Session]:
    """Yield the session that runs and stores the trials of a search, or finds stored ones."""
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    backend = environment.backend(options["backend"], backend_choice(options))
    store = None if options["no_cache"] else store_of(options["store_path"])
    executor = local(options["jobs"])
    with interruptible(executor):
        yield Session(backend, executor, store, noting=False)
