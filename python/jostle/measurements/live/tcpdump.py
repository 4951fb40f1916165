"""The packets of a transfer, by tcpdump: what root may have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from jostle.errors import InputError, JostleError
from jostle.measurements.live.target import Target
from jostle.measurements.live.time_limits import Limit, pause
from jostle.measurements.live.transfer import Tick

__all__ = ["captured", "require"]

_SNAPPED_BYTES: Final = 128
_PATIENCE_S: Final = 5.0
_LAST_S: Final = 0.5
"""Time for the last packets to come before it is ended."""


def require() -> str:
    """Return where tcpdump is.

    Raises
    ------
    InputError
        When it is not installed, or this is not root.
    """
    if os.geteuid() != 0:
        raise InputError("--capture needs root: use sudo, or leave it out")
    found = shutil.which("tcpdump", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise InputError("--capture: tcpdump is not installed. On Debian: apt-get install tcpdump")
    return found


@contextmanager
def captured(target: Target, into: Path, tick: Tick) -> Iterator[None]:
    """Write the packets to and from a target's port to a file.

    Raises
    ------
    JostleError
        When tcpdump does not begin.
    """
    words = [
        require(), "-i", "any", "-n", "-p", "-s", str(_SNAPPED_BYTES), "-B", "16384", "-w", "-",
        f"host {target.address} and tcp port {target.port}",
    ]  # fmt: skip
    told = into.with_suffix(".said")
    # It gives up root, and could not write to a folder of root's by itself.
    with into.open("wb") as packets, told.open("wb") as said:
        # In a separate process group, Ctrl-C does not end it before the transfer.
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=packets, stderr=said, process_group=0
        )
    try:
        _await_begin(process, told, Limit(_PATIENCE_S, tick))
        yield
        pause(_LAST_S, tick)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        told.unlink()


def _await_begin(process: subprocess.Popen[bytes], told: Path, limit: Limit) -> None:
    with suppress(TimeoutError):
        while process.poll() is None:
            if b"listening on" in told.read_bytes():
                return
            time.sleep(min(limit.wait_s(), 0.02))
    raise JostleError(f"tcpdump does not begin: {told.read_text('utf-8', 'replace')}")
