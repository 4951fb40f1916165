"""The parts of `jostle link emulate` that need neither root nor a network."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from jostle.cli import status
from jostle.cli.output_targets import Outputs
from jostle.emulate import emulation, event_log, lines, nat
from jostle.emulate.caller import account_of, environment_of
from jostle.emulate.namespaces import Owner
from jostle.emulate.network_setup import EndpointAddresses, free_subnet
from jostle.emulate.system_commands import available
from jostle.errors import EmulationError, InputError

LINK = '[bottleneck]\nrate = "1 Mbit/s"\nqueue = "fq_codel"\n'


def test_subnets_avoid_what_the_host_has() -> None:
    subnet, number = free_subnet({"10.0.0.1", "100.64.0.1", "100.64.0.2", "100.64.0.6"})
    assert (subnet, number) == (ip_network("100.64.0.8/30"), 2)
    assert free_subnet(set())[1] == 0


def test_both_ends_learn_addresses_from_their_own_side() -> None:
    ends = EndpointAddresses("100.64.0.2", "100.64.0.1", None, None)
    assert ends.environment(from_inside=True) == {
        "JOSTLE_ADDRESS": "100.64.0.2",
        "JOSTLE_PEER": "100.64.0.1",
    }
    assert ends.environment(from_inside=False)["JOSTLE_PEER"] == "100.64.0.2"


def test_owners_are_told_apart_from_later_processes_of_their_number() -> None:
    present = Owner.present()
    assert present.alive
    assert Owner.of(f"{present.label()}-in") == present
    assert not replace(present, started=present.started - 1).alive
    assert Owner.of("jostle") is None
    with subprocess.Popen(["true"]) as process:
        ended = Owner.of_process(process.pid)
    assert ended is None or not ended.alive


class Commands:
    """Stands in for the system's programs."""

    def __init__(self, *installed: str, answers: dict[str, str] | None = None) -> None:
        self.installed = installed
        self.answers = answers or {}
        self.run: list[tuple[str, ...]] = []

    def available(self, program: str) -> str | None:
        return program if program in self.installed else None

    def __call__(self, *command: str, text: str = "") -> str:
        self.run.append((*command, *filter(None, [text])))
        return self.answers.get(" ".join(command), "")


def stand_in(monkeypatch: pytest.MonkeyPatch, commands: Commands) -> Commands:
    monkeypatch.setattr(nat, "available", commands.available)
    monkeypatch.setattr(nat, "run", commands)
    return commands


def test_translation_is_added_and_taken_away_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = stand_in(monkeypatch, Commands("nft", "iptables"))
    own = nat.Nat("jostle-1-2-3", "100.64.0.0/30")
    own.add()
    own.remove()
    (add, remove) = commands.run
    assert add[:3] == ("nft", "-f", "-")
    assert "table ip jostle-1-2-3 {" in add[3]
    assert "ip saddr 100.64.0.0/30 ip daddr != 100.64.0.0/30 masquerade" in add[3]
    assert remove == ("nft", "delete", "table", "ip", "jostle-1-2-3")
    commands = stand_in(monkeypatch, Commands("iptables"))
    own.add()
    own.remove()
    add, remove = commands.run
    assert [word if word != "-D" else "-A" for word in remove] == list(add)
    assert "jostle-1-2-3" in add


