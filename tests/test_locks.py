"""Locks: other users cannot hold them, and nobody waits for them without an end or a message."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_core
import pytest
from jostle.backends import SimBackend
from jostle.backends.kernel import runner
from jostle.cli import status
from jostle.errors import JostleError, RunCancelledError, StoreError
from jostle.kernel_images import build
from jostle.quic import build as quic_build
from jostle.runner.sweeps.heartbeat import SweepHeartbeat
from jostle.runner.sweeps.sweep_files import SweepCommand, is_running, sweeps_of
from jostle.safe_io import folder_lock
from jostle.safe_io.folder_lock import LockFile
from jostle.safe_io.open_folder import OpenFolder
from jostle.store.maintenance.compaction import compact_store
from jostle.store.segments.packing import packed
from jostle.store.store import Store

NOBODY = 65534
GROUP = 54321
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
SCENARIO = """
title = "Locked"
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


def hold_all(root: Path, said: int, ending: int) -> None:
    """Lock all that can be opened, again and again, until the test ends."""
    held: dict[int, int] = {}
    begun = False
    while not select.select([ending], [], [], 0.001)[0]:
        for folder, folders, files in os.walk(root):
            for name in (".", *folders, *files):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if os.stat(path).st_ino not in held:
                        file = os.open(path, os.O_RDONLY)
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        held[os.fstat(file).st_ino] = file
        if not begun:
            os.write(said, str(len(held)).encode())
        begun = True


def hold_one(path: Path, said: int, ending: int) -> None:
    """Lock a file until the test ends."""
    fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
    os.write(said, b"held")
    os.read(ending, 1)


@contextlib.contextmanager
def other_user(
    do: Callable[[Path, int, int], object], path: Path, group: int = NOBODY
) -> Iterator[tuple[int, str]]:
    """Do something as another user; its process, and what it says first."""
    (said, says), (ending, end) = os.pipe(), os.pipe()
    # The interpreter may be in a folder that the user cannot enter: it is not started anew.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        try:
            os.close(end)
            os.setgroups([])
            os.setgid(group)
            os.setuid(NOBODY)
            do(path, says, ending)
        finally:
            os._exit(0)
    for descriptor in (says, ending):
        os.close(descriptor)
    try:
        yield process, os.read(said, 100).decode()
    finally:
        for descriptor in (said, end):
            os.close(descriptor)
        os.waitpid(process, 0)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that others can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="jostle-test-locks-"))
    folder.chmod(0o755)
    umask = os.umask(0o022)
    yield folder
    os.umask(umask)
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """End a test that waits for a lock."""
    signal.alarm(60)
    yield
    signal.alarm(0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "PATIENCE_S", 0.3)
    monkeypatch.setattr(folder_lock, "SAY_AFTER_S", 0.05)


def recording(store: Path, detached: bool = True) -> SweepHeartbeat:
    command = SweepCommand(("sweep.toml",), "/", {}, "host", os.getpid(), 1.0, "store")
    plan = [("Swept", 10)]
    return SweepHeartbeat(store, command, plan, detached=detached, stop=lambda: None)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@AS_ROOT
def test_a_reader_cannot_stop_those_who_run(
    open_to_all: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(open_to_all)
    monkeypatch.setattr(folder_lock, "SAY_AFTER_S", 0.0)
    Path("scenario.toml").write_text(SCENARIO, "utf-8")
    commands = (
        ("run", "scenario.toml", "--repeats", "3"),
        ("store", "compact", "--remove-damaged"),
    )
    for words in commands:
        assert status([*words, "--store", "store"]) == 0
    with other_user(hold_all, open_to_all) as (_, held):
        assert int(held) > 5
        for words in commands:
            again = [word.replace("3", "5") for word in words]
            assert status([*again, "--store", "store"]) == 0
        with recording(open_to_all / "store") as sweep:
            assert is_running(sweep.place)
    assert "waiting" not in capsys.readouterr().err


@AS_ROOT
@pytest.mark.usefixtures("impatient")
def test_a_member_of_the_group_can_only_delay(
    open_to_all: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = open_to_all / "store"
    root.mkdir()
    os.chown(root, -1, GROUP)
    root.chmod(0o2775)
    store = Store(root)
    compact_store(store)
    with other_user(hold_one, root / ".lock", GROUP) as (process, said):
        assert said == "held"
        with pytest.raises(StoreError) as raised:
            compact_store(store)
        command = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
        holder = f"process {process} ({command[:20]}"
        assert f"{root} is still locked after 0.3 s, by {holder}" in str(raised.value)
        assert "end it, then give the same command again" in str(raised.value)
        assert raised.value.exit_status == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"waiting for the lock of {root}, held by {holder}")
    compact_store(store)


@AS_ROOT
def test_who_is_no_member_of_the_group_cannot_lock(open_to_all: Path) -> None:
    root = open_to_all / "store"
    root.mkdir()
    os.chown(root, -1, GROUP)
    root.chmod(0o2775)
    compact_store(Store(root))
    with other_user(hold_one, root / ".lock") as (_, said):
        assert said == "", "the lock was opened"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o755, 0o777, 0o700, 0o2775, 0o2770])
