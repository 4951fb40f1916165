"""`jostle validate`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.backends.registry import DEFAULT, parse_backend
from jostle.cli.environment import Environment
from jostle.cli.options import (
    BACKEND_TYPE,
    GroupedCommand,
    command_line_words,
    csv_option,
    json_option,
    overrides_of,
    scenario_options,
)
from jostle.cli.output_targets import DOCUMENT, FOLDER, TABLE, Outputs, output_option
from jostle.cli.run import carry_out_with, plan_files
from jostle.cli.table_options import print_csv
from jostle.cli.verdict_lines import add_verdict, validation_verdict
from jostle.errors import InputError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.fidelity import Comparison
    from jostle.fidelity.causes import Causes
    from jostle.results import ResultSet
    from jostle.scenario import RunPlan


@click.command(cls=GroupedCommand, short_help="Compare the simulator with the Linux kernel.")
@scenario_options
@click.option(
    "--backend",
    metavar="kernel[:VERSION|MODE]",
    type=BACKEND_TYPE,
    default="kernel",
    show_default=True,
    help="Compare the simulator with this kernel (kernel:6.12, kernel:realtime, kernel:native).",
)
@output_option(
    TABLE, DOCUMENT, {".md": "a page with every cell; FILE-causes.toml explains differences"},
    {FOLDER: "the series of both over each other"},
)  # fmt: skip
@json_option
@csv_option
@click.option(
    "--sim-repeats",
    metavar="N",
    type=click.IntRange(min=1),
    help="Run each condition this many times in the simulator; by default as often as on the "
    "kernel.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["tolerance"]),
    help="End with 1 unless every cell is within the tolerances.",
)
@click.pass_obj
def validate(
    environment: Environment,
    /,
    *,
    files: tuple[str, ...],
    backend: str,
    repeats: int | None,
    sim_repeats: int | None,
    as_json: bool,
    as_csv: bool,
    outputs: Outputs,
    fail_on: str | None,
    jobs: int | None,
    store_path: str | None,
    **options: Any,
) -> int:
    """Run each scenario FILE in the simulator and on the kernel, and show the differences.

    Both use the same seeds and start times. Without start_jitter in the scenario, starts are drawn
    from one shortest base RTT. The exit status is 0 if both were run, even if they differ.

    Example: jostle validate scenarios/first.toml -o fidelity.md
    """
    from jostle.fidelity.causes import read_causes

    if parse_backend(backend)[0] == DEFAULT:
        raise InputError("--backend: the simulator is compared with a kernel: name one")
    names = _names(files)
    ours, theirs = (
        plan_files(environment, files=files, repeats=count, jittered=True, **options)
        for count in (sim_repeats or repeats, repeats)
    )
    # Check all options before anything runs.
    outputs.prepare()
    pages = {file: read_causes(_causes_file(file)) for file in outputs.with_ending(".md")}
    work = [
        (environment.backend("sim"), ours),
        (environment.backend(backend), theirs),
    ]
    assumed = [
        tuple(_assumptions(environment, file, options, work, at)) for at, file in enumerate(files)
    ]
    done = carry_out_with(work, jobs, store_path)
    pairs = list(zip(names, *done, strict=True))
    comparisons = _compared(pairs, assumed)
    _print_and_write_cells(comparisons, outputs, as_json=as_json, as_csv=as_csv)
    quiet = as_json or as_csv
    for folder, formats in outputs.folders().items():
        for name, simulator, real in pairs:
            _draw(
                simulator, real, folder / name if len(pairs) > 1 else folder, formats, quiet=quiet
            )
    given = {
        **options,
        "backend": None if backend == "kernel" else backend,
        "repeats": repeats,
        "sim_repeats": sim_repeats,
    }
    for file, causes in pages.items():
        _write_page(comparisons, causes, given, (file, files))
        echo(f"report: {file}", err=quiet)
    outside = any(comparison.within < len(comparison.cells) for comparison in comparisons)
    failed = any(comparison.failures for comparison in comparisons)
    return 1 if failed or (fail_on == "tolerance" and outside) else 0


def _print_and_write_cells(
    comparisons: Sequence[Comparison], outputs: Outputs, *, as_json: bool, as_csv: bool
) -> None:
    """Print the cells and write them to the tables and documents of `-o`."""
    from jostle.fidelity.data_frame import fidelity_frame
    from jostle.fidelity.document import document

    def answered() -> dict[str, Any]:
        return add_verdict(document(comparisons), validation_verdict(comparisons))

    if as_json:
        echo(json.dumps(answered(), ensure_ascii=False, allow_nan=False))
    if as_csv:
        print_csv(fidelity_frame(comparisons))
    if not (as_json or as_csv):
        _print(comparisons)
    outputs.write_table(lambda: fidelity_frame(comparisons))
    outputs.write_document(answered)


def _write_page(
    comparisons: Sequence[Comparison],
    causes: Causes,
    given: Mapping[str, Any],
    files: tuple[str, Sequence[str]],
) -> None:
    """Write a page; `files` contains its path and the scenarios."""
    from jostle.fidelity.markdown import page
    from jostle.safe_io.atomic_write import write_atomically

    path, scenarios = files
    heading = {"title": causes.title} if causes.title else {}
    words = [*command_line_words(given), "-o", path, *scenarios]
    command = shlex.join(["jostle", "validate", *words])
    text = page(comparisons, causes.causes, command, **heading)
    write_atomically(Path(path), text.encode())


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


def _print(comparisons: Sequence[Comparison]) -> None:
    from jostle.cli import output
    from jostle.fidelity.tables import comparison_rows, not_judged

    to = output.console()
    output.print_note(to, validation_verdict(comparisons))
    for comparison in comparisons:
        to.print(comparison.title, style="bold")
        output.print_table(to, comparison_rows(comparison, output.width()))
    output.print_note(
        to,
        "± half of the 95 % confidence interval of the mean (Student t). Goodput, share and SRTT "
        "of the second half, all else of the whole run.",
    )
    output.print_note(to, not_judged(comparisons))
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