ADDED_AND_REMOVED = """
import subprocess
from jostle.emulate.nat import Nat
own = Nat("jostle-1-2-3", "100.64.0.0/30")
listed = lambda: subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True).stdout
own.add()
print(listed())
own.remove()
assert listed() == "", listed()
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or available("nft") is None or shutil.which("unshare") is None,
    reason="root, nft and unshare are needed",
)
def test_translation_is_what_a_real_nft_takes() -> None:
    command = ["unshare", "--net", sys.executable, "-c", ADDED_AND_REMOVED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "table ip jostle-1-2-3 {" in done.stdout
    assert "type nat hook postrouting priority srcnat" in done.stdout
    assert "ip saddr 100.64.0.0/30 ip daddr != 100.64.0.0/30 masquerade" in done.stdout


@pytest.mark.parametrize(
    ("peer", "message"), [("a'b", "no closing quotation"), ("a\\", "no escaped"), (" ", "empty")]
)
def test_a_peer_that_is_no_command(
    peer: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "link.toml"
    queue = '{ kind = "drop_tail", limit = "100 packets" }'
    link.write_text(f'[bottleneck]\nrate = "1 Mbit/s"\nqueue = {queue}\n')
    assert status(["link", "emulate", str(link), "--peer", peer, "--", "true"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --peer")
    assert message in error


def test_translation_of_the_dead_is_removed_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, dead = Owner.present().label(), replace(Owner.present(), started=1).label()
    tables = [{"table": {"family": "ip", "name": name}} for name in ("filter", alive, dead)]
    answers = {"nft -j list tables": json.dumps({"nftables": [{"metainfo": {}}, *tables]})}
    commands = stand_in(monkeypatch, Commands("nft", answers=answers))
    nat.clean_stale()
    assert commands.run[1:] == [("nft", "delete", "table", "ip", dead)]
    rules = [f'-A POSTROUTING -s 100.64.0.0/30 --comment "{name}" -j X' for name in (alive, dead)]
    answers = {"iptables -w 5 -t nat -S POSTROUTING": "\n".join(["-P POSTROUTING ACCEPT", *rules])}
    commands = stand_in(monkeypatch, Commands("iptables", answers=answers))
    nat.clean_stale()
    (removed,) = commands.run[1:]
    assert removed[:6] == ("iptables", "-w", "5", "-t", "nat", "-D")
    assert removed[6:10] == ("POSTROUTING", "-s", "100.64.0.0/30", "--comment")
    assert dead in removed


def test_translation_needs_a_program_and_forwarding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forwarding = tmp_path / "ip_forward"
    monkeypatch.setattr(nat, "_FORWARDING", forwarding)
    stand_in(monkeypatch, Commands())
    with pytest.raises(EmulationError, match="needs `nft` or `iptables`"):
        nat.require()
    stand_in(monkeypatch, Commands("nft"))
    forwarding.write_text("0\n")
    with pytest.raises(EmulationError, match="ip_forward=1"):
        nat.require()
    forwarding.write_text("1\n")
    nat.require()


NO_FLOW = 2**32 - 1


def kept() -> Any:
    def column(*values: int) -> np.ndarray[Any, Any]:
        return np.array(values, dtype=np.uint32)

    return SimpleNamespace(
        events={
            "time_s": np.array([0.5, 0.25 + 0.5, 1.0]),
            "direction": column(0, 1, 0),
            "link": column(1, 0, 0),
            "marked": column(0, 1, 0),
            "reason": column(1, 0, 1),
            "size_bytes": column(1514, 80, 114),
            "flow": column(0, 1, NO_FLOW),
        },
        flows=[(6, "100.64.0.1", 80, "100.64.0.2", 4000), (47, "fd00::2", 0, "fd00::1", 0)],
        reasons=["overflow", "codel"],
    )


def test_the_log_names_what_the_engine_counts(tmp_path: Path) -> None:
    log = event_log.frame(kept(), [("to_command", ["a", "b"]), ("from_command", ["c"])])
    tcp, gre = ("tcp", "100.64.0.1", 80, "100.64.0.2", 4000), ("47", "fd00::2", 0, "fd00::1", 0)
    nothing = (None,) * 5
    assert log.rows() == [
        (0.5, "to_command", "b", "drop", "codel", 1514, *tcp),
        (0.75, "from_command", "c", "mark", "overflow", 80, *gre),
        (1.0, "to_command", "a", "drop", "codel", 114, *nothing),
    ]
    Outputs(tuple(str(tmp_path / name) for name in ("log.csv", "log.parquet"))).write_table(
        lambda: log
    )
    assert pl.read_parquet(tmp_path / "log.parquet").equals(log)
    assert pl.read_csv(tmp_path / "log.csv").rows() == log.rows()


def document(verdict: str, dropped: dict[str, int], unseen: int = 0) -> dict[str, Any]:
    link = {
        "name": "bottleneck",
        "utilisation": 0.9567,
        "queue_delay_p95_s": 0.0123,
        "dropped": dropped,
        "marked": {},
    }
    way = {
        "arrived_packets": 12345,
        "delivered_packets": 12300,
        "unseen_packets": unseen,
        "unheld_packets": 0,
        "links": [link],
    }
    quantiles = {"p50_s": 5e-5, "p99_s": 8e-5, "p999_s": 9e-5, "max_s": 0.002}
    return {
        "title": "A link",
        "duration_s": 10.04,
        "verdict": verdict,
        "lateness": {"bound_s": 0.001, **quantiles},
        "to_command": way,
        "from_command": way,
    }


def test_a_person_reads_what_happened() -> None:
    first, header, row, *_ = lines(document("on_time", {"overflow": 1200, "codel": 3}))
    assert first == (
        "A link: 10.0 s of emulation, on time: 99.9 % of packets left within 0.09 ms of their "
        "time (median 0.05 ms, worst 2 ms)"
    )
    assert " ".join(header.split()) == "packets delivered utilisation queue p95 dropped marked"
    assert row.split("  ")[0] == "to COMMAND"
    for cell in ("12,345", "12,300", "95.7 %", "12.3 ms", "1,200 overflow, 3 codel"):
        assert cell in row


@pytest.mark.parametrize(
    ("verdict", "unseen", "expected"),
    [
        ("late", 0, "INVALID: late. One packet in a thousand left more than 1 ms after its time"),
        ("overrun", 3, "INVALID: 6 packets were lost before the link saw them"),
    ],
)
def test_what_is_no_result_says_so(verdict: str, unseen: int, expected: str) -> None:
    assert list(lines(document(verdict, {}, unseen)))[-1].startswith(expected)


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    found = status(["link", "emulate", *arguments])
    return found, capsys.readouterr().err


def test_mistakes_are_told_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link, bad = tmp_path / "link.toml", tmp_path / "bad.toml"
    link.write_text(LINK)
    bad.write_text(LINK.replace("rate", "speed"))
    file = str(link)
    for arguments, expected in (
        ([str(tmp_path / "none.toml"), "--", "true"], "cannot be read"),
        ([str(bad), "--", "true"], "bad.toml:2: bottleneck.speed: unknown key"),
        ([file, "--max-delay-error", "1", "--", "true"], "--max-delay-error: "),
        ([file, "-o", "x.txt", "--", "true"], "-o x.txt: no content has the ending .txt"),
        ([file, "-o", "/proc/no/x.json", "--", "true"], "cannot make the folder /proc/no"),
        ([file, "--nat", "--peer", "true", "--", "true"], "--nat and --peer"),
        ([file, "--", "no-such-program"], "there is no program `no-such-program`"),
        ([file], "Missing argument"),
    ):
        code, said = run(arguments, capsys)
        assert (code, expected in said) == (2, True), said


def test_without_root_the_reason_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link.toml"
    link.write_text(LINK)
    monkeypatch.setattr(emulation.os, "geteuid", lambda: 1000)
    code, said = run([str(link), "--", sys.executable, "-c", ""], capsys)
    assert code == 1
    assert "needs root" in said


@pytest.mark.parametrize(
    ("variables", "caller"),
    [
        ({}, None),
        ({"SUDO_UID": "0", "SUDO_USER": "root"}, None),
        ({"SUDO_UID": "65534", "SUDO_GID": "0"}, "nobody"),
        ({"SUDO_UID": "65534", "SUDO_USER": "nobody"}, "nobody"),
        ({"DOAS_USER": "nobody"}, "nobody"),
        ({"DOAS_USER": "root"}, None),
        ({"PKEXEC_UID": "65534"}, "nobody"),
        ({"PKEXEC_UID": "65534", "DOAS_USER": "nobody"}, "nobody"),
    ],
)
def test_the_program_that_gave_roots_rights_names_the_caller(
    variables: dict[str, str], caller: str | None
) -> None:
    found = account_of(variables)
    assert (found and found.pw_name) == caller


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SUDO_UID": "root"}, "SUDO_UID=root names no account"),
        ({"SUDO_UID": ""}, "SUDO_UID= names no account"),
        ({"SUDO_UID": "-1"}, "SUDO_UID=-1 names no account"),
        ({"SUDO_UID": "4294967294"}, "SUDO_UID=4294967294 names no account"),
        ({"PKEXEC_UID": "9" * 30}, "PKEXEC_UID=9+ names no account"),
        ({"DOAS_USER": "no such user"}, "DOAS_USER=no such user names no account"),
        (
            {"SUDO_UID": "65534", "DOAS_USER": "root"},
            "SUDO_UID=65534 and DOAS_USER=root name different accounts .* --run-as-root",
        ),
        ({"SUDO_UID": "65534", "SUDO_USER": "root"}, "name different accounts"),
        ({"SUDO_UID": "0", "PKEXEC_UID": "65534"}, "name different accounts"),
    ],
)
def test_a_caller_that_is_not_certain_is_refused(variables: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        account_of(variables)


def test_no_folder_of_root_is_left_in_the_environment() -> None:
    account = pwd.getpwnam("nobody")
    root = pwd.getpwuid(0).pw_dir
    found = environment_of(
        account,
        {
            "HOME": root,
            "USER": "root",
            "LOGNAME": "root",
            "SHELL": "/bin/zsh",
            "MAIL": "/var/mail/root",
            "SUDO_UID": "65534",
            "DOAS_USER": "nobody",
            "PATH": f"{root}/bin:/usr/bin:{root}/.cargo/bin:/bin",
            "PYTHONPATH": f"{root}/a:{root}/b",
            "XDG_CONFIG_HOME": f"{root}/.config",
            "XDG_CACHE_HOME": f"{root}/",
            "XDG_DATA_HOME": "/srv/data",
            "XDG_RUNTIME_DIR": "/run/user/0",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus",
            "RUNTIME_OF_ANOTHER": "/run/user/01",
            "LIKE_ROOT": f"{root}er/x",
            "TITLE": "a:b=c",
        },
    )
    assert found == {
        "HOME": account.pw_dir,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "SHELL": account.pw_shell,
        "PATH": "/usr/bin:/bin",
        "XDG_DATA_HOME": "/srv/data",
        "RUNTIME_OF_ANOTHER": "/run/user/01",
        "LIKE_ROOT": f"{root}er/x",
        "TITLE": "a:b=c",
    }


NESTED = """
from jostle.emulate.namespaces import Owner
print(Owner.present().label(), Owner.of(input()).alive, flush=True)
input()
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/ns/pid").exists(),
    reason="root and PID namespaces are needed",
)
def test_owners_in_other_pid_namespaces_are_alive() -> None:
    script = Path(emulation.__file__).parents[1] / "safe_io" / "pid_namespace.py"
    words = [sys.executable, "-I", "-S", "-B", str(script), str(os.getpid()), "-"]
    with subprocess.Popen(
        [*words, sys.executable, "-c", NESTED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{Owner.present().label()}\n")
        process.stdin.flush()
        label, sees_this_process = process.stdout.readline().split()
        nested = Owner.of(label)
        assert nested is not None
        assert nested.pid < 10
        assert nested.alive
        assert sees_this_process == "True"
        process.kill()
    until = time.monotonic() + 5
    while nested.alive:
        assert time.monotonic() < until
        time.sleep(0.01)
