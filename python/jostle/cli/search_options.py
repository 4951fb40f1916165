"""Options shared by commands that search: the scenario, figures, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.cli.environment import Environment
from jostle.cli.options import json_option, overrides_of
from jostle.cli.output_targets import DOCUMENT, FIGURE, Outputs, output_option
from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData
    from jostle.runner.session import Session
    from jostle.scenario import Scenario

F = TypeVar("F", bound=Callable[..., Any])


def search_output_options(command: F) -> F:
    """Add the options for the output of a result."""
    return output_option(FIGURE, DOCUMENT)(json_option(command))


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


def report_search(
    document: Mapping[str, Any],
    show: Callable[[], None],
    figure: Callable[[], FigureData],
    outputs: Outputs,
    *,
    as_json: bool,
) -> None:
    """Print a result as tables or as one JSON document, and write the files of `-o`."""
    if as_json:
        print_document(document)
    else:
        show()
    outputs.write_document(lambda: document)
    if outputs.with_ending(*FIGURE):
        outputs.write_figure(figure(), quiet=as_json)


def print_document(document: Mapping[str, Any]) -> None:
    """Print one JSON document."""
    echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


@contextmanager
def session_of(environment: Environment, options: Mapping[str, Any]) -> Iterator[Session]:
    """Yield the session that runs and stores the trials of a search, or finds stored ones."""
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    backend = environment.backend(options["backend"])
    path = options["store_path"]
    store = None if path is None else store_of(path)
    executor = local(options["jobs"])
    with interruptible(executor):
        yield Session(backend, executor, store, noting=False)
