"""Start a kernel as an ordinary process, run one program in it, and leave nothing behind."""

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
from jostle.kernel_images.images import SYSTEM_PATH, Image
from jostle.kernel_images.processes import running
from jostle.locked_folders import temporary_folder

_POLL_S = 0.02
_MAX_TEXT_LINES = 20_000
_TAIL_LINES = 20
_LEAST_ROOM_BYTES = 256 << 20

# The guest's wall clock begins here instead of now, so that runs repeat.
_CLOCK_STARTS_NS = 1_700_000_000 * 10**9

_INIT = """\
#!/bin/sh
mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /run
mount -t hostfs -o {writable} none {writable}
(
{exports}
exec {command} </dev/null
)
echo "{token} $?"
sync
poweroff -f 2>/dev/null
# Without systemd there may be no poweroff; the kernel itself can.
echo o >/proc/sysrq-trigger
while :; do sleep 1; done
"""


class GuestError(JostleError):
    """A guest kernel could not be started."""


class GuestTimeoutError(GuestError):
    """A guest did not end in time; it was killed."""


@dataclass(frozen=True)
class GuestOutput:
    """What is known of a guest that has ended.

    Attributes
    ----------
    text
        What kernel and program wrote to the console, at most the last 20,000 lines.
    ok
        Whether the program ended with status 0.
    wall_s
        Seconds of real time from start to end, boot included.
    """

    text: str
    ok: bool
    wall_s: float

    @property
    def tail(self) -> str:
        """Its last lines, for messages."""
        return _tail(self.text)


def run_guest(
    image: Image,
    script: Path,
    environment: Mapping[str, str],
    *,
    memory_mb: int = 1024,
    seed: int | None = None,
    timeout_s: float,
    cancelled: Callable[[], bool] | None = None,
) -> GuestOutput:
    """Boot `image`, run `script` in it as root, power off.

    The guest's root is the host's file system, with the rights that this user has there, mounted
    read-only but for the script's folder. That keeps a program from writing elsewhere by mistake;
    root in the guest could mount it otherwise. Before the script starts /proc, /sys and an empty
    /run are mounted and SYSTEM_PATH is the PATH; input is empty, output is the console. When it
    ends, whatever its status, the guest powers off.

    Parameters
    ----------
    image
        A `virtual` or `realtime` kernel. In a virtual one time passes only when all processes
        sleep, and its clock always starts at the same moment.
    script
        A program, or a file that begins with `#!` (which need not be executable).
    environment
        Variables of the script, beside PATH, HOME and LC_ALL.
    memory_mb
        Memory of the guest; the host gives what of it is used.
    seed
        Where all random numbers of a virtual kernel that jostle has built come from; from the host
        if absent.
    timeout_s
        Seconds of real time.
    cancelled
        Asked often; the guest is killed when it answers yes.

    Raises
    ------
    GuestError
        When the kernel does not start.
    GuestTimeoutError
        After `timeout_s`.
    RunCancelledError
        When `cancelled` became true.
    """
    if image.path is None:
        raise ValueError(f"a {image.kind} kernel runs already")
    token = f"jostle-guest-ended-{uuid.uuid4().hex}"
    text = _init(script, environment, token)
    host = {**os.environ, "TMPDIR": str(_memory_folder(memory_mb))}
    with _folder() as folder:
        init = folder / "init"
        try:
            init.write_text(text, "utf-8")
            init.chmod(0o755)
        except OSError as error:
            raise GuestError(f"cannot write {init}: {error.strerror}") from error
        command = _command_line(image, init, memory_mb, seed)
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
    # The script's last line may lack its end.
    text, ended, rest = "\n".join(said).rpartition(token)
    if late:
        last = _tail(text + rest)
        raise GuestTimeoutError(f"the guest did not end within {timeout_s:g} s; it said:\n{last}")
    if not ended:
        raise GuestError(
            f"the guest kernel broke down: it ended with status {status} after\n{_tail(rest)}"
        )
    return GuestOutput(text.removesuffix("\n"), rest.split()[:1] == ["0"], wall_s)


def _command_line(image: Image, init: Path, memory_mb: int, seed: int | None) -> list[str]:
    words = [
        str(image.path),
        f"mem={memory_mb}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={_quoted(str(init))}",
        "con=null",
        # No input: a thread would wait for it, and interrupt the guest when the host likes.
        "con0=null,fd:1",
        "quiet",
        # UML keeps a folder of its own while it runs, and leaves it when it is killed.
        f"uml_dir={init.parent}/uml",
    ]
    if image.kind == "virtual":
        words += ["time-travel=inf-cpu", f"time-travel-start={_CLOCK_STARTS_NS}"]
        if seed is not None:
            words.append(f"jostle.seed={seed}")
    return words


def _quoted(text: str) -> str:
    """Write a word of the kernel's command line, which knows double quotes and no escapes."""
    if '"' in text:
        raise GuestError(f"the folder of temporary files has a quotation mark in its name: {text}")
    return f'"{text}"' if re.search(r"\s", text) else text


def _init(script: Path, environment: Mapping[str, str], token: str) -> str:
    """Text of the guest's first process.

    The environment goes here and not on the kernel's command line, which is limited to 4096
    characters and gives words that happen to be its own parameters another meaning.
    """
    variables = {"PATH": SYSTEM_PATH, "HOME": "/tmp", "LC_ALL": "C.UTF-8", **environment}
    for name in variables:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"not a name of an environment variable: {name!r}")
    exports = "\n".join(f"export {name}={shlex.quote(v)}" for name, v in variables.items())
    program = [*_interpreter(script), str(script.resolve())]
    folder = str(script.resolve().parent)
    if "," in folder:
        # It would be several options of `mount`, of which the first is another folder.
        raise GuestError(
            f"the folder of temporary files has a comma in its name: {folder}; "
            "set TMPDIR to another one"
        )
    writable = shlex.quote(folder)
    return _INIT.format(
        exports=exports, command=shlex.join(program), token=token, writable=writable
    )


def _interpreter(script: Path) -> list[str]:
    # Packages may be installed without the permission to execute their files.
    with script.open("rb") as file:
        first = file.readline(256)
    return shlex.split(first[2:].decode()) if first.startswith(b"#!") else []


def _memory_folder(memory_mb: int) -> Path:
    """Where the file that is the guest's memory lives; it is never seen, and gone with the guest.

    Memory of a guest that outgrows its file system is a SIGBUS without a word, and programs cannot
    be mapped from one that is mounted noexec. In containers /dev/shm often is both: 64 MB, noexec.
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
    lines = text.splitlines()
    return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:]) or "  (nothing)"
