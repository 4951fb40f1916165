"""The simulator and its store where POSIX is missing, as on Windows, which is imitated here.

What is hidden is what Python has not on Windows; what is there behaves as it does there in what
matters to a store: only files have locks, and no folder can be opened, or renamed while a file in
it is locked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jostle.safe_io.folder_lock import LockFile
from jostle.safe_io.open_folder import OpenFolder

WINDOWS = """
import errno, fcntl, os, pathlib, shutil, signal, sys, tempfile, types
import subprocess  # It takes msvcrt for a sign of Windows.

locked, open_file, rename = {}, os.open, pathlib.Path.rename

def locking(descriptor, mode, size):
    assert (mode, size) == (2, 1)
    try:
        fcntl_hidden.flock(descriptor, fcntl_hidden.LOCK_EX | fcntl_hidden.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None

def open_no_folder(path, *flags, **keys):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return open_file(path, *flags, **keys)

def rename_as_there(path, to):
    if os.path.exists(to):
        raise FileExistsError(errno.EEXIST, "File exists", str(to))
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            held = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            continue
        if held.startswith(f"{os.path.abspath(path)}/"):
            raise PermissionError(errno.EACCES, "in use", held)
    return rename(path, to)

fcntl_hidden = fcntl
sys.modules["fcntl"] = None
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
shutil._use_fd_functions = False
os.open, pathlib.Path.rename = open_no_folder, rename_as_there
os.supports_follow_symlinks.discard(os.utime)
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "getegid", "geteuid",
             "getgid", "getsid", "getuid", "killpg", "sched_getaffinity", "setsid"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGCHLD"):
    delattr(signal, name)
"""
SCENARIO = """
title = "Where POSIX is missing"
duration = "2 s"
[bottleneck]
rate = "5 Mbit/s"
queue = { kind = "drop_tail", limit = "1 BDP" }
[[flows]]
name = "one"
controller = "cubic"
rtt = "40 ms"
start_jitter = "20 ms"
"""
STORE = """
import json, sys
from jostle.cli import status
for words in (
    ("run", "scenario.toml", "--store", "store", "--repeats", "3", "--json"),
    ("run", "scenario.toml", "--store", "store", "--repeats", "5"),
    ("run", "scenario.toml", "--store", "store", "--repeats", "5"),
    ("run", "scenario.toml", "--store", "store", "--repeats", "2", "-o", "figures/"),
    ("store", "compact", "--store", "store"),
    ("store", "check", "--store", "store"),
    ("sweep", "status", "--store", "store"),
):
    code = status(words)
    assert code == 0, (words, code)
    print("done:", *words, flush=True)
"""
ABANDONED = """
import os, pathlib, sys
from jostle.safe_io.scratch_folder import PartialFolder, TemporaryFolder
from jostle.safe_io.scratch_folder import remove_abandoned, temporary_folder
from jostle.safe_io.folder_lock import FolderLock, LockFile
from jostle.safe_io.open_folder import OpenFolder

pathlib.Path("parent").mkdir(exist_ok=True)
parent = OpenFolder.at("parent")
if sys.argv[1] == "leave":
    PartialFolder(parent, "run").__enter__().content.write_new("file", b"")
    print(TemporaryFolder("run").path, flush=True)
    sys.stdin.read()
    os._exit(1)
remove_abandoned(parent)
with temporary_folder("run"), temporary_folder("run"):
    pass
with PartialFolder(parent, "kept") as partial:
    partial.content.write_new("file", b"")
    partial.publish(OpenFolder.at("."), "moved")
held = FolderLock.take(pathlib.Path("moved"))
assert FolderLock.take(pathlib.Path("moved"), shared=True) is None
held.release()
held = FolderLock.take(pathlib.Path("moved"))
assert held is not None
held.release()
file = LockFile.take(parent, "lock")
assert LockFile.is_locked(parent, "lock")
assert LockFile.take(parent, "lock") is None
file.release()
assert not LockFile.is_locked(parent, "lock")
parent.remove("lock")
for target in ("../moved", "nowhere"):
    os.symlink(target, "parent/link")
    for make in (False, True):
        try:
            parent.folder("link", make=make)
        except OSError:
            continue
        raise AssertionError("a link was followed")
    parent.remove("link")
inner = parent.folder("inner", make=True)
parent.move("inner", parent, "elsewhere")
os.symlink("../moved", "parent/inner")
for write in (inner.replace, inner.write_new):
    try:
        write("planted", b"")
    except OSError:
        continue
    raise AssertionError("written through a link")
assert os.listdir("moved") == ["file"]
parent.remove("inner")
parent.remove_tree("elsewhere")
print(sorted(parent.names()))
"""


def command(code: str, *words: str) -> list[str]:
    return [sys.executable, "-P", "-c", WINDOWS + code, *words]


def test_scenarios_run_and_are_kept(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO, "utf-8")
    done = subprocess.run(command(STORE), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done: ") == 7
    assert done.stderr.count("5 of 5 runs are in the store") == 1
    assert "damaged" not in done.stderr
    # No lock outlives its process, and nothing is left of what was written.
    left = [path.name for path in tmp_path.rglob("*lock")]
    assert left == [".lock"], "of tidying up, which is not locked any more"
    with OpenFolder.at(tmp_path / "store") as store:
        assert not LockFile.is_locked(store, ".lock")
    assert list((tmp_path / "store" / ".partial").iterdir()) == []


def test_what_killed_processes_left_is_told_from_what_is_used(tmp_path: Path) -> None:
    def clean() -> str:
        environment = {"TMPDIR": str(tmp_path), "PATH": ""}
        return subprocess.run(
            command(ABANDONED, "clean"),
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    with subprocess.Popen(
        command(ABANDONED, "leave"),
        cwd=tmp_path, env={"TMPDIR": str(tmp_path), "PATH": ""},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        assert "'run-" in clean()
        assert left.is_dir(), "its owner lives"
        (tmp_path / "moved" / "file").unlink()
        (tmp_path / "moved").rmdir()
        process.kill()
    assert clean() == "[]\n"
    assert not left.exists()
