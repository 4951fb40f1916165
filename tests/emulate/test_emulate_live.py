"""Real programs behind emulated links, in namespaces. They need root and TUN devices."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from jostle import _core
from jostle.emulate import namespaces

TRAFFIC = Path(__file__).with_name("traffic.py")
JOSTLE = [sys.executable, "-c", "from jostle.cli import main; main()"]
# A full segment's payload and what it takes on the wire.
GOODPUT = 1448 / 1514


def can_emulate() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or not hasattr(_core, "Emulator"):
        return False
    # Several processes of pytest ask at the same time.
    name = f"probe-{os.getpid()}"
    try:
        _core.Emulator(json.dumps(SPEC), f"{name}a", f"{name}b")
    except OSError:
        return False
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return made.returncode == 0


def link_spec(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "capacity": {"kind": "constant", "rate_bps": 10**6},
        "queue": {"kind": "drop_tail", "parameters": {"limit": {"packets": 10}}},
        "delay": {"steps": [{"at_ns": 0, "delay_ns": 0}], "jitter": None},
        "loss": None,
        "outages": None,
    }


SPEC = {
    "seed": 1,
    "forward": [link_spec("there")],
    "reverse": [link_spec("back")],
    "mtu_bytes": 1500,
    "lateness_bound_ns": 10**6,
    "memory_bytes": 1 << 20,
    "journal": False,
}

pytestmark = pytest.mark.skipif(
    not can_emulate(), reason="emulating a link needs root, `ip`, namespaces and TUN devices"
)


@dataclass(frozen=True)
class Emulated:
    status: int
    printed: str
    said: str
    document: dict[str, Any]
    log: pl.DataFrame


def traffic(*words: str) -> list[str]:
    return [sys.executable, str(TRAFFIC), *words]


def command(folder: Path, link: str, *options: str) -> list[str]:
    file = folder / "link.toml"
    file.write_text(link)
    return [*JOSTLE, "link", "emulate", str(file), *options]


def emulated(
    folder: Path,
    link: str,
    program: Sequence[str],
    peer: Sequence[str] = (),
    *options: str,
    lateness: str = "1 s",
) -> Emulated:
    log, summary = folder / "log.parquet", folder / "summary.json"
    files = ["-o", str(log), "-o", str(summary), "--max-delay-error", lateness]
    peer = peer or traffic("serve")
    whole = command(folder, link, *files, "--peer", shlex.join(peer), *options, "--", *program)
    done = subprocess.run(whole, capture_output=True, text=True, timeout=30, check=False)
    document = json.loads(summary.read_text()) if summary.exists() else {}
    assert document, done.stderr
    return Emulated(done.returncode, done.stdout, done.stderr, document, pl.read_parquet(log))


def links_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [link for way in ("to_command", "from_command") for link in document[way]["links"]]


def check_account(found: Emulated) -> None:
    """Every packet is accounted for, and the log has what the counters have."""
    for name in ("to_command", "from_command"):
        way = found.document[name]
        ended = ("delivered", "refused", "dropped", "left")
        assert way["arrived_packets"] == sum(way[f"{one}_packets"] for one in ended)
        assert way["unseen_packets"] == 0
    for event, counted in (("drop", "dropped"), ("mark", "marked")):
        logged = found.log.filter(event=event)
        assert logged.height == sum(
            sum(link[counted].values()) for link in links_of(found.document)
        )
        for link in links_of(found.document):
            for reason, count in link[counted].items():
                assert logged.filter(link=link["name"], reason=reason).height == count


def test_a_ping_takes_the_delay_of_both_ways(tmp_path: Path) -> None:
    link = """
        rtt = "20 ms"
        [bottleneck]
        rate = "100 Mbit/s"
        delay = "15 ms"
        queue = { kind = "drop_tail", limit = "1 BDP" }
    """
    found = emulated(tmp_path, link, traffic("ping", "20"))
    assert found.status == 0, found.said
    rtts_ms = json.loads(found.printed)
    assert min(rtts_ms) >= 20
    # The best of them: what wake-ups of a busy machine are late says nothing about the link.
    assert min(rtts_ms) < 21
    check_account(found)
    for way in ("to_command", "from_command"):
        assert found.document[way]["delivered_packets"] == 20
    assert 0 <= found.document["lateness"]["p50_s"] <= found.document["lateness"]["max_s"]
    assert "on time" in found.said


def test_packets_with_a_number_meet_their_faults(tmp_path: Path) -> None:
    link = """
        rtt = "20 ms"
        [bottleneck]
        rate = "100 Mbit/s"
        delay = "10 ms"
        queue = { kind = "drop_tail", limit = "1 BDP" }
        faults = { packets = [{ duplicate = [2], delay = [4], late = "80 ms" }] }
    """
    found = emulated(tmp_path, link, traffic("ping", "6"))
    assert found.status == 0, found.said
    rtts_ms = json.loads(found.printed)
    late = [number for number, rtt_ms in enumerate(rtts_ms, start=1) if rtt_ms >= 100]
    assert late == [4]
    way = found.document["to_command"]
    assert way["links"][0]["duplicated_packets"] == 1
    assert way["arrived_packets"] + 1 == way["delivered_packets"]
    assert "1 duplicated" in found.said


def test_a_connection_gets_the_rate_of_the_link(tmp_path: Path) -> None:
    link = """
        [bottleneck]
        rate = "20 Mbit/s"
        delay = "10 ms"
        queue = { kind = "drop_tail", limit = "1 BDP" }
    """
    found = emulated(tmp_path, link, traffic("download", "3"), traffic("serve"))
    assert found.status == 0, found.said
    assert float(found.printed) == pytest.approx(20e6 * GOODPUT, rel=0.03)
    check_account(found)
    # TCP fills a queue until it overflows.
    drops = found.log.filter(event="drop")
    assert drops.height > 0
    assert set(drops["reason"]) == {"overflow"}
    assert set(drops["direction"]) == {"to_command"}
    assert set(drops["protocol"]) == {"tcp"}
    assert set(drops["source_port"]) == {5000}
    # Nearly all are full; where one write of the sender ends, a packet may be smaller.
    assert drops["size_bytes"].max() == 1514
    assert drops.filter(size_bytes=1514).height >= 0.9 * drops.height
    assert drops["time_s"].is_sorted()
    bottleneck = found.document["to_command"]["links"][0]
    assert bottleneck["utilisation"] == pytest.approx(1, abs=0.1)
    assert bottleneck["queue_max_bytes"] <= 50_000


def test_marks_arrive_at_the_program(tmp_path: Path) -> None:
    link = """
        [[links]]
        name = "access"
        rate = "100 Mbit/s"
        queue = { kind = "drop_tail", limit = "1 MB" }
        [[links]]
        name = "shared"
        rate = "10 Mbit/s"
        queue = { kind = "codel", limit = "1 MB", ecn = true }
        [reverse]
        rate = "1 Mbit/s"
        queue = { kind = "drop_tail", limit = "100 kB" }
    """
    found = emulated(tmp_path, link, traffic("count_marks"), traffic("spray"))
    assert found.status == 0, found.said
    received, marked = json.loads(found.printed)
    access, shared = found.document["to_command"]["links"]
    assert received == 400
    assert marked == shared["marked"]["codel"] > 0
    assert (access["marked"], shared["dropped"]) == ({}, {})
    check_account(found)


@pytest.mark.skipif(not Path("/proc/sys/net/ipv6").exists(), reason="no IPv6 here")
def test_ipv6_crosses_the_link(tmp_path: Path) -> None:
    found = emulated(tmp_path, LINK, traffic("ping6"))
    assert found.status == 0, found.said
    assert float(found.printed) >= 10
    # Nothing but the echo and its answer: no neighbour is looked for, no router asked.
    for way in ("to_command", "from_command"):
        assert found.document[way]["arrived_packets"] == 1


def test_an_emulation_that_is_late_is_no_result(tmp_path: Path) -> None:
    link = """
        [bottleneck]
        rate = "10 Mbit/s"
        queue = { kind = "drop_tail", limit = "1 MB" }
    """
    found = emulated(tmp_path, link, traffic("ping", "3"), lateness="0 s")
    assert (found.status, found.document["exit_status"]) == (1, 0)
    assert found.document["verdict"] == "late"
    assert "INVALID: late" in found.said


def test_the_status_is_that_of_the_command(tmp_path: Path) -> None:
    found = emulated(tmp_path, LINK, ["sh", "-c", "exit 7"], (), "--swap-directions")
    assert (found.status, found.document["exit_status"]) == (7, 7)


LINK = """
    [bottleneck]
    rate = "10 Mbit/s"
    delay = "5 ms"
    queue = { kind = "drop_tail", limit = "1 MB" }
