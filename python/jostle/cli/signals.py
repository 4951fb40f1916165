"""Ctrl-C, SIGTERM and SIGHUP: the first signal stops cleanly, the second immediately."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from jostle.errors import InterruptedRunError, JostleError
from jostle.safe_io.terminal_text import echo

if TYPE_CHECKING:
    from jostle.runner.executors.threads import Executor

GOES_ON = "interrupted; give the same command again to go on from there"
"""Message of an interrupted command whose finished work is stored."""
_PATIENCE_S = 1.0
"""Time that a clean stop may take before a message says how to stop at once."""
_STOPPING = (signal.SIGINT, signal.SIGTERM)
# Windows has no SIGHUP.
_SIGNALS = (*_STOPPING, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@contextmanager
def orderly_interruption(
    said: str | None = None, *, deferred: bool = False
) -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt at the first signal; end the process at the second.

    Immediate exit is safe, because runs enter the store by a rename. A clean stop is an error with
    the exit status that shells report for a program ended by the signal: 130 for Ctrl-C, 143 for
    SIGTERM, 129 for SIGHUP. A SIGHUP that `nohup` ignores remains ignored. If the clean stop takes
    more than a second, a message on stderr says what it waits for.

    Parameters
    ----------
    said
        Message of the error. Without one, the error says how many runs are kept, where it knows.
    deferred
        Raise KeyboardInterrupt only where the yielded function is called, and ignore further
        signals. A signal then never interrupts code that creates or removes a folder, or starts
        or ends a program.

    Yields
    ------
    Callable
        Function that raises KeyboardInterrupt if a signal has arrived.

    Raises
    ------
    JostleError
        If a signal arrived.
    """
    came = 0
    message = _message_of_wait(may_repeat=not deferred)

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came and not deferred:
            os._exit(128 + number)
        if not came:
            came = number
            message.start()
        if not deferred:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        # Python delivers signals to the main thread only.
        yield check
        return
    before = {
        number: signal.signal(number, handle)
        for number in _SIGNALS
        if number in _STOPPING or signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield check
    except (InterruptedRunError, KeyboardInterrupt) as interrupt:
        stopped: JostleError = JostleError(said or "interrupted")
        if said is None and isinstance(interrupt, InterruptedRunError):
            stopped = interrupt
        stopped.exit_status = 128 + (came or signal.SIGINT)
        if stopped is interrupt:
            raise
        raise stopped from interrupt
    finally:
        message.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _message_of_wait(*, may_repeat: bool) -> threading.Timer:
    """Return a timer that shows a message, which it does only if it is started."""
    # A run may keep the main thread waiting, such as a controller in Python that loops.
    message = threading.Timer(_PATIENCE_S, _explain_wait, (may_repeat,))
    message.daemon = True
    return message


def _explain_wait(may_repeat: bool) -> None:
    more = "; press Ctrl-C again to stop at once" if may_repeat else ""
    with suppress(OSError):
        echo(f"stopping when the active runs or builds end{more}", err=True)


@contextmanager
def interruptible(executor: Executor, said: str | None = None) -> Iterator[None]:
    """Use an executor until the block ends; after a signal, no further run starts."""
    with orderly_interruption(said):
        try:
            yield
        finally:
            executor.shutdown(wait=True, cancel_futures=True)
