"""The table of readers: a row for each kind of file that somebody else could have written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

__all__ = ["OTHERS", "READERS", "Reader"]

_RUN = ("run", "--store", "none", "--jobs", "1")
_STORE = ".jostle/store"


@dataclass(frozen=True)
class Reader:
    """A kind of file, and the public commands that read it.

    Attributes
    ----------
    name
        Of the row, and of its folder of seeds: see `seeds.py`.
    form
        Structure of the file, for `mutations.mutate`.
    files
        Those that are damaged, one in each case: patterns within the folder of the seeds.
    commands
        Commands, one of which is run; `FILE` is the damaged file.
    modules
        Modules of jostle that open these files; empty if the engine or a library does.
    statuses
        Documented exit statuses: 0, and 2 for a file that is refused.
    names
        Files of which a refusal names one, beside the damaged one.
    repairs_digests
        Whether the names and digests of a segment are made to fit what was damaged.
    is_taken
        Whether the first command takes an undamaged file.
    """

    name: str
    form: str
    files: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    modules: tuple[str, ...] = ()
    statuses: frozenset[int] = frozenset({0, 2})
    names: tuple[str, ...] = ()
    repairs_digests: bool = False
    is_taken: bool = True


def _in_scenario(name: str, form: str, file: str, module: str) -> Reader:
    """Make the row of a file that a scenario names."""
    command = (*_RUN, "s.toml")
    runs = frozenset({0, 1, 2})
    return Reader(name, form, (file,), (command,), (module,), runs, ("s.toml",))


def _capture(name: str, form: str, file: str, *modules: str) -> Reader:
    """Make the row of a file that `jostle analyze` measures."""
    commands = (("analyze", "FILE"), ("analyze", "FILE", "--json"))
    # The engine reads captures, and Python their digests.
    return Reader(name, form, (file,), commands, modules or ("measurements.analysis",))


def _trace(name: str, form: str, file: str) -> Reader:
    """Make the row of a recording of a link."""
    commands = (
        *(("link", "convert", "FILE", "-o", f"out.{kind}") for kind in ("csv", "mahi")),
        ("link", "generate", "--fit", "FILE", "--duration", "10 s", "-o", "out.csv"),
        (*_RUN, "s.toml"),
    )
    modules = ("scenario.traces.mahimahi",)
    statuses = frozenset({0, 1, 2})
    return Reader(name, form, (file,), commands, modules, statuses, ("s.toml",))


def _study(name: str, form: str, file: str, module: str, *command: str) -> Reader:
    """Make the row of a file of a study, or of a suite."""
    words = command or ("study", "run", "./small", "--repeats", "1", "--jobs", "1", "-o", "page/")
    names = ("small",)
    statuses = frozenset({0, 1, 2})
    return Reader(name, form, (file,), (words,), (module,), statuses, names)


def _stored(name: str, form: str, files: tuple[str, ...], *modules: str) -> Reader:
    """Make the row of a file in a store."""
    commands = (
        ("store", "check"),
        ("store", "export", "out.csv"),
        ("store", "sql", "select * from runs limit 3"),
        ("store", "sql", "select * from flows limit 3"),
        ("store", "compact"),
        ("run", "s.toml", "--jobs", "1"),
        ("compare", _STORE),
        ("sweep", "status"),
    )
    statuses = frozenset({0, 1, 2})
    names = (_STORE, "s.toml", "segments", "run ")
    return Reader(name, form, files, commands, modules, statuses, names, repairs_digests=True)


READERS: Final = (
    Reader(
        "scenario",
        "toml",
        ("*.toml",),
        (
            (*_RUN, "FILE"),
            (*_RUN, "FILE", "--json"),
            (*_RUN, "FILE", "-o", "r.html"),
            (
                "search",
                "boundary",
                "FILE",
                "--store",
                "none",
                "--jobs",
                "1",
                "--claim",
                "goodput of a >= 1 Mbit/s",
            ),
        ),
        ("scenario.parsing.toml_document",),
        frozenset({0, 1, 2}),
    ),
    _in_scenario("gml", "text", "net.gml", "scenario.parsing.graph_files"),
    _in_scenario("graphml", "text", "net.graphml", "scenario.parsing.graph_files"),
    _in_scenario("arrivals", "text", "arrivals.txt", "scenario.resolve.arrivals"),
    _in_scenario("writes", "text", "writes.csv", "scenario.resolve.write_traces"),
    _in_scenario("distribution", "text", "sizes.cdf", "scenario.distributions"),
    _in_scenario("remy-table", "bytes", "table.dna", "scenario.registry"),
    _in_scenario("policy", "text", "policy.txt", "scenario.registry"),
    Reader(
        "python-controller",
        "text",
        ("mine.py",),
        ((*_RUN, "s.toml", "--allow-code"),),
        ("scenario.python_controllers.source_files",),
        frozenset({0, 1, 2}),
        ("s.toml",),
    ),
    _trace("trace-mahimahi", "text", "link.mahi"),
    _trace("trace-csv", "text", "link.csv"),
    _trace("trace-iperf3", "json", "link.json"),
    _trace("trace-irtt", "json", "link.json"),
    _trace("trace-ping", "text", "link.txt"),
    Reader(
        "link-file",
        "toml",
        ("link.toml",),
        (
            ("identify", "flow.pcap", "--jobs", "1", "--link", "FILE"),
            ("link", "emulate", "FILE", "--max-delay-error", "never", "--", "true"),
            ("exec", "FILE", "--on", "client", "true", "--backend", "sim"),
        ),
        ("scenario.parsing.toml_document",),
        # 1: on such a link no candidate sends long enough to be compared.
        frozenset({0, 1, 2}),
        names=("--max-delay-error", "--backend"),
    ),
    Reader(
        "claim",
        "toml",
        ("claim.toml",),
        (
            (
                "search",
                "boundary",
                "s.toml",
                "--claim",
                "FILE",
                "--store",
                "none",
                "--points",
                "4",
                "--jobs",
                "1",
            ),
        ),
        ("scenario.parsing.toml_document",),
        frozenset({0, 1, 2}),
    ),
    Reader(
        "tuned-scenario",
        "toml",
        ("s.toml",),
        (
            (
                *("search", "tune", "FILE", "--store", "none", "--jobs", "1", "--trials", "1"),
                *("--vary", "bottleneck.rate=['5 Mbit/s', '6 Mbit/s']"),
                *("--maximize", "goodput of a"),
            ),
        ),
        ("scenario.parsing.toml_document",),
        frozenset({0, 1, 2}),
    ),
    Reader(
        "fitted-scenario",
        "toml",
        ("s.toml",),
        (("fit", "FILE", "--data", "flow.pcap", "--vary", "bottleneck.rate", "--trials", "10"),),
        ("scenario.parsing.toml_document",),
        frozenset({0, 1, 2}),
    ),
    Reader(
        "causes",
        "toml",
        ("page-causes.toml",),
        (("validate", "s.toml", "--store", "none", "-o", "page.md"),),
        ("fidelity.causes",),
        frozenset({0, 1, 2}),
        # Which kernels a machine has is no matter of what is read.
        ("no virtual-time kernel",),
        is_taken=False,
    ),
    _study("study", "toml", "small/study.toml", "scenario.parsing.toml_document"),
    _study("study-scenario", "toml", "small/flow.toml", "scenario.parsing.toml_document"),
    _study("study-setup", "text", "small/setup.md", "studies.consistency_check"),
    _study("study-linux", "json", "small/linux.json", "studies.json_file"),
    _study("study-points", "json", "small/linux-points.json", "studies.operating_points_archive"),
    _study(
        *("suite", "toml", "small/suite.toml", "scenario.parsing.toml_document"),
        *("suite", "run", "./small", "--controller", "reno", "--quick", "--jobs", "1", "--json"),
    ),
    _study(
        *("suite-scenario", "toml", "small/alone.toml", "scenario.parsing.toml_document"),
        *("suite", "run", "./small", "--controller", "reno", "--quick", "--jobs", "1", "--json"),
    ),
    _capture("pcap", "bytes", "flow.pcap"),
    _capture("pcap-gz", "bytes+gz", "flow.pcap.gz"),
    _capture("pcapng", "bytes", "flow.pcapng"),
    _capture("pcapng-zst", "bytes+zst", "flow.pcapng.zst"),
    Reader(
        "pcap-identified",
        "bytes",
        ("flow.pcap",),
        (
            ("identify", "FILE", "--jobs", "1"),
            ("advise", "FILE", "--goal", "bulk", "--jobs", "1"),
            ("fit", "s.toml", "--data", "FILE", "--vary", "bottleneck.rate", "--trials", "10"),
            ("analyze", "FILE", "--time-sequence", "-o", "r.html"),
        ),
        ("measurements.analysis",),
    ),
    _capture("qlog", "json", "flow.qlog", "measurements.tool_logs"),
    _capture("qlog-sequence", "lines", "flow.sqlog", "measurements.tool_logs"),
    _capture("qlog-gz", "lines+gz", "flow.sqlog.gz", "measurements.tool_logs"),
    _capture("flent", "json+gz", "flow.flent.gz", "measurements.tool_logs"),
    _capture("iperf3", "json", "log.json", "measurements.tool_logs"),
    _capture("irtt", "json", "log.json", "measurements.tool_logs"),
    _capture("ping", "text", "ping.txt", "measurements.tool_logs"),
    _capture("ss", "text", "ss.log", "measurements.tool_logs"),
    Reader(
        "measurement",
        "json",
        ("measured/measurement.json",),
        (("analyze", "measured"),),
        ("measurements.measurement_folder",),
        names=("measured",),
    ),
    _stored("segment-manifest", "json", (f"{_STORE}/segments/*/manifest.json",)),
    _stored("segment-tables", "bytes", (f"{_STORE}/segments/*/*.parquet",)),
    replace(
        _stored("store-index", "bytes", (f"{_STORE}/.index.parquet",), "store.segments.index"),
        commands=(("run", "s.toml", "--jobs", "1"), ("store", "check"), ("store", "compact")),
    ),
    _stored("store-plan", "json", (f"{_STORE}/.plans/*.json",), "store.stored_plans"),
    _stored("store-sweep", "json", (f"{_STORE}/.sweeps/*/*.json",), "runner.sweeps.sweep_files"),
    _stored("run-folder", "json", (f"{_STORE}/[0-9a-f]*/*.json",), "store.run_folder"),
    _stored("run-tables", "bytes", (f"{_STORE}/[0-9a-f]*/*.parquet",), "store.disk"),
    Reader(
        "shared-store",
        "bytes",
        ("bucket/segments/*/*", "bucket/.plans/*"),
        (
            ("store", "pull", "file://BUCKET", "--store", "copy"),
            ("run", "s.toml", "--jobs", "1", "--store", "file://BUCKET"),
        ),
        (),
        frozenset({0, 1, 2}),
        ("bucket", "s.toml"),
        repairs_digests=True,
    ),
)
"""Every reader. `tests/test_fuzzed_readers.py` sees that none is missing."""

OTHERS: Final = {
    "store.parquet_files": "tables of a segment, in the rows `segment-tables` and `run-tables`",
    "store.maintenance.sql_question": "the same, which `store.parquet_files` checks before",
    "store.maintenance.duckdb_files": "the same, which `store.parquet_files` checks before",
    "gym.policy": "a policy, of which the engine reads the content as in the row `policy`",
    "kernel_images.bridge": "a module that jostle itself compiled, in the user's cache",
    "controller_crates.build": "a library that jostle itself compiled, in the user's cache",
    "controller_crates.dependencies": "manifests of jostle's own crates, in its installation",
    "controller_crates.source": "a crate that the user allowed: cargo reads it, too",
    "kernel_images.controller_modules": "modules that jostle itself compiled, in the user's cache",
    "kernel_images.image_paths": "facts of a kernel that jostle itself built, in the user's cache",
    "backends.kernel.remote_workers": "the same, sent to a worker of the user's own cluster",
    "backends.kernel.guest_samples": "what jostle's own program in a guest wrote",
    "backends.kernel.captures": "what jostle's own program in a guest wrote",
    "backends.kernel.engine_samples_datagrams": "what jostle's own program in a guest wrote",
    "backends.kernel.engine_samples_quic": "what jostle's own program in a guest wrote",
    "backends.kernel.qlog_reader": "logs of a program that the user allowed; as the qlog rows",
    "cli.shell_completion": "a scenario, read by `scenario.parsing.toml_document`",
    "cli.detach": "the log of a command that the user started",
    "cli.registry_names": "titles of scenarios, which the row `scenario` reads",
    "report.html": "text of scenarios, which the row `scenario` reads",
    "studies.page": "text of a study, which `studies.consistency_check` reads before",
    "suites.scorecard_page": "text of a suite, read as that of a study",
    "scenario.parsing.toml_file": "a scenario that is changed, read as the row `scenario`",
    "scenario.scenario": "a scenario, read by `scenario.parsing.toml_document`",
    "parameter_search.claims": "a claim, read by `scenario.parsing.toml_document`",
    "programs.execution": "what jostle's own program in a guest wrote",
    "programs.network_file": "a network file, read by `scenario.parsing.toml_document`",
    "emulate.link_file": "a link file, read by `scenario.parsing.toml_document`",
    "store.segments.folder": "segments, of which Polars opens the tables: `segment-…`",
}
"""Modules that open files of others through `safe_io.untrusted_files`, and why they have no row."""
