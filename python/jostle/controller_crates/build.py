"""Compilation of a controller's crate: a library for the engine, and an object for a kernel module.

Both are compiled from a copy of the digested files in the user's cache, together with the C
functions of `crates/kernel-bridge`, and kept there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.controller_crates import dependencies
from jostle.controller_crates.source import MANIFEST, CompilerError, CrateError, CrateSource
from jostle.kernel_images.image_paths import cache_folder
from jostle.kernel_images.process_group import run_to_end
from jostle.safe_io.folder_lock import locked_folder
from jostle.safe_io.open_folder import OpenFolder
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_bytes

__all__ = ["ControllerCrate", "compile_crate", "kernel_object", "library_file"]

_PACKAGE: Final = "jostle-crate-library"
_LIBRARY, _OBJECT = "library", "bridge.o"
_AROUND: Final = ".around"
"""Folder of the package around the crate, which has short paths in messages as a part of it."""
_SHOWN_LINES: Final = 60
_WRAPPER: Final = """\
[package]
name = "{package}"
version = "0.0.0"
edition = "2024"

[lib]
crate-type = ["cdylib"]
path = ".lib.rs"

[features]
kernel = ["jostle-kernel-bridge/kernel"]
library = ["jostle-kernel-bridge/library"]

[dependencies]
controller = {{ package = "{name}", path = "{name}" }}
jostle-controllers = {{ version = "={version}", default-features = false }}

[dependencies.jostle-kernel-bridge]
version = "={version}"
default-features = false
features = ["exported"]

[workspace]
exclude = ["{name}"]

[profile.release]
panic = "unwind"

