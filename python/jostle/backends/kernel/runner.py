"""Runs a job in a kernel, and returns the folder with its results."""

from __future__ import annotations

import errno
import functools
import json
import math
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from jostle.backends.base import Cancelled
from jostle.backends.kernel.guest.failure import PREFIX
from jostle.errors import JostleError, RunCancelledError
from jostle.kernel_images import GuestError, GuestOutput, GuestTimeoutError, Image, run_guest
from jostle.kernel_images.image_paths import SYSTEM_PATH, cache_folder
from jostle.kernel_images.process_group import running
from jostle.safe_io.folder_lock import SAY_AFTER_S, LockFile, waiting
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.scratch_folder import temporary_folder

PROGRAM = Path(__file__).parent / "guest"
"""The guest program, a separate Python package."""

_LOCK = "realtime.lock"
_POLL_S = 0.02
_TAIL_LINES = 20
# Processes the packets of a handshake, and calls the controller for the last one.
_HANDSHAKE = "tcp_rcv_state_process"
_HANDSHAKE_HINT = (
    "Linux calls pkts_acked, and cong_avoid or cong_control, for the ACK of the handshake before "
    "init: the data of the connection are zero then"
)
_LOOP_HINT = "a loop in the module that does not end stops the whole kernel"
_NO_ROOM = os.strerror(errno.ENOSPC)

# Concurrent real-time runs would disturb each other.
_one_at_a_time = threading.Lock()


class KernelRunError(JostleError):
    """A run on the kernel failed."""


@contextmanager
def run_job(
    job: Mapping[str, Any],
    files: Mapping[str, bytes],
    image: Image,
    *,
    memory_mb: int,
    seed: int,
    timeout_s: float,
    cancelled: Cancelled | None,
    modules: Sequence[str] = (),
    program: str = PROGRAM.name,
) -> Iterator[tuple[Path, float]]:
    """Run a job; yield a temporary folder with its results, and the wall time in seconds.

    A guest runs one job. A second job would find the kernel's timers and random numbers in another
    state and have another result, even with new network namespaces and processes.

    Parameters
    ----------
    job, files
        Job description, and the files to which it refers.
    seed
        Seed of the random numbers of a virtual kernel.
    modules
        Names of the user's modules that are loaded; the message of a broken guest begins with them.
    program
        Python module of the guest program.

    Raises
    ------
    KernelRunError
        If the guest program or its kernel failed. The message gives the reason.
    RunCancelledError
        If `cancelled` returned true.
    """
    try:
        with temporary_folder("run") as folder:
            (folder / "job.json").write_text(json.dumps(job))
            for name, content in files.items():
                (folder / name).write_bytes(content)
            script = write_script(folder, program)
            try:
                output = _run(
                    script,
                    image,
                    memory_mb=memory_mb,
                    seed=seed,
                    timeout_s=timeout_s,
                    cancelled=cancelled,
                )
            except GuestError as error:
                raise KernelRunError(_broken(error, modules)) from error
            check_output(output, folder)
            yield folder, output.wall_s
    except OSError as error:
        raise KernelRunError(f"{tempfile.gettempdir()}: {error.strerror or error}") from error


def _broken(error: GuestError, modules: Sequence[str]) -> str:
    """Return the message of a broken guest, which begins with the user's modules."""
    text = str(error)
    if not modules:
        return text
    named = ", ".join(f"`{name}`" for name in modules)
    hints = [_LOOP_HINT] if isinstance(error, GuestTimeoutError) else []
    hints += [_HANDSHAKE_HINT] if _HANDSHAKE in text else []
    return "\n".join([f"with the kernel module {named} of yours, {text}", *hints])


def write_script(folder: Path, program: str) -> Path:
    """Write the script that starts a guest program with the job in `folder`; return its path."""
    _write_bytecode()
    script = folder / "run"
    script.write_text(_script(folder, program))
    script.chmod(0o755)
    return script


@functools.cache
def _write_bytecode() -> None:
    """Write the bytecode of the guest program next to it, as an import does.

    A guest cannot write it, and not every installer does. Compiling takes 40 ms in each guest.
    """
    if sys.dont_write_bytecode:
        return
    for path in PROGRAM.glob("*.py"):
        name = f"{PROGRAM.name}.{path.stem}"
        # Where nothing can be written, the loader writes nothing.
        SourceFileLoader(name, str(path)).get_code(name)


