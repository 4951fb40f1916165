"""`jostle run`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jostle.cli.detach import (
    DETACH,
    DETACHED,
    DetachedSweep,
    RecordsCommandLine,
    command_of,
    detach,
)
from jostle.cli.environment import Environment
from jostle.cli.options import (
    csv_option,
    json_option,
    options_of_a_report,
    overrides_of,
    plan_options,
)
from jostle.cli.output_targets import DOCUMENT, FIGURES, FOLDER, TABLE, Outputs, output_option
from jostle.cli.signals import interruptible
from jostle.cli.table_options import (
    TableSelection,
    frame_of,
    print_csv,
    shown_of,
    table_options,
)
from jostle.cli.verdict_lines import add_verdict
from jostle.errors import InputError, brief, name_source, unknown
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.runner.progress import Progress
    from jostle.runner.session import Session
    from jostle.runner.shards import Shard
    from jostle.runner.sweeps.heartbeat import SweepHeartbeat
    from jostle.scenario import RunPlan
    from jostle.store.segments.packing import Keep
    from jostle.store.store import Store


@click.command(cls=RecordsCommandLine, short_help="Run scenarios and print the results.")
@plan_options
@output_option(TABLE, DOCUMENT, {".html": "a self-contained report"}, FIGURES)
@json_option
@csv_option
@click.option(
    "--dry-run", is_flag=True, help="Check the scenarios, print what would run, and exit."
)
@click.option(
    "--executor",
    metavar="WHERE",
    default="local",
    show_default=True,
    help="Run here: local (threads); processes; dask (its processes on this machine); dask=ADDRESS "
    "(workers of this scheduler); slurm or pbs (--jobs workers of Dask that this queue starts).",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run only one of N equal parts, from 1/N to N/N, and print no results: for commands that "
    "share a store.",
)
@click.option(
    DETACH,
    "away",
    is_flag=True,
    help="Continue in a process that outlives this shell: see `jostle sweep`.",
)
@click.option(DETACHED, "detached", is_flag=True, hidden=True)
@click.option(
    "--store-level",
    "keep",
    type=click.Choice(["series", "summary"]),
    default="series",
    show_default=True,
    help="Store the series of each run, or only its measures.",
)
@click.option("--phase", "phases", metavar="NAME", multiple=True, help="Show only this phase.")
@table_options
@click.pass_obj
def run(
    environment: Environment,
    /,
    *,
    as_json: bool,
    as_csv: bool,
    outputs: Outputs,
    dry_run: bool,
    keep: Keep,
    phases: tuple[str, ...],
    shard: str | None,
    away: bool,
    detached: bool,
    **options: Any,
) -> int:
    """Run each scenario FILE and print throughput, RTT, retransmissions and fairness per phase.

    Finished runs are kept in the store and not repeated. If the command is interrupted, run it
    again to continue.

    Example: jostle run scenarios/first.toml -o report.html
    """
    shown = shown_of(options)
    part = None if shard is None else _shard_of(shard, options["store_path"])
    if part is not None and (as_json or as_csv or outputs):
        raise InputError("--shard: results are of all runs; ask for them without --shard")
    plans = plan_files(environment, **options)
    # Check all options before anything runs.
    if keep == "summary" and outputs.with_ending(".html", FOLDER):
        raise InputError("--store-level summary: figures and reports are drawn from series")
    _check_phases(plans, phases)
    _check_keys(plans, shown)
    if dry_run:
        print_plans(environment, plans, options["backend"], options["files"])
        return 0
    outputs.prepare()
    sweep = None
    if options["store_path"] is not None:
        sweep = DetachedSweep(command_of(options["files"], options["store_path"]), detached)
    if away:
        if sweep is None:
            raise InputError(f"--detach: its runs are kept in the store; {_KEEP_STORE}")
        return detach(sweep.command, store_of(options["store_path"]).root)
    every = carry_out(environment, plans, **options, keep=keep, shard=part, sweep=sweep)
    if part is not None:
        return _print_shard_progress(part, every)
    _print_and_write(every, shown, phases, options, outputs, as_json=as_json, as_csv=as_csv)
    return 1 if any(results.failures or results.late_runs for results in every) else 0


def _print_and_write(
    every: Sequence[ResultSet],
    shown: TableSelection,
    phases: Sequence[str],
    options: Mapping[str, Any],
    outputs: Outputs,
    *,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Print the results and write the files of `-o`."""
    from jostle.cli import output
    from jostle.cli.run_verdict import run_verdict
    from jostle.fidelity.validation_status import in_a_line, statuses

    answers = [run_verdict(results, phases) if results.results else "" for results in every]

    def document() -> Any:
        documents = [
            add_verdict(results.to_dict(phases), answer)
            | {"validation": [status.to_dict() for status in statuses(results)]}
            for results, answer in zip(every, answers, strict=True)
        ]
        return documents[0] if len(documents) == 1 else documents

    def frame() -> pl.DataFrame:
        return frame_of(every, shown, phases, options["files"])

    if as_json:
        echo(json.dumps(document(), ensure_ascii=False, allow_nan=False))
    if as_csv:
        print_csv(frame())
    quiet = as_json or as_csv
    for results, answer in zip(every, answers, strict=True):
        if not quiet:
            output.print_tables(results, shown, phases, answer)
            output.print_note(output.console(), in_a_line(statuses(results)))
        output.print_notes(results, err=quiet)
        output.print_captures(results, err=quiet)
    outputs.write_table(frame)
    outputs.write_document(document)
    _write_figures(every, options, outputs, quiet=quiet)
    for file in outputs.with_ending(".html"):
        from jostle.report import write_report

        words = options_of_a_report(options)
        path = write_report(every, file, options["files"], words, answers=answers)
        echo(f"report: {path}", err=quiet)


