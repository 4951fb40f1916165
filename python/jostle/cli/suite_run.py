"""`jostle suite list` and `jostle suite run`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jostle.backends.registry import DEFAULT
from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import (
    GroupedCommand,
    allow_code_option,
    backend_option,
    command_line_words,
    jobs_option,
    json_option,
    repeats_option,
    store_option,
)
from jostle.cli.output_targets import DOCUMENT, JUNIT, Outputs, output_option
from jostle.cli.runners import runners
from jostle.cli.verdict_lines import add_verdict, suite_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.suites import Suite
    from jostle.suites.evaluate import SuiteResult
    from jostle.suites.run_suite import Task

F = TypeVar("F", bound=Callable[..., Any])

_FAIL_ON = {
    "must": ("must",),
    "should": ("must", "should"),
    "explore": ("must", "should", "explore"),
    "never": (),
}


def suite_options(command: F) -> F:
    """Add the options of commands that test controllers with suites."""
    options = [
        click.option(
            "--baseline",
            metavar="NAME",
            default="cubic",
            show_default=True,
            shell_complete=shell_completion.registered("controllers"),
            help="Compare with this controller where a criterion is relative.",
        ),
        click.option(
            "--transport",
            metavar="NAME",
            default="",
            help="Run its flows over this transport, such as quic.",
        ),
        click.option(
            "--quick", is_flag=True, help="Run fewer conditions and repeats, for a quick look."
        ),
        repeats_option,
        allow_code_option,
        backend_option,
        jobs_option,
        store_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("list", short_help="List the suites.")
@json_option
def list_suites(*, as_json: bool) -> None:
    """List the installed suites and their purpose.

    Example: jostle suite list
    """
    print_suites(as_json=as_json)


@click.command("run", cls=GroupedCommand, short_help="Test a controller with a suite.")
@click.argument("id_", metavar="ID", shell_complete=shell_completion.suites)
@click.option(
    "--controller",
    metavar="NAME",
    required=True,
    shell_complete=shell_completion.registered("controllers"),
    help='Test this controller: a name, a table such as \'{ name = "bbr3", flavour = "google" }\', '
    "mine.py:Mine or crate:mine (with --allow-code).",
)
@suite_options
@click.option("--criterion", "only", metavar="NAME", multiple=True, help="Judge only this one.")
@click.option(
    "--fail-on",
    type=click.Choice(list(_FAIL_ON)),
    default="must",
    show_default=True,
    help="End with 1 if a criterion of this level or a stricter one is not met.",
)
@output_option(DOCUMENT, JUNIT)
@json_option
@click.pass_obj
def run_suite(
    environment: Environment,
    /,
    *,
    id_: str,
    controller: str,
    fail_on: str,
    as_json: bool,
    outputs: Outputs,
    **given: Any,
) -> int:
    """Test a controller with the suite ID (see `jostle suite list`).

    To use your own suite, give the path of its folder: ./suites/ID.

    Missing runs are executed first. The output shows for each criterion the decisive value with its
    interval, the bound, and a verdict: pass, fail or unknown. The exit status is 1 if a run failed
    or a criterion of the level `must` is not met.

    Example: jostle suite run rfc9743 --controller bbr3 --quick
    """
    from jostle.suites.result_documents import document, junit

    outputs.prepare()
    card = _run_suite(environment, id_, controller, given)
    answered = add_verdict(document(card), suite_verdict(card))
    if as_json:
        echo(json.dumps(answered, ensure_ascii=False, allow_nan=False))
    else:
        print_suite_result(card)
    outputs.write_document(lambda: answered)
    outputs.write_text(".xml", "junit", lambda _: junit([card]), quiet=True)
    return 1 if card.failures or card.failed(_FAIL_ON[fail_on]) else 0


def _run_suite(
    environment: Environment,
    name: str,
    controller: str,
    given: dict[str, Any],
) -> SuiteResult:
    """Run a suite for a controller and return the result."""
    from jostle.suites.run_suite import outcome_of

    backend = environment.backend(given["backend"])
    task = suite_task(backend, name, controller, given)
    made = {backend.name: backend}
    with runners(made, len(task.work), given["jobs"], given["store_path"]) as run:
        return outcome_of(task, run[backend.name]).card


def suite_task(backend: Backend, name: str, controller: str, given: Mapping[str, Any]) -> Task:
    """Return the task of a suite and a controller for the options of the command."""
    from jostle.suites import subject
    from jostle.suites.run_suite import SuiteRequest, task_of

    asked = SuiteRequest(
        quick=given["quick"],
        repeats=given["repeats"],
        only=frozenset(given["only"]),
        allow_code=given["allow_code"],
        words=("run", name, "--controller", controller, *result_options(given)),
    )
    ours, theirs = subject(controller, given["transport"]), subject(given["baseline"])
    return task_of(load_suite(name, allow_code=asked.allow_code), ours, theirs, backend, asked)


def result_options(given: Mapping[str, Any]) -> list[str]:
    """Return the options on which a result depends, without those that have the default."""
    words = {
        "baseline": given["baseline"] if given["baseline"] != "cubic" else None,
        "transport": given["transport"] or None,
        "backend": given["backend"] if given["backend"] != DEFAULT else None,
        "repeats": given["repeats"],
        "quick": given["quick"],
        "allow_code": given["allow_code"],
    }
    return command_line_words(words)


def load_suite(name: str, *, allow_code: bool) -> Suite:
    """Load an installed suite, or one given by the path of its folder."""
    from jostle.studies.library import SUITES
    from jostle.suites.load import load

    return SUITES.load(load, name, allow_code=allow_code)


def print_suites(*, as_json: bool) -> None:
    """Print the installed suites and their purpose."""
    from jostle.studies.library import SUITES
    from jostle.suites.models import SuiteFile

    # Loading a suite resolves all of its conditions, which takes seconds; a test loads each suite.
    every = {name: SUITES.read(name, SUITES.installed, SuiteFile)[1] for name in SUITES.names()}
    if not every:
        raise InputError("jostle was installed without suites: name one by its folder")
    if as_json:
        listed = [
            {
                "suite": name,
                "title": file.title,
                "source": file.source,
                "summary": file.summary,
                "criteria": len(file.criteria),
            }
            for name, file in every.items()
        ]
        echo(json.dumps(listed, ensure_ascii=False))
        return
    wide = max(map(len, every))
    for name, file in every.items():
        echo(single_line(f"{name:<{wide}}  {len(file.criteria):>3} criteria  {file.summary}"))


def print_suite_result(card: SuiteResult) -> None:
    """Print a suite result: criteria by level, with verdict and decisive value."""
    from jostle.cli import output
    from jostle.suites.result_documents import counted, in_words, is_open

    to = output.console()
    to.print(suite_verdict(card))
    quick = ", a quick look" if card.quick else ""
    to.print(f"{card.title}: {card.controller} ({card.backend}{quick})", style="bold")
    wide = max(len(one.criterion.id) for one in card.rows)
    styles = {"pass": "green", "fail": "bold red", "unknown": "dim"}
    for level, counts in counted(card).items():
        rows = [one for one in card.rows if one.criterion.level == level]
        if not rows:
            continue
        words = ", ".join(f"{counts[name]} {name}" for name in styles)
        to.print()
        to.print(f"{level}: {words}", style="bold cyan")
        for one in rows:
            to.print(f"{one.verdict:<7}  {one.criterion.id:<{wide}}  ", end="",
                     style=styles[one.verdict])  # fmt: skip
            to.print(one.criterion.title)
            said = one.reason if one.deciding is None else in_words(one)
            said += " (open)" if is_open(one) else ""
            to.print(f"{'':<{wide + 11}}{said}", style="dim")
            if one.reason and one.deciding is not None:
                to.print(f"{'':<{wide + 11}}{one.reason}", style="dim")
    for text in card.failures:
        to.print(f"failed: {text}", style="bold red")
    output.print_assumptions(to, card.assumptions)
    to.print()
    text = (
        "Each row shows the worst condition: its value, with a 95 % interval if there are several "
        "runs, and the bound."
    )
    if any(map(is_open, card.rows)):
        text += " “open”: the interval includes the bound, or runs ended too early."
    output.print_note(to, text)
