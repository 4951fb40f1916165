"""What commands share that choose runs to answer a question: the scenario, figures, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.cli.environment import Environment
from jostle.cli.folders import make_folder_of
from jostle.cli.options import chosen_of, json_option, overrides_of
from jostle.cli.plot import stem_of
from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.cli.tables import formats_option
from jostle.errors import InputError
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.figures.drawn import FigureData
    from jostle.running.session import Session
    from jostle.scenario import Scenario

F = TypeVar("F", bound=Callable[..., Any])


def answer_options(command: F) -> F:
    """Options for how an answer is shown."""
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
    """Load the one scenario that a command is about.

    Raises
    ------
    InputError
        When there are several files, or the scenario is wrong.
    """
    from jostle.scenario import ScenarioError

    if len(options["files"]) != 1:
        raise InputError("this is about one scenario: give one FILE")
    return load(environment, options["files"][0], options, ScenarioError)


def load(
    environment: Environment, file: str, options: Mapping[str, Any], wrong: type[Exception]
) -> Scenario:
    """Load a scenario with what the command line sets."""
    overrides = overrides_of(options["settings"])
    try:
        return environment.load_scenario(file, overrides, allow_code=options["allow_code"])
    except wrong as error:
        raise InputError(str(error)) from error


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def draw(data: FigureData, output: str, formats: tuple[str, ...], *, quiet: bool) -> None:
    """Draw a figure into files, and say where."""
    from jostle.figures.drawn import drawn
    from jostle.figures.save import save

    stem, endings = stem_of(output, formats)
    make_folder_of(stem)
    for path in save(drawn(data), stem, endings):
        echo(f"figure: {path}", err=quiet)


@contextmanager
def session_of(environment: Environment, options: Mapping[str, Any]) -> Iterator[Session]:
    """Give what carries the runs of an answer out; stored ones are looked up, new ones stored."""
    from jostle.running.executors import local
    from jostle.running.session import Session

    backend = environment.backend(options["backend"], chosen_of(options))
    store = None if options["no_cache"] else store_of(options["store_path"])
    executor = local(options["jobs"])
    with interruptible(executor):
        yield Session(backend, executor, store, noting=False)
