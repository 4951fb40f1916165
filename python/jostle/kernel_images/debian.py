"""Debian packages: running apt-get while other programs use it, and kernel sources.

apt verifies downloads with signed package lists. For an installed package, dpkg records only MD5
digests of its files, and root can change both. Therefore the source is always taken from a package
that was just downloaded, or whose digest still matches.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from jostle.errors import InputError
from jostle.kernel_images.process_group import Line, run_to_end

SOURCES = Path("/usr/src")
"""Folder into which an installed package puts the kernel source."""

# dpkg must not be interrupted.
_TIDY_UP_S = 60.0
_LOCKED = re.compile(r"Could not get lock|Unable to (?:acquire|lock) the")
_LONGEST_LOCK_S = 600.0
_LOCK_POLL_S = 5.0
_RECORDED = re.compile(r"^SHA256: ([0-9a-f]{64})$", re.MULTILINE)
# apt-get's messages for packages that it cannot find, or knows only by name.
_UNKNOWN = re.compile(
    r"Unable to locate package (\S+)|Package '(\S+)' has no installation candidate"
)


class PackageError(InputError):
    """A package is not available; the message says how to get it."""


def run_apt(
    arguments: Sequence[str], on_line: Line, *, folder: Path | None = None
) -> tuple[int, list[str]]:
    """Run apt-get; wait up to ten minutes while another program holds its locks.

    A new machine updates itself after its start. apt's option DPkg::Lock::Timeout does not cover
    the locks of package lists and downloads.

    Returns
    -------
    tuple
        The exit status, and the output lines of the last attempt.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    until_s = time.monotonic() + _LONGEST_LOCK_S
    is_waiting = False
    while True:
        said: list[str] = []

        def record(line: str, said: list[str] = said) -> None:
            said.append(line)
            if not _LOCKED.search(line):
                on_line(line)

        status = run_to_end(
            ["apt-get", *arguments],
            record,
            environment=environment,
            cwd=folder,
            patience_s=_TIDY_UP_S,
        )
        is_locked = status != 0 and any(map(_LOCKED.search, said))
        if not is_locked or time.monotonic() > until_s:
            return status, said
        if not is_waiting:
            reason = next(filter(_LOCKED.search, said))
            on_line(f"waiting for up to {_LONGEST_LOCK_S / 60:.0f} minutes: {reason}")
        is_waiting = True
        time.sleep(_LOCK_POLL_S)


def unknown_packages(said: Sequence[str]) -> list[str]:
    """Return the packages that apt-get could not find."""
    return list(dict.fromkeys(a or b for a, b in _UNKNOWN.findall("\n".join(said))))


def unknown_message(packages: Sequence[str]) -> str:
    """Return a message about packages that are missing in the machine's package sources."""
    text = f"this machine's package sources have no {', '.join(packages)}"
    sources = [p.removeprefix("linux-source-") for p in packages if p.startswith("linux-source-")]
    if not sources:
        return f"{text}: see /etc/apt/sources.list"
    series = sources[0]
    return (
        f"{text}: run `apt-get update` as root, add sources that have it (Debian 12 has 6.1 and, "
        f"among its security updates, 6.12), or get linux-{series}.….tar.xz from "
        f"https://www.kernel.org and run "
        f"`jostle setup kernel --version {series} --source TARBALL --sha256 DIGEST`"
    )


def source_package(series: str) -> str:
    """Return the name of Debian's package of the kernel source."""
    return f"linux-source-{series}"


def fetch_source(series: str, folder: Path, on_line: Line, *, may_update: bool) -> Path:
    """Download Debian's package of a kernel source to a folder, unless it is there already.

    Parameters
    ----------
    may_update
        Whether to update apt's package lists if the package is not found. Requires root.

    Raises
    ------
    PackageError
        If it is not available, or does not match the signed package lists.
    """
    package = source_package(series)
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(name) is None:
            raise PackageError(
                f"the source is a package of Debian, and there is no `{name}` here: get the source "
                "of the kernel, and give it by --source TARBALL --sha256 DIGEST"
            )
    for old in folder.glob(f"{package}_*.deb"):
        if _sha256(old) in _recorded(package):
            return old
        old.unlink()
    # Reject unsigned packages, even if the machine's configuration allows them.
    download = ["download", "-o", "APT::Get::AllowUnauthenticated=false", package]
    status, said = run_apt(download, on_line, folder=folder)
    if status != 0 and may_update:
        run_apt(["update"], on_line)
        status, said = run_apt(download, on_line, folder=folder)
    if status != 0:
        raise PackageError(_not_downloaded(package, said, may_update=may_update))
    found = list(folder.glob(f"{package}_*.deb"))
    if len(found) != 1:
        raise PackageError(f"`apt-get download {package}` left no package in {folder}")
    digest = _sha256(found[0])
    if digest not in _recorded(package):
        found[0].unlink()
        raise PackageError(
            f"{found[0].name} has the SHA-256 {digest}, which apt's signed lists do not have: "
            "run `apt-get update` as root, and try again"
        )
    return found[0]


def unpack_source(package: Path, folder: Path) -> Path:
    """Unpack a package of a kernel source; return the tarball in it."""
    done = subprocess.run(
        ["dpkg-deb", "--extract", str(package), str(folder)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise PackageError(f"{package} cannot be unpacked: {done.stderr.strip()}")
    found = list((folder / "usr" / "src").glob("linux-source-*.tar.*"))
    if len(found) != 1:
        raise PackageError(f"{package} is not a package of a kernel's source")
    return found[0]


def _not_downloaded(package: str, said: Sequence[str], *, may_update: bool) -> str:
    if unknown_packages(said):
        hint = "" if may_update else " (--install runs `apt-get update`, too)"
        return f"{unknown_message([package])}{hint}"
    errors = [line for line in said if line.startswith("E:")] or said[-1:]
    installed = SOURCES / f"{package}.tar.xz"
    text = f"`apt-get download {package}` failed: {' '.join(errors)}"
    if installed.is_file():
        return (
            f"{text} — without a network, use the installed source: "
            f"--source {installed} --sha256 DIGEST, where `sha256sum {installed}` on a machine "
            "that you trust prints DIGEST"
        )
    return f"{text} — see that this machine reaches its package sources"


def _recorded(package: str) -> set[str]:
    """Return the digests of a package in apt's package lists."""
    command = ["apt-cache", "show", package]
    shown = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    ).stdout
    return set(_RECORDED.findall(shown))


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