[profile.kernel]
inherits = "release"
codegen-units = 1
lto = "fat"
panic = "abort"
"""
_EXPORT: Final = """\
#![no_std]
jostle_kernel_bridge::export!(&[controller::ROW]);
"""


_compiled: dict[str, ControllerCrate] = {}
"""Crates that this process has compiled or found, by digest."""


@dataclass(frozen=True)
class ControllerCrate:
    """A compiled crate that the user has allowed; picklable.

    Attributes
    ----------
    source
        Its source.
    compiler
        Output of `rustc -vV`.
    engine
        Version of the engine, whose crates it was compiled with.
    machine
        System and processor for which the library was compiled.
    row
        Row of the controller, in the form of the engine's registry.
    library
        All bytes of the shared library.
    """

    source: CrateSource
    compiler: str
    engine: str
    machine: str
    row: Mapping[str, Any]
    library: bytes

    def digest(self) -> str:
        """Return the hash by which a run specification identifies the code."""
        return _digest(self.source, self.compiler, self.engine)


def _digest(source: CrateSource, compiler: str, engine: str) -> str:
    return source.digest(compiler, engine)


def _machine() -> str:
    return f"{sys.platform}-{platform.machine()}"


def compile_crate(source: CrateSource) -> ControllerCrate:
    """Compile a crate, unless it was compiled before.

    Raises
    ------
    CrateError
        If Rust is not installed, or the crate cannot be compiled. The message contains what the
        compiler says.
    """
    compiler, engine = _compiler(), importlib.import_module("jostle._core")
    digest = _digest(source, compiler, engine.ENGINE_VERSION)
    if digest in _compiled:
        return _compiled[digest]
    folder = _folder(digest)
    file = folder / _LIBRARY
    with _locked(folder):
        if not file.is_file():
            _write(source, folder)
            target = _target()
            _cargo(
                ["build", "--quiet", "--release", "--features", "library", "--target-dir", target],
                source,
                folder,
            )
            _keep(target / "release" / _library_name(), file)
    try:
        rows = json.loads(engine.describe_library(file))
    except ValueError as error:
        raise CrateError(f"the crate {source.folder} has no usable row: {error}") from error
    library = read_bytes(file, TABLE_BYTES)
    made = ControllerCrate(source, compiler, engine.ENGINE_VERSION, _machine(), rows[0], library)
    return _compiled.setdefault(digest, made)


def library_file(crate: ControllerCrate) -> Path:
    """Return the file with the library, which another machine may have sent.

    Raises
    ------
    CrateError
        If it is for another kind of machine.
    """
    if crate.machine != _machine():
        raise CrateError(
            f"the crate {crate.source.package} was compiled for {crate.machine}, and this machine "
            f"is {_machine()}: run it where it was planned"
        )
    folder = _folder(crate.digest())
    file = folder / f"{_LIBRARY}-{hashlib.sha256(crate.library).hexdigest()[:16]}"
    if not file.is_file():
        with _locked(folder), OpenFolder.at(folder) as opened:
            opened.replace(file.name, crate.library)
    return file


def kernel_object(crate: ControllerCrate) -> bytes:
    """Return the object for a kernel module, linked at the first use.

    Raises
    ------
    CrateError
        If it cannot be linked, for example because the crate uses the standard library.
    """
    folder = _folder(crate.digest())
    file = folder / _OBJECT
    with _locked(folder):
        if not file.is_file():
            _write(crate.source, folder)
            script = str(dependencies.link_script())
            made = folder / f"new-{_OBJECT}"
            environment = {"CARGO_TARGET_DIR": str(_target())}
            command = ["sh", script, str(made), _PACKAGE, str(folder / _AROUND)]
            _run(command, crate.source, folder, environment)
            made.replace(file)
    return read_bytes(file, TABLE_BYTES)


def _folder(digest: str) -> Path:
    return cache_folder().with_name("crates") / digest[:32]


def _target() -> Path:
    """Return Cargo's folder, in which all crates share what they depend on."""
    given = os.environ.get("CARGO_TARGET_DIR")
    return Path(given) if given else cache_folder().with_name("crates") / "target"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Make the folder of a crate, and let no other process compile it meanwhile."""
    with OpenFolder.at(folder, make=True), locked_folder(folder, CrateError):
        yield


def _write(source: CrateSource, folder: Path) -> None:
    """Write the crate, and a package around it that has the C functions."""
    copy = folder / _AROUND / source.package
    shutil.rmtree(copy, ignore_errors=True)
    for path, content in source.files.items():
        file = copy / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    manifest = _WRAPPER.format(
        package=_PACKAGE, name=source.package, version=dependencies.version()
    )
    for path, text in (
        (MANIFEST, manifest),
        (".lib.rs", _EXPORT),
        (".cargo/config.toml", dependencies.settings(with_bridge=True)),
    ):
        file = folder / _AROUND / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _library_name() -> str:
    stem = _PACKAGE.replace("-", "_")
    return f"lib{stem}.dylib" if sys.platform == "darwin" else f"lib{stem}.so"


def _keep(made: Path, file: Path) -> None:
    with OpenFolder.at(file.parent) as folder:
        folder.replace(file.name, made.read_bytes())


@functools.cache
def _compiler() -> str:
    """Return what the compiler says about itself.

    Raises
    ------
    CrateError
        If Rust is not installed, or the system is Windows.
    """
    if sys.platform == "win32":
        raise CrateError("a controller in Rust is compiled on Linux and macOS, not on Windows")
    for program in ("cargo", "rustc"):
        if shutil.which(program) is None:
            raise CrateError(
                f"a controller in Rust is compiled with {program}, which is not installed: see "
                "https://rustup.rs"
            )
    said = subprocess.run(["rustc", "-vV"], capture_output=True, check=False, text=True)
    if said.returncode != 0:
        raise CrateError(f"rustc -vV failed: {said.stderr.strip()}")
    return said.stdout


def _cargo(arguments: list[Any], source: CrateSource, folder: Path) -> None:
    _run(["cargo", *map(str, arguments)], source, folder, {})


def _run(
    command: list[str], source: CrateSource, folder: Path, environment: Mapping[str, str]
) -> None:
    said: list[str] = []
    own = {"CARGO_TERM_COLOR": "never", **environment}
    status = run_to_end(
        command, said.append, environment={**os.environ, **own}, cwd=folder / _AROUND
    )
    if status == 0:
        return
    # The user knows the source by its own folder.
    copy = f" {source.package}/"
    lines = [line.replace(copy, f" {source.folder}/") for line in said[:_SHOWN_LINES]]
    listed = "\n".join(f"  {line}" for line in lines)
    raise CompilerError(f"the crate {source.folder} cannot be compiled:\n{listed}")
