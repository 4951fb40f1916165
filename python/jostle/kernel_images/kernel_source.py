"""Copies a kernel's source to a folder, completely or not at all.

The source is a tarball, a Debian package that contains one, or a user's tree. A user's patches are
applied before jostle's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def identity_of_patch(file: Path) -> dict[str, Any]:
    """Return name and digest of a patch of the user.

    Raises
    ------
    SourceError
        If it cannot be read.
    """
    found = identity(file)
    return {"file": found["file"], "sha256": found["sha256"]}


def identity_of_tree(tree: Path) -> dict[str, Any]:
    """Return path and digest of a user's tree: a hash of the names and contents of all its files.

    Raises
    ------
    SourceError
        If it is not a folder, or a file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for file in _files_of(tree):
            path = tree / file
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            digest.update(f"{file}\0{len(content)}\0".encode(errors="surrogateescape"))
            digest.update(content)
    except OSError as error:
        where = error.filename or tree
        raise SourceError(f"cannot read the source {where}: {error.strerror}") from error
    return {"file": str(tree.resolve()), "sha256": digest.hexdigest()}


def _files_of(tree: Path) -> list[str]:
    """Return the files of a tree; in a Git work tree without ignored ones, such as objects."""
    if not tree.is_dir():
        raise SourceError(f"there is no folder {tree}")
    if (tree / ".git").exists():
        command = ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others"]
        try:
            listed = subprocess.run(
                [*command, "--exclude-standard"], capture_output=True, check=True
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise SourceError(f"`git ls-files` failed in {tree}: {error}") from error
        files = sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)
        # Deleted files are still in the index.
        return [file for file in files if os.path.lexists(tree / file)]
    return sorted(
        os.path.relpath(os.path.join(folder, name), tree)
        for folder, _, names in os.walk(tree)
        for name in names
    )


@dataclass(frozen=True)
class Source:
    """The source of a kernel.

    Attributes
    ----------
    path
        A tarball, a package, or the folder of a user's tree.
    origin
        Digests of the source and of the patches.
    patches
        Patches of the user, in the order in which they are applied.
    """

    path: Path
    origin: dict[str, Any]
    patches: Sequence[Path] = ()

    def is_extracted(self, folder: Path) -> bool:
        """Return whether `folder` contains all files."""
        try:
            stamp = json.loads(_stamp(folder).read_bytes())
        except (OSError, ValueError):
            return False
        return folder.is_dir() and bool(stamp == self._extraction())

    def extract(self, folder: Path) -> None:
        """Copy the source. After an interruption, no incomplete folder is left under its name.

        Raises
        ------
        SourceError
            If the archive is damaged, or a patch does not apply.
        """
        partial = folder.with_name(f"{folder.name}.partial")
        _stamp(folder).unlink(missing_ok=True)
        for old in (folder, partial):
            shutil.rmtree(old, ignore_errors=True)
        if self.path.is_dir():
            _copy(self.path, partial)
        elif self.path.suffix == ".deb":
            unpacked = folder.with_name(f"{folder.name}.package")
            shutil.rmtree(unpacked, ignore_errors=True)
            try:
                _extract_tarball(debian.unpack_source(self.path, unpacked), partial)
            finally:
                shutil.rmtree(unpacked, ignore_errors=True)
        else:
            _extract_tarball(self.path, partial)
        for patch in self.patches:
            _apply(patch, partial)
        partial.rename(folder)
        _stamp(folder).write_text(json.dumps(self._extraction()), "utf-8")

    def _extraction(self) -> dict[str, Any]:
        """Return the source and patches of a folder.

        Patches of another version of jostle would hide the text that ours replace.
        """
        made_by = hashlib.sha256(repr(source_patches.EDITS).encode()).hexdigest()
        return {**self.origin, "edits": made_by}


def _copy(tree: Path, folder: Path) -> None:
    """Copy a user's tree."""
    for file in _files_of(tree):
        copy = folder / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / file, copy, follow_symlinks=False)


def _apply(patch: Path, folder: Path) -> None:
    """Apply a patch of the user.

    Raises
    ------
    SourceError
        If a part of it does not apply; the message names the files.
    """
    said: list[str] = []
    command = ["patch", "--strip=1", "--forward", "--batch", "--no-backup-if-mismatch"]
    command += [f"--directory={folder}", f"--input={patch.resolve()}"]
    status = run_to_end(command, said.append, environment={**os.environ, "LC_ALL": "C"})
    if status != 0:
        failed = [line for line in said if "FAILED" in line or "can't find" in line] or said[-5:]
        listed = "\n".join(f"  {line}" for line in failed)
        raise SourceError(f"{patch} does not apply to this kernel:\n{listed}")


def _extract_tarball(tarball: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    said: list[str] = []
    # The name of the top-level folder differs between distributions.
    command = ["tar", "--extract", "--force-local", "--no-same-owner", "--strip-components=1"]
    command += [f"--file={tarball}", f"--directory={folder}"]
    status = run_to_end(command, said.append, environment={**os.environ, "LC_ALL": "C"})
    if status != 0:
        shutil.rmtree(folder, ignore_errors=True)
        last = "; ".join(said[-3:]) or f"tar ended with status {status}"
        if "No space left" in last:
            raise JostleError(f"the disk of {folder.parent} is full")
        raise SourceError(f"{tarball} cannot be extracted: {last}")


def version(folder: Path, series: str | None) -> str:
    """Return the version of the extracted kernel.

    Parameters
    ----------
    series
        Required series; None for any.

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
        raise SourceError("the source does not hold that of a Linux kernel")
    if series is not None and not found.startswith(f"{series}."):
        raise SourceError(f"the source is that of Linux {found}, not {series}")
    return found


def make_ours(folder: Path, build: str, *, is_foreign: bool = False) -> list[str]:
    """Patch the kernel's files, and add jostle's files to the queueing disciplines.

    Parameters
    ----------
    build
        Name of the build, which becomes part of the version magic of its modules.
    is_foreign
        Whether the source is a user's: what does not apply to it is left out.

    Returns
    -------
    list
        Changes that were left out.

    Raises
    ------
    PatchContextError
        If the source differs from the expected text, and is not a user's.
    """
    left_out = source_patches.apply(folder, is_foreign=is_foreign)
    name = folder / "include" / "linux" / "jostle_build.h"
    source_patches.write_if_changed(name, f'#define JOSTLE_BUILD "jostle-{build}"\n')
    copies, missing = source_patches.copies(folder, is_foreign=is_foreign)
    left_out += missing
    write_own(folder, copies)
    return left_out


def write_own(folder: Path, copies: Mapping[str, str]) -> None:
    """Write jostle's files, and copies by their names, to their folder in the source."""
    files = {path.name: path.read_text("utf-8") for path in config.own_files()} | dict(copies)
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


def _stamp(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")
