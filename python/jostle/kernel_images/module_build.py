"""Compiles a congestion controller of the user as a module for one kernel."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.kernel_images import headers, toolchain
from jostle.kernel_images.build import environment
from jostle.kernel_images.controller_modules import FORMAT, ControllerModule, strings_of
from jostle.kernel_images.image_paths import BuiltKernel, Image, built
from jostle.kernel_images.process_group import run_to_end
from jostle.safe_io.scratch_folder import temporary_folder

_SHOWN_ERRORS = 12

_HINTS: Final = (
    (
        r"incompatible pointer type.*rate_sample",
        "cong_control has the arguments (sk, rs) before Linux 6.10 and (sk, ack, flag, rs) since: "
        "write both behind `#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)`, or compile for "
        "the other kernel (--version 6.1 or 6.12)",
    ),
    (
        r"missing MODULE_LICENSE",
        'add MODULE_LICENSE("GPL"): Linux does not load a module without a licence, and only '
        "modules under the GPL may register congestion control",
    ),
    (
        r"GPL-incompatible module",
        'write MODULE_LICENSE("GPL"): only modules under the GPL may register congestion control',
    ),
    (
        r"BUILD_BUG_ON failed:.*ICSK_CA_PRIV_SIZE|BUILD_BUG_ON failed:.*icsk_ca_priv",
        "the data of a connection do not fit into icsk_ca_priv, which has 512 bytes in kernels of "
        "jostle: keep a pointer there",
    ),
    (
        r'modpost: "\w+" .*undefined!',
        "the kernel does not export this function to modules: build a kernel with it "
        "(`jostle setup kernel --patch`)",
    ),
)
"""Pattern of a compiler message → what to do."""


class ModuleError(InputError):
    """A module cannot be compiled, or does not work."""


@dataclass(frozen=True)
class Compiled:
    """A module that has been compiled and not been tried.

    Attributes
    ----------
    content
        All bytes of the module.
    facts
        Manifest: hashes of the module, its source, its kernel and its compiler.
    """

    content: bytes
    facts: dict[str, Any]

    def named(self, name: str, controller: str, controllers: list[str]) -> ControllerModule:
        """Return the module with its complete manifest.

        Parameters
        ----------
        name
            Name in scenarios.
        controller, controllers
            Controller that flows of this name use, and all that the module registers.
        """
        return ControllerModule(
            {
                **self.facts,
                "format": FORMAT,
                "name": name,
                "controller": controller,
                "controllers": controllers,
            },
            self.content,
        )


def check_source(source: Path) -> None:
    """Check that there is something to compile.

    Raises
    ------
    ModuleError
        If not.
    """
    if source.is_dir():
        files = _c_files(source)
        if not _has_makefile(source) and len(files) != 1:
            raise ModuleError(
                f"{source} has {len(files)} C files and no Makefile: write one with "
                "`obj-m := NAME.o` and `NAME-y := …`, or name one file"
            )
    elif not source.is_file():
        raise ModuleError(f"there is no file or folder {source}")
    elif source.suffix != ".c":
        raise ModuleError(f"{source}: give a C file, or a folder with a Makefile")


def compile_module(source: Path, image: Image, on_line: Callable[[str], None]) -> Compiled:
    """Compile a C file, or the folder of a module, for a kernel.

    The source is copied first, so that nothing is written into its folder.

    Raises
    ------
    ModuleError
        If it does not compile. The message contains the compiler's errors and a hint.
    ToolsMissingError
        If a program for the build is not installed.
    """
    check_source(source)
    lacking = toolchain.missing()
    if lacking:
        raise toolchain.ToolsMissingError(toolchain.missing_message(lacking))
    archive = _headers_of(image)
    with temporary_folder("module") as folder:
        tree, copy = folder / "headers", folder / "source"
        tree.mkdir()
        headers.unpack(archive, tree, environment())
        digest = _copy(source, copy)
        said: list[str] = []

        def show_line(line: str) -> None:
            # The user knows the source by its own name.
            text = line.replace(f"{copy}/", f"{_folder_of(source)}/")
            said.append(text)
            on_line(text)

        status = run_to_end(
            ["make", f"--directory={tree}", "--no-print-directory", "ARCH=um",
             f"M={copy}", "modules",
             # The name of the temporary folder must not become a part of the module.
             f"KCFLAGS=-ffile-prefix-map={copy}/="],
            show_line,
            environment=environment(),
        )  # fmt: skip
        if status != 0:
            raise ModuleError(_failure(source, image, said))
        modules = sorted(copy.rglob("*.ko"))
        if len(modules) != 1:
            listed = ", ".join(path.name for path in modules) or "none"
            raise ModuleError(f"{source} makes {len(modules)} modules ({listed}): make one")
        content = modules[0].read_bytes()
    strings = strings_of(content)
    facts = {
        "module": strings["name"][0],
        "parameters": dict(_parameters(strings)),
        "license": strings.get("license", [""])[0],
        "vermagic": strings["vermagic"][0],
        "sha256": hashlib.sha256(content).hexdigest(),
        "source": {"file": str(source.resolve()), "sha256": digest},
        "kernel": {"version": image.version, "sha256": image.digest},
        "compiler": toolchain.compiler(),
    }
    return Compiled(content, facts)


def _headers_of(image: Image) -> Path:
    if image.path is None or image.kind != "virtual":
        raise ModuleError(f"modules are compiled for the virtual-time kernel, not {image.kind}")
    archive = image.path.with_name(headers.FILE)
    if archive.is_file():
        return archive
    kernel = next((one for one in built() if one.image.path == image.path), None)
    raise ModuleError(
        f"the kernel {image.path} has no headers beside it ({headers.FILE}): "
        f"{_again(kernel)} (some minutes)"
    )


def _again(kernel: BuiltKernel | None) -> str:
    if kernel is None:
        return "copy them from the machine where it was built, or run `jostle setup kernel`"
    return f"`jostle setup kernel --force {kernel.options}` builds it again with them"


def _copy(source: Path, copy: Path) -> str:
    """Copy the source to a folder; return a hash of its files."""
    if source.is_dir() and _has_makefile(source):
        shutil.copytree(
            source, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "*.o", "*.ko")
        )
    else:
        # The Makefile of a single file often asks for the headers of the machine's kernel.
        copy.mkdir()
        (file,) = _c_files(source) if source.is_dir() else [source]
        name = re.sub(r"[^A-Za-z0-9_-]", "_", file.stem)
        shutil.copyfile(file, copy / f"{name}.c")
        for header in _folder_of(source).glob("*.h"):
            shutil.copyfile(header, copy / header.name)
        (copy / "Makefile").write_text(f"obj-m := {name}.o\n", "utf-8")
    digest = hashlib.sha256()
    for path in sorted(path for path in copy.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(copy).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _folder_of(source: Path) -> Path:
    return source if source.is_dir() else source.parent


def _c_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.c")) if not path.name.endswith(".mod.c")]


def _has_makefile(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("Makefile", "Kbuild"))


def _failure(source: Path, image: Image, said: list[str]) -> str:
    errors = [line for line in said if re.search(r"\berror\b|ERROR|undefined!", line)]
    errors = [line for line in errors if not line.startswith("make")] or said[-_SHOWN_ERRORS:]
    listed = "\n".join(f"  {line}" for line in errors[:_SHOWN_ERRORS])
    text = f"{source} does not compile for Linux {image.version}:\n{listed}"
    everything = "\n".join(said)
    hints = [hint for pattern, hint in _HINTS if re.search(pattern, everything)]
    hints = hints or ["if the source is for another kernel, compile it for that one: --version"]
    return "\n".join([text, *hints])


def _parameters(strings: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return name and type of the module's parameters."""
    split = (entry.partition(":") for entry in strings.get("parmtype", []))
    return [(name, kind) for name, _, kind in split]
