"""What foreign programs may do where they run: in a guest, and on this machine's own kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jostle.backends.kernel import KernelRunError
from jostle.backends.kernel.runner import PROGRAM

from backends_kernel.kernel_specs import spec_of

# It tries what a program must not do, and says for each attempt why it failed, or that it did not.
ATTEMPTS = """
import ctypes, errno, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
own, outside = sys.argv[1:]

def system(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), "refused")

def attempt(name, act):
    try:
        act()
    except OSError as error:
        print(name, errno.errorcode[error.errno], sep="=", end=" ")
    else:
        print(name, "done", sep="=", end=" ")

def module(name):
    with open(sys.executable, "rb") as file:
        system(libc.syscall(313, file.fileno(), b"", 0))

mount = libc.mount
attempt("mount", lambda: system(mount(b"none", own.encode(), b"tmpfs", 0, None)))
attempt("hostfs", lambda: system(mount(b"none", own.encode(), b"hostfs", 0, b"/")))
attempt("remount", lambda: system(mount(b"none", b"/", None, 32, None)))
attempt("mknod", lambda: os.mknod(own + "/node", 0o600 | stat.S_IFCHR, os.makedev(1, 1)))
attempt("insmod", lambda: module("x"))
attempt("ptrace", lambda: system(libc.ptrace(16, 1, 0, 0)))
attempt("memory", lambda: open("/proc/1/mem", "rb"))
attempt("device", lambda: open("/dev/mem", "rb"))
attempt("setting", lambda: open("/proc/sys/kernel/core_pattern", "w"))
attempt("root", lambda: os.setuid(0))
attempt("chown", lambda: os.chown(own, 0, 0))
attempt("etc", lambda: open("/etc/written", "w"))
attempt("outside", lambda: open(outside + "/written", "w"))
attempt("job", lambda: open(outside + "/job.json"))
attempt("kill", lambda: os.kill(1, 0))
attempt("namespace", lambda: system(libc.unshare(0x10020000)))
attempt("own", lambda: open(own + "/written", "w"))
print("user", os.getuid(), sep="=", flush=True)
sys.exit(3)
"""
REFUSED = (
    "mount", "hostfs", "remount", "mknod", "insmod", "ptrace", "memory", "device", "setting",
    "root", "chown", "etc", "outside", "job", "kill",
)  # fmt: skip
SCENARIO = """
duration = "1 s"
[bottleneck]
rate = "10 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "theirs"
controller = "cubic"
rtt = "40 ms"
transport = { kind = "quic", implementation = IMPLEMENTATION }
"""


def outcomes(said: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\w+)", said))


def test_a_program_in_the_guest_has_no_rights(backend, tmp_path):
    # Two folders up from its own is the run's.
    program = f"import sys; sys.argv[1:] = [sys.argv[1], sys.argv[1] + '/../../..']\n{ATTEMPTS}"
    server = json.dumps(["python3", "-c", program, "{downloads}"])
    table = f'{{ name = "mine", server = {server}, client = ["sleep", "9"] }}'
    with pytest.raises(KernelRunError, match="ended with status 3") as failed:
        backend.run(spec_of(SCENARIO.replace("IMPLEMENTATION", table)))
    found = outcomes(str(failed.value))
    done = [name for name in (*REFUSED, "namespace") if found[name] == "done"]
    assert done == []
    assert found["own"] == "done"
    assert found["user"] == str(os.geteuid() or 65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs on this machine's kernel")
def test_a_program_beside_this_machines_kernel_is_a_plain_user(tmp_path):
    run = tmp_path / "run"
    own = run / "own"
    own.mkdir(parents=True)
    run.chmod(0o700)
    os.chown(own, 65534, 65534)
    (run / "job.json").touch(0o644)
    # It lies where only root can enter.
    hidden = tmp_path / "hidden"
    hidden.mkdir(0o700)
    (hidden / "attempts.py").write_text(ATTEMPTS)
    (hidden / "secret").touch(0o644)
    said = confined(run, [own], ["/usr/bin/python3", str(hidden / "attempts.py"), own, run])
    found = outcomes(said)
    assert [name for name in REFUSED if found[name] == "done"] == []
    assert (found["own"], found["user"]) == ("done", "65534")
    assert (own / "written").exists()
    assert not (run / "written").exists()
    listing = confined(run, [own], ["/bin/ls", hidden, hidden / "attempts.py"])
    assert "secret" not in listing


def confined(run: Path, writable: list[Path], words: list[object]) -> str:
    launcher = [sys.executable, "-I", "-S", "-B", str(PROGRAM / "confined.py")]
    done = subprocess.run(
        [*launcher, "0", str(run), str(len(writable)), *map(str, (*writable, *words))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_link_among_the_downloads_is_not_followed(backend):
    # The guest's root frees the memory of large downloads: a link must not choose another file.
    client = json.dumps(["sh", "-c", "ln -s /usr/bin/python3 {downloads}/data; sleep 0.5"])
    server = json.dumps(
        ["python3", "-c", "import socket, time; s = socket.socket(2, 2); "
         "s.bind(('{address}', {port})); time.sleep(9)"]
    )  # fmt: skip
    table = f'{{ name = "mine", server = {server}, client = {client} }}'
    with pytest.raises(KernelRunError, match="before it had all data"):
        backend.run(spec_of(SCENARIO.replace("IMPLEMENTATION", table)))
