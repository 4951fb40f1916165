"""`jostle search tune`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import GroupedCommand, keyed, plan_options, search_seed_option
from jostle.cli.output_targets import Outputs
from jostle.cli.search_options import load, report_search, search_output_options, session_of
from jostle.errors import InputError, name_source
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.parameter_search.tuning import Task, Trial
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan, Scenario

DOCUMENT = "jostle.tuning/1"
FOLDER = ".tuning"
"""Subfolder of a store with the journals of searches."""


@click.command(cls=GroupedCommand, short_help="Find the best values of parameters or other keys.")
@plan_options
@click.option(
    "--vary",
    "parameters",
    metavar="KEY[=RANGE]",
    multiple=True,
    required=True,
    help='Tune this key: "flows.f.controller.beta" over the range of the registry, or any key with '
    'values: \'bottleneck.queue.target={ from = "1 ms", to = "20 ms" }\', KEY=["a", "b"].',
)
@click.option("--maximize", metavar="OBJECTIVE", multiple=True, help="Make this large.")
@click.option(
    "--minimize",
    metavar="OBJECTIVE",
    multiple=True,
    help="Make this small: [worst] MEASURE [of FLOW] [in PHASE], over all conditions; for the "
    "measure also remy(δ) or copa(δ), to be maximized.",
)
@click.option(
    "--subject-to",
    "constraints",
    metavar="BOUND",
    multiple=True,
    help='Require this in every condition: "harm of cubic <= 20 %".',
)
@click.option("--trials", metavar="N", type=click.IntRange(min=1), default=100, show_default=True,
              help="Try this many sets of values.")  # fmt: skip
@click.option(
    "--sampler",
    type=click.Choice(["tpe", "cmaes", "nsga2", "random"]),
    default="tpe",
    show_default=True,
    help="Propose values by this method.",
)
@search_seed_option
@click.option(
    "--test-condition", "hold", metavar="KEY=VALUE", multiple=True,
    help="Keep these conditions of the grid for the test of the best values.",
)  # fmt: skip
@click.option(
    "--test-scenario", "held_out", metavar="FILE", multiple=True,
    help="Test the best values with this scenario, too.",
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
    outputs: Outputs,
    as_json: bool,
    **options: Any,
) -> int:
    """Search for values of keys that optimise objectives over all conditions of each FILE.

    The best values are then run with other seeds and on the test conditions, and compared with the
    values in the file. Trials are recorded in the store: if the command is interrupted, run it
    again to continue, and the same command has the same trials.

    Example: jostle search tune scenarios/tune.toml --vary f.controller.beta --maximize goodput
    """
    from jostle.cli import output as shown
    from jostle.cli.search_verdicts import tuning_verdict
    from jostle.parameter_search.tuning import SearchSettings, fingerprint
    from jostle.parameter_search.tuning import tune as search
    from jostle.parameter_search.tuning_report import baseline, evaluate_best, figure, table
    from jostle.results.run_count import RunCount

    task = _task(environment, parameters, options)
    outputs.prepare()
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
    document = {
        "schema": DOCUMENT, "answer": tuning_verdict(found), **found.to_dict(),
        "incomplete": incomplete or None,
    }  # fmt: skip

    def show() -> None:
        to = shown.console()
        to.print(tuning_verdict(found))
        to.print(" · ".join(one.title for one in task.scenarios), style="bold")
        for part in shown.fitting(table(found), shown.width()):
            shown.print_table(to, part)
        shown.print_note(to, incomplete and f"Trials with failed runs are not judged: {incomplete}")
        shown.print_assumptions(to, found.assumptions)

    report_search(document, show, lambda: figure(found), outputs, as_json=as_json)
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
    hold = keyed("--test-condition", options["hold"])
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
        raise InputError(f"{scenario.source}: --vary {text}: {error}") from error


def _trial_printer(task: Task, trials: int) -> Callable[[Trial], None]:
    """Return a function that prints the result of each trial to stderr."""
    from jostle.parameter_search.tuning_report import bound_sign

    keys = [variable.key for variable in task.variables]

    def print_trial(trial: Trial) -> None:
        values = ", ".join(trial.labels[key] for key in keys)
        score = trial.score
        if score is None:
            found = f"cannot be run{trial.reason and f': {trial.reason}'}"
        else:
            found = ", ".join(
                "–" if value is None else f"{bound_sign(score, at)}{value:.4g}"
                for at, value in enumerate(score.objectives)
            )
            found += "" if score.feasible else " (breaks a constraint)"
        echo(
            single_line(f"[{trial.number + 1}/{trials}] trial {trial.number}: {values}: {found}"),
            err=True,
        )

    return print_trial