_KEEP_STORE = "leave out --store none"


def print_plans(
    environment: Environment, plans: Sequence[RunPlan], backend: str, files: Sequence[str]
) -> None:
    """Print what would run: conditions and runs of each scenario, and what cannot be run."""
    from jostle.results.number_format import count
    from jostle.runner.session import refusals

    made = environment.backend(backend)
    for plan, file in zip(plans, files, strict=True):
        refused = refusals(plan, made)
        if len(refused) == len(plan.conditions):
            with name_source(plan.source):
                raise refused[min(refused)].error()
        left = plan.without(refused)
        per_condition = len(left.runs) // len(left.conditions)
        durations = [run.spec["duration_ns"] / 1e9 for run in left.first_run_of_each_condition()]
        echo(
            f"{file} is valid: {count(len(left.conditions), 'condition')}, "
            f"{count(len(left.runs), 'run')} on the {made.name} backend, "
            f"{per_condition * sum(durations):g} s of simulated time"
        )
        for position in sorted(refused):
            echo(f"left out: {refused[position].error()}", err=True)


def _shard_of(text: str, store_path: str | None) -> Shard:
    from jostle.runner.shards import Shard

    if store_path is None:
        raise InputError(f"--shard: its runs are kept in the store; {_KEEP_STORE}")
    return Shard.parse(text)


def _print_shard_progress(shard: Shard, every: Sequence[ResultSet]) -> int:
    """Print how many runs of each scenario belong to the shard, and return the exit status."""
    for results in every:
        failed = len(results.failures)
        title = f"{single_line(results.title)}: " if results.title else ""
        stored = len(results.results)
        echo(f"{title}shard {shard}: {stored} of {stored + failed} runs are in the store")
    return 1 if any(results.failures or results.late_runs for results in every) else 0


def carry_out(
    environment: Environment,
    plans: Sequence[RunPlan],
    *,
    backend: str,
    jobs: int | None,
    store_path: str | None,
    keep: Keep = "series",
    shard: Shard | None = None,
    executor: str = "local",
    sweep: DetachedSweep | None = None,
    **_options: Any,
) -> list[ResultSet]:
    """Run every plan, with progress on stderr."""
    made = environment.backend(backend)
    (every,) = carry_out_with(
        [(made, plans)],
        jobs,
        store_path,
        keep=keep,
        shard=shard,
        where=executor,
        sweep=sweep,
    )
    return every


def carry_out_with(
    work: Sequence[tuple[Backend, Sequence[RunPlan]]],
    jobs: int | None,
    store_path: str | None,
    *,
    keep: Keep = "series",
    shard: Shard | None = None,
    where: str = "local",
    sweep: DetachedSweep | None = None,
) -> list[list[ResultSet]]:
    """Run plans on several backends, with progress on stderr; return results by backend.

    A `sweep` must have one backend.
    """
    from jostle.runner.executors import make
    from jostle.runner.session import Session
    from jostle.store.object_storage import is_url

    if where != "local" and store_path is not None and not is_url(store_path):
        # Worker processes may have another working directory.
        store_path = str(Path(store_path).absolute())
    store = None if store_path is None else store_of(store_path)
    for plan in (plan for _, plans in work for plan in plans) if store is None else ():
        with name_source(plan.source):
            if any(planned.spec.get("capture") for planned in plan.first_run_of_each_condition()):
                raise InputError(f"capture: its files are kept in the store; {_KEEP_STORE}")
    executor = make(where, jobs, warn)
    with contextlib.ExitStack() as stack:
        stack.enter_context(interruptible(executor))
        # Report conditions that a backend does not support before anything runs.
        sessions = _possible(
            [(Session(backend, executor, store, keep, shard=shard), of) for backend, of in work]
        )
        recording = None
        if sweep is not None and store is not None:
            recording = stack.enter_context(sweep.record(store, sessions[0][1], shard))
        return [
            [session.carry_out(*one) for one in _shown(plans, recording)]
            for session, plans in sessions
        ]


