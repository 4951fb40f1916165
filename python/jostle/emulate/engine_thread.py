"""Thread for the engine's emulation loop, which does not hold the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle._core import Emulation, Emulator

__all__ = ["EngineThread"]


class EngineThread(threading.Thread):
    """Forwards packets from `start()` until `finish()`.

    Parameters
    ----------
    emulator
        Emulator of the engine.
    broken
        Called in this thread if the loop ends unexpectedly.
    """

    def __init__(self, emulator: Emulator, broken: Callable[[], None]) -> None:
        super().__init__(name="jostle-emulate", daemon=True)
        self.real_time = False
        self._emulator = emulator
        self._broken = broken
        self._emulation: Emulation | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the loop, with real-time priority if permitted."""
        try:
            # Applies to this thread only. The kernel reserves time for other processes.
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            self.real_time = True
        except OSError:
            pass
        try:
            self._emulation = self._emulator.run()
        except BaseException as error:
            self._error = error
            self._broken()

    def stop(self) -> None:
        """Stop the loop and discard its result."""
        self._emulator.stop()
        self.join()

    def finish(self) -> Emulation:
        """Stop the loop and return its result.

        Raises
        ------
        OSError
            If a device has disappeared.
        """
        self.stop()
        if self._emulation is None:
            raise self._error or RuntimeError("the emulation has left nothing behind")
        return self._emulation
