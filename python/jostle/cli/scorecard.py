"""`jostle scorecard`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import completing
from jostle.cli.environment import Environment
from jostle.cli.folders import make_folder_of
from jostle.cli.options import chosen_of, json_option, junit_option
from jostle.cli.runners import runners
from jostle.cli.suite import asked_task, judging_options, options_of_card
from jostle.errors import InputError
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.suites.carry_out import Outcome


@click.command(short_help="Write a page of verdicts on controllers, side by side, with a ranking.")
@click.argument(
    "controllers",
    metavar="CONTROLLER…",
    nargs=-1,
    required=True,
    shell_complete=completing.registered("controllers"),
)
@click.option(
    "--suite",
    "suites",
    metavar="ID",
    multiple=True,
    shell_complete=completing.suites,
    help="This suite, or the folder of one; may be given more than once. All of them if absent.",
)
@judging_options
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
    """Hold each CONTROLLER against suites, and write one page that has all of it.

    Each row has value, interval, bound and verdict of every controller, and opens the figure of
    its scenario and the command that repeats it. Several controllers have a league table, whose
    weights can be changed in the page. The exit status is 1 if a run failed, whatever the verdicts.
    """
    from jostle.replaced_files import replace_file
    from jostle.suites import document, names
    from jostle.suites.page import MOST_PICTURES, page, scorecard_document
    from jostle.suites.pictures import picture_data

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
    text = page(done, pictures, shlex.join([*words, *options_of_card(given)]))
    replace_file(Path(output), text.encode())
    if junit is not None:
        replace_file(Path(junit), document.junit(cards).encode())
    if as_json:
        echo(json.dumps(scorecard_document(cards), ensure_ascii=False, allow_nan=False))
    else:
        _print(done)
    echo(f"page: {output}", err=as_json)
    return 1 if any(card.failures for card in cards) else 0


def _carry_out(
    environment: Environment, controllers: Any, suites: Sequence[str], given: dict[str, Any]
) -> list[Outcome]:
    from jostle.suites.carry_out import outcome_of

    backend = environment.backend(given["backend"], chosen_of(given))
    given = {**given, "only": ()}
    tasks = [
        asked_task(backend, name, controller, given)
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
    """Draw what pages show, in several processes."""
    from jostle.figures.drawn import rendered
    from jostle.suites.pictures import small

    every = [figure for _, figure in data.values()]
    contents = rendered(every, ("png",), jobs or os.cpu_count() or 1)
    return {
        key: (shows, small(content["png"]))
        for (key, (shows, _)), content in zip(data.items(), contents, strict=True)
    }


def _print(done: Sequence[Outcome]) -> None:
    """Print how many criteria are met, and the league table."""
    from jostle.suites.document import counted
    from jostle.suites.league import league

    cards = [one.card for one in done]
    wide = max(len(f"{card.suite}  {card.controller}") for card in cards)
    for card in cards:
        parts = [
            f"{level}: {counts['pass']} pass, {counts['fail']} fail, {counts['unknown']} unknown"
            for level, counts in counted(card).items()
            if counts
        ]
        echo(f"{f'{card.suite}  {card.controller}':<{wide}}  {'; '.join(parts)}")
    places = league(cards)
    if len(places) > 1:
        for one in places:
            score = "–" if one.score is None else f"{100 * one.score:.0f} %"
            among = f"  (95 % of the ranks: {one.among})" if one.among else ""
            echo(f"{one.rank:>3}  {one.controller}  {score}{among}")