def _shown(
    plans: Sequence[RunPlan], recording: SweepHeartbeat | None
) -> Iterator[tuple[RunPlan, Progress]]:
    """Yield each plan with its progress display: on stderr and, if recorded, in the store."""
    from jostle.results import condition_names
    from jostle.runner.progress import on_stderr

    for position, plan in enumerate(plans):
        shown = on_stderr(condition_names.labels(plan.conditions))
        yield plan, shown if recording is None else recording.progress(position, shown)


def _possible(
    sessions: Sequence[tuple[Session, Sequence[RunPlan]]],
) -> list[tuple[Session, list[RunPlan]]]:
    """Remove the conditions that a backend does not support, and print a note.

    If no condition of a scenario remains, raise an error.
    """
    from jostle.runner.session import RejectedRun, refusals

    left: list[tuple[Session, list[RunPlan]]] = [
        (replace(session, checked=True), []) for session, _ in sessions
    ]
    for plans in zip(*(plans for _, plans in sessions), strict=True):
        refused: dict[int, RejectedRun] = {}
        for (session, _), plan in zip(sessions, plans, strict=True):
            refused |= refusals(plan, session.backend)
        if len(refused) == len(plans[0].conditions):
            with name_source(plans[0].source):
                raise refused[min(refused)].error()
        for position in sorted(refused):
            echo(f"left out: {refused[position].error()}", err=True)
        for (_, kept), plan in zip(left, plans, strict=True):
            kept.append(plan.without(refused))
    return left


def plan_files(
    environment: Environment,
    *,
    files: Sequence[str],
    repeats: int | None,
    seed: int | None,
    settings: Sequence[str],
    allow_code: bool,
    jittered: bool = False,
    **_run_options: Any,
) -> list[RunPlan]:
    """Load and plan every file; report the problems of all files at once.

    With `jittered`, flows start at different times in each run; see `Scenario.with_start_jitter`.
    """
    overrides = overrides_of(settings)
    from jostle.scenario import ScenarioError

    plans: list[RunPlan] = []
    errors = []
    for file in files:
        try:
            loaded = environment.load_scenario(file, overrides, allow_code=allow_code)
            planned = loaded.with_start_jitter() if jittered else loaded
            plans.append(planned.plan(repeats=repeats, seed=seed))
        except ScenarioError as error:
            errors.append(str(error))
        except ValueError as error:  # a seed is out of range
            errors.append(f"{file}: {error}")
    if errors:
        raise InputError("\n\n".join(errors))
    for plan in plans:
        for note in plan.notes:
            echo(single_line(f"note: {note}"), err=True)
    return plans


def _check_phases(plans: Sequence[RunPlan], names: Sequence[str]) -> None:
    for plan in plans:
        known = [phase["name"] for planned in plan.runs[:1] for phase in planned.spec["phases"]]
        for name in names:
            if name not in known:
                raise InputError(f"{plan.source}: {unknown('phase', name, known)}")


def _check_keys(plans: Sequence[RunPlan], shown: TableSelection) -> None:
    """Check that the keys for sorting and pivoting exist."""
    from jostle.results.measure_samples import find_key
    from jostle.results.measures import measures

    key = shown.view(None).sort
    wanted = [*(shown.pivot or ()), *([key] if key and key not in measures() else [])]
    for plan in plans:
        with name_source(plan.source):
            for name in wanted:
                find_key(plan.conditions, name)


def store_of(path: str) -> Store:
    """Open a store that prints its warnings to stderr."""
    from jostle.store.object_storage import open_store

    return open_store(path, warn=warn)


def warn(text: object) -> None:
    """Print a warning on stderr."""
    echo(brief(f"warning: {text}"), err=True)


def _write_figures(
    every: Sequence[ResultSet], options: Mapping[str, Any], outputs: Outputs, *, quiet: bool
) -> None:
    """Draw every figure into the folders of `-o`."""
    jobs = options["jobs"] or os.cpu_count() or 1
    for folder, formats in outputs.folders().items():
        from jostle.results import figure_files

        for results, into in zip(every, _folders(options["files"], folder), strict=True):
            if not results.results:
                continue
            for path in figure_files.save_all(results, into, formats, jobs):
                echo(f"figure: {path}", err=quiet)


def _folders(files: Sequence[str], folder: Path) -> list[Path]:
    """Return one folder per scenario, with a number if file names are equal."""
    if len(files) == 1:
        return [folder]
    stems = [Path(file).stem for file in files]
    return [
        folder / (stem if stems.count(stem) == 1 else f"{stem}-{number}")
        for number, stem in enumerate(stems, start=1)
    ]