"""


def own_namespaces(pid: int) -> list[str]:
    return [name for name in namespaces.names() if name.startswith(f"jostle-{pid}-")]


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start emulations whose far end is this host, and wait for the command to say something."""
    processes = []

    def started(*program: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*command(tmp_path, LINK), "--", *program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield started
    for process in processes:
        process.terminate()
        process.communicate(timeout=20)


def test_the_host_is_the_far_end(start: Start) -> None:
    devices = set(os.listdir("/sys/class/net"))
    ping_host = shlex.join(traffic("ping", "3"))
    process = start("sh", "-c", f"echo ready; {ping_host}")
    added = set(os.listdir("/sys/class/net")) - devices
    printed, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    assert min(json.loads(printed)) >= 10
    assert len(added) == 1
    assert not added & set(os.listdir("/sys/class/net"))
    assert own_namespaces(process.pid) == []


def test_signals_reach_the_command_and_everything_is_taken_down(start: Start) -> None:
    script = 'trap "echo told; exit 3" TERM; sleep 50 & echo ready; wait'
    process = start("sh", "-c", script)
    assert own_namespaces(process.pid) != []
    process.send_signal(signal.SIGTERM)
    printed, said = process.communicate(timeout=20)
    assert (process.returncode, printed) == (3, "told\n"), said
    assert own_namespaces(process.pid) == []
    assert "s of emulation" in said


def test_the_next_start_removes_what_a_killed_one_left(start: Start) -> None:
    killed = start("sh", "-c", "sleep 50 & echo ready; wait")
    (left,) = own_namespaces(killed.pid)
    killed.kill()
    killed.wait()
    assert own_namespaces(killed.pid) == [left]
    # Another process that somebody has started there.
    stray = subprocess.Popen(["ip", "netns", "exec", left, "sleep", "50"])
    living = start("sh", "-c", "echo ready; exec sleep 50")
    assert own_namespaces(killed.pid) == []
    assert stray.wait(5) == -signal.SIGTERM
    # What is alive stays.
    assert namespaces.clean_stale() == []
    assert len(own_namespaces(living.pid)) == 1
    living.terminate()
    assert living.wait(20) == 128 + signal.SIGTERM
    assert own_namespaces(living.pid) == []


CALLERS = (
    {"SUDO_UID": "65534", "SUDO_GID": "65534"},
    pytest.param({"DOAS_USER": "nobody"}, marks=pytest.mark.slow),
    pytest.param({"PKEXEC_UID": "65534"}, marks=pytest.mark.slow),
)


@pytest.mark.parametrize("variables", CALLERS, ids=["sudo", "doas", "pkexec"])
def test_the_command_has_the_rights_and_the_home_of_the_caller(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    root = pwd.getpwuid(0).pw_dir
    monkeypatch.setenv("HOME", root)
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{root}/.config")
    link = '[bottleneck]\nrate = "10 Mbit/s"\nqueue = "fq_codel"\n'
    script = (
        "id -u; id -g; id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f 2;"
        " echo $HOME $USER ${XDG_CONFIG_HOME-unset}"
    )
    told = ["sh", "-c", script]
    lent = emulated(tmp_path, link, told, ["sleep", "5"])
    account = pwd.getpwuid(65534)
    groups = " ".join(map(str, os.getgrouplist(account.pw_name, account.pw_gid)))
    assert lent.printed.splitlines() == [
        "65534", "65534", groups, *["0" * 16] * 4, f"{account.pw_dir} {account.pw_name} unset"
    ]  # fmt: skip
    kept = emulated(tmp_path, link, told, ["sleep", "5"], "--run-as-root").printed.splitlines()
    assert (kept[0], kept[-1].split()[0], kept[-1].split()[-1]) == ("0", root, f"{root}/.config")


# A daemon leaves the session, the process group and its parent.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("ready", flush=True)
        time.sleep(50)
    os._exit(0)
time.sleep(50)
"""


def with_mark(mark: str) -> list[int]:
    """Processes whose command line has a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


@pytest.mark.parametrize("rights", ["root", "caller"])
def test_daemons_of_the_command_end_with_a_killed_jostle(
    rights: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rights == "caller":
        monkeypatch.setenv("DOAS_USER", "nobody")
    mark = secrets.token_hex(8)
    process = start("/usr/bin/python3", "-c", DAEMON, mark)
    left = own_namespaces(process.pid)
    # Jostle, the launcher, init, the command, and the daemon.
    assert len(with_mark(mark)) == 5
    process.kill()
    process.wait()
    until = time.monotonic() + 5
    while with_mark(mark) and time.monotonic() < until:
        time.sleep(0.02)
    assert with_mark(mark) == []
    assert namespaces.clean_stale() == left


def test_the_command_sees_its_own_processes_only(start: Start) -> None:
    process = start("sh", "-c", "echo ready; ls -d /proc/[0-9]* | wc -l; readlink /proc/self")
    printed, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    count, own = map(int, printed.split())
    assert count < 8
    assert own < 10
