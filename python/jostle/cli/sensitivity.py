"""`jostle sensitivity`."""

from __future__ import annotations

from typing import Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import plan_options
from jostle.cli.run import carry_out
from jostle.cli.search_options import draw, print_document, scenario_of, search_output_options
from jostle.errors import InputError

DOCUMENT = "jostle.sensitivity/1"


@click.command(short_help="Which sampled keys a measure depends on, and how much.")
@plan_options
@click.option(
    "--measure",
    "-m",
    "measures",
    metavar="MEASURE",
    multiple=True,
    required=True,
    help='What is asked, as "share of newcomer in steady"; may be given several times.',
)
@click.option(
    "--method",
    type=click.Choice(["sobol", "morris"]),
    default="sobol",
    show_default=True,
    help="sobol: parts of the variance. morris: elementary effects, with fewer runs.",
)
@click.option(
    "--points",
    type=click.IntRange(min=2),
    default=None,
    help="sobol: base points, best a power of two, of which each takes (keys + 2) conditions. "
    "morris: trajectories of (keys + 1).  [default: 64, morris 20]",
)
@search_output_options
@click.pass_obj
def sensitivity(
    environment: Environment,
    /,
    *,
    measures: tuple[str, ...],
    method: Any,
    points: int | None,
    output: str | None,
    formats: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Rank the keys of the table [sample] of scenario FILE by their effect on a measure.

    The command uses the ranges and the seed of the sample. The method chooses the points.
    """
    from jostle.cli import output as shown
    from jostle.figures.data import Multiples
    from jostle.parameter_search.objective_quantity import parse_quantity
    from jostle.parameter_search.sensitivity import analyse, designed, figure, table

    quantities = [parse_quantity(text) for text in measures]
    given = scenario_of(environment, options)
    seed = given.design.seed if given.design is not None else 0
    scenario = designed(given, method, points or (64 if method == "sobol" else 20), seed)
    plan = scenario.plan(repeats=options["repeats"], seed=options["seed"])
    for quantity in quantities:
        quantity.check(plan)
    (results,) = carry_out(environment, [plan], **options)
    if results.failures:
        raise InputError(f"{scenario.source}: {results.run_counts}; no index without all runs")
    found = [analyse(scenario, results, quantity, method, seed) for quantity in quantities]
    if as_json:
        print_document({"schema": DOCUMENT, "title": scenario.title,
                        "measures": [one.to_dict() for one in found]})  # fmt: skip
    else:
        to = shown.console()
        to.print(scenario.title, style="bold")
        for one in found:
            shown.print_table(to, table(one))
    if output is not None:
        parts = tuple((one.quantity.text, figure(one)) for one in found)
        data = parts[0][1] if len(parts) == 1 else Multiples(parts)
        draw(data, output, formats, quiet=as_json)
    return 0
