"""The kernel of this machine: tried inside a guest, where everybody is root and tc is complete."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import jostle
import pcapng
import pytest
from jostle.backends.kernel import KernelBackend, KernelRunError
from jostle.kernel_images import Image, run_guest, status

from backends_kernel.kernel_specs import spec_of

SHORT = {"duration": '"2 s"', "phases.late": '["1 s", "2 s"]'}
CAPTURED = {**SHORT, "capture": "true"}

RUN = """
import json, os, signal, subprocess, sys, threading, time
from pathlib import Path
from jostle.backends.kernel import KernelBackend, KernelRunError

def namespaces():
    links = set()
    for process in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            links.add(os.readlink(process))
        except OSError:
            pass
    return len(links)

def networks():
    # The devices of every namespace appear here while it lives, whoever holds it.
    return sorted(os.listdir("/sys/class/net"))

spec = json.loads(Path(sys.argv[1]).read_text())
backend = KernelBackend("native")
before = namespaces(), networks()
record = backend.run(spec)
folder = Path(sys.argv[1]).parent
for name, path in record.captures.items():
    (folder / path.name).write_bytes(path.read_bytes())
after = namespaces(), networks()

def kill():
    # Long enough for the flows to be on their way.
    time.sleep(1.5)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        if b"jostle-run-" in process.read_bytes():
            os.kill(int(process.parent.name), signal.SIGKILL)

threading.Thread(target=kill, daemon=True).start()
try:
    overall = {"name": "overall", "from_ns": 0, "to_ns": 60 * 10**9}
    backend.run(spec | {"duration_ns": 60 * 10**9, "phases": [overall]})
    killed = "it was not killed"
except KernelRunError as error:
    killed = str(error).splitlines()[0]
time.sleep(0.1)
at_last = namespaces(), networks()
print("result", json.dumps([record.summary, before == after == at_last, killed, record.backend_version]))
"""  # noqa: E501


@pytest.fixture(scope="module")
def outcome(kernel: Image, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("native")
    (folder / "spec.json").write_text(json.dumps(spec_of(overrides=CAPTURED)))
    program = folder / "program.py"
    program.write_text(RUN)
    script = folder / "script"
    python = f"{sys.executable} {program} {folder / 'spec.json'}"
    # The package that is tested, wherever it is installed.
    package = Path(jostle.__file__).parents[1]
    variables = f"export TMPDIR={folder} XDG_CACHE_HOME={folder} PYTHONPATH={package}"
    script.write_text(f"#!/bin/sh\n{variables}\nexec {python} 2>&1\n")
    output = run_guest(kernel, script, {}, memory_mb=1024, timeout_s=120)
    told = [line for line in output.text.splitlines() if line.startswith("result ")]
    assert told, output.tail
    return (*json.loads(told[0].removeprefix("result ")), folder)


def test_the_same_program_runs_in_namespaces_of_the_host(outcome):
    summary, _, _, version, folder = outcome
    assert version.startswith("native-6.")
    overall = summary["flows"][0]["phases"]["overall"]
    assert overall["goodput_bps"] > 0.8 * 20e6
    assert overall["rtt_min_s"] == pytest.approx(0.0406, abs=1e-4)
    sender = pcapng.read(folder / "one.sender.pcapng")
    assert "(native)" in sender.system
    assert sender.retransmitted == overall["retransmitted_packets"]


def test_nothing_is_left_of_it_even_when_it_is_killed(outcome):
    _, nothing_left, killed, _, _ = outcome
    assert "without a result" in killed
    assert nothing_left


def test_parameters_of_this_machine_are_not_touched(native_kernel: Image):
    """A value that differs is an error that says what to set."""
    present = Path("/sys/module/tcp_cubic/parameters/fast_convergence")
    if not present.exists():
        pytest.skip("Cubic is not loaded here")
    before = present.read_text()
    other = "true" if before.strip() == "0" else "false"
    controller = f'{{ name = "cubic", fast_convergence = {other} }}'
    spec = spec_of(overrides={**SHORT, "flows.one.controller": controller})
    with pytest.raises(KernelRunError, match=r"fast_convergence, which is . on this machine"):
        KernelBackend(image=native_kernel).run(spec)
    assert present.read_text() == before


def test_a_missing_controller_of_this_machine_is_named(native_kernel: Image):
    backend = KernelBackend(image=native_kernel)
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "illinois" in available or Path("/lib/modules", os.uname().release).exists():
        pytest.skip("this machine has or can load every controller")
    spec = spec_of(overrides=SHORT)
    spec["flows"][0] |= {"controller": {"name": "illinois", "parameters": {}}, "slow_start": None}
    with pytest.raises(KernelRunError, match="no congestion control illinois: there is"):
        backend.run(spec)


def test_disciplines_that_this_machine_lacks_are_named(native_kernel: Image):
    lacking = status.states()[2].to_dict()["lacking_disciplines"]
    if "netem" not in lacking:
        pytest.skip("this machine has netem")
    with pytest.raises(KernelRunError, match=r"discipline.* netem.* \(module.* sch_netem"):
        KernelBackend(image=native_kernel).run(spec_of(overrides=SHORT))
