"""`jostle search boundary`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, plan_options
from jostle.cli.output_targets import Outputs
from jostle.cli.search_options import (
    report_search,
    scenario_of,
    search_output_options,
    session_of,
)
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.scenario import Scenario
    from jostle.scenario.resolve.sample import SampleDesign
    from jostle.studies import ClaimRow

DOCUMENT = "jostle.boundary/1"


@click.command(cls=GroupedCommand, short_help="Find where a claim stops holding, and draw the map.")
@plan_options
@click.option(
    "--claim",
    metavar="CLAIM",
    required=True,
    help="Search for the boundary of this claim: a comparison, such as "
    '"share of bbr in steady <= 40 %" or "rtt of a <= 1.5 rtt of b"; or FILE.toml with `parts` '
    "like a claim of a study.",
)
@click.option(
    "--points", metavar="N", type=click.IntRange(min=4), default=48, show_default=True,
    help="Run at most this many points.",
)  # fmt: skip
@click.option(
    "--resolution", "tolerance", default=0.01, show_default=True,
    type=click.FloatRange(0, 1, min_open=True),
    help="Locate the boundary to this share of a key's range.",
)  # fmt: skip
@search_output_options
@click.pass_obj
def boundary(
    environment: Environment,
    /,
    *,
    claim: str,
    points: int,
    tolerance: float,
    outputs: Outputs,
    as_json: bool,
    **options: Any,
) -> int:
    """Find where in the table [sample] of scenario FILE a claim stops holding.

    One key is searched by bisection; two or three by points placed where the result is uncertain.

    Example: jostle search boundary scenarios/sensitivity.toml --claim 'share of bbr <= 40 %'
    """
    from jostle.cli import output as shown
    from jostle.cli.search_verdicts import boundary_verdict
    from jostle.parameter_search.boundary import Point, explore
    from jostle.parameter_search.boundary_report import BoundaryResult, checked
    from jostle.parameter_search.claims import judged, read_claim, study_of

    asked = read_claim(claim)
    scenario = scenario_of(environment, options)
    design = _design_of(scenario)
    with name_source(scenario.location_of("sample")):
        checked(design.variables)
    with name_source(f"{scenario.source}: --claim {claim}"):
        study_of(scenario, asked)
    outputs.prepare()
    done = 0
    with session_of(environment, options) as session:

        def judge(asked_for: Sequence[Point]) -> list[tuple[dict[str, str], ClaimRow]]:
            nonlocal done
            at = scenario.with_points(tuple(asked_for))
            results = session.carry_out(at.plan(options["repeats"], options["seed"]))
            labels = [
                dict(zip(at.sample, point, strict=True))
                for point in zip(*at.sample.values(), strict=True)
            ]
            done += len(labels)
            echo(f"{done} of at most {points} points", err=True)
            return list(zip(labels, judged(at, results, asked), strict=True))

        with name_source(scenario.source):
            places = explore(
                judge, len(design.variables), points, seed=design.seed, tolerance=tolerance,
                label=design.labels,
            )  # fmt: skip
    found = BoundaryResult(asked, design.variables, tuple(places))
    document = {
        "schema": DOCUMENT, "answer": boundary_verdict(found), "title": scenario.title,
        **found.to_dict(),
    }  # fmt: skip

    def show() -> None:
        to = shown.console()
        to.print(boundary_verdict(found))
        to.print(scenario.title, style="bold")
        shown.print_table(to, found.table())

    report_search(document, show, found.figure, outputs, as_json=as_json)
    return 0 if found.is_complete else 1


def _design_of(scenario: Scenario) -> SampleDesign:
    """Return the ranges to search."""
    design = scenario.design
    if design is None:
        message = "the scenario samples no key: give it a table [sample] with ranges"
        raise InputError(f"{scenario.source}: {message}")
    if design.constraints:
        message = "`where` cuts the ranges, whose boundary is looked for: leave it out"
        raise InputError(f"{scenario.location_of('sample', 'where')}: {message}")
    return design
