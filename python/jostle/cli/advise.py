"""`jostle advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.environment import Environment
from jostle.cli.options import (
    jobs_option,
    json_option,
    overrides_of,
    settings_option,
    store_option,
)
from jostle.cli.output_folders import make_folder
from jostle.cli.signals import interruptible
from jostle.errors import name_source
from jostle.inference.goals import GOALS
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.inference.advise import Advice

_SHOWN = 4
"""Number of changes that are shown."""


@click.command(short_help="Say what would serve a goal on a network.")
@click.argument("data", metavar="CAPTURE|RUN|PROFILE|FILE.toml")
@click.option("--goal", type=click.Choice(list(GOALS)), required=True, help="What is to be served.")
@click.option("--flow", metavar="NAME", help="Of a capture or run: the flow that shows the link.")
@click.option(
    "--candidates",
    metavar="NAMES",
    default="linux",
    show_default=True,
    help="Controllers that are tried: `linux`, what Linux has and BBRv3; `all`; or names with "
    "commas between them.",
)
@click.option(
    "--queue/--no-queue", "queues", default=None,
    help="Whether queues of links can be changed; by default those of a scenario.",
)  # fmt: skip
@click.option(
    "--senders",
    metavar="NAMES",
    default="",
    help="Flows whose senders you control: names with commas between them, `all`, or `none`. By "
    "default none behind a downlink and an uplink, and all flows of another network.",
)
@click.option(
    "--pep", "proxy", is_flag=True,
    help="Try a proxy before the slowest link, too, that splits the connection.",
)  # fmt: skip
@settings_option
@click.option(
    "--seeds", type=click.IntRange(2, 1000), default=10, show_default=True,
    help="Runs of each of the best candidates, on as many networks of the interval.",
)  # fmt: skip
@click.option(
    "--length", type=click.FloatRange(1, 3600), default=30, show_default=True, metavar="SECONDS",
    help="Time that a download is given, for `bulk` and `calls`, if DATA is no scenario.",
)  # fmt: skip
@store_option
@jobs_option
@json_option
@click.option(
    "--output", "-o", metavar="DIR", help="Write scenarios of the best and of now to this folder."
)
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
    seeds: int,
    length: float,
    store_path: str,
    jobs: int | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Recommend what to change on a network for a goal: queues, controllers, initial windows.

    A scenario is taken with its own network, flows and directions. A profile, a run or a capture
    gives a network, to which flows are added. Each change is simulated and compared with the
    baseline; the best ones are simulated again with other seeds.
    """
    from jostle.inference.advice_text import answer_sentences
    from jostle.inference.advise import AdviceRequest
    from jostle.inference.advise import advise as advised
    from jostle.inference.candidates import chosen_names
    from jostle.inference.network_source import find_network
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    own = tuple(word.strip() for word in senders.split(",") if word.strip())
    request = AdviceRequest(
        GOALS[goal], chosen_names(candidates), seeds, length, queues, own, proxy
    )
    make_folder(output)
    executor = local(jobs)
    network = find_network(data, Path(store_path), flow, overrides_of(settings))
    with interruptible(executor), name_source(data):
        session = Session(environment.backend("sim"), executor, None)
        found = advised(network, request, session)
    if as_json:
        document = {**found.to_dict(), "answer": answer_sentences(found)}
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found)
    if output is not None:
        _write(found, Path(output), quiet=as_json)


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
    from jostle.inference.scenario_toml import fitted_text
    from jostle.safe_io.atomic_write import write_atomically

    best = [(f"{at}.toml", one) for at, one in enumerate(found.ranking[:_SHOWN], start=1)]
    for name, one in (*best, ("now.toml", found.baseline)):
        document = found.setup.document(one.change)
        write_atomically(folder / name, fitted_text(document, {}).encode())
        echo(f"scenario: {folder / name}", err=quiet)
