"""`jostle suite scorecard`."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, json_option
from jostle.cli.output_targets import DOCUMENT, JUNIT, Outputs, output_option
from jostle.cli.runners import runners
from jostle.cli.suite_run import result_options, suite_options, suite_task
from jostle.cli.verdict_lines import add_verdict, scorecard_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.suites.evaluate import SuiteResult
    from jostle.suites.ranking import RankedController
    from jostle.suites.run_suite import SuiteOutcome


_PAGE = "reports/scorecard.html"
"""Default path of the page."""


@click.command(cls=GroupedCommand, short_help="Write a page that compares and ranks controllers.")
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
    help="Use only this suite, given by ID or folder; repeatable. By default all suites.",
)
@suite_options
@output_option({".html": "the page"}, DOCUMENT, JUNIT, default=_PAGE)
@json_option
@click.pass_obj
def scorecard(
    environment: Environment,
    /,
    *,
    controllers: tuple[str, ...],
    suites: tuple[str, ...],
    outputs: Outputs,
    as_json: bool,
    **given: Any,
) -> int:
    """Test each CONTROLLER with suites, and write one page with all results.

    Each row shows value, interval, bound and verdict for every controller, and links to the figure
    of its scenario and the command that repeats it. Several controllers are ranked in a table whose
    weights can be changed on the page. The exit status is 1 only if a run failed.

    Example: jostle suite scorecard cubic bbr3 --quick -o scorecard.html
    """
    from jostle.studies.library import SUITES
    from jostle.suites import result_documents
    from jostle.suites.criterion_figures import picture_data
    from jostle.suites.ranking import rank_controllers
    from jostle.suites.scorecard_page import MOST_PICTURES, page, scorecard_document

    if not outputs.with_ending(".html"):
        outputs = Outputs((*outputs.paths, _PAGE))
    outputs.prepare()
    wanted = suites or tuple(SUITES.names())
    if not wanted:
        raise InputError("jostle was installed without suites: name one by --suite FOLDER")
    done = _carry_out(environment, dict.fromkeys(controllers), wanted, given)
    cards = [one.card for one in done]
    places = rank_controllers(cards)
    answer = scorecard_verdict(cards, places)
    answered = add_verdict(scorecard_document(cards), answer)
    data = picture_data(done, MOST_PICTURES)
    pictures = _drawn(data, given["jobs"])
    words = ["jostle", "suite", "scorecard", *controllers]
    words += [word for one in suites for word in ("--suite", one)]
    text = page(done, pictures, shlex.join([*words, *result_options(given)]), answer)
    if as_json:
        echo(json.dumps(answered, ensure_ascii=False, allow_nan=False))
    else:
        _print(cards, places, answer)
    outputs.write_text(".html", "page", lambda _: text, quiet=as_json)
    outputs.write_document(lambda: answered)
    outputs.write_text(".xml", "junit", lambda _: result_documents.junit(cards), quiet=True)
    return 1 if any(card.failures for card in cards) else 0


def _carry_out(
    environment: Environment, controllers: Any, suites: Sequence[str], given: dict[str, Any]
) -> list[SuiteOutcome]:
    from jostle.suites.run_suite import outcome_of

    backend = environment.backend(given["backend"])
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


def _print(cards: Sequence[SuiteResult], places: Sequence[RankedController], answer: str) -> None:
    """Print how many criteria are met, and the ranking."""
    from jostle.suites.result_documents import counted

    echo(single_line(answer))
    wide = max(len(f"{card.suite}  {card.controller}") for card in cards)
    for card in cards:
        parts = [
            f"{level}: {counts['pass']} pass, {counts['fail']} fail, {counts['unknown']} unknown"
            for level, counts in counted(card).items()
            if counts
        ]
        echo(f"{f'{card.suite}  {card.controller}':<{wide}}  {'; '.join(parts)}")
    if len(places) > 1:
        for one in places:
            score = "–" if one.score is None else f"{100 * one.score:.0f} %"
            among = f"  (95 % of the ranks: {one.among})" if one.among else ""
            echo(f"{one.rank:>3}  {one.controller}  {score}{among}")
