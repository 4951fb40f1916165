"""What released versions wrote is still read.

Each folder of `tests/formats` holds what one version wrote: a scenario, its RunSpec, its summary as
`--json` prints it, and a store with its run. `JOSTLE_BLESS=1` writes the folder of this version,
until it is released; those of others stay as they are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jostle
import jsonschema
import pytest
from jostle import _core
from jostle.cli import status
from jostle.results import SCHEMA
from jostle.store.segments.folder import FORMAT as SEGMENT
from jostle.store.store import Reader, Store

ROOT = Path(__file__).parents[1]
FORMATS = Path(__file__).with_name("formats")
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
CURRENT = ".".join(
    [VERSION, *(name.replace("/", "-").removeprefix("jostle.") for name in (SCHEMA, SEGMENT))]
)
"""What this version writes: builds of one version before its release may write several formats."""
SCENARIO = """\
format   = "jostle.scenario/2"
title    = "What a version wrote"
duration = "4 s"

[phases]
late = ["2 s", "4 s"]

[bottleneck]
rate  = "10 Mbit/s"
queue = { kind = "codel", limit = "1000 packets" }
loss  = { kind = "independent", probability = 0.0001 }

[[flows]]
name       = "one"
controller = { name = "cubic", slow_start = "hystart++" }
rtt        = "40 ms"

[[flows]]
name       = "two"
controller = "bbr"
rtt        = "20 ms"
start      = "1 s"
size       = "500 kB"
"""


def written(folder: Path) -> None:
    """Write what this version writes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(SCENARIO)
    results = jostle.run(folder / "scenario.toml", store=folder / "store")
    (folder / "summary.json").write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    (result,) = results.results
    (folder / "run-spec.json").write_text(json.dumps(result.run.spec, indent=1) + "\n")
    for name in (".partial", ".damaged"):
        shutil.rmtree(folder / "store" / name, ignore_errors=True)


if os.environ.get("JOSTLE_BLESS"):
    written(FORMATS / CURRENT)