def test_modes_are_those_of_the_store_whatever_the_umask(
    tmp_path: Path, umask: int, mode: int
) -> None:
    if mode & 0o020 and not mode & 0o2000 and tmp_path.stat().st_gid != os.getegid():
        pytest.skip("new files have another group here")
    before = os.umask(umask)
    try:
        root = tmp_path / "store"
        root.mkdir()
        root.chmod(mode)
        store = Store(root)
        store.put_all([packed(record(), "series")])
        with recording(root) as sweep:
            lock = sweep.place / "lock"
            shared = bool(mode & 0o020)
            assert mode_of(lock) == (0o660 if shared else 0o600)
            compact_store(store)
            assert mode_of(root / ".lock") == (0o660 if shared else 0o600)
            for path in (root / "segments", root / ".partial", root / ".sweeps", sweep.place):
                usual = 0o777 & ~umask & (~0o022 | mode)
                assert mode_of(path) & 0o777 == usual | (0o070 if shared else 0), path
    finally:
        os.umask(before)


def record() -> object:
    return SimBackend(fake_core.FakeEngine()).run(fake_core.spec(1, duration_s=2))


def test_an_older_lock_file_becomes_private(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "lock").chmod(0o644)
    with OpenFolder.at(tmp_path) as folder:
        lock = LockFile.take(folder, "lock")
        assert lock is not None
        lock.release()
    assert mode_of(tmp_path / "lock") == 0o600


@pytest.mark.parametrize("what", ["link", "dangling link", "hard link", "pipe", "folder"])
def test_only_a_file_of_its_own_is_locked(tmp_path: Path, what: str) -> None:
    path, other = tmp_path / "lock", tmp_path / "other"
    other.touch(mode=0o644)
    mode = mode_of(other)
    plants: dict[str, Callable[[], object]] = {
        "link": lambda: path.symlink_to(other),
        "dangling link": lambda: path.symlink_to(tmp_path / "nothing"),
        "hard link": lambda: path.hardlink_to(other),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    plants[what]()
    with OpenFolder.at(tmp_path) as folder, pytest.raises(OSError, match=r"."):
        LockFile.take(folder, "lock", wait_s=None)
    assert mode_of(other) == mode
    assert not (tmp_path / "nothing").exists()


def test_a_lock_that_its_holder_removes_is_made_again(tmp_path: Path) -> None:
    with OpenFolder.at(tmp_path) as folder:
        first = LockFile.take(folder, "lock")
        assert first is not None

        def remove() -> None:
            folder.remove("lock")
            first.release()

        threading.Timer(0.1, remove).start()
        second = LockFile.take(folder, "lock", wait_s=10.0)
        assert second is not None
        assert LockFile.is_locked(folder, "lock")
        second.release()
        assert not LockFile.is_locked(folder, "lock")


def test_a_sweep_of_another_user_is_seen_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_folder: OpenFolder, name: str, *_: object) -> int:
        raise PermissionError(13, "Permission denied", name)

    with contextlib.suppress(KeyboardInterrupt), recording(tmp_path) as sweep:
        monkeypatch.setattr(OpenFolder, "open_own_file", refused)
        assert [one.state for one in sweeps_of(tmp_path)] == ["running"]
        raise KeyboardInterrupt
    assert not is_running(sweep.place)
    assert [one.state for one in sweeps_of(tmp_path)] == ["stopped"]


def test_nobody_waits_for_the_folder_that_earlier_versions_lock(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in (".", ".partial", "segments", ".sweeps"):
        (tmp_path / name).mkdir(exist_ok=True)
        fcntl.flock(os.open(tmp_path / name, os.O_RDONLY), fcntl.LOCK_EX)
    done = threading.Event()

    def work() -> None:
        store.put_all([packed(record(), "series")])
        compact_store(Store(tmp_path))
        with recording(tmp_path):
            pass
        done.set()

    threading.Thread(target=work, daemon=True).start()
    assert done.wait(30.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", ["kernel", "programs"])
def test_a_build_waits_with_a_message_and_an_end(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "work"

    def alone() -> contextlib.AbstractContextManager[None]:
        kernel = what == "kernel"
        return build._alone(folder) if kernel else quic_build._alone(folder, "name")

    with alone():
        assert mode_of(tmp_path / "work.lock") == 0o600
        with (
            pytest.raises(JostleError, match=rf"another jostle.*by process {os.getpid()} "),
            alone(),
        ):
            pass
    assert f"waiting for the lock of {folder}, held by process" in capsys.readouterr().err
    with alone():
        pass


def test_runs_in_real_time_wait_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "SAY_AFTER_S", 0.05)
    said = ""

    def cancelled() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return "waiting" in said

    with OpenFolder.at(runner.cache_folder(), make=True) as folder:
        lock = LockFile.take(folder, "realtime.lock")
        assert lock is not None
        with pytest.raises(RunCancelledError), runner._alone(cancelled):
            pass
        lock.release()
    assert f"waiting for the lock of runs in real time, held by process {os.getpid()} " in said
    with runner._alone(None):
        assert mode_of(runner.cache_folder() / "realtime.lock") == 0o600
