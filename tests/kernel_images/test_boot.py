"""Guests: what comes out of them, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from fake_toolchain import kernel_script, write_program
from jostle.errors import RunCancelledError
from jostle.kernel_images import GuestError, GuestTimeoutError, Image, boot, run_guest
from jostle.kernel_images.process_group import Group, members, running


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script"
    path.write_text("#!/bin/sh\n")
    return path


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where guests keep what they need while they run."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def fake(tmp_path: Path, behaviour: str) -> Image:
    text = kernel_script(behaviour).replace("PATH=", f"echo $$ >{tmp_path}/pid\nPATH=", 1)
    return Image("virtual", write_program(tmp_path / "linux", text), "6.1.99")


def group_of(tmp_path: Path) -> list[int]:
    return members(int((tmp_path / "pid").read_text()))


def test_output_and_status(tmp_path: Path, script: Path, guests: Path) -> None:
    output = run_guest(
        fake(tmp_path, "echo hello; printf 'bad \\377\\r\\n'"), script, {}, timeout_s=9
    )
    assert output.text == "hello\nbad \ufffd"
    assert output.ok
    assert run_guest(fake(tmp_path, "printf half"), script, {}, timeout_s=9).text == "half"
    failed = run_guest(fake(tmp_path, 'echo "$token 3"; exit 0'), script, {}, timeout_s=9)
    assert not failed.ok
    assert list(guests.iterdir()) == []


def test_command_line(tmp_path: Path, script: Path) -> None:
    image = fake(tmp_path, 'for word; do echo "$word"; done')
    words = run_guest(image, script, {}, memory_mb=77, timeout_s=9).text.splitlines()
    assert {"mem=77M", "rootfstype=hostfs", "time-travel=inf-cpu"} <= set(words)
    realtime = Image("realtime", image.path, image.version)
    text = run_guest(realtime, script, {}, timeout_s=9).text
    assert "time-travel" not in text


def test_a_kernel_that_breaks_down(tmp_path: Path, script: Path, guests: Path) -> None:
    with pytest.raises(GuestError, match=r"status 7 after\n  Kernel panic"):
        run_guest(fake(tmp_path, "echo Kernel panic; exit 7"), script, {}, timeout_s=9)
    with pytest.raises(GuestError, match="status -11 after\n  \\(nothing\\)"):
        run_guest(fake(tmp_path, "kill -SEGV $$"), script, {}, timeout_s=9)
    assert list(guests.iterdir()) == []


def test_a_kernel_that_is_none(tmp_path: Path, script: Path) -> None:
    image = Image("virtual", tmp_path / "absent", "6.1.99")
    with pytest.raises(GuestError, match="status 127"):
        run_guest(image, script, {}, timeout_s=9)
    with pytest.raises(ValueError, match="runs already"):
        run_guest(Image("native", None, "6.1.99"), script, {}, timeout_s=9)


STUBBORN = "trap '' TERM INT HUP; echo begun; sleep 300 & sleep 300 & sleep 300"


def test_timeout_leaves_nothing(tmp_path: Path, script: Path, guests: Path) -> None:
    with pytest.raises(GuestTimeoutError, match=r"within 0\.3 s; it said:\n  begun"):
        run_guest(
            fake(tmp_path, f"echo Failed to initialize ubd device 0; {STUBBORN}"),
            script,
            {},
            timeout_s=0.3,
        )
    assert group_of(tmp_path) == []
    assert list(guests.iterdir()) == []


def test_cancellation_leaves_nothing(tmp_path: Path, script: Path, guests: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(RunCancelledError):
        run_guest(fake(tmp_path, STUBBORN), script, {}, timeout_s=60, cancelled=pid.exists)
    assert group_of(tmp_path) == []
    assert list(guests.iterdir()) == []


def test_what_outlives_the_kernel_is_ended(tmp_path: Path, script: Path) -> None:
    image = fake(tmp_path, "sleep 300 & echo done")
    assert run_guest(image, script, {}, timeout_s=20).text == "done"
    assert group_of(tmp_path) == []


def test_many_at_a_time(tmp_path: Path, script: Path) -> None:
    image = fake(tmp_path, "sleep 0.2; echo done")
    texts: list[str] = []

    def run() -> None:
        texts.append(run_guest(image, script, {}, timeout_s=30).text)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["done"] * 8


def test_the_group_dies_with_whoever_started_it() -> None:
    program = (
        "import sys, time; from jostle.kernel_images.process_group import Group; "
        "group = Group(['sh', '-c', 'sleep 300 & sleep 300']); "
        "print(group.id, flush=True); time.sleep(300)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    assert members(group)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end_s = time.monotonic() + 10
    while members(group):
        assert time.monotonic() < end_s, "processes are left"
        time.sleep(0.02)


def test_a_program_may_tidy_up_first(tmp_path: Path) -> None:
    text = f"#!/bin/sh\ntrap 'echo tidy >{tmp_path}/tidy; exit' TERM\necho up\nsleep 300 & wait\n"
    program = write_program(tmp_path / "program", text)
    up = threading.Event()
    with running([str(program)], lambda _l: up.set(), first=signal.SIGTERM, patience_s=10) as group:
        assert up.wait(10)
    assert (tmp_path / "tidy").exists()
    assert members(group.id) == []


def test_an_exception_leaves_nothing() -> None:
    with pytest.raises(KeyError), running(["sleep", "300"], print) as group:
        raise KeyError
    assert members(group.id) == []


def test_a_listener_that_fails_is_heard_of() -> None:
    def refuse(_line: str) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), running(["seq", "100000"], refuse) as group:
        assert group.wait(10) == 0


def test_input_is_empty_and_core_dumps_are_off() -> None:
    said: list[str] = []
    with running(["sh", "-c", "cat; ulimit -c; echo end"], said.append) as group:
        assert group.wait(10) == 0
    assert said == ["0", "end"]


def test_a_group_is_not_ours() -> None:
    group = Group(["sleep", "300"])
    try:
        assert os.getpgid(group.id) == group.id != os.getpgrp()
    finally:
        group.end()
        group.close()


def test_no_room_for_memory(tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        f_flag = 0
        f_bavail = 256
        f_frsize = 4096

    monkeypatch.setattr(boot.os, "statvfs", lambda _path: Full)
    with pytest.raises(GuestError, match="no room for the guest's memory of 512 MB"):
        run_guest(fake(tmp_path, "true"), script, {}, memory_mb=512, timeout_s=9)


def test_memory_is_where_programs_may_run(
    tmp_path: Path, guests: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mount:
        f_bavail = 1 << 30
        f_frsize = 4096

        def __init__(self, path: Path) -> None:
            self.f_flag = os.ST_NOEXEC if path == Path("/dev/shm") else 0

    monkeypatch.setattr(boot.os, "statvfs", Mount)
    output = run_guest(fake(tmp_path, 'echo "$TMPDIR"'), script, {}, timeout_s=9)
    assert output.text == str(guests)


def test_names_of_variables(tmp_path: Path, script: Path) -> None:
    with pytest.raises(ValueError, match="'A-B'"):
        run_guest(fake(tmp_path, "true"), script, {"A-B": ""}, timeout_s=9)


def test_a_real_guest(virtual_kernel: Image, tmp_path: Path) -> None:
    folder = tmp_path / "with a blank"
    folder.mkdir()
    script = folder / "script"
    script.write_text(
        "#!/bin/sh -e\n"
        'echo "value $VALUE"; echo "user $(id -u)"; echo "at $(date -u +%s)"; sleep 100\n'
        'echo "at $(date -u +%s)"; ls /run; read -r line || echo "no input"; exit 4\n'
    )
    value = "blank ' \" $HOME \\ ünï"
    output = run_guest(virtual_kernel, script, {"VALUE": value}, memory_mb=128, timeout_s=50)
    lines = output.text.splitlines()
    assert not output.ok
    assert output.wall_s < 30
    assert f"value {value}" in lines
    assert lines[-1] == "no input"
    first, second = (int(line.split()[1]) for line in lines if line.startswith("at "))
    assert 1_700_000_000 <= first <= 1_700_000_005
    assert second - first == pytest.approx(100, abs=1)


def test_a_real_guest_ends_without_a_program_for_it(virtual_kernel: Image, script: Path) -> None:
    hide = "for folder in /sbin /usr/sbin; do mount -t tmpfs tmpfs $folder; done"
    script.write_text(f"#!/bin/sh\n{hide}\n! command -v poweroff\n")
    output = run_guest(virtual_kernel, script, {}, memory_mb=128, timeout_s=50)
    assert output.ok


def test_a_real_guest_is_killed_with_all_its_processes(
    virtual_kernel: Image, tmp_path: Path, guests: Path
) -> None:
    script = tmp_path / "script"
    mark = tmp_path / "busy"
    script.write_text(
        f"#!/bin/sh\nfor n in 1 2 3; do while :; do :; done & done\necho busy >{mark}\nwait\n"
    )
    found: set[int] = set()

    def cancelled() -> bool:
        if not mark.exists():
            return False
        (folder,) = guests.iterdir()
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(folder).encode() in entry.read_bytes():
                    found.add(os.getpgid(int(entry.parent.name)))
            except OSError:
                continue
        return True

    with pytest.raises(RunCancelledError):
        run_guest(virtual_kernel, script, {}, memory_mb=128, timeout_s=50, cancelled=cancelled)
    (group,) = found
    assert members(group) == []
    assert list(guests.iterdir()) == []


def test_a_folder_that_would_be_two_options_of_mount(tmp_path: Path, script: Path) -> None:
    folder = tmp_path / "etc,all"
    folder.mkdir()
    moved = folder / script.name
    moved.write_bytes(script.read_bytes())
    with pytest.raises(GuestError, match=r"has a comma in its name: .*etc,all; set TMPDIR"):
        run_guest(fake(tmp_path, "true"), moved, {}, timeout_s=9)
