"""`jostle advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.environment import Environment
from jostle.cli.options import jobs_option, json_option, store_option
from jostle.cli.output_folders import make_folder
from jostle.cli.signals import interruptible
from jostle.errors import name_source
from jostle.inference.goals import GOALS
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.inference.advise import Advice, CandidateResult
    from jostle.inference.goals import Goal
    from jostle.inference.network_source import KnownNetwork
    from jostle.stats import Estimate

_SHOWN = 3


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
    "--queue", "queues", is_flag=True,
    help="Try other queues of the bottleneck, too, which no end host can change.",
)  # fmt: skip
@click.option(
    "--pep", "proxy", is_flag=True,
    help="Try a proxy before the bottleneck, too, that splits the connection.",
)  # fmt: skip
@click.option(
    "--seeds", type=click.IntRange(2, 1000), default=10, show_default=True,
    help="Runs of each of the best candidates, on as many networks of the interval.",
)  # fmt: skip
@click.option(
    "--length", type=click.FloatRange(1, 3600), default=30, show_default=True, metavar="SECONDS",
    help="Time that a download is given, for `bulk` and `calls`.",
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
    queues: bool,
    proxy: bool,
    seeds: int,
    length: float,
    store_path: str,
    jobs: int | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Recommend a controller and an initial window for a network and a goal.

    The network comes from a profile, a scenario, a run or a capture. Each candidate is simulated
    and compared with the baseline, Cubic with an initial window of 10 packets. The best candidates
    are simulated again with other networks and seeds.
    """
    from jostle.inference.advise import advise as advised
    from jostle.inference.candidates import chosen_names
    from jostle.inference.network_source import find_network
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    names = chosen_names(candidates)
    make_folder(output)
    executor = local(jobs)
    network = find_network(data, Path(store_path), flow)
    with interruptible(executor), name_source(data):
        session = Session(environment.backend("sim"), executor, None)
        found = advised(
            network, GOALS[goal], names, session, seeds, length_s=length, queues=queues,
            proxy=proxy,
        )  # fmt: skip
    if as_json:
        document = {**found.to_dict(), "goal": goal, "network": network.to_dict()}
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found, GOALS[goal], network)
    if output is not None:
        _write(found, GOALS[goal], network, length, Path(output), quiet=as_json)


def _print(found: Advice, goal: Goal, network: KnownNetwork) -> None:
    from jostle.cli import output
    from jostle.results.tables import Table

    gain = "factor" if goal.relative else "gain"
    headings = ("", gain, *(heading for _, heading, _, _ in goal.shown))
    rows = [
        (
            one.choice.label,
            "" if one is found.baseline else _spelt(one.gain, 1, 2),
            *_cells(one, goal),
        )
        for one in (*found.ranking[:_SHOWN], found.baseline)
    ]
    to = output.console()
    output.print_table(to, Table(headings, tuple(rows), (), 1))
    said = "Factor by which it is better" if goal.relative else "Gain"
    output.print_note(to, f"{said}: {goal.meaning}; 95 % intervals over paired runs.")
    output.print_note(to, f"The last line is what there is now; {found.tried} were tried.")
    least = found.ranking[0].gain.low if found.ranking else None
    if least is None or least <= (1 if goal.relative else 0):
        output.print_note(to, "The first line may be no better than what there is now.")
    if network.spread:
        numbers = network.numbers
        link = f"{numbers['rate'] / 1e6:.4g} Mbit/s, {numbers['rtt'] * 1e3:.4g} ms, a queue of "
        link += f"{numbers['limit'] / 1e3:.4g} kB"
        output.print_note(to, f"The network was taken from the capture: {link}.")


def _cells(one: CandidateResult, goal: Goal) -> list[str]:
    return [_spelt(one.numbers[name], factor, digits) for name, _, factor, digits in goal.shown]


def _spelt(of: Estimate, factor: float, digits: int) -> str:
    if of.value is None:
        return "–"
    value = f"{of.value * factor:.{digits}f}"
    if of.low is None or of.high is None:
        return value
    return f"{value} [{of.low * factor:.{digits}f}, {of.high * factor:.{digits}f}]"


def _write(
    found: Advice, goal: Goal, network: KnownNetwork, length_s: float, folder: Path, *, quiet: bool
) -> None:
    from jostle.inference.advise import document_of
    from jostle.inference.scenario_toml import fitted_text
    from jostle.safe_io.atomic_write import write_atomically

    best = [(f"{at}.toml", one) for at, one in enumerate(found.ranking[:_SHOWN], start=1)]
    for name, one in (*best, ("now.toml", found.baseline)):
        document = document_of(network, goal, length_s, one.choice)
        write_atomically(folder / name, fitted_text(document, {}).encode())
        echo(f"scenario: {folder / name}", err=quiet)
