"""What foreign programs may do where they run: in a guest, and on this machine's own kernel."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from jostle.backends.kernel import KernelRunError
from jostle.backends.kernel.elf_libraries import libraries_of
from jostle.backends.kernel.guest import quic_programs
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
attempt("rename", lambda: os.rename(own, own + ".old"))
attempt("sibling", lambda: os.listdir("../../1"))
attempt("siblings", lambda: os.listdir(outside + "/programs/1"))
attempt("kill", lambda: os.kill(1, 0))
attempt("namespace", lambda: system(libc.unshare(0x10020000)))
attempt("own", lambda: open(own + "/written", "w"))
print("user", os.getuid(), sep="=", flush=True)
sys.exit(3)
"""
REFUSED = (
    "mount", "hostfs", "remount", "mknod", "insmod", "ptrace", "memory", "device", "setting",
    "root", "chown", "etc", "outside", "job", "rename", "sibling", "siblings", "kill",
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
count = 2
transport = { kind = "quic", implementation = IMPLEMENTATION }
"""


def outcomes(said: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\w+)", said))


def test_a_program_in_the_guest_has_no_rights(backend, tmp_path):
    # Two folders up from its own is the run's.
    program = tmp_path / "attempts.py"
    program.write_text(ATTEMPTS)
    server = json.dumps(["python3", str(program), "{downloads}", "{downloads}/../../.."])
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
    launcher = [sys.executable, "-I", "-S", "-B", str(PROGRAM / "program_sandbox.py")]
    done = subprocess.run(
        [*launcher, "0", str(run), str(len(writable)), *map(str, (*writable, *words))],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def test_links_that_programs_leave_are_not_followed(backend, tmp_path):
    # The server knows the client's folder, which the client's command line names.
    hidden = tmp_path / "hidden"
    hidden.mkdir(0o700)
    (hidden / "readable").mkdir()
    (hidden / "readable" / "secret").write_text("top secret")
    server = tmp_path / "server.py"
    server.write_text(f"""
import os, socket, sys, time
downloads, address, port = sys.argv[1:]
for act in (
    lambda: os.rename(downloads, downloads + ".old"),
    lambda: os.symlink("{hidden}/readable", downloads),
    lambda: os.symlink("{hidden}/readable", downloads + "/data"),
):
    try:
        act()
    except OSError:
        pass
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind((address, int(port)))
time.sleep(9)
""")
    words = json.dumps(["python3", str(server), "{downloads}", "{address}", "{port}"])
    client = ["sh", "-c", "cat $1/secret $1/data/secret; ls $1; sleep 0.5", "sh", "{downloads}"]
    table = f'{{ name = "mine", server = {words}, client = {json.dumps(client)} }}'
    with pytest.raises(KernelRunError, match="before it had all data") as failed:
        backend.run(spec_of(SCENARIO.replace("IMPLEMENTATION", table)))
    assert "No such file" in str(failed.value)
    assert "top secret" not in str(failed.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could free memory of other files")
@pytest.mark.parametrize("kind", ["own", "link", "hard link", "of root", "pipe"])
def test_only_downloads_give_their_memory_back(kind, tmp_path):
    large, downloads = tmp_path / "large", tmp_path / "downloads"
    downloads.mkdir()
    large.write_bytes(b"x" * (9 << 20))
    download = downloads / "data"
    match kind:
        case "own":
            shutil.copy(large, download)
            os.chown(download, 65534, 65534)
        case "link":
            download.symlink_to(large)
        case "hard link":
            os.chown(large, 65534, 65534)
            download.hardlink_to(large)
        case "of root":
            shutil.copy(large, download)
        case "pipe":
            os.mkfifo(download)
    flow = quic_programs.ProgramFlow.__new__(quic_programs.ProgramFlow)
    flow._downloads = os.open(downloads, os.O_DIRECTORY)
    flow._user = SimpleNamespace(uid=65534)
    flow._punched_bytes = {}
    delivered = flow._delivered_bytes()
    flow._forget("data")
    os.close(flow._downloads)
    assert delivered == (0 if kind in ("link", "pipe") else 9 << 20)
    assert large.read_bytes() == b"x" * (9 << 20)
    if kind == "own":
        assert download.stat().st_blocks == 0
    elif kind == "of root":
        assert download.read_bytes() == large.read_bytes()


def test_programs_get_no_variables_of_the_user(tmp_path, monkeypatch):
    @contextmanager
    def entered() -> Iterator[None]:
        yield

    monkeypatch.setenv("TOKEN", "secret")
    heard: list[str] = []
    program = quic_programs.Program(
        "server",
        ["/usr/bin/env"],
        SimpleNamespace(entered=entered),
        {"ROLE": "server"},
        cwd=tmp_path,
        hear=heard.append,
        launcher=["/usr/bin/env"],
    )
    program.process.wait(10)
    program._reader.join(10)
    assert heard == ["ROLE=server"]


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", flush=True)
    else:
        os._exit(0)
time.sleep(50)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs on this machine's kernel")
def test_a_program_leaves_no_process_on_this_machines_kernel(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    flow = quic_programs.ProgramFlow.__new__(quic_programs.ProgramFlow)
    flow._kept, flow._folder, flow._qlogs, flow._secrets = kept, kept, kept, kept / "keys"
    (kept / "work").mkdir()
    flow._secrets.touch()
    mark = secrets.token_hex(8)
    flow._job = {
        "server": ["/usr/bin/python3", "-c", DAEMON, mark],
        "sender_address": "10.0.0.1",
        "port": 443,
        "qlog": False,
        "environment": {},
    }
    flow._hosts = {"sender": SimpleNamespace(entered=nullcontext)}
    flow._in_guest = False
    program = flow._program("server", "sender")
    until_s = time.monotonic() + 20
    while "daemon" not in program._said and time.monotonic() < until_s:
        time.sleep(0.01)
    # The launcher, init, the program and the daemon.
    assert len(processes_with(mark)) == 4
    program.end()
    program._reader.join(5)
    assert program.status == 128 + signal.SIGINT
    assert processes_with(mark) == []


def processes_with(mark: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in entry.read_bytes():
                found.append(entry.parent.name)
    return found


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_libraries_are_listed_without_running_anything(tmp_path):
    # `ldd` and `ld.so --list` run the auditors that a program names.
    ran = tmp_path / "ran"
    source = tmp_path / "audit.c"
    source.write_text(
        "#include <stdio.h>\n"
        "unsigned la_version(unsigned version) "
        f'{{ fclose(fopen("{ran}", "w")); return version; }}\n'
    )
    library, program = tmp_path / "audit.so", tmp_path / "program"
    main = tmp_path / "main.c"
    main.write_text("#include <math.h>\nint main(int n, char **v) { return (int)sin(n); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    words = ["cc", "-o", program, main, f"-Wl,--audit={library}", "-lm"]
    subprocess.run(words, check=True)
    found = libraries_of(str(program))
    assert not ran.exists()
    assert any("libm.so" in path for path in found)
    assert any("libc.so" in path for path in found)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    assert ran.exists()
    theirs = re.findall(r"(?:=> |^\s+)(/\S+)", listed, re.MULTILINE)
    real = {os.path.realpath(path) for path in found}
    assert {os.path.realpath(path) for path in theirs} - {str(library)} == real


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 4096]
)
def test_what_is_no_program_has_no_libraries(content, tmp_path):
    (tmp_path / "file").write_bytes(content)
    assert libraries_of(str(tmp_path / "file")) == ()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_libraries_beside_the_program_are_found_once_it_is_built_anew(tmp_path):
    # A name that would be a reference in a regular expression.
    folder = tmp_path / "a\\1b"
    folder.mkdir()
    source, library, program = folder / "x.c", folder / "libx.so", folder / "program"
    source.write_text("int x(void) { return 0; }\n")
    main = folder / "main.c"
    main.write_text("int x(void);\nint main(void) { return x(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    subprocess.run(["cc", "-o", program, main, source], check=True)
    assert str(library) not in libraries_of(str(program))
    words = ["cc", "-o", program, main, "-L", folder, "-lx", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(words, check=True)
    os.utime(program, ns=(1, 1))
    assert str(library) in libraries_of(str(program))
