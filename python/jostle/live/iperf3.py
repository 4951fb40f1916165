"""Transfers with a server of iperf3, by the program of that name."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import closing
from typing import Final

from jostle.errors import InputError, JostleError
from jostle.live.sampling import Sampler, of_peer
from jostle.live.sockets import Diagnosis
from jostle.live.target import Target
from jostle.live.transfer import Carried, RefusedError, Step, Tick

__all__ = ["carry_out", "require", "version"]

_TICK_S: Final = 0.2
_CONNECT_MS: Final = 5_000
_GRACE_S: Final = 20.0
"""How long the program may take beyond the transfer: to connect, and to hear of results."""
_TRIES: Final = 5
_AGAIN_S: Final = 1.0
"""A server has one client at a time, and needs a moment between two."""


def require() -> str:
    """Return where the program is.

    Raises
    ------
    InputError
        When it is not installed.
    """
    found = shutil.which("iperf3")
    if found is None:
        raise InputError(
            "iperf3 is not installed. On Debian: sudo apt-get install iperf3; or measure a web "
            "server: give its URL"
        )
    return found


def version() -> str:
    """Give the first line of `iperf3 --version`."""
    done = subprocess.run(
        [require(), "--version"], capture_output=True, text=True, check=False, timeout=10
    )
    return (done.stdout.splitlines() or ["unknown"])[0]


def carry_out(target: Target, step: Step, tick: Tick) -> Carried:
    """Make one transfer.

    Raises
    ------
    InputError
        When there is no server, or it is none of iperf3.
    RefusedError
        When the server has no such controller.
    JostleError
        When the transfer breaks off.
    """
    words = [
        require(), "--client", target.address, "--port", str(target.port), "--json",
        "--time", str(step.seconds), "--interval", "0.1", "--connect-timeout", str(_CONNECT_MS),
    ]  # fmt: skip
    if step.direction == "down":
        words.append("--reverse")
    if step.controller:
        words += ["--congestion", step.controller]
    for attempt in range(_TRIES):
        notes: list[str] = []
        try:
            diagnosis = Diagnosis()
            look = of_peer(diagnosis, target.family, target.address, target.port)
        except OSError as error:
            notes.append(f"this host tells nothing of its sockets ({error.strerror})")
            printed, samples = _run(words, step, tick), []
        else:
            with closing(diagnosis), Sampler(look) as sampler:
                printed = _run(words, step, tick)
            samples = sampler.largest()
        said = _complaint(printed)
        if said is None:
            return Carried(samples, shlex.join(["iperf3", *words[1:]]), printed, notes)
        if "busy" not in said or attempt == _TRIES - 1:
            raise _error(said, target, step)
        time.sleep(_AGAIN_S)
    raise AssertionError("every try returns or raises")


def _run(words: list[str], step: Step, tick: Tick) -> str:
    # A pipe that nobody reads would fill, and stop the program.
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed)
        until = time.monotonic() + step.seconds + _GRACE_S
        try:
            while process.poll() is None:
                if time.monotonic() > until:
                    raise JostleError(f"iperf3 hangs: {shlex.join(words)}")
                tick()
                try:
                    process.wait(_TICK_S)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        printed.seek(0)
        return printed.read()


def _complaint(printed: str) -> str | None:
    """Give what iperf3 says went wrong; None if nothing did."""
    try:
        document = json.loads(printed)
    except ValueError:
        return printed.strip().splitlines()[-1] if printed.strip() else "it printed nothing"
    said = document.get("error")
    return None if said is None else str(said).removeprefix("error - ")


def _error(said: str, target: Target, step: Step) -> JostleError:
    if "connect" in said or "route" in said or "timed out" in said:
        return InputError(
            f"no server of iperf3 answers at {target.label} ({said}). Start `iperf3 -s` there, or "
            "measure a web server: give its URL"
        )
    if "busy" in said:
        return JostleError(f"the server at {target.label} is busy with somebody else: try later")
    if "congestion" in said.lower():
        return RefusedError(f"the server at {target.label} refuses `{step.controller}` ({said})")
    return JostleError(f"iperf3 with {target.label} failed: {said}")
