"""Carry out the steps of a Containerfile in a root made by debootstrap, without an image."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

MIRROR = "http://deb.debian.org/debian"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_CERTIFICATES = Path("/usr/local/share/ca-certificates")
"""Certificates that the administrator of the host added; the package ca-certificates adds them."""
_OF_THE_HOST = ("/etc/resolv.conf", "/etc/hosts")
"""Files of the host that its network needs."""
_PASSED = ("PIP_CERT", "PIP_DEFAULT_TIMEOUT", "http_proxy", "https_proxy", "no_proxy")
"""Variables of the host that its network needs."""


def steps_of(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Containerfile and their arguments, with joined lines."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [
        (instruction, rest.strip())
        for line in joined.splitlines()
        if line.strip()
        for instruction, _, rest in [line.strip().partition(" ")]
    ]


@dataclass
class ContainerRoot:
    """A root folder in which steps run; `context` is the repository."""

    folder: Path
    context: Path
    toolchain: Path
    """The host's Rust, because a root without network to rustup cannot download it."""
    user: str = "root"
    workdir: str = "/"
    environment: dict[str, str] = field(default_factory=dict)

    def bootstrap(self) -> None:
        """Make the root, with the host's certificates and name servers."""
        _call("debootstrap", "--variant=minbase", "bookworm", str(self.folder), MIRROR)
        security = "deb http://deb.debian.org/debian-security bookworm-security main\n"
        sources = self.folder / "etc/apt/sources.list"
        sources.write_text(f"deb {MIRROR} bookworm main\n{security}")
        for name in _OF_THE_HOST:
            shutil.copy(name, self.folder / name.lstrip("/"))
        (self.folder / "opt/rust").mkdir(parents=True)
        if _CERTIFICATES.is_dir():
            copy = self.folder / str(_CERTIFICATES).lstrip("/")
            shutil.copytree(_CERTIFICATES, copy, dirs_exist_ok=True)
        self.environment["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def carry_out(self, instruction: str, rest: str) -> None:
        """Carry out one step.

        Raises
        ------
        AssertionError
            For an instruction that is not known, or a command that fails.
        """
        match instruction:
            case "FROM":
                assert rest.endswith("debian:12"), rest
                self.bootstrap()
            case "RUN":
                self.run(rest)
            case "USER":
                self.user = rest
            case "WORKDIR":
                self.workdir = rest
                (self.folder / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "ENV":
                name, _, value = rest.partition("=")
                self.environment[name] = value
            case "COPY":
                options, source, _target = rest.split()
                assert (options, source) == (f"--chown={self.user}", "."), rest
                self._copy()
            case "CMD":
                pass
            case _:
                raise AssertionError(f"unknown instruction {instruction}")

    def run(self, command: str, workdir: str | None = None) -> None:
        """Run a shell command as the current user.

        Nothing that it does reaches the host: it has its own processes and mounts, and of the
        host's files it sees some devices, and Rust, which is read-only.
        """
        inside = shlex.quote(f"cd {shlex.quote(workdir or self.workdir)} && {command}")
        variables = {**self.environment, "HOME": self._home()}
        # Rust of the host comes last in the path, as if it were installed in /usr/local.
        variables["PATH"] += ":/opt/rust/bin"
        variables |= {name: os.environ[name] for name in _PASSED if name in os.environ}
        words = " ".join(shlex.quote(f"{name}={value}") for name, value in variables.items())
        root = shlex.quote(str(self.folder))
        mounts = [
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs -o mode=755 tmpfs {root}/dev",
            f"mkdir {root}/dev/pts {root}/dev/shm",
            f"mount -t devpts -o newinstance,ptmxmode=666 devpts {root}/dev/pts",
            f"ln -s pts/ptmx {root}/dev/ptmx && ln -s /proc/self/fd {root}/dev/fd",
            f"ln -s fd/0 {root}/dev/stdin && ln -s fd/1 {root}/dev/stdout",
            f"mount -t tmpfs -o mode=1777 tmpfs {root}/dev/shm",
            *(f"touch {root}/dev/{name} && mount --bind /dev/{name} {root}/dev/{name}"
              for name in _DEVICES),
            f"mount --bind {shlex.quote(str(self.toolchain))} {root}/opt/rust",
            f"mount -o remount,bind,ro {root}/opt/rust",
        ]  # fmt: skip
        enter = f"chroot --userspec={self.user} {root} /usr/bin/env -i {words} /bin/sh -c {inside}"
        script = " && ".join([*mounts, enter])
        apart = ("--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
        _call("unshare", *apart, "sh", "-c", script)

    def _home(self) -> str:
        users = (self.folder / "etc/passwd").read_text("utf-8")
        match = re.search(rf"^{re.escape(self.user)}:.*:([^:]*):[^:]*$", users, re.M)
        return match[1] if match else "/root"

    def _copy(self) -> None:
        """Copy the files that Git tracks; the others are in .containerignore."""
        target = self.folder / self.workdir.lstrip("/")
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.context, check=True, capture_output=True,
        ).stdout.split(b"\0")  # fmt: skip
        for name in filter(None, map(os.fsdecode, names)):
            source, copy = self.context / name, target / name
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, copy)
        # As with an image, the folder itself keeps its owner.
        chown = f"find {shlex.quote(self.workdir)} -mindepth 1 -exec chown -h {self.user} {{}} +"
        replace(self, user="root").run(chown, "/")


def _call(*command: str) -> None:
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}"


def host_toolchain(context: Path) -> Path | None:
    """Return the folder of the host's Rust that the repository asks for; None without rustup."""
    if shutil.which("rustc") is None:
        return None
    said = subprocess.run(
        ["rustc", "--print", "sysroot"], cwd=context, check=True, capture_output=True, text=True
    )
    return Path(said.stdout.strip())


@contextlib.contextmanager
def removed_afterwards(folder: Path) -> Iterator[Path]:
    """Yield a folder that other users may enter, and remove it with files of any owner."""
    folder.mkdir(parents=True, exist_ok=True)
    for parent in (folder, *folder.parents):
        if parent.owner() == pwd.getpwuid(os.getuid()).pw_name:
            parent.chmod(parent.stat().st_mode | 0o111)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
