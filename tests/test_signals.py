"""What becomes of a command that a signal stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from jostle.cli.signals import interruptible, orderly_interruption
from jostle.errors import InterruptedRunError, JostleError

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """A SIGHUP that is not ignored, as it is by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_is_an_error_with_its_status(number: int, code: int) -> None:
    before = signal.getsignal(number)
    with pytest.raises(JostleError, match="what is there is kept") as stopped, \
         orderly_interruption("what is there is kept"):  # fmt: skip
        signal.raise_signal(number)
    assert stopped.value.exit_status == code
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_interrupted_runs_say_how_many_they_were(number: int, code: int) -> None:
    def carry_out() -> None:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt as interrupt:
            raise InterruptedRunError(2, 6) from interrupt

    with pytest.raises(InterruptedRunError, match="2 of 6 runs") as stopped, orderly_interruption():
        carry_out()
    assert stopped.value.exit_status == code


def test_a_command_with_its_own_record_says_what_is_kept() -> None:
    with pytest.raises(JostleError, match=r"^interrupted: trials are kept$") as stopped, \
         orderly_interruption("interrupted: trials are kept"):  # fmt: skip
        raise InterruptedRunError(None, 12)
    assert stopped.value.exit_status == 130


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_deferred_signal_is_raised_where_it_is_asked_for(number: int, code: int) -> None:
    reached = []

    def work() -> None:
        with orderly_interruption(deferred=True) as check:
            check()
            signal.raise_signal(number)
            signal.raise_signal(number)
            reached.append("the end")
            check()

    with pytest.raises(JostleError, match="interrupted") as stopped:
        work()
    assert reached
    assert stopped.value.exit_status == code


def test_a_hangup_that_nohup_ignores_remains_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with orderly_interruption():
        signal.raise_signal(signal.SIGHUP)


def test_an_executor_begins_nothing_after_a_signal() -> None:
    executor, begun, goes_on = ThreadPoolExecutor(1), threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return goes_on.wait(10)

    running, waiting = executor.submit(work), executor.submit(work)
    waiting.add_done_callback(lambda _: goes_on.set())
    begun.wait(10)
    with pytest.raises(JostleError, match="interrupted"), interruptible(executor):
        signal.raise_signal(signal.SIGINT)
    assert running.result(0)
    assert waiting.cancelled()
