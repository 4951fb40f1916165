"""Signals: forwards them to COMMAND, and cleans up in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from types import FrameType
from typing import Any, Final

from jostle.errors import EmulationError

__all__ = ["SignalForwarder", "end"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S: Final = 5.0


class SignalForwarder:
    """Handles signals within its context.

    Before the command starts, the first signal ends the setup. Then signals are forwarded to the
    command; if it does not end within 5 s of SIGTERM or SIGHUP, it is killed. During the clean-up,
    signals are ignored.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._before: dict[int, Any] = {}
        self._timers: list[threading.Timer] = []

    def __enter__(self) -> SignalForwarder:
        # Python delivers signals to the main thread only.
        if threading.current_thread() is threading.main_thread():
            self._before = {one: signal.signal(one, self._handle) for one in _SIGNALS}
        return self

    def __exit__(self, *_error: object) -> None:
        for timer in self._timers:
            timer.cancel()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the command and return its exit status like a shell: 128 + N for signal N."""
        self._process = process
        status = process.wait()
        return status if status >= 0 else 128 - status

    def close(self) -> None:
        """Ignore signals from now on."""
        self._closed = True

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._closed:
            return
        if self._process is None:
            self._closed = True
            error = EmulationError("interrupted")
            error.exit_status = 128 + number
            raise error
        if number == signal.SIGINT and _in_foreground():
            return
        self._process.send_signal(number)
        if number != signal.SIGINT:
            timer = threading.Timer(_GRACE_S, self._process.kill)
            timer.daemon = True
            timer.start()
            self._timers.append(timer)


def end(process: subprocess.Popen[bytes], grace_s: float = 1.0) -> None:
    """Terminate a child process if it still runs."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _in_foreground() -> bool:
    """Return whether Ctrl-C also reaches the command, because it shares the terminal."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
