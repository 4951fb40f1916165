"""`jostle advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.environment import Environment
from jostle.cli.options import (
    GroupedCommand,
    allow_code_option,
    candidates_option,
    jobs_option,
    json_option,
    overrides_of,
    settings_option,
    store_folder_option,
)
from jostle.cli.output_targets import DOCUMENT, FOLDER, Outputs, output_option
from jostle.cli.signals import interruptible
from jostle.cli.time_option import seconds
from jostle.errors import InputError, name_source
from jostle.inference.goals import GOALS
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.inference.advise import Advice

_LONGEST_S = 3600
_SHOWN = 4
"""Number of changes that are shown."""
_BEST = tuple(f"{number}.toml" for number in range(1, _SHOWN + 1))
_BASELINE = "now.toml"


@click.command(
    cls=GroupedCommand, short_help="Recommend queues, controllers and windows for a goal."
)
@click.argument("data", metavar="CAPTURE|RUN|PROFILE|FILE.toml")
@click.option(
    "--goal", type=click.Choice(list(GOALS)), required=True, help="Recommend for this goal."
)
@click.option(
    "--flow", metavar="NAME", help="Estimate the link from this flow of a capture or run."
)
@candidates_option
@click.option(
    "--include-queues/--exclude-queues", "queues", default=None,
    help="Change queues of links, or do not; by default only queues of a scenario.",
)  # fmt: skip
@click.option(
    "--senders",
    metavar="NAMES",
    default="",
    help="Change the senders of these flows: names separated by commas, `all`, or `none`. By "
    "default none behind a downlink and an uplink, and all flows of another network.",
)
@click.option(
    "--include-proxy", "proxy", is_flag=True,
    help="Try a proxy before the slowest link, which splits the connection, too.",
)  # fmt: skip
@settings_option
@click.option(
    "--repeats", metavar="N", type=click.IntRange(2, 1000), default=10, show_default=True,
    help="Run each of the best candidates this many times, each on a network of the interval.",
)  # fmt: skip
@click.option(
    "--duration", metavar="TIME", default="30 s", show_default=True,
    help="Let a download last this long, for `bulk` and `calls`, if DATA is no scenario.",
)  # fmt: skip
@store_folder_option
@jobs_option
@allow_code_option
@output_option(DOCUMENT, {FOLDER: "scenarios of the best changes and of the baseline"})
@json_option
@click.pass_obj
def advise(
    environment: Environment,
    /,
    *,
    data: str,
    goal: str,
    flow: str | None,
    candidates: str,
    queues: bool | None,
    senders: str,
    proxy: bool,
    settings: tuple[str, ...],
    repeats: int,
    duration: str,
    store_path: str,
    jobs: int | None,
    allow_code: bool,
    as_json: bool,
    outputs: Outputs,
) -> None:
    """Recommend what to change on a network for a goal: queues, controllers, initial windows.

    A scenario is taken with its own network, flows and directions. A profile, a run or a capture
    gives a network, to which flows are added. Each change is simulated and compared with the
    baseline; the best ones are simulated again with other seeds.

    Example: jostle advise viasat-2 --goal calls
    """
    from jostle.inference.advice_text import answer_sentences
    from jostle.inference.advise import AdviceRequest
    from jostle.inference.advise import advise as advised
    from jostle.inference.candidates import chosen_names
    from jostle.inference.network_source import find_network
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    length = seconds("--duration", duration, 0.0)
    if not 1 <= length <= _LONGEST_S:
        raise InputError(f"--duration {duration}: from 1 s to {_LONGEST_S} s")
    own = tuple(word.strip() for word in senders.split(",") if word.strip())
    request = AdviceRequest(
        GOALS[goal], chosen_names(candidates), repeats, length, queues, own, proxy
    )
    outputs.reserve((*_BEST, _BASELINE))
    outputs.prepare()
    executor = local(jobs)
    changes = overrides_of(settings)
    network = find_network(data, Path(store_path), flow, changes, allow_code=allow_code)
    with interruptible(executor), name_source(data):
        session = Session(environment.backend("sim"), executor, None)
        found = advised(network, request, session)
    document = {**found.to_dict(), "answer": answer_sentences(found)}
    if as_json:
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found)
    outputs.write_document(lambda: document)
    for folder in outputs.folders():
        _write(found, folder, quiet=as_json)


def _print(found: Advice) -> None:
    from jostle.cli import output
    from jostle.inference.advice_text import advice_table, answer_sentences, shown_results

    to = output.console()
    for sentence in answer_sentences(found):
        to.print(sentence)
    output.print_assumptions(to, found.assumptions)
    rows = shown_results(found, _SHOWN)
    to.print()
    to.print("Settings", style="bold")
    for number, row in enumerate(rows[:-1], start=1):
        to.print(f"{number}  {row.change.label}")
    for part in output.fitting(advice_table(found, rows), output.width()):
        output.print_table(to, part)


def _write(found: Advice, folder: Path, *, quiet: bool) -> None:
    from jostle.inference.scenario_toml import fitted_text, relocated
    from jostle.safe_io.atomic_write import write_atomically

    origin = Path(found.setup.network.source).parent
    best = zip(_BEST, found.ranking, strict=False)
    for name, one in (*best, (_BASELINE, found.baseline)):
        document = relocated(found.setup.document(one.change), origin, folder)
        write_atomically(folder / name, fitted_text(document, {}).encode())
        echo(f"scenario: {folder / name}", err=quiet)
    if found.setup.network.allow_code and folder.resolve() != origin.resolve():
        source = found.setup.network.source
        echo(f"Left out of {folder}: code that {source} names: copy it there.", err=quiet)
