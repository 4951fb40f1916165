"""Runs a program in a kernel that is an ordinary process, and cleans up after it."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import JostleError, RunCancelledError
from jostle.kernel_images.image_paths import SYSTEM_PATH, Image
from jostle.kernel_images.process_group import running
from jostle.safe_io.scratch_folder import temporary_folder

_POLL_S = 0.02
_MAX_TEXT_LINES = 20_000
_TAIL_LINES = 20
_NO_DISK = "Failed to initialize ubd device"
"""Message of a kernel without a disk at every start."""
_PANIC = re.compile(r"Kernel panic - not syncing: .*")
_LEAST_ROOM_BYTES = 256 << 20

# The guest's wall clock starts at this time, so that runs are reproducible.
CLOCK_STARTS_NS = 1_700_000_000 * 10**9
"""Default start of a virtual kernel's wall clock, in ns since 1970."""

_INIT = """\
#!/bin/sh
mount -aT {mounts}
(
{exports}
exec {command} </dev/null
)
echo "{token} $?"
sync
# Without a process, and in systems that lack `poweroff`.
echo o >/proc/sysrq-trigger
while :; do sleep 1; poweroff -f; done
"""

_MOUNTS = """\
proc /proc proc
sysfs /sys sysfs
tmpfs /run tmpfs
none {writable} hostfs {writable}
"""


class GuestError(JostleError):
    """A guest kernel could not be started."""


class GuestTimeoutError(GuestError):
    """A guest did not end in time and was killed."""


@dataclass(frozen=True)
class GuestOutput:
    """Result of a guest that has ended.

    Attributes
    ----------
    text
        Console output of kernel and program, at most the last 20,000 lines.
    ok
        Whether the program exited with status 0.
    wall_s
        Wall time from start to end, including boot.
    """

    text: str
    ok: bool
    wall_s: float

    @property
    def tail(self) -> str:
        """Last lines of the output, for messages."""
        return _tail(self.text)


def run_guest(
    image: Image,
    script: Path,
    environment: Mapping[str, str],
    *,
    memory_mb: int = 1024,
    seed: int | None = None,
    clock_starts_ns: int = CLOCK_STARTS_NS,
    timeout_s: float,
    cancelled: Callable[[], bool] | None = None,
) -> GuestOutput:
    """Boot `image`, run `script` in it as root, and power off.

    The root file system of the guest is the host's, with this user's permissions, mounted read-only
    except for the script's folder. This prevents accidental writes; root in the guest could remount
    it. Before the script starts, /proc, /sys and an empty /run are mounted, and PATH is
    SYSTEM_PATH. Input is empty, output is the console. When the script ends, with any status, the
    guest powers off.

    Parameters
    ----------
    image
        A `virtual` or `realtime` kernel. Virtual time passes only while all processes sleep, and
        the clock always starts at the same time.
    script
        A program, or a file that begins with `#!` (which need not be executable).
    environment
        Environment variables of the script, in addition to PATH, HOME and LC_ALL.
    memory_mb
        Memory of the guest. The host provides only the memory that is used.
    seed
        Seed of all random numbers of a virtual kernel built by jostle. Default: the host's random
        numbers.
    clock_starts_ns
        Start of a virtual kernel's wall clock, in ns since 1970.
    timeout_s
        Timeout in wall time.
    cancelled
        Polled regularly; the guest is killed when it returns true.

    Raises
    ------
    GuestError
        If the kernel does not start.
    GuestTimeoutError
        After `timeout_s`.
    RunCancelledError
        If `cancelled` returned true.
    """
    if image.path is None:
        raise ValueError(f"a {image.kind} kernel runs already")
    token = f"jostle-guest-ended-{uuid.uuid4().hex}"
    host = {**os.environ, "TMPDIR": str(_memory_folder(memory_mb))}
    with _folder() as folder:
        init, mounts = folder / "init", folder / "mounts"
        text = _init(script, environment, token, mounts)
        try:
            init.write_text(text, "utf-8")
            init.chmod(0o755)
            mounts.write_text(_mounts(script), "utf-8")
        except OSError as error:
            raise GuestError(f"cannot write {error.filename}: {error.strerror}") from error
        command = _command_line(image, init, memory_mb, seed, clock_starts_ns)
        return _watch(command, host, token, timeout_s, cancelled)


@contextmanager
def _folder() -> Iterator[Path]:
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder("guest"))
        except OSError as error:
            raise GuestError(f"cannot make a temporary folder: {error.strerror}") from error
        yield folder


