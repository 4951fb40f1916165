"""A program in a new PID namespace: its status, its signals, its terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import jostle
import pytest

SCRIPT = Path(jostle.__file__).parent / "safe_io" / "pid_namespace.py"
LAUNCHER = [sys.executable, "-I", "-S", "-B", str(SCRIPT)]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not Path("/proc/self/ns/pid").exists(),
    reason="root and PID namespaces are needed",
)


def launch(*words: str, alone: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*LAUNCHER, str(os.getpid()), "-", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=alone,
    )


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    said, _ = process.communicate(timeout=20)
    return process.returncode, said


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 128 + signal.SIGKILL),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["no-such-program"], 127),
    ],
)
def test_the_status_passes_through(words: list[str], status: int) -> None:
    found, said = end_of(launch(*words))
    assert found == status
    if status == 127:
        assert said == "cannot be started: no-such-program: No such file or directory\n"


def test_a_program_starts_as_it_would_without_the_namespace() -> None:
    """Python changes the signals that its own process ignores."""
    words = ["grep", "-E", "Sig(Blk|Ign)|NoNewPrivs", "/proc/self/status"]
    plain = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert end_of(launch(*words)) == (0, plain)


def test_ps_lists_the_namespace_only() -> None:
    _, said = end_of(launch("sh", "-c", "echo /proc/[0-9]*; cat /proc/1/cmdline | tr '\\0' ' '"))
    numbers, first = said.splitlines()
    assert numbers == "/proc/1 /proc/2"
    assert SCRIPT.name in first


def test_what_the_program_leaves_is_asked_to_end_and_then_killed() -> None:
    polite = "trap 'echo told; exit' TERM; echo up; sleep 50 & wait"
    script = f"setsid sh -c \"{polite}\" & (trap '' TERM; exec setsid sleep 50) & sleep 0.3; exit 3"
    began = time.monotonic()
    status, said = end_of(launch("sh", "-c", script))
    assert (status, said) == (3, "up\ntold\n")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_of_the_parent_reach_the_program_once(number: signal.Signals, alone: bool) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(int(sys.argv[1]), lambda number, frame: print(number, flush=True))\n"
        "print('ready', flush=True)\n"
        "time.sleep(0.5)\n"
    )
    process = launch(sys.executable, "-c", script, str(int(number)), alone=alone)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    if alone:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert end_of(process) == (0, f"{int(number)}\n")


def test_a_signal_ends_a_program_that_does_not_handle_it() -> None:
    process = launch("sh", "-c", "echo ready; exec sleep 50")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    assert end_of(process) == (128 + signal.SIGTERM, "")


def test_the_program_ends_if_its_parent_is_not_there() -> None:
    done = subprocess.run(
        [*LAUNCHER, "1", "-", "echo", "started"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (127, b"")


def test_a_kernel_without_pid_namespaces_runs_the_program_directly() -> None:
    """As Linux in virtual time does, with which every process ends."""
    code = (
        "from jostle.safe_io import pid_namespace as launcher\n"
        "launcher._NAMESPACE = '/proc/none'\n"
        "launcher.main(0, None, ['sh', '-c', 'echo $$; exit 4'])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        said, _ = run.communicate(timeout=20)
    assert (run.returncode, said) == (4, f"{run.pid}\n")


def test_a_held_program_starts_when_it_is_released() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*LAUNCHER, str(os.getpid()), str(theirs.fileno()), "sh", "-c", "ls /proc/self/fd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[theirs.fileno()],
        )
    assert process.stdout is not None
    with ours:
        assert ours.recv(1) == b"."
        assert select.select([process.stdout], [], [], 0.2)[0] == []
    # Input, output, errors, and the folder that is listed.
    assert end_of(process) == (0, "0\n1\n2\n3\n")


class Terminal:
    """A shell in a terminal, which starts programs by the launcher.

    Like jostle, Python is between them: `run` starts a program and ignores Ctrl-C.
    """

    RUN = (
        "import os, signal, subprocess, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: None)\n"
        "words = [*sys.argv[1:6], str(os.getpid()), '-', *sys.argv[6:]]\n"
        "sys.exit(subprocess.run(words).returncode)\n"
    )

    def __init__(self) -> None:
        self.shell, self.file = pty.fork()
        if self.shell == 0:
            os.environ.update(PS1="$ ", TERM="dumb", RUN=self.RUN, PYTHON=sys.executable)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        launcher = " ".join(LAUNCHER)
        self.type(f'stty -echo; run() {{ "$PYTHON" -c "$RUN" {launcher} "$@"; }}; echo o""k\n')
        self.read("ok")

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def read(self, until: str, then: str = "") -> str:
        said = ""
        end_s = time.monotonic() + 20
        while until not in said or then not in said.partition(until)[2]:
            ready, _, _ = select.select([self.file], [], [], end_s - time.monotonic())
            assert ready, said
            said += os.read(self.file, 1000).decode()
        return said

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.shell, signal.SIGKILL)
        os.close(self.file)
        os.waitpid(self.shell, 0)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def test_ctrl_c_reaches_the_program_once(terminal: Terminal) -> None:
    terminal.type('run sh -c \'trap "echo interrup"ted INT; echo read"y"; sleep 1; sleep 1\'\n')
    terminal.read("ready")
    terminal.type("\x03")
    terminal.read("interrupted")
    terminal.type("echo status $?\n")
    assert "interrupted" not in terminal.read("status 0")


def test_ctrl_c_ends_a_program_that_does_not_handle_it(terminal: Terminal) -> None:
    terminal.type("run sh -c 'echo read\"y\"; exec sleep 50'; echo status $?\n")
    terminal.read("ready")
    terminal.type("\x03")
    terminal.read(f"status {128 + signal.SIGINT}")


def test_ctrl_z_stops_the_program_until_it_is_in_the_foreground_again(terminal: Terminal) -> None:
    terminal.type("run sh -c 'echo read\"y\"; read line; echo got $line'\n")
    terminal.read("ready")
    terminal.type("\x1a")
    # The shell drops what is typed before its prompt, and sometimes the first character after it.
    terminal.read("Stopped", then="$ ")
    terminal.type("    fg\nhello\n")
    terminal.read("got hello")


def test_a_shell_has_job_control_and_gives_the_terminal_back(terminal: Terminal) -> None:
    """A shell that is not interactive, as in a script, does not take the terminal by itself."""
    run = " ".join(LAUNCHER)
    script = (
        f'"$PYTHON" -c "$RUN" {run} bash --norc --noprofile --noediting -i; read x; echo got $x'
    )
    terminal.type(f"sh -c '{script}'; echo status $?\n")
    terminal.type("set -o | grep monitor; sleep 50\n")
    terminal.read("on")
    time.sleep(0.2)
    terminal.type("\x03")
    terminal.type("echo inner $?\n")
    terminal.read(f"inner {128 + signal.SIGINT}")
    terminal.type("exit\n")
    terminal.read("exit")
    terminal.type("hello\n")
    terminal.read("got hello")


def test_the_program_sees_the_size_of_the_window(terminal: Terminal) -> None:
    terminal.type('run sh -c \'trap "stty size" WINCH; echo read"y"; sleep 50 & wait; wait\'\n')
    terminal.read("ready")
    fcntl.ioctl(terminal.file, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
    terminal.read("33 77")
    terminal.type("\x03")
