"""`jostle identify`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jostle.cli.environment import Environment
from jostle.cli.options import (
    GroupedCommand,
    candidates_option,
    jobs_option,
    json_option,
    store_folder_option,
)
from jostle.cli.output_targets import DOCUMENT, FIGURE, Outputs, output_option
from jostle.cli.signals import interruptible
from jostle.cli.verdict_lines import add_verdict, identification_verdict
from jostle.errors import name_source
from jostle.results.number_format import percent
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.backends import Run
    from jostle.inference.identify import Identification
    from jostle.inference.link_rate import LinkRate
    from jostle.inference.observed_flow import ObservedFlow
    from jostle.run_spec import RunSpec

_SHOWN = 8


@click.command(cls=GroupedCommand, short_help="Identify the controller that sent a flow.")
@click.argument("data", metavar="CAPTURE|RUN")
@click.option(
    "--flow",
    metavar="NAME",
    help="Identify this flow; needed unless one flow sends nearly everything.",
)
@click.option(
    "--link",
    metavar="LINK.toml",
    help="Use the network of this file (see `jostle link emulate`) instead of the one of the run "
    "or the one estimated from the capture.",
)
@candidates_option
@click.option(
    "--repeats",
    metavar="N",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Run each candidate this many times, on links that differ slightly; for a capture four "
    "times more, with late packets.",
)
@store_folder_option
@jobs_option
@output_option(dict.fromkeys(FIGURE, "the flow beside its three likeliest senders"), DOCUMENT)
@json_option
@click.pass_obj
def identify(
    environment: Environment,
    /,
    *,
    data: str,
    flow: str | None,
    link: str | None,
    candidates: str,
    repeats: int,
    store_path: str,
    jobs: int | None,
    as_json: bool,
    outputs: Outputs,
) -> None:
    """Identify the controller that sent a flow of a CAPTURE, or of a RUN given by folder or name.

    Every candidate is simulated on the same network. Curves of queueing delay and bytes in flight
    are compared, with small differences in time allowed. Probabilities are calibrated on runs of
    Linux (docs/explanation/inference.md); "none of these" is a possible answer.

    Example: jostle identify upload.pcapng
    """
    from jostle.inference import run_context
    from jostle.inference.candidates import chosen_names
    from jostle.inference.identify import identify as ranked
    from jostle.inference.measurement_lookup import find_measured
    from jostle.inference.missing_evidence import of_network
    from jostle.inference.observed_flow import observe
    from jostle.runner.executors import local
    from jostle.runner.session import Session

    names = chosen_names(candidates)
    outputs.prepare()
    run = find_measured(data, Path(store_path))
    with name_source(data):
        observed = observe(run, flow)
        around, network, direction = _network(link, run, observed)
    rate = observed.link_rate if network == "estimated" else None
    rate_error = run_context.KNOWN_RATE if rate is None else rate.relative_error
    others = run_context.alternative_networks(around, observed) if network == "estimated" else ()
    executor = local(jobs)
    with interruptible(executor), name_source(link or data):
        session = Session(environment.backend("sim"), executor, None)
        found = ranked(
            observed, around, names, session, repeats, on_time=network == "run",
            rate_error=rate_error, alternatives=others,
        )  # fmt: skip
        said = (*_about_the_flow(run, observed, network), *direction, *found.assumptions)
        found = replace(found, assumptions=said, missing=(*found.missing, *of_network(rate)))
    document = add_verdict(found.to_dict(), identification_verdict(found))
    document["link"]["from"] = network
    if rate is not None:
        document["link"]["rate_bps"] = {
            "value": rate.rate_bps, "low": rate.low_bps, "high": rate.high_bps,
        }  # fmt: skip
    if as_json:
        echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        _print(found, rate)
    outputs.write_document(lambda: document)
    if outputs.with_ending(*FIGURE):
        from jostle.figures import draw
        from jostle.inference.figure_data import candidate_overlay

        outputs.write_drawing(draw.stacked(candidate_overlay(found)), quiet=as_json)


def _network(
    link: str | None, run: Run, observed: ObservedFlow
) -> tuple[RunSpec, str, Sequence[str]]:
    """Return the run around the flow, the origin of its network, and sentences about it."""
    from jostle.emulate import load
    from jostle.inference import run_context

    if link is not None:
        around, direction = run_context.spec_from_link_file(load(link), observed)
        return around, "given", [direction]
    if run.spec["links"]:
        return run_context.spec_from_run(run, observed.flow), "run", []
    return run_context.spec_from_estimate(observed), "estimated", []


def _print(found: Identification, rate: LinkRate | None) -> None:
    from jostle.cli import output
    from jostle.results.text_table import Table

    rows = [
        (one.controller, percent(one.probability, 1), f"{one.distance:.4f}")
        for one in found.ranking[:_SHOWN]
    ]
    rows.append(("none of these", percent(found.none_of_these, 1), ""))
    to = output.console()
    to.print(identification_verdict(found))
    output.print_table(to, Table(("controller", "probability", "distance"), tuple(rows), (), 1))
    rest = len(found.ranking) - _SHOWN
    if rate is not None:
        link, *_ = found.links
        limit = link["queue"]["parameters"]["limit"]["bytes"] / 1e3
        said = f"The link was taken from the capture: {rate}, a queue of {limit:.4g} kB."
        output.print_note(to, f"{said} --link gives another.")
    if rest > 0:
        output.print_note(to, f"{rest} more are less likely: --json has them.")
    output.print_sentences(to, "Missing for an identification", found.missing)
    output.print_assumptions(to, found.assumptions)


def _about_the_flow(run: Run, observed: ObservedFlow, network: str) -> Iterator[str]:
    """Name the flow that was taken, and the flows and links that were replaced."""
    from jostle.inference.run_context import about_mss

    flow = observed.flow
    others = [each["name"] for each in run.spec["flows"] if each["name"] != flow]
    if network == "run":
        if others:
            yield f"The flow is {flow}. The others are as in the run: {', '.join(others)}."
        return
    yield f"The flow is {flow}. Candidates send one bulk flow, alone on a path in one direction."
    yield from about_mss(observed)
    if network == "estimated" and observed.packets_per_ack is not None:
        packets = f"{observed.packets_per_ack:.0f}"
        yield (
            f"ACKs are thinned, as in the capture: one for {packets} packets. Each candidate ran "
            "with ACKs that wait for some time, and for their number."
        )
    if network == "estimated" and observed.cross_traffic:
        yield (
            "Other flows shared the bottleneck. Candidates ran with that traffic, as datagrams at "
            "the estimated rate, and without it."
        )
    if others:
        yield f"Left out: {len(others)} more flows of the data."
    if run.spec["links"]:
        yield "Left out: the links of the run. Those of --link were used."