def _watch(
    command: list[str],
    host: Mapping[str, str],
    token: str,
    timeout_s: float,
    cancelled: Callable[[], bool] | None,
) -> GuestOutput:
    said: deque[str] = deque(maxlen=_MAX_TEXT_LINES)
    started_s = time.monotonic()
    late = False
    status = None
    try:
        with running(command, said.append, environment=host) as group:
            while (status := group.wait(_POLL_S)) is None and not late:
                if cancelled is not None and cancelled():
                    raise RunCancelledError("stopped before its end")
                late = time.monotonic() - started_s > timeout_s
    except OSError as error:
        raise GuestError(f"cannot start {command[0]}: {error.strerror}") from error
    wall_s = time.monotonic() - started_s
    # The last line of the script's output may lack a newline.
    text, ended, rest = "\n".join(said).rpartition(token)
    if late:
        last = _tail(text + rest)
        raise GuestTimeoutError(f"the guest did not end within {timeout_s:g} s; it said:\n{last}")
    if not ended:
        panic = _PANIC.search(rest)
        if panic is not None:
            # The reason and the innermost functions come first, and the stack is long.
            lines = rest[panic.end() :].splitlines()[:_TAIL_LINES]
            stack = "\n".join(f"  {line}" for line in lines)
            raise GuestError(f"the guest kernel broke down: {panic[0].strip()}{stack}")
        raise GuestError(
            f"the guest kernel broke down: it ended with status {status} after\n{_tail(rest)}"
        )
    return GuestOutput(text.removesuffix("\n"), rest.split()[:1] == ["0"], wall_s)


def _command_line(
    image: Image, init: Path, memory_mb: int, seed: int | None, clock_starts_ns: int
) -> list[str]:
    words = [
        str(image.path),
        f"mem={memory_mb}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={_quoted(str(init))}",
        "con=null",
        # No input: a thread would wait for it, and interrupt the guest at times chosen by the host.
        "con0=null,fd:1",
        "quiet",
        # UML keeps a folder while it runs, and leaves it when it is killed.
        f"uml_dir={init.parent}/uml",
    ]
    if image.kind == "virtual":
        words += ["time-travel=inf-cpu", f"time-travel-start={clock_starts_ns}"]
        if seed is not None:
            words.append(f"jostle.seed={seed}")
    return words


def _quoted(text: str) -> str:
    """Quote a word of the kernel's command line, which supports double quotes and no escapes."""
    if '"' in text:
        raise GuestError(f"the folder of temporary files has a quotation mark in its name: {text}")
    return f'"{text}"' if re.search(r"\s", text) else text


def _init(script: Path, environment: Mapping[str, str], token: str, mounts: Path) -> str:
    """Return the script of the guest's first process.

    It sets the environment. The kernel's command line is limited to 4096 characters and would
    interpret words that are its own parameters.
    """
    variables = {"PATH": SYSTEM_PATH, "HOME": "/tmp", "LC_ALL": "C.UTF-8", **environment}
    for name in variables:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"not a name of an environment variable: {name!r}")
    exports = "\n".join(f"export {name}={shlex.quote(v)}" for name, v in variables.items())
    program = [*_interpreter(script), str(script.resolve())]
    return _INIT.format(
        exports=exports, command=shlex.join(program), token=token, mounts=shlex.quote(str(mounts))
    )


def _mounts(script: Path) -> str:
    """Return the file systems of the guest, with the script's folder, as in fstab(5)."""
    folder = str(script.resolve().parent)
    if "," in folder:
        # `mount` would split it into several options, and mount another folder.
        raise GuestError(
            f"the folder of temporary files has a comma in its name: {folder}; "
            "set TMPDIR to another one"
        )
    escaped = re.sub(r"[\s\\]", lambda found: f"\\{ord(found[0]):03o}", folder)
    return _MOUNTS.format(writable=escaped)


def _interpreter(script: Path) -> list[str]:
    # Packages may be installed without permission to execute their files.
    with script.open("rb") as file:
        first = file.readline(256)
    return shlex.split(first[2:].decode()) if first.startswith(b"#!") else []


def _memory_folder(memory_mb: int) -> Path:
    """Return the folder for the guest's memory file, which is unlinked and ends with the guest.

    If the memory outgrows its file system, the guest gets SIGBUS without a message. Programs cannot
    be mapped from a file system that is mounted noexec. In containers, /dev/shm is often limited to
    64 MB and mounted noexec.
    """
    room: dict[Path, int] = {}
    no_programs = []
    for folder in (Path("/dev/shm"), Path(tempfile.gettempdir())):
        if folder.is_dir() and os.access(folder, os.W_OK):
            facts = os.statvfs(folder)
            if facts.f_flag & os.ST_NOEXEC:
                no_programs.append(str(folder))
                continue
            room[folder] = facts.f_bavail * facts.f_frsize
            if room[folder] >= memory_mb << 20:
                return folder
    if not room or max(room.values()) < min(_LEAST_ROOM_BYTES, memory_mb << 20):
        why = f": {' and '.join(no_programs)} mounted noexec" if no_programs else ""
        raise GuestError(
            f"no room for the guest's memory of {memory_mb} MB in /dev/shm or "
            f"{tempfile.gettempdir()}{why}; set TMPDIR to a folder with room, not mounted noexec"
        )
    return max(room, key=lambda folder: room[folder])


def _tail(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith(_NO_DISK)]
    return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:]) or "  (nothing)"
