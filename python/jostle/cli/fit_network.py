"""`jostle study fit-network`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli import shell_completion
from jostle.cli.environment import Environment
from jostle.cli.options import (
    GroupedCommand,
    allow_code_option,
    jobs_option,
    json_option,
    search_seed_option,
    store_option,
)
from jostle.cli.run import store_of
from jostle.cli.search_options import print_document
from jostle.cli.signals import interruptible
from jostle.cli.study_run import print_rows
from jostle.cli.tune import FOLDER
from jostle.cli.verdict_lines import network_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.parameter_search.testbed_fit import NetworkScore, TestbedFit
    from jostle.parameter_search.tuning import Trial
    from jostle.studies.fitted_network import FittedNetwork
    from jostle.studies.testbed import Testbed

DOCUMENT = "jostle.testbed/1"


@click.command(
    "fit-network",
    cls=GroupedCommand,
    short_help="Fit the network of a paper to half of its claims.",
)
@click.argument("study", metavar="ID", shell_complete=shell_completion.studies)
@click.option(
    "--trials", metavar="N", type=click.IntRange(min=1), default=200, show_default=True,
    help="Try this many networks.",
)  # fmt: skip
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "cmaes", "random"]),
    default="tpe",
    show_default=True,
    help="Propose values by this method.",
)
@search_seed_option
@jobs_option
@store_option
@click.option(
    "--write", is_flag=True,
    help="Write the network as `fitted.json` next to each study: its setup `fitted`.",
)  # fmt: skip
@allow_code_option
@json_option
@click.pass_obj
def fit_network(
    environment: Environment,
    /,
    *,
    study: str,
    trials: int,
    sampler: str,
    search_seed: int,
    jobs: int | None,
    store_path: str | None,
    write: bool,
    allow_code: bool,
    as_json: bool,
) -> int:
    """Search for the network for which most claims of a testbed's studies hold.

    `testbed.toml` of the study ID (or of a folder: ./studies/ID) lists the free keys and the other
    studies of the same testbed. The search uses half of the claims, split by figure; the other half
    is the test set. Trials are recorded in the store: if the command is interrupted, run it again
    to continue, and the same command has the same trials.

    Example: jostle study fit-network geo-shared --trials 50
    """
    from jostle.parameter_search.testbed_fit import (
        fingerprint,
        fit_testbed,
        fitted_networks,
        judge,
        omissions,
    )
    from jostle.parameter_search.tuning import SearchSettings
    from jostle.runner.executors import local
    from jostle.runner.session import Session
    from jostle.studies import STUDIES
    from jostle.studies.testbed import load_testbed

    one = load_testbed(STUDIES.folder_of(study), allow_code=allow_code)
    backend = environment.backend("sim")
    name = fingerprint(one, sampler, search_seed, backend.version)
    journal = None
    if store_path is not None:
        journal = store_of(store_path).root / FOLDER / f"{name}.journal"
    executor = local(jobs)
    kept = "nothing is kept without a store"
    if journal is not None:
        kept = "finished trials are in the store; give the same command again to go on from there"
    with interruptible(executor, f"interrupted: {kept}"):
        session = Session(backend, executor, None, noting=False)
        carry = session.carry_out
        how = SearchSettings(trials, search_seed, sampler, journal, _trial_printer(trials))
        found = fit_testbed(one, carry, how)
        described = judge(one, None, carry)
    if described is None:
        raise InputError("a run of what is described failed: `jostle study run` shows which")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    told = {"version": backend.version, "date": today, "sampler": sampler, "seed": search_seed}
    every = fitted_networks(one, found, described, told)
    if as_json:
        print_document(_document(every, found, described, list(omissions(one, found))))
    else:
        _print(one, every, found, described)
    if write:
        _write(one, every, quiet=as_json)
    return 0


def _document(
    every: Mapping[str, FittedNetwork],
    found: TestbedFit,
    described: NetworkScore,
    assumptions: Sequence[str],
) -> dict[str, Any]:
    from jostle.studies.fitted_network import document

    return {
        "schema": DOCUMENT,
        "answer": _verdict(every, found, described),
        "studies": {name: document(fitted) for name, fitted in every.items()},
        "assumptions": assumptions,
    }


def _trial_printer(trials: int) -> Callable[[Trial], None]:
    """Return a function that prints the result of each trial to stderr."""

    def print_trial(trial: Trial) -> None:
        values = ", ".join(trial.labels.values())
        score = trial.score
        found = "cannot be run" if score is None else f"{score.objectives[0]:.3f} lost"
        echo(f"[{trial.number + 1}/{trials}] {values}: {found}", err=True)

    return print_trial


def _write(one: Testbed, every: Mapping[str, FittedNetwork], *, quiet: bool) -> None:
    from jostle.safe_io.atomic_write import write_atomically
    from jostle.studies.fitted_network import FILE, document

    for name, fitted in every.items():
        path = Path(one.studies[name].folder) / FILE
        text = json.dumps(document(fitted), indent=1, ensure_ascii=False) + "\n"
        write_atomically(path, text.encode())
        echo(f"kept: {path}", err=quiet)


def _verdict(every: Mapping[str, FittedNetwork], found: TestbedFit, described: NetworkScore) -> str:
    from jostle.studies.fitted_network_tables import claims_by_half

    fitted, before = (
        [
            claim
            for name, one in every.items()
            for claim in claims_by_half(one.split_by_claim, judged.claims[name])["held out"]
        ]
        for judged in (found.fitted, described)
    )
    return network_verdict(fitted, before)


def _print(
    one: Testbed, every: Mapping[str, FittedNetwork], found: TestbedFit, described: NetworkScore
) -> None:
    from jostle.cli import output
    from jostle.parameter_search.testbed_fit import omissions
    from jostle.results.text_table import Table
    from jostle.studies.fitted_network_tables import claims_by_half, value_rows
    from jostle.studies.verdicts import count_text

    to = output.console()
    rows: list[tuple[str, ...]] = []
    for name, fitted in every.items():
        for title, judged in (("as described", described), ("fitted", found.fitted)):
            halves = claims_by_half(fitted.split_by_claim, judged.claims[name])
            rows.append((name, title, *map(count_text, halves.values())))
    to.print(_verdict(every, found, described))
    to.print(one.file.title, style="bold")
    first = next(iter(every.values()))
    print_rows(value_rows(first))
    header = ("study", "network", "of the fit's half", "of the half held out")
    print_rows(Table(header, tuple(rows)))
    output.print_assumptions(to, list(omissions(one, found)))