def _script(folder: Path, program: str) -> str:
    """Return a start script; a kernel's command line is short and lacks proper quoting."""
    # -P: `-m` would otherwise search the current folder, which anyone may write to, and on this
    # machine's kernel the program runs as root. -E would disable PYTHONPATH.
    options = ["-P", "-S", "-B", "-m", program]
    words = [os.path.realpath(sys.executable), *options, str(folder)]
    path = shlex.quote(str(PROGRAM.parent))
    # The user's PYTHONHOME may belong to another Python.
    return (
        "#!/bin/sh\ncd /\nunset PYTHONHOME PYTHONSTARTUP PYTHONINSPECT PYTHONPLATLIBDIR\n"
        f"export PYTHONPATH={path}\nexec {shlex.join(words)}\n"
    )


def _run(
    script: Path,
    image: Image,
    *,
    memory_mb: int,
    seed: int,
    timeout_s: float,
    cancelled: Cancelled | None,
) -> GuestOutput:
    if image.kind == "virtual":
        return run_guest(
            image,
            script,
            {},
            memory_mb=memory_mb,
            seed=seed,
            timeout_s=timeout_s,
            cancelled=cancelled,
        )
    with _alone(cancelled):
        if image.kind == "native":
            return _run_here(script, timeout_s, cancelled)
        return run_guest(
            image, script, {}, memory_mb=memory_mb, timeout_s=timeout_s, cancelled=cancelled
        )


@contextmanager
def _alone(cancelled: Cancelled | None) -> Iterator[None]:
    """Wait until no other thread or process of this user runs in real time."""

    def check() -> None:
        if cancelled is not None and cancelled():
            raise RunCancelledError("stopped before its end")

    while not _one_at_a_time.acquire(timeout=_POLL_S):
        check()
    try:
        lock = _locked(check)
        try:
            yield
        finally:
            lock.release()
    finally:
        _one_at_a_time.release()


def _locked(check: Callable[[], None]) -> LockFile:
    """Wait for the lock of other processes of this user, whose runs may last hours."""
    path = cache_folder() / _LOCK
    say_s = time.monotonic() + SAY_AFTER_S
    try:
        with OpenFolder.at(path.parent, make=True) as folder:
            while (lock := LockFile.take(folder, _LOCK)) is None:
                check()
                if time.monotonic() >= say_s:
                    waiting("runs in real time", folder.lstat(_LOCK))
                    say_s = math.inf
                time.sleep(_POLL_S)
    except OSError as error:
        raise KernelRunError(f"cannot write {path}: {error.strerror}") from error
    return lock


def _run_here(script: Path, timeout_s: float, cancelled: Cancelled | None) -> GuestOutput:
    """Run the program on this machine's kernel.

    Its network namespaces have no names, so they are removed when the program ends.
    """
    lines: list[str] = []
    environment = {**os.environ, "PATH": SYSTEM_PATH, "LC_ALL": "C.UTF-8"}
    started_s = time.monotonic()
    # Started by the shell, because a temporary folder may be mounted noexec.
    with running(["/bin/sh", str(script)], lines.append, environment=environment) as group:
        while (status := group.wait(_POLL_S)) is None:
            if cancelled is not None and cancelled():
                raise RunCancelledError("stopped before its end")
            if time.monotonic() - started_s > timeout_s:
                raise GuestTimeoutError(f"the run did not end within {timeout_s:g} s")
    return GuestOutput("\n".join(lines), status == 0, time.monotonic() - started_s)


def check_output(output: GuestOutput, folder: Path) -> None:
    """Raise `KernelRunError` if a guest program ended without a result."""
    if output.ok and (folder / "events.json").exists():
        return
    failures = re.findall(rf"^{re.escape(PREFIX)}(.*)$", output.text, re.MULTILINE)
    if not failures:
        tail = "\n".join(f"  {line}" for line in output.text.splitlines()[-_TAIL_LINES:])
        raise KernelRunError(f"the guest program ended without a result; it said:\n{tail}")
    message = failures[-1]
    if _NO_ROOM in message:
        message = f"no room for the samples in {folder.parent}: free some space, or set TMPDIR"
    raise KernelRunError(message)
