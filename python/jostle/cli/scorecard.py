"""`jostle scorecard`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import backend_choice, json_option, junit_option
from jostle.cli.output_folders import make_folder_of
from jostle.cli.runners import runners
from jostle.cli.suite import result_options, suite_options, suite_task
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.suites.run_suite import SuiteOutcome


@click.command(short_help="Write a page of verdicts on controllers, side by side, with a ranking.")
@click.argument(
    "controllers",
    metavar="CONTROLLER…",
    nargs=-1,
    required=True,
    shell_complete=shell_completion.registered("controllers"),
)
@click.option(
    "--suite",
    "suites",
    metavar="ID",
    multiple=True,
    shell_complete=shell_completion.suites,
    help="This suite, or the folder of one; may be given more than once. All of them if absent.",
)
@suite_options
@click.option(
    "--output",
    "-o",
    metavar="HTML",
    default="reports/scorecard.html",
    show_default=True,
    help="The page.",
)
@json_option
@junit_option
@click.pass_obj
def scorecard(
    environment: Environment,
    /,
    *,
    controllers: tuple[str, ...],
    suites: tuple[str, ...],
    output: str,
    as_json: bool,
    junit: str | None,
    **given: Any,
) -> int:
    """Test each CONTROLLER with suites, and write one page with all results.

    Each row shows value, interval, bound and verdict for every controller, and links to the figure
    of its scenario and the command that repeats it. Several controllers are ranked in a table whose
    weights can be changed on the page. The exit status is 1 only if a run failed.
    """
    from jostle.safe_io.atomic_write import write_atomically
    from jostle.suites import names, result_documents
    from jostle.suites.criterion_figures import picture_data
    from jostle.suites.scorecard_page import MOST_PICTURES, page, scorecard_document

    make_folder_of(output)
    make_folder_of(junit)
    wanted = suites or tuple(names())
    if not wanted:
        raise InputError("jostle was installed without suites: name one by --suite FOLDER")
    done = _carry_out(environment, dict.fromkeys(controllers), wanted, given)
    cards = [one.card for one in done]
    data = picture_data(done, MOST_PICTURES)
    pictures = _drawn(data, given["jobs"])
    words = ["jostle", "scorecard", *controllers]
    words += [word for one in suites for word in ("--suite", one)]
    text = page(done, pictures, shlex.join([*words, *result_options(given)]))
    write_atomically(Path(output), text.encode())
    if junit is not None:
        write_atomically(Path(junit), result_documents.junit(cards).encode())
    if as_json:
        echo(json.dumps(scorecard_document(cards), ensure_ascii=False, allow_nan=False))
    else:
        _print(done)
    echo(f"page: {output}", err=as_json)
    return 1 if any(card.failures for card in cards) else 0


def _carry_out(
    environment: Environment, controllers: Any, suites: Sequence[str], given: dict[str, Any]
) -> list[SuiteOutcome]:
    from jostle.suites.run_suite import outcome_of

    backend = environment.backend(given["backend"], backend_choice(given))
    given = {**given, "only": ()}
    tasks = [
        suite_task(backend, name, controller, given)
        for name in suites
        for controller in controllers
    ]
    for one in tasks:
        for name, text in one.refused.items():
            said = f"{one.suite.id}, {one.subject.label}: not judged: {name}: {text}"
            echo(said, err=True)
    total = sum(len(one.work) for one in tasks)
    made = {backend.name: backend}
    with runners(made, total, given["jobs"], given["store_path"]) as run:
        return [outcome_of(one, run[backend.name]) for one in tasks]


def _drawn(data: Any, jobs: int | None) -> dict[Any, tuple[str, bytes]]:
    """Draw the figures of the page in several processes."""
    from jostle.figures.renderer import render_bytes
    from jostle.suites.criterion_figures import small

    every = [figure for _, figure in data.values()]
    contents = render_bytes(every, ("png",), jobs or os.cpu_count() or 1)
    return {
        key: (shows, small(content["png"]))
        for (key, (shows, _)), content in zip(data.items(), contents, strict=True)
    }


def _print(done: Sequence[SuiteOutcome]) -> None:
    """Print how many criteria are met, and the ranking."""
    from jostle.suites.ranking import rank_controllers
    from jostle.suites.result_documents import counted

    cards = [one.card for one in done]
    wide = max(len(f"{card.suite}  {card.controller}") for card in cards)
    for card in cards:
        parts = [
            f"{level}: {counts['pass']} pass, {counts['fail']} fail, {counts['unknown']} unknown"
            for level, counts in counted(card).items()
            if counts
        ]
        echo(f"{f'{card.suite}  {card.controller}':<{wide}}  {'; '.join(parts)}")
    places = rank_controllers(cards)
    if len(places) > 1:
        for one in places:
            score = "–" if one.score is None else f"{100 * one.score:.0f} %"
            among = f"  (95 % of the ranks: {one.among})" if one.among else ""
            echo(f"{one.rank:>3}  {one.controller}  {score}{among}")
