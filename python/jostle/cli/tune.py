"""`jostle tune`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import keyed, plan_options, search_seed_option
from jostle.cli.search_options import draw, load, print_document, search_output_options, session_of
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.parameter_search.tuning import Task, Trial
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan, Scenario

DOCUMENT = "jostle.tuning/1"
FOLDER = ".tuning"
"""Subfolder of a store with the journals of searches."""


@click.command(short_help="Find the best values of a controller's parameters, or of any keys.")
@plan_options
@click.option(
    "--param",
    "parameters",
    metavar="KEY[=RANGE]",
    multiple=True,
    required=True,
    help='What is tuned: "flows.f.controller.beta" over the range of the registry, or any key with '
    'values: \'bottleneck.queue.target={ from = "1 ms", to = "20 ms" }\', KEY=["a", "b"].',
)
@click.option("--maximize", metavar="OBJECTIVE", multiple=True, help="What is to be large.")
@click.option(
    "--minimize",
    metavar="OBJECTIVE",
    multiple=True,
    help="What is to be small. [worst] MEASURE [of FLOW] [in PHASE], over all conditions; for the "
    "measure also remy(δ) or copa(δ), to be maximized.",
)
@click.option(
    "--subject-to",
    "constraints",
    metavar="BOUND",
    multiple=True,
    help='What has to hold in every condition: "harm of cubic <= 20 %".',
)
@click.option("--trials", type=click.IntRange(min=1), default=100, show_default=True)
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "cmaes", "nsga2", "random"]),
    default="tpe",
    show_default=True,
    help="What proposes values.",
)
@search_seed_option
@click.option(
    "--hold-out", "hold", metavar="KEY=VALUE", multiple=True,
    help="Conditions of the grid that are run with what was found, and never before.",
)  # fmt: skip
@click.option(
    "--held-out", metavar="FILE", multiple=True, help="Scenarios that are run so.",
)  # fmt: skip
@search_output_options
@click.pass_obj
def tune(
    environment: Environment,
    /,
    *,
    parameters: tuple[str, ...],
    trials: int,
    sampler: str,
    search_seed: int,
    output: str | None,
    formats: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Search for values of keys that optimise objectives over all conditions of each FILE.

    The best values are then run with other seeds and on the test conditions, and compared with the
    values in the file. Trials are recorded in the store: if the command is interrupted, run it
    again to continue, and the same command has the same trials.
    """
    from jostle.cli import output as shown
    from jostle.parameter_search.tuning import SearchSettings, fingerprint
    from jostle.parameter_search.tuning import tune as search
    from jostle.parameter_search.tuning_report import baseline, evaluate_best, figure, table
    from jostle.results.run_count import RunCount

    task = _task(environment, parameters, options)
    with session_of(environment, options) as session:
        carried: list[RunCount] = []

        def carry(plan: RunPlan) -> ResultSet:
            results = session.carry_out(plan)
            carried.append(results.run_counts)
            if results.failures:
                echo(single_line(f"not judged: {results.run_counts}"), err=True)
            return results

        with name_source(", ".join(options["files"])):
            written = baseline(task, carry)
        journal = None
        if session.store is not None:
            name = fingerprint(task, sampler, search_seed, session.backend.version)
            journal = session.store.root / FOLDER / f"{name}.journal"
        how = SearchSettings(trials, search_seed, sampler, journal, _trial_printer(task, trials))
        made = search(task, carry, how)
        found = evaluate_best(task, made, written, carry)
    incomplete = RunCount.sum_of(carried).incomplete
    if as_json:
        print_document({"schema": DOCUMENT, **found.to_dict(), "incomplete": incomplete or None})
    else:
        to = shown.console()
        to.print(" · ".join(one.title for one in task.scenarios), style="bold")
        for part in shown.fitting(table(found), shown.width()):
            shown.print_table(to, part)
        shown.print_note(to, incomplete and f"Trials with failed runs are not judged: {incomplete}")
        shown.print_assumptions(to, found.assumptions)
    if output is not None:
        draw(figure(found), output, formats, quiet=as_json)
    return 0 if found.found else 1


def _task(environment: Environment, parameters: Sequence[str], options: dict[str, Any]) -> Task:
    from jostle.parameter_search.objectives import parse_constraint, parse_objective
    from jostle.parameter_search.tuning import Task

    scenarios = tuple(_loaded(environment, file, options) for file in options["files"])
    held = tuple(_loaded(environment, file, options) for file in options["held_out"])
    objectives = (
        *(parse_objective(text, "maximize") for text in options["maximize"]),
        *(parse_objective(text, "minimize") for text in options["minimize"]),
    )
    if not objectives:
        raise InputError("say what is to be best: --maximize or --minimize OBJECTIVE")
    hold = keyed("--hold-out", options["hold"])
    task = Task(
        scenarios, held, hold, tuple(_variable(scenarios[0], text) for text in parameters),
        objectives, tuple(map(parse_constraint, options["constraints"])),
        options["repeats"], options["seed"],
    )  # fmt: skip
    for scenario in (*scenarios, *held):
        plan = scenario.plan()
        for one in (*objectives, *(limit.objective for limit in task.constraints)):
            one.check(plan)
    return task


def _loaded(environment: Environment, file: str, options: dict[str, Any]) -> Scenario:
    from jostle.scenario import ScenarioError

    return load(environment, file, options, ScenarioError)


def _variable(scenario: Scenario, text: str) -> Any:
    from jostle.scenario.resolve.key_paths import parse_value

    key, equals, given = text.partition("=")
    try:
        return scenario.variable(key.strip(), parse_value(given.strip()) if equals else None)
    except ValueError as error:
        raise InputError(f"{scenario.source}: --param {text}: {error}") from error


def _trial_printer(task: Task, trials: int) -> Callable[[Trial], None]:
    """Return a function that prints the result of each trial to stderr."""
    keys = [variable.key for variable in task.variables]

    def print_trial(trial: Trial) -> None:
        values = ", ".join(trial.labels[key] for key in keys)
        score = trial.score
        if score is None:
            found = "cannot be run"
        else:
            found = ", ".join("–" if v is None else f"{v:.4g}" for v in score.objectives)
            found += "" if score.feasible else " (breaks a constraint)"
        echo(f"[{trial.number + 1}/{trials}] {values}: {found}", err=True)

    return print_trial
