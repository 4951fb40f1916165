"""The engine's loop in a thread of its own, which never holds the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle._core import Emulation, Emulator

__all__ = ["Loop"]


class Loop(threading.Thread):
    """Carries packets from `start()` until `finish()`.

    Parameters
    ----------
    emulator
        The engine's.
    broken
        Called, in this thread, when it ends without having been asked to.
    """

    def __init__(self, emulator: Emulator, broken: Callable[[], None]) -> None:
        super().__init__(name="jostle-emulate", daemon=True)
        self.real_time = False
        self._emulator = emulator
        self._broken = broken
        self._emulation: Emulation | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the loop, ahead of ordinary processes if that is allowed."""
        try:
            # Of this thread alone. The kernel keeps a share of time for the others.
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
        """End it, whatever it leaves behind."""
        self._emulator.stop()
        self.join()

    def finish(self) -> Emulation:
        """End it and return what it leaves behind.

        Raises
        ------
        OSError
            When a device was gone.
        """
        self.stop()
        if self._emulation is None:
            raise self._error or RuntimeError("the emulation has left nothing behind")
        return self._emulation
