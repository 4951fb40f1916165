"""Runs a program in a new PID namespace, so that no process of it outlives jostle.

usage: python pid_namespace.py PARENT HOLD PROGRAM ARGUMENT…

PARENT is the PID of the process that starts this one, as root. HOLD is `-`, or the number of a
socket: the launcher writes a byte to it when everything is ready, and starts the program when
PARENT closes the other end. There are three processes:

- The launcher stays outside of the namespace. It ends with PARENT (PR_SET_PDEATHSIG), and passes
  the signals of PARENT on.
- Init, the first process of the namespace, ends with the launcher. The kernel then kills every
  other process of the namespace, daemons included. Init reaps orphans.
- The program is a child of init. It cannot be the first process itself: the kernel discards signals
  to a first process that has no handler for them (pid_namespaces(7)).

All three are in the process group of PARENT, so that the program can use PARENT's terminal, and
Ctrl-C and Ctrl-Z reach it without help. If PARENT has started the launcher in a new session, the
program gets a new process group, and signals are passed on to this group.

The exit status is the program's, or 128 + N if signal N has ended it. Where the kernel has no PID
namespaces (Linux in virtual time), the program runs without one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import NoReturn

_NOT_STARTED = 127
_GRACE_S = 1.0
_POLL_S = 0.005
_NAMESPACE = "/proc/self/ns/pid"
# linux/prctl.h, linux/sched.h, linux/mount.h.
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_SLAVE = 2, 4, 8, 16384, 1 << 19

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Init gets a real-time signal instead of each. So signals to the whole process group, which the
# program gets by itself, are not passed on.
_TO_INIT = {number: signal.SIGRTMIN + number for number in _PASSED_ON}


def main(parent: int, hold: int | None, words: Sequence[str]) -> int:
    """Run a program, and return its exit status."""
    if hold is not None:
        os.set_inheritable(hold, False)
    if not os.path.exists(_NAMESPACE):
        _await_release(hold)
        _execute(words)
    libc = ctypes.CDLL(None, use_errno=True)
    _end_with_parent(libc)
    if os.getppid() != parent:
        return _NOT_STARTED
    is_alone = os.getsid(0) == os.getpid()
    mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED_ON, *_TO_INIT.values()}
    )
    _check(libc.unshare(_CLONE_NEWPID | _CLONE_NEWNS), "a PID namespace")
    is_alive, open_end = os.pipe()
    terminal = _Terminal()
    init = os.fork()
    if init == 0:
        os.close(open_end)
        _be_init(libc, is_alive, hold, words, mask, is_alone=is_alone)
    while True:
        came = signal.sigwaitinfo({signal.SIGCHLD, *_PASSED_ON})
        if came.si_signo != signal.SIGCHLD:
            if came.si_pid == parent:
                os.kill(init, _TO_INIT[signal.Signals(came.si_signo)])
            continue
        ended, status = os.waitpid(init, os.WNOHANG)
        if ended:
            terminal.restore()
            return _exit_status(status)


class _Terminal:
    """The terminal that the program can take over.

    The program cannot give it back: a shell, for example, does not see the process group of PARENT
    from within the namespace.
    """

    def __init__(self) -> None:
        self._terminal: int | None = None
        with suppress(OSError):
            self._terminal = os.open(os.ctermid(), os.O_RDWR | os.O_CLOEXEC)
            self._group = os.tcgetpgrp(self._terminal)

    def restore(self) -> None:
        """Give the terminal back to the process group that had it, if it is this one."""
        if self._terminal is not None and self._group == os.getpgrp():
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(self._terminal, self._group)


def _be_init(
    libc: ctypes.CDLL,
    is_alive: int,
    hold: int | None,
    words: Sequence[str],
    mask: Iterable[int],
    *,
    is_alone: bool,
) -> NoReturn:
    """Be the first process of the namespace until the program ends; does not return."""
    try:
        if is_alone:
            # A signal to the group of the launcher is for the launcher, which passes it on.
            os.setpgid(0, 0)
        _end_with_parent(libc)
        # The pipe is closed if the launcher has ended before that.
        os.set_blocking(is_alive, False)
        with suppress(BlockingIOError):
            if not os.read(is_alive, 1):
                os._exit(_NOT_STARTED)
        _mount_proc(libc)
        _await_release(hold)
        program = os.fork()
        if program == 0:
            _become(words, mask, is_alone=is_alone)
        os._exit(_exit_status(_await(program, is_alone=is_alone)))
    except OSError as error:
        _complain(error)
        os._exit(_NOT_STARTED)


def _await_release(hold: int | None) -> None:
    if hold is not None:
        os.write(hold, b".")
        os.read(hold, 1)


def _become(words: Sequence[str], mask: Iterable[int], *, is_alone: bool) -> NoReturn:
    if is_alone:
        os.setpgid(0, 0)
    # Python ignores them from its start.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _execute(words)


def _execute(words: Sequence[str]) -> NoReturn:
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        raise OSError(error.errno, error.strerror, words[0]) from error


def _await(program: int, *, is_alone: bool) -> int:
    """Wait for the program and return its status; then ask everything that is left to end."""
    numbers = {to_init: number for number, to_init in _TO_INIT.items()}
    statuses: dict[int, int] = {}
    while program not in statuses:
        came = signal.sigwaitinfo({signal.SIGCHLD, *numbers})
        if came.si_signo == signal.SIGCHLD:
            statuses.update(_reaped())
        else:
            with suppress(ProcessLookupError):
                send = os.killpg if is_alone else os.kill
                send(program, numbers[came.si_signo])
    until_s = time.monotonic() + _GRACE_S
    # All orphans are children of init.
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(-1, signal.SIGTERM)
        while time.monotonic() < until_s:
            os.waitpid(-1, os.WNOHANG)
            time.sleep(_POLL_S)
    return statuses[program]


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _end_with_parent(libc: ctypes.CDLL) -> None:
    _check(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "the end with jostle")


def _mount_proc(libc: ctypes.CDLL) -> None:
    """Let programs such as `ps` see the processes of the namespace."""
    _check(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None), "mounts")
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _check(libc.mount(b"proc", b"/proc", b"proc", flags, None), "a mount at /proc")


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _complain(error: OSError) -> None:
    print(f"cannot be started: {error.filename}: {error.strerror}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        held = None if sys.argv[2] == "-" else int(sys.argv[2])
        # Nothing is left to tidy up, and the end of an interpreter takes time.
        os._exit(main(int(sys.argv[1]), held, sys.argv[3:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except OSError as error:
        _complain(error)
        sys.exit(_NOT_STARTED)
