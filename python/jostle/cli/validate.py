"""`jostle validate`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.environment import Environment
from jostle.cli.options import (
    backend_choice,
    backend_options,
    command_line_words,
    json_option,
    overrides_of,
    scenario_options,
)
from jostle.cli.output_folders import make_folder, make_folder_of
from jostle.cli.run import carry_out_with, plan_files
from jostle.cli.table_options import file_options, formats_option, output_files, write_frame
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Backend
    from jostle.fidelity import Comparison
    from jostle.fidelity.causes import Cause
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan


@click.command(short_help="Compare the simulator with the Linux kernel.")
@backend_options
@scenario_options
@click.option(
    "--simulator-repeats",
    type=click.IntRange(min=1),
    help="Runs per condition in the simulator, which cost little; as many as on the kernel if "
    "absent.",
)
@json_option
@click.option(
    "--figures",
    metavar="DIR",
    help="Draw the series of both over each other into this folder.",
)
@formats_option
@click.option(
    "--report",
    metavar="MARKDOWN",
    help="Write a page with every cell and the worst ones. The causes of differences are read "
    "from the TOML file NAME-causes.toml beside it.",
)
@click.option("--title", metavar="TEXT", help="Heading of that page; Fidelity if absent.")
@click.option("--strict", is_flag=True, help="End with 1 if a cell is outside its tolerance.")
@click.pass_obj
def validate(
    environment: Environment,
    /,
    *,
    files: tuple[str, ...],
    repeats: int | None,
    simulator_repeats: int | None,
    as_json: bool,
    figures: str | None,
    formats: tuple[str, ...],
    report: str | None,
    title: str | None,
    strict: bool,
    jobs: int | None,
    store_path: str,
    no_cache: bool,
    **options: Any,
) -> int:
    """Run each scenario FILE in the simulator and on the kernel, and show the differences.

    Both use the same seeds and start times. Without start_jitter in the scenario, starts are drawn
    from one shortest base RTT. The exit status is 0 if both were run, even if they differ.
    """
    from jostle.fidelity.causes import read_causes

    if title is not None and report is None:
        raise InputError("--title is the heading of the page that --report writes: give both")
    into = output_files(options)
    names = _names(files)
    ours, theirs = (
        plan_files(environment, files=files, repeats=count, jittered=True, **options)
        for count in (simulator_repeats or repeats, repeats)
    )
    # Check all options before anything runs.
    make_folder(figures)
    make_folder_of(report)
    causes = read_causes(_causes_file(report)) if report is not None else ()
    work = [
        (environment.backend("sim"), ours),
        (environment.backend("kernel", backend_choice(options)), theirs),
    ]
    assumed = [
        tuple(_assumptions(environment, file, options, work, at)) for at, file in enumerate(files)
    ]
    done = carry_out_with(work, jobs, store_path, no_cache=no_cache)
    pairs = list(zip(names, *done, strict=True))
    comparisons = _compared(pairs, assumed)
    quiet = write_frame(lambda: _frame(comparisons), into) or as_json
    _print(comparisons, as_json, quiet=quiet)
    if figures is not None:
        for name, simulator, real in pairs:
            folder = Path(figures) / name if len(pairs) > 1 else Path(figures)
            _draw(simulator, real, folder, formats or ("png",), quiet=quiet)
    if report is not None:
        given = {
            **options,
            "repeats": repeats,
            "simulator_repeats": simulator_repeats,
            "report": report,
            "title": title,
        }
        _write_page(comparisons, causes, given, files)
        echo(f"report: {report}", err=quiet)
    outside = any(comparison.within < len(comparison.cells) for comparison in comparisons)
    failed = any(comparison.failures for comparison in comparisons)
    return 1 if failed or (strict and outside) else 0


for _option in reversed(file_options("every cell")):
    validate = _option(validate)


def _write_page(
    comparisons: Sequence[Comparison],
    causes: Sequence[Cause],
    given: Mapping[str, Any],
    files: Sequence[str],
) -> None:
    """Write the page of `--report`."""
    from jostle.fidelity.markdown import page
    from jostle.safe_io.atomic_write import write_atomically

    heading = {} if given["title"] is None else {"title": given["title"]}
    text = page(comparisons, causes, _command(given, files), **heading)
    write_atomically(Path(given["report"]), text.encode())


def _compared(
    pairs: Sequence[tuple[str, ResultSet, ResultSet]], assumed: Sequence[tuple[str, ...]]
) -> list[Comparison]:
    """Compare both sides of each scenario."""
    from jostle.fidelity import compare

    found = [compare(*pair) for pair in pairs]
    return [
        replace(one, assumptions=(*said, *one.assumptions))
        for one, said in zip(found, assumed, strict=True)
    ]


def _assumptions(
    environment: Environment,
    file: str,
    options: Mapping[str, Any],
    work: Sequence[tuple[Backend, Sequence[RunPlan]]],
    at: int,
) -> Iterator[str]:
    """Say how the runs of a scenario differ from the file, and which conditions are left out."""
    from jostle.runner.session import refusals

    scenario = environment.load_scenario(
        file, overrides_of(options["settings"]), allow_code=options["allow_code"]
    )
    if scenario.with_start_jitter() != scenario:
        yield "Starts are drawn from one shortest base RTT, because no flow has start_jitter."
    for backend, plans in work:
        for refused in refusals(plans[at], backend).values():
            yield f"Left out: {refused.error()} ({backend.name})"


def _command(given: Mapping[str, Any], files: Sequence[str]) -> str:
    """Return the command that reproduces the page."""
    return shlex.join(["jostle", "validate", *command_line_words(given), *files])


def _names(files: Sequence[str]) -> list[str]:
    """Return the scenario names, which must be unique: results, figures and causes use them."""
    names = [Path(file).stem for file in files]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two files are called {twice}: compare them one after the other")
    return names


def _causes_file(report: str) -> Path:
    path = Path(report)
    return path.with_name(f"{path.stem}-causes.toml")


def _frame(comparisons: Sequence[Comparison]) -> pl.DataFrame:
    from jostle.fidelity.data_frame import fidelity_frame

    return fidelity_frame(comparisons)


def _print(comparisons: Sequence[Comparison], as_json: bool, *, quiet: bool) -> None:
    if as_json:
        from jostle.fidelity.document import document

        echo(json.dumps(document(comparisons), ensure_ascii=False, allow_nan=False))
    if quiet:
        return
    from jostle.cli import output
    from jostle.fidelity.tables import comparison_rows, not_judged

    to = output.console()
    for comparison in comparisons:
        to.print(comparison.title, style="bold")
        output.print_table(to, comparison_rows(comparison, output.width()))
    cells = sum(len(comparison.cells) for comparison in comparisons)
    within = sum(comparison.within for comparison in comparisons)
    output.print_note(
        to,
        "± half of the 95 % confidence interval of the mean (Student t). Goodput, share and SRTT "
        "of the second half, all else of the whole run.",
    )
    output.print_note(to, not_judged(comparisons))
    are = "is" if cells == 1 else "are"
    to.print(f"{within} of {cells} cells {are} within the tolerances of what is judged.")
    said = [sentence for comparison in comparisons for sentence in comparison.assumptions]
    output.print_assumptions(to, list(dict.fromkeys(said)))


def _draw(
    simulator: ResultSet, kernel: ResultSet, folder: Path, formats: Sequence[str], *, quiet: bool
) -> None:
    from jostle.fidelity.overlay import overlay_data
    from jostle.figures import draw
    from jostle.figures.save import save
    from jostle.results import condition_names

    for index, slug in enumerate(condition_names.slugs(simulator.conditions)):
        if simulator.runs_of(index) and kernel.runs_of(index):
            figure = draw.stacked(overlay_data(simulator, kernel, index))
            for path in save(figure, folder / (f"overlay-{slug}" if slug else "overlay"), formats):
                echo(f"figure: {path}", err=quiet)
