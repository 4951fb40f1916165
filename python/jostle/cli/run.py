"""`jostle run`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
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
    backend_choice,
    json_option,
    options_of_a_report,
    overrides_of,
    plan_options,
)
from jostle.cli.output_folders import make_folder, make_folder_of
from jostle.cli.signals import interruptible
from jostle.cli.table_options import (
    TableSelection,
    formats_option,
    frame_of,
    shown_of,
    table_options,
    write_frame,
)
from jostle.errors import InputError, brief, name_source, unknown
from jostle.safe_io.terminal_text import echo, single_line

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import ResultSet
    from jostle.runner.progress import Progress
    from jostle.runner.session import Session
    from jostle.runner.shards import Shard
    from jostle.runner.sweeps.heartbeat import SweepHeartbeat
    from jostle.scenario import RunPlan
    from jostle.store.segments.packing import Keep
    from jostle.store.store import Store


@click.command(cls=RecordsCommandLine, short_help="Run scenarios and show who gets how much.")
@plan_options
@json_option
@click.option("--figures", "figures", metavar="DIR", help="Draw every figure into this folder.")
@click.option(
    "--keep",
    type=click.Choice(["series", "summary"]),
    default="series",
    show_default=True,
    help="What the store keeps of each run: everything, or its measures alone.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Carry out one of N equal parts of the runs, from 1/N to N/N, and show nothing: for "
    "commands that share a store.",
)
@click.option(
    "--executor",
    metavar="WHERE",
    default="local",
    show_default=True,
    help="Where runs are carried out: local, threads; processes; dask, its processes on this "
    "machine; dask=ADDRESS, workers of its scheduler there; slurm or pbs, --jobs workers of Dask "
    "that this queue starts.",
)
@click.option(
    DETACH,
    "away",
    is_flag=True,
    help="Go on in a process that outlives this shell: see `jostle sweep`.",
)
@click.option(DETACHED, "detached", is_flag=True, hidden=True)
@formats_option
@click.option("--report", "report", metavar="HTML", help="Write a self-contained report.")
@click.option("--phase", "phases", metavar="NAME", multiple=True, help="Show this phase alone.")
@table_options
@click.pass_obj
def run(
    environment: Environment,
    /,
    *,
    as_json: bool,
    figures: str | None,
    formats: tuple[str, ...],
    keep: Keep,
    report: str | None,
    phases: tuple[str, ...],
    shard: str | None,
    away: bool,
    detached: bool,
    **options: Any,
) -> int:
    """Run each scenario FILE and show throughput, RTT, retransmissions and fairness per phase.

    Finished runs are kept in the store and not repeated. If the command is interrupted, run it
    again to continue.
    """
    shown = shown_of(options)
    into = {suffix: options.pop(suffix) for suffix in ("csv", "parquet")}
    part = None if shard is None else _shard_of(shard, no_cache=options["no_cache"])
    if part is not None and (as_json or figures or report or any(into.values())):
        raise InputError("--shard: what is shown is of all runs; ask for it without --shard")
    plans = plan_files(environment, **options)
    # Check all options before anything runs.
    if keep == "summary" and (figures or report):
        raise InputError("--keep summary: figures and reports are drawn from series")
    _check_phases(plans, phases)
    _check_keys(plans, shown)
    for file in into.values():
        make_folder_of(file if file != "-" else None)
    make_folder(figures)
    make_folder_of(report)
    sweep = None
    if not options["no_cache"]:
        sweep = DetachedSweep(command_of(options["files"], options["store_path"]), detached)
    if away:
        if sweep is None:
            raise InputError("--detach: its runs are kept in the store; leave out --no-cache")
        return detach(sweep.command, store_of(options["store_path"]).root)
    every = carry_out(environment, plans, **options, keep=keep, shard=part, sweep=sweep)
    if part is not None:
        return _print_shard_progress(part, every)
    from jostle.cli import output

    if as_json:
        documents = [results.to_dict(phases) for results in every]
        whole = documents[0] if len(documents) == 1 else documents
        echo(json.dumps(whole, ensure_ascii=False, allow_nan=False))
    written = write_frame(lambda: frame_of(every, shown, phases, options["files"]), into)
    quiet = as_json or written
    for results in every:
        if not quiet:
            _print(results, shown, phases)
        output.print_notes(results, err=quiet)
        output.print_captures(results, err=quiet)
    if figures is not None:
        into_folders = _folders(options["files"], Path(figures))
        _draw(every, into_folders, formats, jobs=options["jobs"], quiet=quiet)
    if report is not None:
        from jostle.report import write_report

        words = options_of_a_report(options)
        path = write_report(every, report, options["files"], words)
        echo(f"report: {path}", err=quiet)
    return 1 if any(results.failures for results in every) else 0


def _shard_of(text: str, *, no_cache: bool) -> Shard:
    from jostle.runner.shards import Shard

    if no_cache:
        raise InputError("--shard: its runs are kept in the store; leave out --no-cache")
    return Shard.parse(text)


def _print_shard_progress(shard: Shard, every: Sequence[ResultSet]) -> int:
    """Print how many runs of each scenario belong to the shard, and return the exit status."""
    for results in every:
        failed = len(results.failures)
        title = f"{single_line(results.title)}: " if results.title else ""
        stored = len(results.results)
        echo(f"{title}shard {shard}: {stored} of {stored + failed} runs are in the store")
    return 1 if any(results.failures for results in every) else 0


def _print(results: ResultSet, shown: TableSelection, phases: Sequence[str]) -> None:
    from jostle.cli import output

    if shown.pivot is None:
        output.print_results(results, phases, shown.view(output.width()))
    else:
        output.print_pivot(results, *shown.pivot, shown, phases)


def carry_out(
    environment: Environment,
    plans: Sequence[RunPlan],
    *,
    backend: str,
    jobs: int | None,
    store_path: str,
    no_cache: bool,
    keep: Keep = "series",
    shard: Shard | None = None,
    executor: str = "local",
    sweep: DetachedSweep | None = None,
    **given: Any,
) -> list[ResultSet]:
    """Run every plan, with progress on stderr."""
    made = environment.backend(backend, backend_choice(given))
    (every,) = carry_out_with(
        [(made, plans)],
        jobs,
        store_path,
        no_cache=no_cache,
        keep=keep,
        shard=shard,
        where=executor,
        sweep=sweep,
    )
    return every


def carry_out_with(
    work: Sequence[tuple[Backend, Sequence[RunPlan]]],
    jobs: int | None,
    store_path: str,
    *,
    no_cache: bool,
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

    if where != "local" and not is_url(store_path):
        # Worker processes may have another working directory.
        store_path = str(Path(store_path).absolute())
    store = None if no_cache else store_of(store_path)
    for plan in (plan for _, plans in work for plan in plans) if store is None else ():
        with name_source(plan.source):
            if any(planned.spec.get("capture") for planned in plan.first_run_of_each_condition()):
                raise InputError("capture: its files are kept in the store; leave out --no-cache")
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

    left: list[tuple[Session, list[RunPlan]]] = [(session, []) for session, _ in sessions]
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


def _draw(
    every: Sequence[ResultSet],
    folders: Sequence[Path],
    formats: Sequence[str],
    *,
    jobs: int | None,
    quiet: bool,
) -> None:
    from jostle.results import figure_files

    for results, into in zip(every, folders, strict=True):
        if not results.results:
            continue
        for path in figure_files.save_all(
            results, into, formats or ("png",), jobs or os.cpu_count() or 1
        ):
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
