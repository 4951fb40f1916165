"""Jobs that go wrong: what is said, and what is left behind. No kernel and no root is needed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from jostle.backends.kernel import runner
from jostle.backends.kernel.guest import network
from jostle.backends.kernel.guest.entry import guarded
from jostle.backends.kernel.guest.failure import GuestFailure
from jostle.backends.kernel.runner import KernelRunError, run_job
from jostle.errors import RunCancelledError
from jostle.kernel_images import Image

HERE = Image("native", None, "1.0")


@pytest.fixture
def guest(tmp_path, monkeypatch):
    """Put another program in the place of the guest's; folders of jobs are in `tmp_path`."""
    folder = tmp_path / "guest"
    folder.mkdir()
    monkeypatch.setattr(runner, "PROGRAM", folder)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def program(text: str) -> None:
        (folder / "__main__.py").write_text(f"import os, sys, time\nfolder = sys.argv[1]\n{text}")

    return program


def carry_out(timeout_s: float = 20.0, cancelled=None) -> None:
    done = run_job(
        {}, {"a-file": b"7"}, HERE, memory_mb=64, seed=1, timeout_s=timeout_s, cancelled=cancelled
    )
    with done as (folder, _wall_s):
        assert (folder / "events.json").exists()
        assert (folder / "a-file").read_bytes() == b"7"


def jobs_left(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("jostle-run-*"))


def processes_with(word: str) -> list[int]:
    """Processes that have a word in their command line, but this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_a_job_that_is_done(guest, tmp_path):
    guest("open(f'{folder}/events.json', 'w').write('{}')")
    carry_out()
    assert jobs_left(tmp_path) == []


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_guest_finds_bytecode_unless_the_user_wants_none(
    is_allowed, guest, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "dont_write_bytecode", not is_allowed)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    runner._write_bytecode.cache_clear()
    (tmp_path / "guest" / "part.py").write_text("done = '{}'")
    guest("from .part import done\nopen(f'{folder}/events.json', 'w').write(done)")
    carry_out()
    tag = sys.implementation.cache_tag
    expected = {f"{name}.{tag}.pyc" for name in ("__main__", "part") if is_allowed}
    assert {path.name for path in tmp_path.glob("guest/__pycache__/*")} == expected


def test_the_guest_program_imports_only_what_most_runs_use():
    text = "import sys, guest.__main__; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-B", "-c", text],
        env={"PYTHONPATH": str(runner.PROGRAM.parent)},
        capture_output=True,
        check=True,
        text=True,
    )
    loaded = set(done.stdout.split())
    assert {"json", "guest.tcp_flow"} <= loaded
    assert not loaded & {"dataclasses", "inspect", "traceback", "mmap", "heapq"}
    kinds = ("capture", "connections", "datagrams", "proxy", "program", "quic_flow",
             "quic_programs", "shared_connection", "web_browser")  # fmt: skip
    assert not loaded & {f"guest.{kind}" for kind in kinds}


def test_nothing_is_imported_from_the_current_folder(guest, tmp_path, monkeypatch):
    here = tmp_path / "here"
    (here / "guest").mkdir(parents=True)
    (here / "guest" / "__main__.py").write_text("raise SystemExit('the wrong one')")
    for name in ("json", "base64", "shlex"):
        (here / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", str(here))
    guest(
        "import base64, json, shlex\n"
        f"assert {str(here)!r} not in sys.path and os.getcwd() == '/', (sys.path, os.getcwd())\n"
        "open(f'{folder}/events.json', 'w').write('{}')"
    )
    carry_out()


def test_the_guest_says_why(guest, tmp_path):
    guest("print('jostle-guest: no such thing'); sys.exit(1)")
    with pytest.raises(KernelRunError, match=r"^no such thing$"):
        carry_out()
    assert jobs_left(tmp_path) == []


def test_a_guest_that_says_nothing_is_quoted(guest):
    guest("print('Segmentation fault'); os.kill(os.getpid(), 11)")
    with pytest.raises(KernelRunError, match="without a result; it said:\n  Segmentation fault"):
        carry_out()


def test_success_without_a_result_is_none(guest):
    guest("")
    with pytest.raises(KernelRunError, match="without a result"):
        carry_out()


def test_a_full_disk_is_named(guest, tmp_path, monkeypatch, capsys):
    def write(_folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/samples")

    assert guarded(write, Path("/somewhere")) == 1
    told = capsys.readouterr().out
    guest(f"print({told!r}, end=''); sys.exit(1)")
    with pytest.raises(KernelRunError, match=f"no room for the samples in {tmp_path}.*TMPDIR"):
        carry_out()


def test_a_folder_that_cannot_be_made_is_named(guest, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(KernelRunError, match="absent: No such file"):
        carry_out()


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(KernelRunError, match=r"cannot write .*realtime\.lock"), runner._alone(None):
        pass


def test_packets_that_the_machine_loses_make_a_run_invalid(tmp_path, monkeypatch):
    counters = tmp_path / "softnet_stat"
    monkeypatch.setattr(network, "_SOFTNET", counters)
    # Packets, and what did not fit, in hexadecimal; a line per processor.
    counters.write_text("00001000 0000000a 00000000\n00002000 00000000 00000000\n")
    wires = network.Wires()
    wires.check()
    counters.write_text("00009000 0000000c 00000000\n00002000 00000010 00000000\n")
    with pytest.raises(GuestFailure, match=r"18 packets were lost .*netdev_max_backlog"):
        wires.check()


def test_a_bug_in_the_guest_is_shown(monkeypatch, capsys):
    assert guarded(lambda _folder: {}[1], Path("/somewhere")) == 1
    captured = capsys.readouterr()
    assert captured.out == "jostle-guest: a bug, see above\n"
    assert "KeyError" in captured.err


def test_a_guest_that_hangs_is_ended_with_its_children(guest, tmp_path):
    guest("os.fork(); os.fork(); time.sleep(60)")
    with pytest.raises(KernelRunError, match="did not end within 1 s"):
        carry_out(timeout_s=1.0)
    assert processes_with(str(tmp_path)) == []
    assert jobs_left(tmp_path) == []


def test_a_run_is_cancelled_at_once(guest, tmp_path):
    guest("open(f'{folder}/../started', 'w'); os.fork(); time.sleep(60)")
    started_s = time.monotonic()
    with pytest.raises(RunCancelledError):
        carry_out(cancelled=(tmp_path / "started").exists)
    assert time.monotonic() - started_s < 10
    assert processes_with(str(tmp_path)) == []
    assert jobs_left(tmp_path) == []


def test_a_killed_guest_is_an_error(guest, tmp_path):
    guest("open(f'{folder}/../started', 'w'); time.sleep(60)")

    def kill() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.01)
        for process in processes_with(f"{tmp_path}/jostle-run-"):
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(KernelRunError, match="without a result"):
        carry_out()
    killer.join()
    assert jobs_left(tmp_path) == []


def test_runs_in_real_time_wait_for_each_other(guest, tmp_path):
    guest(
        "open(f'{folder}/../log', 'a').write('begin ')\n"
        "time.sleep(0.2)\n"
        "open(f'{folder}/../log', 'a').write('end ')\n"
        "open(f'{folder}/events.json', 'w').write('{}')"
    )
    threads = [threading.Thread(target=carry_out) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "log").read_text() == "begin end " * 3


def test_a_run_that_waits_can_be_cancelled(guest):
    with runner._one_at_a_time, pytest.raises(RunCancelledError):
        carry_out(cancelled=lambda: True)
