"""What becomes of a command that a signal stops."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jostle.cli.signals import interruptible, orderly_interruption
from jostle.errors import InterruptedRunError, JostleError
from test_cli import SCENARIO

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


def _wait_after_a_signal(*, deferred: bool) -> None:
    with orderly_interruption(deferred=deferred):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            threading.Event().wait(0.3)
    raise JostleError("deferred")


@pytest.mark.parametrize("deferred", [False, True])
def test_a_slow_stop_says_what_it_waits_for(
    deferred: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jostle.cli.signals._PATIENCE_S", 0.05)
    with pytest.raises(JostleError):
        _wait_after_a_signal(deferred=deferred)
    err = capsys.readouterr().err
    assert err.startswith("stopping when the active runs or builds end")
    assert ("press Ctrl-C again to stop at once" in err) is not deferred


def test_a_fast_stop_says_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(JostleError), orderly_interruption():
        signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == ""


LOOPING = """
class Loop:
    recovery = "controller"

    def __init__(self):
        self.cwnd = 30.0
        self.ssthresh = None

    def on_ack(self, ack):
        print("looping", flush=True)
        while True:
            pass

    def on_congestion_event(self, event):
        pass
"""


def test_a_controller_that_loops_can_be_stopped(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(LOOPING)
    text = SCENARIO.replace('"bbr"', '"slow:Loop"')
    (tmp_path / "plain.toml").write_text(text)
    words = ["run", "plain.toml", "--allow-code", "--repeats", "1", "--store", "none"]
    command = [sys.executable, "-c", "from jostle.cli import main; main()", *words]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stderr is not None
    with running:
        assert running.stdout.readline() == "looping\n"
        running.send_signal(signal.SIGINT)
        assert running.stderr.readline().startswith("stopping when the active runs or builds end;")
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
