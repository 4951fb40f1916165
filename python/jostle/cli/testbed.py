"""`jostle testbed`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli import completing
from jostle.cli.asking import print_document
from jostle.cli.environment import Environment
from jostle.cli.options import (
    allow_code_option,
    jobs_option,
    json_option,
    search_seed_option,
    store_option,
)
from jostle.cli.run import store_of
from jostle.cli.signals import interruptible
from jostle.cli.study import folder_of, print_rows
from jostle.cli.tune import FOLDER
from jostle.errors import InputError
from jostle.printable import echo

if TYPE_CHECKING:
    from jostle.search.testbed import Found, Judged
    from jostle.search.tuning import Trial
    from jostle.studies.fitted import Fitted
    from jostle.studies.testbed import Testbed

DOCUMENT = "jostle.testbed/1"


@click.command(short_help="Fit what papers leave open of their network to half of their claims.")
@click.argument("study", metavar="ID", shell_complete=completing.studies)
@click.option(
    "--trials", type=click.IntRange(min=1), default=200, show_default=True,
    help="Networks that are tried.",
)  # fmt: skip
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "cmaes", "random"]),
    default="tpe",
    show_default=True,
    help="What proposes values.",
)
@search_seed_option
@jobs_option
@store_option
@click.option(
    "--write", is_flag=True,
    help="Keep what was found as `fitted.json` beside each study: its reading `fitted`.",
)  # fmt: skip
@allow_code_option
@json_option
@click.pass_obj
def testbed(
    environment: Environment,
    /,
    *,
    study: str,
    trials: int,
    sampler: str,
    search_seed: int,
    jobs: int | None,
    store_path: str,
    write: bool,
    allow_code: bool,
    as_json: bool,
) -> int:
    """Search the network for which most claims of the studies of a testbed hold.

    `testbed.toml` of the study ID (or of a folder: ./studies/ID) says what is free, and which other
    studies have the same testbed. The search sees half of their claims, drawn by figure; the others
    say whether what it found explains anything. Trials are noted in the store: the command goes on
    where it was, and the same command has the same trials.
    """
    from jostle.running.executors import local
    from jostle.running.session import Session
    from jostle.search.testbed import fingerprint, fit_testbed, judge, kept
    from jostle.search.tuning import How
    from jostle.studies.testbed import load_testbed

    one = load_testbed(folder_of(study), allow_code=allow_code)
    backend = environment.backend("sim", {})
    name = fingerprint(one, sampler, search_seed, backend.version)
    journal = store_of(store_path).root / FOLDER / f"{name}.journal"
    executor = local(jobs)
    with interruptible(executor):
        session = Session(backend, executor, None, noting=False)
        carry = session.carry_out
        how = How(trials, search_seed, sampler, journal, _teller(trials))
        found = fit_testbed(one, carry, how)
        described = judge(one, None, carry)
    if described is None:
        raise InputError("a run of what is described failed: `jostle study` tells which")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    told = {"version": backend.version, "date": today, "sampler": sampler, "seed": search_seed}
    every = kept(one, found, described, told)
    if as_json:
        from jostle.studies.fitted import document

        studies = {name: document(fitted) for name, fitted in every.items()}
        print_document({"schema": DOCUMENT, "studies": studies})
    else:
        _print(one, every, found, described)
    if write:
        _write(one, every, quiet=as_json)
    return 0


def _teller(trials: int) -> Callable[[Trial], None]:
    """Say how each trial went, on stderr."""

    def tell(trial: Trial) -> None:
        values = ", ".join(trial.labels.values())
        score = trial.score
        found = "cannot be run" if score is None else f"{score.objectives[0]:.3f} lost"
        echo(f"[{trial.number + 1}/{trials}] {values}: {found}", err=True)

    return tell


def _write(one: Testbed, every: Mapping[str, Fitted], *, quiet: bool) -> None:
    from jostle.replaced_files import replace_file
    from jostle.studies.fitted import FILE, document

    for name, fitted in every.items():
        path = Path(one.studies[name].folder) / FILE
        text = json.dumps(document(fitted), indent=1, ensure_ascii=False) + "\n"
        replace_file(path, text.encode())
        echo(f"kept: {path}", err=quiet)


def _print(one: Testbed, every: Mapping[str, Fitted], found: Found, described: Judged) -> None:
    from jostle.cli import output
    from jostle.studies.fitted_rows import score_by_half, value_rows

    to = output.console()
    to.print(one.file.title, style="bold")
    first = next(iter(every.values()))
    print_rows(value_rows(first))
    rows: list[tuple[str, ...]] = []
    for name, fitted in every.items():
        for title, judged in (("as described", described), ("fitted", found.fitted)):
            held = score_by_half(fitted.halves, judged.claims[name])
            cells = (f"{held[half][0]} of {held[half][1]}" for half in ("fit", "held out"))
            rows.append((name, title, *cells))
    header: tuple[str, ...] = ("study", "network", "of the fit's half", "of the half held out")
    print_rows((header, rows))
