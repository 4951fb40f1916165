"""Starts a program as a plain user who sees and writes its own folders and no more of the run.

usage: python confined.py IN_GUEST RUN NUMBER WRITABLE… PROGRAM ARGUMENT…

Foreign programs are started by this file. It runs as root in the host's network namespace, gives
the program a private mount namespace, drops every capability and the right to get new ones, and
becomes the program. IN_GUEST is `1` if the machine is the run's own. RUN is the folder of the run.
In it, the program may write NUMBER files and folders, each of which is one WRITABLE.

The user is the owner of the run's folder, or `nobody` if that is root. A folder that this user
cannot enter is covered with an empty one, in which the files that the command line names are
mounted at their own paths. So a program in the cache folder of root can start, and the rest of that
folder stays out of reach.

Each run starts two of these, and in a guest every file that is read costs time: only modules that
the interpreter has loaded already are imported, and `ctypes`.
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
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4

_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"
_LAST_CAPABILITY = "/proc/sys/kernel/cap_last_cap"


class User:
    """The user that the programs of a run are started as."""

    def __init__(self, run: str) -> None:
        owner = os.stat(run)
        is_root = owner.st_uid == 0
        self.uid = _NOBODY if is_root else owner.st_uid
        self.gid = _NOBODY if is_root else owner.st_gid

    def can_enter(self, folder: str) -> bool:
        """Whether the mode of a folder lets the user pass through it."""
        found = os.stat(folder)
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)

    def own(self, path: str) -> None:
        """Give a file or folder to the user."""
        os.chown(path, self.uid, self.gid)


def main(in_guest: bool, run: str, writable: Sequence[str], words: Sequence[str]) -> None:
    """Become the program."""
    # Everyone may enter the folders that are made here.
    os.umask(0o022)
    libc = ctypes.CDLL(None, use_errno=True)
    user = User(run)
    program = _located(words[0])
    if in_guest:
        # In a new user namespace, a program could mount.
        _forbid_user_namespaces()
    here = os.getcwd()
    _hide(libc, run, writable, list(_named([program, *words[1:]], run)), user)
    # Until then, the current folder is the covered one: from it, `..` leads to the whole run.
    os.chdir(here)
    _drop_rights(libc, user)
    os.execv(program, list(words))


def _located(program: str) -> str:
    """Return the path of a program, which PATH leads to unless it is one."""
    if os.sep in program:
        return program
    every = (os.path.join(folder, program) for folder in os.get_exec_path())
    return next((path for path in every if os.access(path, os.X_OK)), program)


def _forbid_user_namespaces() -> None:
    try:
        with open(_USER_NAMESPACES, "w") as file:
            file.write("0")
    except FileNotFoundError:
        return  # The kernel has none.


def _named(words: Iterable[str], run: str) -> Iterator[str]:
    """Yield the files that a command line or the environment names by absolute paths."""
    for word in (*words, *os.get_exec_path(), os.environ.get("LD_PRELOAD", "")):
        for part in (word, word.partition("=")[2]):
            path = os.path.abspath(part)
            # Naming the root names no file. Inside the run, the program of the other end may have
            # put a link to any file, so links are not resolved there.
            if part.startswith("/") and path != "/" and not _lies_in(path, run):
                for place in (path, os.path.realpath(path)):
                    if os.path.exists(place) and not _lies_in(place, run):
                        yield place


def _hide(
    libc: ctypes.CDLL, run: str, writable: Sequence[str], named: Sequence[str], user: User
) -> None:
    """Cover the run and every folder that the user cannot enter; mount what is needed into them."""
    _check(libc.unshare(_CLONE_NEWNS), "a mount namespace")
    _mount(libc, "none", "/", flags=_MS_REC | _MS_PRIVATE)
    # Of the run only the writable part is for the program.
    readable = [path for path in _outermost(named) if not _lies_in(run, path)]
    barriers = [folder for path in (*writable, *readable) for folder in _barriers(path, user)]
    covered = _outermost([run, *barriers])
    shown = [
        path
        for path in (*writable, *readable)
        if any(path != folder and _lies_in(path, folder) for folder in covered)
    ]
    # They are opened before anything covers them.
    opened = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in shown]
    for folder in covered:
        _mount(libc, "tmpfs", folder, "tmpfs", flags=_MS_NOSUID | _MS_NODEV)
    for path, file in opened:
        _show(libc, path, file, read_only=path not in writable)


def _lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that lie in no other of them."""
    every = sorted(set(paths))
    return [
        path
        for path in every
        if not any(other != path and _lies_in(path, other) for other in every)
    ]


def _barriers(path: str, user: User) -> Iterator[str]:
    """Yield the folder closest to the root that keeps the user from a path."""
    steps = path.split("/")
    for count in range(1, len(steps)):
        folder = "/".join(steps[:count]) or "/"
        if not user.can_enter(folder):
            yield folder
            return


def _show(libc: ctypes.CDLL, path: str, file: int, *, read_only: bool) -> None:
    """Mount an opened file or folder at its own path, which something covers."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.makedirs(path, exist_ok=True)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
    _mount(libc, f"/proc/self/fd/{file}", path, flags=_MS_BIND | _MS_REC)
    if read_only:
        flags = _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
        _mount(libc, "none", path, flags=flags)


def _drop_rights(libc: ctypes.CDLL, user: User) -> None:
    """Become a plain user without capabilities, for good."""
    with open(_LAST_CAPABILITY) as file:
        last = int(file.read())
    for capability in range(last + 1):
        _check(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "fewer capabilities")
    _check(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "no capabilities")
    os.setgroups([])
    os.setresgid(user.gid, user.gid, user.gid)
    os.setresuid(user.uid, user.uid, user.uid)
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")


def _mount(libc: ctypes.CDLL, source: str, target: str, kind: str = "", *, flags: int) -> None:
    """Mount something; of a file system that is made here, root alone may write into its folder."""
    done = libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind) or None,
        ctypes.c_ulong(flags),
        b"mode=755,size=1m" if kind else None,
    )
    _check(done, f"a mount at {target}")


def _check(result: int, what: str) -> None:
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
