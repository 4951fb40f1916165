"""Transfers with an iperf3 server, by the iperf3 program."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import closing, suppress
from typing import Final

from jostle.errors import InputError, JostleError
from jostle.measurements.live.sock_diag import Diagnosis
from jostle.measurements.live.target import Target
from jostle.measurements.live.tcp_info_sampler import Sampler, of_peer
from jostle.measurements.live.time_limits import Limit, pause
from jostle.measurements.live.transfer import (
    MARGIN_S,
    Step,
    Tick,
    TransferRefusedError,
    TransferResult,
)

__all__ = ["carry_out", "require", "version"]

_CONNECT_MS: Final = 5_000
_VERSION_S: Final = 5.0
_MOST_MEMORY: Final = 1 << 30
"""Address space of the program in bytes; it allocates as much as the server announces."""
_PRINTED_BYTES: Final = 10**6
_PRINTED_BYTES_PER_S: Final = 20_000
"""Limit of the program's output: an interval of 0.1 s takes about 1 kB."""
_TRIES: Final = 5
_AGAIN_S: Final = 1.0
"""Delay before another attempt: a server has one client at a time and needs a pause."""


def require() -> str:
    """Return the path of the program.

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
    """Return the first line of `iperf3 --version`."""
    try:
        done = subprocess.run(
            [require(), "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.splitlines() or ["unknown"])[0]


def carry_out(target: Target, step: Step, tick: Tick) -> TransferResult:
    """Carry out one transfer.

    Raises
    ------
    InputError
        When there is no server, or it is not an iperf3 server.
    TransferRefusedError
        When the server does not have the controller.
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
    # One limit for all attempts together.
    limit = Limit(step.seconds + MARGIN_S, tick)
    for attempt in range(_TRIES):
        notes: list[str] = []
        try:
            diagnosis = Diagnosis()
            look = of_peer(diagnosis, target.family, target.address, target.port)
        except OSError as error:
            notes.append(f"this host tells nothing of its sockets ({error.strerror})")
            printed, samples = _run(words, target, step, limit), []
        else:
            with closing(diagnosis), Sampler(look) as sampler:
                printed = _run(words, target, step, limit)
            samples = sampler.largest()
        said = _complaint(printed)
        if said is None:
            return TransferResult(samples, shlex.join(["iperf3", *words[1:]]), printed, notes)
        if "busy" not in said or attempt == _TRIES - 1:
            raise _error(said, target, step)
        pause(_AGAIN_S, tick)
    raise AssertionError("every try returns or raises")


def _run(words: list[str], target: Target, step: Step, limit: Limit) -> str:
    most_bytes = _PRINTED_BYTES + _PRINTED_BYTES_PER_S * step.seconds
    # An unread pipe would fill up and block the program.
    with tempfile.TemporaryFile("w+") as printed:
        # In a separate process group, Ctrl-C does not reach the program, so that its end is never
        # mistaken for a failure.
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, process_group=0
        )
        try:
            _limit_memory(process.pid)
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(limit.wait_s())
                if os.fstat(printed.fileno()).st_size > most_bytes:
                    raise JostleError(
                        f"iperf3 with {target.label} prints more than {most_bytes} bytes: the "
                        "server's results do not describe a transfer"
                    )
        except TimeoutError as error:
            raise JostleError(
                f"iperf3 with {target.label} did not end within {MARGIN_S:g} s after the "
                "transfer's time: the server does not answer as iperf3 does"
            ) from error
        finally:
            process.kill()
            process.wait()
        printed.seek(0)
        return printed.read()


def _limit_memory(pid: int) -> None:
    # Windows has no resource limits.
    import resource

    # The program may have ended, or may run with other privileges.
    with suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _complaint(printed: str) -> str | None:
    """Return iperf3's error message; None if there is none."""
    try:
        document = json.loads(printed)
    except (ValueError, RecursionError):
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
        return JostleError(f"the server at {target.label} is busy with another client: try later")
    if "congestion" in said.lower():
        return TransferRefusedError(
            f"the server at {target.label} refuses `{step.controller}` ({said})"
        )
    return JostleError(f"iperf3 with {target.label} failed: {said}")
