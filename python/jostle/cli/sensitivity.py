"""`jostle search sensitivity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, plan_options
from jostle.cli.output_targets import Outputs
from jostle.cli.run import carry_out
from jostle.cli.search_options import report_search, scenario_of, search_output_options
from jostle.errors import FailedRunsError, InputError

if TYPE_CHECKING:
    from jostle.figures.renderer import FigureData

DOCUMENT = "jostle.sensitivity/1"


@click.command(cls=GroupedCommand, short_help="Rank sampled keys by their effect on a measure.")
@plan_options
@click.option(
    "--measure",
    "measures",
    metavar="MEASURE",
    multiple=True,
    required=True,
    help='Explain this measure, such as "share of newcomer in steady"; repeatable.',
)
@click.option(
    "--method",
    type=click.Choice(["sobol", "morris"]),
    default="sobol",
    show_default=True,
    help="Compute parts of the variance (sobol) or elementary effects, with fewer runs (morris).",
)
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(min=2),
    default=None,
    help="Use this many base points, best a power of two, with (keys + 2) conditions each (sobol), "
    "or trajectories of (keys + 1) conditions (morris).  [default: 64, morris 20]",
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
    outputs: Outputs,
    as_json: bool,
    **options: Any,
) -> int:
    """Rank the keys of the table [sample] of scenario FILE by their effect on a measure.

    The command uses the ranges and the seed of the sample. The method chooses the points. The exit
    status is 1 if a measure has no indices, because all values are equal or some are missing.

    Example: jostle search sensitivity scenarios/sensitivity.toml --measure 'share of bbr'
    """
    from jostle.cli import output as shown
    from jostle.cli.search_verdicts import sensitivity_verdict
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
    outputs.prepare()
    (results,) = carry_out(environment, [plan], **options)
    if results.failures:
        raise FailedRunsError(f"{scenario.source}: {results.run_counts}; no index without all runs")
    found, left_out = [], []
    for quantity in quantities:
        try:
            found.append(analyse(scenario, results, quantity, method, seed))
        except InputError as error:
            left_out.append(str(error))
    answer = "; ".join([*([sensitivity_verdict(found)] if found else []), *left_out])
    document = {
        "schema": DOCUMENT,
        "answer": answer,
        "title": scenario.title,
        "measures": [one.to_dict() for one in found],
        "left_out": left_out,
    }

    def show() -> None:
        to = shown.console()
        to.print(answer)
        to.print(scenario.title, style="bold")
        for one in found:
            shown.print_table(to, table(one))

    def drawn() -> FigureData:
        if not found:
            raise InputError(f"{scenario.source}: {answer}, so there is nothing to draw")
        parts = tuple((one.quantity.text, figure(one)) for one in found)
        return parts[0][1] if len(parts) == 1 else Multiples(parts)

    report_search(document, show, drawn, outputs, as_json=as_json)
    return 1 if left_out else 0
