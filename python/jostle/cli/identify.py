"""`jostle identify`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.environment import Environment
from jostle.cli.options import jobs_option, json_option, store_option
from jostle.cli.output_folders import make_folder_of
from jostle.cli.plot import stem_of
from jostle.cli.signals import interruptible
from jostle.errors import name_source
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.inference.identify import Identification

_SHOWN = 8
_DOUBT = 0.5
"""Probability of "none of these" from which it is the answer."""


@click.command(short_help="Name the controller that sends like a measured flow.")
@click.argument("data", metavar="CAPTURE|RUN")
@click.option(
    "--flow",
    metavar="NAME",
    help="This flow; may be left out if there is one alone, or one sends nearly everything.",
)
@click.option(
    "--link",
    metavar="LINK.toml",
    help="The network, as `jostle emulate` takes it, instead of what the run says of its own, or "
    "what a capture shows of it.",
)
@click.option(
    "--candidates",
    metavar="NAMES",
    default="linux",
    show_default=True,
    help="Controllers that are tried: `linux`, what Linux has and BBRv3; `all`, the whole "
    "registry; or names with commas between them.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Runs of each candidate, on links that differ a little. Of a capture there are four more, "
    "on paths that bring packets late.",
)
@store_option
@jobs_option
@json_option
@click.option(
    "--figure",
    metavar="FILE",
    help="Draw the flow beside its three likeliest senders; the ending is the format.",
)
@click.pass_obj
def identify(
    environment: Environment,
    /,
    *,
    data: str,
    flow: str | None,
    link: str | None,
    candidates: str,
    replicas: int,
    store_path: str,
    jobs: int | None,
    as_json: bool,
    figure: str | None,
) -> None:
    """Identify the controller that sent a flow of a CAPTURE, or of a RUN given by folder or name.

    Every candidate is simulated on the same network. Curves of queueing delay and bytes in flight
    are compared, with small differences in time allowed. Probabilities are calibrated on runs of
    Linux (docs/identify.md); "none of these" is a possible answer.
    """
    from jostle.emulate import load
    from jostle.inference import run_context
    from jostle.inference.candidates import chosen_names
    from jostle.inference.identify import identify as ranked
    from jostle.inference.measurement_lookup import find_measured
    from jostle.inference.observed_flow import observe
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    names = chosen_names(candidates)
    make_folder_of(figure)
    run = find_measured(data, Path(store_path))
    with name_source(data):
        observed = observe(run, flow)
        if link is None and run.spec["links"]:
            around, network = run_context.spec_from_run(run, observed.flow), "run"
        elif link is None:
            around, network = run_context.spec_from_estimate(observed), "estimated"
        else:
            around, network = run_context.spec_from_link_file(load(link), observed), "given"
    executor = local(jobs)
    with interruptible(executor), name_source(link or data):
        session = Session(environment.backend("sim"), executor, None)
        found = ranked(observed, around, names, session, replicas, on_time=network == "run")
        said = (*_about_the_flow(run, observed.flow, network), *found.assumptions)
        found = replace(found, assumptions=said)
    if as_json:
        document = found.to_dict()
        document["link"]["from"] = network
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found, estimated=network == "estimated")
    if figure is not None:
        _draw(found, figure, quiet=as_json)


def _print(found: Identification, *, estimated: bool) -> None:
    from jostle.cli import output
    from jostle.results.tables import Table

    rows = [
        (one.controller, f"{one.probability:.1%}", f"{one.distance:.4f}")
        for one in found.ranking[:_SHOWN]
    ]
    rows.append(("none of these", f"{found.none_of_these:.1%}", ""))
    to = output.console()
    output.print_table(to, Table(("controller", "probability", "distance"), tuple(rows), (), 1))
    if found.none_of_these > _DOUBT:
        closest = found.ranking[0].controller
        output.print_note(
            to, f"Most likely none of these: {closest} comes closest, and is not close."
        )
    rest = len(found.ranking) - _SHOWN
    if estimated:
        (link,) = found.links
        rate = link["capacity"]["rate_bps"] / 1e6
        limit = link["queue"]["parameters"]["limit"]["bytes"] / 1e3
        said = f"The link was taken from the capture: {rate:.4g} Mbit/s, a queue of {limit:.4g} kB."
        output.print_note(to, f"{said} --link gives another.")
    if rest > 0:
        output.print_note(to, f"{rest} more are less likely: --json has them.")
    output.print_assumptions(to, found.assumptions)


def _about_the_flow(run: Run, flow: str, network: str) -> Iterator[str]:
    """Name the flow that was taken, and the flows and links that were replaced."""
    others = [each["name"] for each in run.spec["flows"] if each["name"] != flow]
    if network == "run":
        if others:
            yield f"The flow is {flow}. The others are as in the run: {', '.join(others)}."
        return
    yield f"The flow is {flow}. Candidates send one bulk flow, alone on a path in one direction."
    if others:
        yield f"Left out: {len(others)} more flows of the data."
    if run.spec["links"]:
        yield "Left out: the links of the run. Those of --link were used."


def _draw(found: Identification, file: str, *, quiet: bool) -> None:
    from jostle.figures import draw
    from jostle.figures.save import save
    from jostle.inference.figure_data import candidate_overlay

    stem, formats = stem_of(file, ())
    for path in save(draw.stacked(candidate_overlay(found)), stem, formats):
        echo(f"figure: {path}", err=quiet)
