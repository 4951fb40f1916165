"""Every reader of files takes damaged ones through its public commands, and none is forgotten."""

from __future__ import annotations

import ast
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzzing.cases import ACCEPTED, Watched, run_watched
from fuzzing.readers import OTHERS, READERS
from fuzzing.seeds import repair_digests
from jostle import _core
from jostle.safe_io.code_consent import CODE_SOURCES
from limited import SOUND

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "jostle"
CASES = 2
"""Of each reader; `make fuzz` carries out others for as long as is wanted."""

KINDS = {
    "a scenario": ["scenario"],
    "a scenario of `jostle search tune`": ["tuned-scenario"],
    "a scenario of `jostle search boundary`": ["scenario"],
    "a scenario of `jostle fit`": ["fitted-scenario"],
    "a scenario of `jostle advise`": ["scenario"],
    "a study of `jostle study coverage`": ["study"],
    "a study": ["study", "study-scenario", "study-setup", "study-linux", "study-points"],
    "a suite": ["suite", "suite-scenario"],
    "your own record of a sweep": ["store-sweep"],
    "a store": ["segment-manifest", "segment-tables", "run-folder", "run-tables", "shared-store"],
    "a policy of a learned controller": ["policy"],
    "a table of Remy": ["remy-table"],
    "a graph of a network": ["gml", "graphml"],
    "a trace of a link or of an application": ["trace-mahimahi", "trace-csv", "writes"],
    "a capture or a log": ["pcap", "pcapng", "qlog", "flent", "iperf3", "irtt", "ping", "ss"],
    "a claim of `jostle search boundary`": ["claim"],
    "a distribution of sizes": ["distribution"],
    "LINK.toml of `jostle link emulate`": ["link-file"],
    "NETWORK.toml of `jostle exec`": ["link-file"],
    "a list of arrivals and their sizes": ["arrivals"],
    "files next to a Python controller": ["python-controller"],
}
"""Kinds of files that could name code → some of their rows."""
NEVER_READ = {
    ".env in the current folder",
    "implementations.toml in the current folder",
    "settings of libraries and programs in the current folder",
    "a Python module in the current folder",
}
PARAMETERS = {("remy", "table"): "remy-table", ("learned", "policy"): "policy"}
"""Parameters of the registry that are files → their rows."""
NAMES = {reader.name for reader in READERS}


@pytest.fixture(scope="module")
def tallies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Fuzz every reader a little, in two processes, once for all workers of pytest."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    file = folder / "fuzzed.json"
    with (folder / "fuzzed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(json.dumps(fuzz_all(tmp_path_factory.mktemp("fuzz"))))
    tallied: dict[str, dict[str, Any]] = json.loads(file.read_text())
    return tallied


def fuzz_all(folder: Path) -> dict[str, dict[str, Any]]:
    program = [sys.executable, str(ROOT / "tools" / "fuzz_readers.py"), "--seed", "1"]
    program += ["--cases", str(CASES), "--simulated-s", "0", "--output", str(folder / "found")]
    names = [reader.name for reader in READERS]
    parts = {folder / f"{part}.json": names[part::2] for part in range(2)}
    started = [
        subprocess.Popen(
            [*program, *some, "--json", str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for file, some in parts.items()
    ]
    said = [process.communicate()[0].decode("utf-8", "replace") for process in started]
    found = [json.loads(file.read_text()) for file in parts if file.exists()]
    assert sum(map(len, found)) == len(names), "\n".join(said)[-4000:]
    return {
        tally["reader"]: tally | {"said": said[part]} for part in range(2) for tally in found[part]
    }


@pytest.mark.parametrize("name", [reader.name for reader in READERS])
def test_damaged_files_are_refused_or_read(name: str, tallies: dict[str, dict[str, Any]]) -> None:
    tally = tallies[name]
    assert tally["faults"] == {}, tally["said"][-4000:]
    assert tally["cases"] >= CASES


@pytest.mark.parametrize("name", [reader.name for reader in READERS])
def test_an_undamaged_file_is_read_by_its_module(
    name: str, tallies: dict[str, dict[str, Any]]
) -> None:
    (reader,) = [reader for reader in READERS if reader.name == name]
    opened = {module.removeprefix("jostle.") for module in tallies[name]["opened"]}
    assert set(reader.modules) <= opened, opened


def test_every_module_that_opens_files_of_others_is_fuzzed() -> None:
    opening = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {
            alias.name for node in froms for alias in node.names
            if node.module
            in {"jostle.safe_io.untrusted_files", "jostle.scenario.parsing.toml_document"}
        }  # fmt: skip
        if names & {"open_regular", "read_bytes", "read_text", "read_json"}:
            opening.add(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    in_rows = {module for reader in READERS for module in reader.modules}
    assert opening - in_rows - OTHERS.keys() == set(), "give each a row in tests/fuzzing/readers.py"
    assert OTHERS.keys() - opening == set()
    assert in_rows & OTHERS.keys() == set()


def test_every_kind_of_file_is_fuzzed() -> None:
    assert {source.file for source in CODE_SOURCES} == KINDS.keys() | NEVER_READ
    assert {row for rows in KINDS.values() for row in rows} <= NAMES


def test_every_parameter_that_is_a_file_is_fuzzed() -> None:
    document = json.loads(_core.registry())
    files = {
        (row["name"], parameter["name"])
        for rows in document.values()
        if isinstance(rows, list)
        for row in rows
        for parameter in row.get("parameters", ())
        if parameter["kind"] == "file"
    }
    assert files == PARAMETERS.keys()
    assert set(PARAMETERS.values()) <= NAMES


def test_digests_of_other_files_are_not_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "segments" / "one"
    folder.mkdir(parents=True)
    (tmp_path / "outside").write_text("outside")
    (folder / "runs.parquet").write_text("inside")
    names = {"runs.parquet": "", "../../outside": "kept"}
    (folder / "manifest.json").write_text(json.dumps({"sha256": names}))
    repair_digests(tmp_path)
    (manifest,) = tmp_path.glob("segments/*/manifest.json")
    repaired = json.loads(manifest.read_text())["sha256"]
    assert repaired["../../outside"] == "kept"
    assert repaired["runs.parquet"] == hashlib.sha256(b"inside").hexdigest()


def test_a_case_of_many_runs_ends_before_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"repeats = 300_000\n{SOUND}")
    words = ("run", "s.toml", "--store", "none", "--jobs", "1")
    watched = Watched(words, tmp_path, ("s.toml",), frozenset({0}), simulated_s=1.0)
    outcome = run_watched(watched)
    assert (outcome.status, outcome.faults) == (ACCEPTED, [])
