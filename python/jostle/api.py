"""Functions of `import jostle`: load, run and analyze."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.errors import InputError
from jostle.safe_io.terminal_text import escape_control_characters

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import Failure, ResultSet
    from jostle.runner.executors import Executor
    from jostle.runner.progress import Progress
    from jostle.scenario import Scenario
    from jostle.scenario.plan import RunPlan

_NO_SCENARIO = (
    "a scenario is the path of a TOML file, or what jostle.load made of it, not a {}: "
    "jostle.Scenario.from_toml and from_dict make one of a text or a dictionary"
)


_PATH = (str, os.PathLike)
_BACKEND = 'the name of a backend, such as "sim", or a backend'
_STORE = "a folder or the address of a store, or False for none"
_EXECUTOR = "an executor as in concurrent.futures"


def load(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    allow_code: bool = False,
) -> Scenario:
    """Load a scenario file.

    Parameters
    ----------
    path
        A TOML file.
    overrides
        Values by key, as for `--set`: `{"bottleneck.rate": "50 Mbit/s"}`. Strings are parsed as
        TOML values.
    allow_code
        Whether the scenario may run foreign code: Python controllers in its folder, and its QUIC
        programs. The code runs with your rights, so allow it only for a scenario that you trust.

    Raises
    ------
    jostle.scenario.ScenarioError
        If it has problems; the message names file, line, key and accepted values.

    Examples
    --------
    >>> import jostle
    >>> scenario = jostle.load("scenarios/first.toml", {"bottleneck.rate": "20 Mbit/s"})
    >>> scenario.title
    'Cubic and BBR share a home connection'
    """
    from jostle import scenario

    if not isinstance(path, str | os.PathLike):
        raise InputError(_NO_SCENARIO.format(type(path).__name__))
    return scenario.load(Path(path), overrides, allow_code=allow_code)


def run(
    scenario: Scenario | str | os.PathLike[str],
    backend: str | Backend = "sim",
    jobs: int | None = None,
    store: str | os.PathLike[str] | Literal[False] | None = None,
    progress: bool = False,
    *,
    overrides: Mapping[str, Any] | None = None,
    repeats: int | None = None,
    seed: int | None = None,
    allow_code: bool = False,
    executor: Executor | None = None,
    keep: Literal["series", "summary"] = "series",
    shard: str | None = None,
) -> ResultSet:
    """Run all conditions of a scenario.

    Parameters
    ----------
    scenario
        A loaded scenario, or the path of a scenario file.
    backend
        Name of a backend, or a backend.
    jobs
        Number of parallel runs; by default the number of cores.
    store
        Folder of finished runs, which are not repeated. The default is the command line's store:
        JOSTLE_STORE, or `.jostle/store` in the current folder. `s3://…`, `gs://…` and `az://…` are
        stores on object storage. With False, all runs are executed, and results stay in memory.
    progress
        Whether to show progress on stderr.
    overrides
        Values for some of the scenario's keys; see `load`.
    repeats, seed
        Runs per condition and seed of the first run, instead of the scenario's values.
    allow_code
        See `load`; used if `scenario` is a path.
    executor
        Executor for the runs, instead of threads of this process: any object with the interface of
        `concurrent.futures.Executor`, such as a ProcessPoolExecutor. It is not shut down.
    keep
        Data that the store keeps of each run: `"series"` for all data, or `"summary"` for the
        measures only, which is enough for tables and estimates. Runs stored with `"summary"` are
        repeated if series are requested later.
    shard
        `I/N`, from `1/N` to `N/N`: the part of the runs that this call executes, if N calls share a
        store. The results contain this part; a call without `shard` returns all.

    Returns
    -------
    ResultSet
        Failed runs are listed in `failures` and cause a warning. Flows whose controllers need ECN
        marks (`dctcp`, `prague`) on a path without a marking queue cause a warning too.

    Raises
    ------
    InputError
        If an argument does not fit, or the backend does not support a run.

    Examples
    --------
    >>> import jostle
    >>> results = jostle.run("scenarios/first.toml", store=False)
    >>> estimate = results.estimate("throughput", phase="alone")
    >>> round(estimate["value"][0] / 1e6)  # Mbit/s
    50
    """
    # Long: most of it is the documentation of its parameters.
    from jostle.backends import create
    from jostle.runner.executors import local
    from jostle.runner.session import Session
    from jostle.runner.shards import Shard
    from jostle.scenario.plan import check_integer
    from jostle.store import default_store
    from jostle.store.object_storage import open_store

    if jobs is not None:
        check_integer("jobs", jobs)
    _refuse(
        backend=(backend, isinstance(backend, str) or hasattr(backend, "check"), _BACKEND),
        jobs=(jobs, jobs is None or jobs > 0, "1 or more"),
        store=(store, store is None or store is False or isinstance(store, _PATH), _STORE),
        executor=(executor, executor is None or hasattr(executor, "submit"), _EXECUTOR),
        keep=(keep, keep in ("series", "summary"), '"series" or "summary"'),
        shard=(shard, shard is None or isinstance(shard, str), 'text such as "1/4"'),
    )
    part = None if shard is None else Shard.parse(shard)
    plan = _warn_about_notes(
        _scenario(scenario, overrides, allow_code=allow_code).plan(repeats=repeats, seed=seed)
    )
    if executor is not None and jobs is not None:
        raise InputError("give either jobs or an executor, which knows how many it takes")
    own = None
    if executor is None:
        own = executor = local(jobs)
    session = Session(
        create(backend) if isinstance(backend, str) else backend,
        executor,
        None if store is False else open_store(default_store() if store is None else store),
        keep,
        shard=part,
    )
    try:
        results = session.carry_out(plan, _shown(plan) if progress else None)
    finally:
        if own is not None:
            own.shutdown(wait=True, cancel_futures=True)
    results.page = _page
    if results.failures:
        warnings.warn(_failed(results.failures), RuntimeWarning, stacklevel=2)
    return results


def analyze(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    flows: int = 20,
    interval: str = "100 ms",
    store: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> ResultSet:
    """Measure packet captures with the measures of runs.

    Parameters
    ----------
    paths
        A capture (pcap or pcapng, plain, `.gz` or `.zst`), a folder of captures, or several paths.
        Captures of both ends of a connection, and all captures of one jostle run, are combined into
        one measurement. Each measurement is a condition of the result, with the key `capture`.
        Files that end in `.json`, `.txt` or `.log` are read as output of `iperf3 --json` or `ping`.
    flows
        Maximum number of flows per measurement: the flows with the most payload.
    interval
        Sampling interval of the series, with its unit; longer if there would be too many.
    store
        Store for the results; by default they are not stored.
    progress
        Whether to show progress on stderr.

    Returns
    -------
    ResultSet
        Tables, figures, reports and comparisons work as for runs. The summary of a flow also
        contains measures of captures, such as `handshake_s` and `spurious_retransmissions`; its
        series contains `receive_window_bytes`. Quantities that the position of the capture does not
        show are absent: cwnd near a receiver, and links everywhere.

    Raises
    ------
    InputError
        If an argument does not fit, a file is not a capture, or contains nothing that can be
        measured.

    Examples
    --------
    >>> import jostle
    >>> results = jostle.analyze("upload.pcapng.gz")  # doctest: +SKIP
    >>> results.flows.select("flow", "goodput_bps", "rtt_min_s")  # doctest: +SKIP
    """
    from jostle import measurements
    from jostle.measurements.progress import read_progress
    from jostle.scenario.plan import check_integer
    from jostle.store.store import Store

    check_integer("flows", flows)
    several = isinstance(paths, Sequence) and all(isinstance(path, _PATH) for path in paths)
    _refuse(
        paths=(paths, isinstance(paths, _PATH) or several, "a path or a list of paths"),
        flows=(flows, flows > 0, "1 or more"),
        interval=(interval, isinstance(interval, str), 'text such as "100 ms"'),
        store=(store, store is None or isinstance(store, _PATH), "a folder, or None"),
    )
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    with read_progress(given, shown=progress) as told:
        results = measurements.analyze(
            given,
            flows=flows,
            interval=interval,
            store=None if store is None else Store(store),
            told=told,
        )
    results.page = _page
    return results


def _shown(plan: RunPlan) -> Progress:
    from jostle.results import condition_names
    from jostle.runner.progress import on_stderr

    return on_stderr(condition_names.labels(plan.conditions))


def _scenario(
    given: Scenario | str | os.PathLike[str],
    overrides: Mapping[str, Any] | None,
    *,
    allow_code: bool,
) -> Scenario:
    if isinstance(given, str | os.PathLike):
        return load(given, overrides, allow_code=allow_code)
    # Accept any object with a method `plan`.
    if not hasattr(given, "plan"):
        raise InputError(_NO_SCENARIO.format(type(given).__name__))
    return given.set(overrides) if overrides else given


def _refuse(**arguments: tuple[object, bool, str]) -> None:
    """Report the first argument that does not fit: its value, whether it fits, what is expected."""
    for name, (value, fits, expected) in arguments.items():
        if not fits:
            raise InputError(f"{name}: {value!r:.80} is not {expected}")


def _page(results: ResultSet) -> str:
    from jostle.report import render

    return render([results])


def _warn_about_notes(plan: RunPlan) -> RunPlan:
    for note in plan.notes:
        warnings.warn(escape_control_characters(note), UserWarning, stacklevel=3)
    return plan


def _failed(failures: Sequence[Failure]) -> str:
    first = failures[0]
    text = f"{len(failures)} runs failed; the first, of seed {first.seed}: {first.error}"
    return escape_control_characters(text)
