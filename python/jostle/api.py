"""What `import jostle` offers: the same line that the command line walks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.errors import InputError
from jostle.printable import printable

if TYPE_CHECKING:
    from jostle.backends import Backend
    from jostle.results import Failure, ResultSet
    from jostle.running.executors import Executor
    from jostle.running.progress import Progress
    from jostle.scenario import Scenario
    from jostle.scenario.plan import Plan

_NO_SCENARIO = (
    "a scenario is the path of a TOML file, or what jostle.load made of it, not a {}: "
    "jostle.Scenario.from_toml and from_dict make one of a text or a dictionary"
)


def load(
    path: str | os.PathLike[str],
    overrides: Mapping[str, Any] | None = None,
    *,
    allow_code: bool = False,
) -> Scenario:
    """Read a scenario file.

    Parameters
    ----------
    path
        A TOML file.
    overrides
        Key → value, as `--set` takes them: `{"bottleneck.rate": "50 Mbit/s"}`; what is no text is
        taken as it is.
    allow_code
        Whether the scenario may name foreign code: controllers written in Python in its folder,
        and its QUIC programs. The code runs with your rights, so allow it only for a scenario
        that you trust.

    Raises
    ------
    jostle.scenario.ScenarioError
        When it is wrong; the text names file, line, key, and what would be accepted.

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
    """Carry out every run of a scenario.

    Parameters
    ----------
    scenario
        A loaded scenario, or the path of one.
    backend
        Name of a backend, or a backend.
    jobs
        Runs at the same time; as many as there are cores if absent.
    store
        Folder of finished runs, which are not run again. If absent, that of the command line:
        what JOSTLE_STORE names, or `.jostle/store` in the current folder. `s3://…`, `gs://…` and
        `az://…` are stores on object storage. With False every run is carried out, and results
        stay in memory.
    progress
        Whether to show progress on stderr.
    overrides
        Other values for some of the scenario's keys, as for `load`.
    repeats, seed
        Runs per condition and seed of the first, instead of the scenario's.
    allow_code
        As for `load`, where `scenario` is a path.
    executor
        Where runs are carried out, instead of threads of this process: anything in the shape of
        `concurrent.futures.Executor`, such as a ProcessPoolExecutor. It is left open.
    keep
        What the store keeps of each run: all of it, or its measures alone, which is enough for
        tables and estimates. Runs that were kept so are run again when
        series are asked for.
    shard
        `I/N`, from `1/N` to `N/N`: the part of the runs that this call carries out, where N of them
        share a store. Results are of that part; asked for without it, they are of all.

    Returns
    -------
    ResultSet
        Runs that failed are listed in `failures`, and a warning is given; so it is of flows whose
        controllers live on marks (`dctcp`, `prague`) where no queue of their path marks.

    Examples
    --------
    >>> import jostle
    >>> results = jostle.run("scenarios/first.toml", store=False)
    >>> estimate = results.estimate("throughput", phase="alone")
    >>> round(estimate["value"][0] / 1e6)  # Mbit/s
    50
    """
    # Long: nearly all of it says what the parameters are.
    from jostle.backends import create
    from jostle.running import default_store
    from jostle.running.executors import local
    from jostle.running.session import Session
    from jostle.running.shards import Shard
    from jostle.running.shared_store import open_store

    part = None if shard is None else Shard.parse(shard)
    plan = _noted(
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
    """Measure captures of packets as runs are measured.

    Parameters
    ----------
    paths
        A capture (pcap or pcapng, plain, `.gz` or `.zst`), a folder of them, or several. Those of
        both ends of a connection, and all of one run of ours, become one measurement; any other is
        one of its own, a condition of the result called `capture`. Files that end in `.json`,
        `.txt` or `.log` are read as what `iperf3 --json` or `ping` wrote.
    flows
        Most flows of a measurement: those with the most payload.
    interval
        Bin of the series, with its unit; longer ones where there would be too many.
    store
        Folder that keeps the results, as that of finished runs; none if absent.
    progress
        Whether to show progress on stderr.

    Returns
    -------
    ResultSet
        Tables, figures, reports and comparisons work as for runs. Of each flow the summary has what
        a capture alone shows, too, such as `handshake_s` and `spurious_retransmissions`; its series
        has `receive_window_bytes` among the internal quantities. What the place of the capture does
        not show is absent: near a receiver the window, everywhere the links.

    Raises
    ------
    InputError
        When a file is no capture, or nothing in it can be measured.

    Examples
    --------
    >>> import jostle
    >>> results = jostle.analyze("upload.pcapng.gz")  # doctest: +SKIP
    >>> results.flows.select("flow", "goodput_bps", "rtt_min_s")  # doctest: +SKIP
    """
    from jostle import captures
    from jostle.captures.progress import reading
    from jostle.running.store import Store

    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    with reading(given, shown=progress) as told:
        results = captures.analyze(
            given,
            flows=flows,
            interval=interval,
            store=None if store is None else Store(store),
            told=told,
        )
    results.page = _page
    return results


def _shown(plan: Plan) -> Progress:
    from jostle.results import conditions
    from jostle.running.progress import on_stderr

    return on_stderr(conditions.labels(plan.conditions))


def _scenario(
    given: Scenario | str | os.PathLike[str],
    overrides: Mapping[str, Any] | None,
    *,
    allow_code: bool,
) -> Scenario:
    if isinstance(given, str | os.PathLike):
        return load(given, overrides, allow_code=allow_code)
    # Whatever plans is a scenario.
    if not hasattr(given, "plan"):
        raise InputError(_NO_SCENARIO.format(type(given).__name__))
    return given.set(overrides) if overrides else given


def _page(results: ResultSet) -> str:
    from jostle.report import render

    return render([results])


def _noted(plan: Plan) -> Plan:
    for note in plan.notes:
        warnings.warn(printable(note), UserWarning, stacklevel=3)
    return plan


def _failed(failures: Sequence[Failure]) -> str:
    first = failures[0]
    text = f"{len(failures)} runs failed; the first, of seed {first.seed}: {first.error}"
    return printable(text)