@pytest.fixture(params=sorted(path.name for path in FORMATS.iterdir() if path.is_dir()))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what a version wrote."""
    return Path(shutil.copytree(FORMATS / request.param, tmp_path / request.param))


def test_this_version_is_among_them() -> None:
    assert (FORMATS / CURRENT).is_dir(), "JOSTLE_BLESS=1 writes it"


def test_its_scenario_is_read(folder: Path) -> None:
    """As it was written, or with the new names of its keys."""
    migrate = [sys.executable, str(ROOT / "tools" / "migrate_keys.py"), "scenario.toml"]
    subprocess.run(migrate, cwd=folder, check=True)
    (planned,) = jostle.load(folder / "scenario.toml").plan().runs
    assert [flow["name"] for flow in planned.spec["flows"]] == ["one", "two"]


def test_its_run_spec_is_read(folder: Path) -> None:
    spec = (folder / "run-spec.json").read_text()
    schema = json.loads(_core.run_spec_schema())
    assert schema["$id"] == "urn:jostle:run-spec:3"
    if "trace" in json.loads(spec):
        # Number 2, in which some keys have other names.
        assert _core.find_problem(spec) is not None
        return
    # While the number is the same, what was written then is a specification of now.
    jsonschema.validate(json.loads(spec), schema)
    assert _core.find_problem(spec) is None
    summary = json.loads(_core.run(spec).summary)
    assert [flow["name"] for flow in summary["flows"]] == ["one", "two"]


def test_its_store_is_read(folder: Path) -> None:
    said: list[str] = []
    store = Store(folder / "store", said.append)
    (name,) = Reader(folder / "store").names()
    run = store.get(name)
    assert said == []
    assert run is not None
    assert run.flows.height > 0
    assert run.provenance["format"] in {"jostle.run/1", "jostle.segment/2"}
    document = json.loads((folder / "summary.json").read_text())
    (told,) = document["conditions"][0]["runs"]
    assert told["run_id"] == name
    for flow, kept in zip(told["flows"], run.summary["flows"], strict=True):
        for phase, measures in flow["phases"].items():
            assert measures.items() <= kept["phases"][phase].items()


def test_its_summary_has_what_the_design_promises(folder: Path) -> None:
    document = json.loads((folder / "summary.json").read_text())
    number = int(document["schema"].removeprefix("jostle.summary/"))
    assert number in (1, 2, 3)
    new = _NEW_KEYS if number > 2 else {}
    (condition,) = document["conditions"]
    (run,) = condition["runs"]
    overall = run["flows"][0]["phases"]["overall"]
    promised = {
        "sending_rate_bps", "throughput_bps", "goodput_bps", "goodput_ratio", "rtt_mean_s",
        "rtt_min_s", "rtt_p50_s", "rtt_p95_s", "rtt_sd_s", "cwnd_mean_bytes", "sent_packets",
        "retransmitted_packets", "retransmission_ratio", "power_bits",
    }  # fmt: skip
    assert promised <= overall.keys()
    links = {"utilisation", "queue_mean_bytes", "queue_p95_bytes", "dropped_packets"}
    assert {new.get(key, key) for key in links} <= run["links"][0]["phases"]["overall"].keys()
    assert "jain" in run["fairness"]["overall"]
    if number == 1:
        return
    # Everything of 1 is in place, and what came since.
    (first,) = json.loads((FORMATS / VERSION / "summary.json").read_text())["conditions"]
    _has_all_of(run, first["runs"][0], new)
    estimates = condition["estimates"]
    one = estimates["flows"][0]["phases"]["late"]["throughput_bps"]
    assert one == {
        "mean": run["flows"][0]["phases"]["late"]["throughput_bps"],
        "low": None, "high": None, "n": 1,
    }  # fmt: skip
    assert estimates["flows"][1][new.get("completion_s", "completion_s")]["n"] == 1
    assert {"groups", "links", "fairness", "totals"} <= estimates.keys()
    assert run["flows"][1]["unfinished"] == 0
    assert {"queueing_delay_mean_s", "queueing_delay_p95_s", "dropped_codel_packets"} <= run[
        "links"
    ][0]["phases"]["overall"].keys()


_NEW_KEYS = {
    "completion_s": "completion_time_s",
    "completion_mean_s": "completion_time_mean_s",
    "completion_p50_s": "completion_time_p50_s",
    "completion_p95_s": "completion_time_p95_s",
    "completion_p99_s": "completion_time_p99_s",
    "convergence_s": "convergence_time_s",
    "estimate_bps": "bandwidth_estimate_bps",
    "queue_mean_bytes": "queue_length_mean_bytes",
    "queue_mean_s": "queue_delay_estimate_mean_s",
    "queue_p95_bytes": "queue_length_p95_bytes",
    "queue_p95_s": "queue_delay_estimate_p95_s",
}
"""Keys of a summary that have another name from number 3 on."""


def _has_all_of(new: Any, old: Any, names: dict[str, str]) -> None:
    """Whether every key is there that once was, by its old or its new name."""
    if isinstance(old, dict):
        assert {names.get(key, key) for key in old} <= new.keys()
        for key, value in old.items():
            _has_all_of(new[names.get(key, key)], value, names)
    elif isinstance(old, list):
        for one, other in zip(new, old, strict=True):
            _has_all_of(one, other, names)


@pytest.mark.parametrize(
    ("number", "said"),
    [(1, "is now called `jostle.scenario/2` — run `python tools/migrate_keys.py"),
     (3, 'accepted: "jostle.scenario/2"')],
)  # fmt: skip
def test_another_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int, said: str
) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(SCENARIO.replace("jostle.scenario/2", f"jostle.scenario/{number}"))
    assert status(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert "scenario.toml:1: format" in err
    assert said in err
