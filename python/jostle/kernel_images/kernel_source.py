"""Extracts a kernel's source from an archive to a folder, completely or not at all.

The archive is a tarball, or a Debian package that contains one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from jostle.errors import InputError, JostleError
from jostle.kernel_images import config, debian, source_patches
from jostle.kernel_images.process_group import run_to_end


class SourceError(InputError):
    """The archive does not contain the requested kernel source."""


def identity(archive: Path) -> dict[str, Any]:
    """Return name, size and digest of an archive.

    Raises
    ------
    SourceError
        If it cannot be read.
    """
    try:
        facts = archive.stat()
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"cannot read the source {archive}: {error.strerror}") from error
    return {"file": str(archive.resolve()), "size_bytes": facts.st_size, "sha256": digest}


def verify(archive: Path, sha256: str | None) -> None:
    """Compare an archive of the user with the digest given by the user.

    Raises
    ------
    SourceError
        If the digest differs or is missing.
    """
    if sha256 is None:
        raise SourceError(
            f"{archive} may be any program: compare what `sha256sum {shlex.quote(str(archive))}` "
            "prints with the digest that the publisher of the source signs, and add --sha256 DIGEST"
        )
    found = identity(archive)["sha256"]
    if found != sha256.lower():
        raise SourceError(f"{archive} has the SHA-256 {found}, not {sha256}")


def is_extracted(archive: Path, folder: Path) -> bool:
    """Return whether `folder` contains all files of the archive."""
    try:
        stamp = json.loads(_stamp(folder).read_bytes())
    except (OSError, ValueError):
        return False
    return folder.is_dir() and bool(stamp == _extraction(archive))


def extract(archive: Path, folder: Path) -> None:
    """Extract the archive. After an interruption, no incomplete folder is left under its name.

    Raises
    ------
    SourceError
        If the archive is damaged.
    """
    if archive.suffix == ".deb":
        unpacked = folder.with_name(f"{folder.name}.package")
        shutil.rmtree(unpacked, ignore_errors=True)
        try:
            _extract_tarball(debian.unpack_source(archive, unpacked), folder)
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
    else:
        _extract_tarball(archive, folder)
    _stamp(folder).write_text(json.dumps(_extraction(archive)), "utf-8")


def _extract_tarball(tarball: Path, folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    _stamp(folder).unlink(missing_ok=True)
    for old in (folder, partial):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    said: list[str] = []
    # The name of the top-level folder differs between distributions.
    command = ["tar", "--extract", "--force-local", "--no-same-owner", "--strip-components=1"]
    command += [f"--file={tarball}", f"--directory={partial}"]
    status = run_to_end(command, said.append, environment={**os.environ, "LC_ALL": "C"})
    if status != 0:
        shutil.rmtree(partial, ignore_errors=True)
        last = "; ".join(said[-3:]) or f"tar ended with status {status}"
        if "No space left" in last:
            raise JostleError(f"the disk of {folder.parent} is full")
        raise SourceError(f"{tarball} cannot be extracted: {last}")
    partial.rename(folder)


def version(folder: Path, series: str) -> str:
    """Return the version of the extracted kernel.

    Raises
    ------
    SourceError
        If it is not a kernel, or belongs to another series.
    """
    try:
        makefile = (folder / "Makefile").read_text("utf-8", "replace")
    except OSError:
        makefile = ""
    numbers = [
        re.search(rf"^{name}\s*=\s*(\d+)\s*$", makefile, re.M)
        for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")
    ]
    found = ".".join(number[1] for number in numbers if number)
    if not all(numbers) or not (folder / "arch" / "um").is_dir():
        raise SourceError("the tarball does not hold the source of a Linux kernel")
    if not found.startswith(f"{series}."):
        raise SourceError(f"the tarball holds Linux {found}, not {series}")
    return found


def make_ours(folder: Path) -> None:
    """Patch the kernel's files, and add jostle's files to the queueing disciplines.

    Raises
    ------
    PatchContextError
        If the source differs from the expected text.
    """
    source_patches.apply(folder)
    files = {path.name: path.read_text("utf-8") for path in config.own_files()}
    files |= source_patches.copies(folder)
    objects = (name.removesuffix(".c") for name in sorted(files) if name.endswith(".c"))
    files["Makefile"] = "".join(f"obj-y += {name}.o\n" for name in objects)
    own = folder / source_patches.OWN_FOLDER
    own.mkdir(exist_ok=True)
    for name, text in files.items():
        source_patches.write_if_changed(own / name, text)
    makefile = own.parent / "Makefile"
    line = f"obj-y += {own.name}/\n"
    text = makefile.read_text("utf-8")
    source_patches.write_if_changed(makefile, text if line in text else text + line)


def _extraction(archive: Path) -> dict[str, Any]:
    """Return the archive and patches of a folder.

    Patches of another version of jostle would hide the text that ours replace.
    """
    made_by = hashlib.sha256(repr(source_patches.EDITS).encode()).hexdigest()
    return {**identity(archive), "edits": made_by}


def _stamp(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")
