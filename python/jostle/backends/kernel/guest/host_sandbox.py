"""Starts a command of `jostle exec` as the user, who can write only to the folder of its host.

usage: python host_sandbox.py RUN HOST SETTINGS FILE_BYTES COMMAND

It runs as root in the host's network namespace. In a private mount namespace it covers RUN, the
folder of the run, and the folders of other hosts next to the folder HOST. The files in the folder
SETTINGS, such as `hosts`, replace files of /etc. Then it drops all capabilities, becomes the owner
of RUN, and executes COMMAND with the shell. A file can have at most FILE_BYTES.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import program_sandbox as sandbox  # type: ignore[import-not-found]

_SHELL = "/bin/sh"
_SHARED_MEMORY = "/dev/shm"


def main(run: str, host: str, settings: str, file_bytes: int, command: str) -> None:
    """Execute the command."""
    os.umask(0o022)
    libc = ctypes.CDLL(None, use_errno=True)
    owner = os.stat(run)
    here = os.getcwd()
    sandbox.forbid_user_namespaces()
    sandbox.check(libc.unshare(sandbox.CLONE_NEWNS), "a mount namespace")
    sandbox.mount(libc, "none", "/", flags=sandbox.MS_REC | sandbox.MS_PRIVATE)
    for name in sorted(os.listdir(settings)):
        if os.path.exists(f"/etc/{name}"):
            source = os.path.join(settings, name)
            sandbox.mount(libc, source, f"/etc/{name}", flags=sandbox.MS_BIND)
    plain = sandbox.MS_NOSUID | sandbox.MS_NODEV
    if os.path.isdir(_SHARED_MEMORY):
        sandbox.mount(libc, "tmpfs", _SHARED_MEMORY, "tmpfs", flags=plain, options=b"mode=1777")
    own = os.open(host, os.O_PATH | os.O_CLOEXEC)
    for covered in (run, os.path.dirname(host)):
        sandbox.mount(libc, "tmpfs", covered, "tmpfs", flags=plain)
    sandbox.show(libc, host, own, read_only=False)
    os.chdir(here)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sandbox.drop_rights(libc, owner.st_uid, owner.st_gid)
    os.execv(_SHELL, [_SHELL, "-c", command])


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        print(f"cannot be started: {about}{error.strerror}", file=sys.stderr, flush=True)
        sys.exit(127)
