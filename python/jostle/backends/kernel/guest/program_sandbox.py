"""Starts a program as an unprivileged user who can access only its own folders of the run.

usage: python program_sandbox.py IN_GUEST RUN NUMBER WRITABLE… PROGRAM ARGUMENT…

External programs are started by this script. It runs as root in the host's network namespace, gives
the program a private mount namespace, drops all capabilities and the right to gain new ones, and
executes the program. IN_GUEST is `1` if the kernel is used only by this run. RUN is the folder of
the run. The program may write to NUMBER files and folders in it, the WRITABLE arguments.

The user is the owner of the run's folder, or `nobody` if the owner is root. A folder that this user
cannot enter is covered by an empty one, in which the files named on the command line are mounted at
their own paths. Thus a program in root's cache folder can be started, and the rest of that folder
is not accessible.

Each run starts this script twice, and reading files takes time in a guest. Therefore it imports
only `ctypes` and modules that the interpreter has already loaded.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_NOBODY = 65534
_NOT_STARTED = 127

# linux/sched.h, linux/mount.h, linux/prctl.h.
CLONE_NEWNS = 0x00020000
_MS_RDONLY, MS_NOSUID, MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4

_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"
_LAST_CAPABILITY = "/proc/sys/kernel/cap_last_cap"


class User:
    """The user that runs the programs of a run."""

    def __init__(self, run: str) -> None:
        owner = os.stat(run)
        is_root = owner.st_uid == 0
        self.uid = _NOBODY if is_root else owner.st_uid
        self.gid = _NOBODY if is_root else owner.st_gid

    def can_enter(self, folder: str) -> bool:
        """Return whether the mode of a folder allows the user to enter it."""
        found = os.stat(folder)
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)

    def own(self, path: str) -> None:
        """Make the user the owner of a file or folder."""
        os.chown(path, self.uid, self.gid)


def main(in_guest: bool, run: str, writable: Sequence[str], words: Sequence[str]) -> None:
    """Execute the program."""
    # Folders created here can be entered by everyone.
    os.umask(0o022)
    libc = ctypes.CDLL(None, use_errno=True)
    user = User(run)
    program = _located(words[0])
    if in_guest:
        # A program in a new user namespace could mount file systems.
        forbid_user_namespaces()
    here = os.getcwd()
    _hide(libc, run, writable, list(_named([program, *words[1:]], run)), user)
    # Before this, the current folder is the covered one, whose `..` leads to the complete run.
    os.chdir(here)
    drop_rights(libc, user.uid, user.gid)
    os.execv(program, list(words))


def _located(program: str) -> str:
    """Return the path of a program, searched in PATH unless it is a path."""
    if os.sep in program:
        return program
    every = (os.path.join(folder, program) for folder in os.get_exec_path())
    return next((path for path in every if os.access(path, os.X_OK)), program)


def forbid_user_namespaces() -> None:
    """Prevent that a program in a new user namespace mounts file systems."""
    try:
        with open(_USER_NAMESPACES, "w") as file:
            file.write("0")
    except FileNotFoundError:
        return  # The kernel has none.


def _named(words: Iterable[str], run: str) -> Iterator[str]:
    """Yield the files named by absolute paths on the command line or in the environment."""
    for word in (*words, *os.get_exec_path(), os.environ.get("LD_PRELOAD", "")):
        for part in (word, word.partition("=")[2]):
            path = os.path.abspath(part)
            # The root is not a file. Inside the run, the other program may have created links to
            # any file, so links are not resolved there.
            if part.startswith("/") and path != "/" and not _lies_in(path, run):
                for place in (path, os.path.realpath(path)):
                    if os.path.exists(place) and not _lies_in(place, run):
                        yield place


def _hide(
    libc: ctypes.CDLL, run: str, writable: Sequence[str], named: Sequence[str], user: User
) -> None:
    """Cover the run and all folders that the user cannot enter; mount required files into them."""
    check(libc.unshare(CLONE_NEWNS), "a mount namespace")
    mount(libc, "none", "/", flags=MS_REC | MS_PRIVATE)
    # The program may access only the writable part of the run.
    readable = [path for path in _outermost(named) if not _lies_in(run, path)]
    barriers = [folder for path in (*writable, *readable) for folder in _barriers(path, user)]
    covered = _outermost([run, *barriers])
    shown = [
        path
        for path in (*writable, *readable)
        if any(path != folder and _lies_in(path, folder) for folder in covered)
    ]
    # Opened before they are covered.
    opened = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in shown]
    for folder in covered:
        mount(libc, "tmpfs", folder, "tmpfs", flags=MS_NOSUID | MS_NODEV)
    for path, file in opened:
        show(libc, path, file, read_only=path not in writable)


def _lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or inside of it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not inside any other."""
    every = sorted(set(paths))
    return [
        path
        for path in every
        if not any(other != path and _lies_in(path, other) for other in every)
    ]


def _barriers(path: str, user: User) -> Iterator[str]:
    """Yield the first folder of a path, from the root, that the user cannot enter."""
    steps = path.split("/")
    for count in range(1, len(steps)):
        folder = "/".join(steps[:count]) or "/"
        if not user.can_enter(folder):
            yield folder
            return


def show(libc: ctypes.CDLL, path: str, file: int, *, read_only: bool) -> None:
    """Mount an open file or folder at its own path, which is covered."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.makedirs(path, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(libc, f"/proc/self/fd/{file}", path, flags=MS_BIND | MS_REC)
    if read_only:
        flags = MS_BIND | _MS_REMOUNT | _MS_RDONLY | MS_NOSUID | MS_NODEV
        mount(libc, "none", path, flags=flags)


def drop_rights(libc: ctypes.CDLL, uid: int, gid: int) -> None:
    """Become a user without capabilities, permanently."""
    with open(_LAST_CAPABILITY) as file:
        last = int(file.read())
    for capability in range(last + 1):
        check(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "fewer capabilities")
    check(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "no capabilities")
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def mount(
    libc: ctypes.CDLL,
    source: str,
    target: str,
    kind: str = "",
    *,
    flags: int,
    options: bytes = b"mode=755,size=1m",
) -> None:
    """Mount a file system. In a new tmpfs, only root may write to the top folder by default."""
    done = libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind) or None,
        ctypes.c_ulong(flags),
        options if kind else None,
    )
    check(done, f"a mount at {target}")


def check(result: int, what: str) -> None:
    """Raise OSError with `what` as its file name if a call of the C library failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    try:
        words_at = 4 + int(sys.argv[3])
        main(sys.argv[1] == "1", sys.argv[2], sys.argv[4:words_at], sys.argv[words_at:])
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        why = " (programs run as a plain user)" if error.errno == errno.EACCES else ""
        print(f"cannot be started: {about}{error.strerror}{why}", flush=True)
        sys.exit(_NOT_STARTED)
