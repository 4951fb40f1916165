"""Locations of kernels.

`virtual` is a User-Mode Linux that jostle has built (see `build`), in the user's cache folder;
`realtime` is the distribution's User-Mode Linux; `native` is the kernel of this machine.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.errors import InputError
from jostle.kernel_images import config
from jostle.kernel_images.kinds import Kind
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_json

IMAGE_VARIABLE = "JOSTLE_KERNEL"
"""Environment variable with the path of a virtual-time kernel built elsewhere."""

REALTIME_IMAGE = Path("/usr/bin/linux.uml")
REALTIME_MODULES = Path("/usr/lib/uml/modules")

CPU_FACTS = Path("/proc/cpuinfo")

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH in the guest; a user's PATH may lack the folders of root's programs."""

TOOLS: Mapping[str, str] = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
"""Programs that set up the networks → Debian package."""

_ASK_VERSION_S = 10.0
# From this version on, User-Mode Linux asks the host for the size of the registers
# (`host_fp_size`).
_ASKS_FOR_REGISTERS = (6, 13)


class KernelMissingError(InputError):
    """There is no such kernel on this machine; the message says how to get one."""


@dataclass(frozen=True)
class Image:
    """A kernel that can run scenarios.

    Attributes
    ----------
    kind
        Kind of time, and where the kernel runs.
    path
        Executable; None for the running kernel.
    version
        Version as in `uname -r`, such as `6.1.192`.
    modules
        Folder of its loadable modules; None if drivers are built in, or loaded by the host.
    """

    kind: Kind
    path: Path | None
    version: str
    modules: Path | None = None

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the executable; of an empty string for the running kernel.

        Raises
        ------
        KernelMissingError
            If the executable does not exist.
        """
        if self.path is None:
            return hashlib.sha256().hexdigest()
        try:
            found = self.path.stat()
            return _digest(self.path, found.st_mtime_ns, found.st_size)
        except OSError as error:
            raise KernelMissingError(
                f"the kernel {self.path} cannot be read here: {error.strerror}"
            ) from error

    @functools.cached_property
    def identity(self) -> str:
        """Kind, version and a hash of the executable, on which results may depend."""
        if self.path is None:
            return f"{self.kind}-{self.version}-{platform.version()}"
        return f"{self.kind}-{self.version}-{self.digest[:12]}"

    def __reduce__(self) -> tuple[Any, ...]:
        # On another machine, the kernel is found again by its digest.
        return _resolve_image, (self.kind, self.path, self.version, self.modules, self.digest)


@functools.cache
def _digest(path: Path, _mtime_ns: int, _size: int) -> str:
    """Return the SHA-256 of a file, cached until its time or size changes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel in the cache.

    Attributes
    ----------
    folder
        Folder with `linux`, `build.json`, `config` and `build.log`.
    facts
        Content of `build.json`.
    """

    folder: Path
    facts: Mapping[str, Any]

    @functools.cached_property
    def image(self) -> Image:
        """The kernel."""
        return Image("virtual", self.folder / "linux", self.version)

    @property
    def version(self) -> str:
        """Version as in `uname -r`."""
        return str(self.facts["version"])

    @property
    def name(self) -> str | None:
        """Name of a kernel with a user's changes; None for jostle's own."""
        name = self.facts.get("name")
        return None if name is None else str(name)

    @property
    def options(self) -> str:
        """Options of `jostle setup kernel` that build it again."""
        if self.name is None:
            return f"--version {self.series}"
        source = self.facts["source"]
        patches = [patch["file"] for patch in source.get("patches", ())]
        words = [word for patch in patches for word in ("--patch", patch)]
        if len(self.facts["changes"]) > len(patches):
            words += ["--source", source["file"]]
        else:
            words += ["--version", self.series]
        return shlex.join([*words, "--name", self.name])

    @property
    def series(self) -> str:
        """First two numbers of the version."""
        return ".".join(self.version.split(".")[:2])

    @property
    def is_as_built(self) -> bool:
        """Whether the executable still has the digest recorded by the build."""
        return self.image.digest == self.facts.get("sha256")

    @property
    def current(self) -> bool:
        """Whether it was built with the options of this version of jostle."""
        return bool(self.facts["config_hash"] == config.digest())


def cache_folder() -> Path:
    """Return the folder of built kernels, in the user's cache folder."""
    # "If $XDG_CACHE_HOME is either not set or empty, a default equal to $HOME/.cache should be
    # used"; "all paths … must be absolute" (XDG Base Directory Specification 0.8).
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "jostle" / "kernels"


def built() -> list[BuiltKernel]:
    """Return all complete kernels in the cache, oldest version first."""
    found = []
    for file in cache_folder().glob("*/build.json"):
        try:
            facts = read_json(file, SCENARIO_BYTES)
        except (OSError, ValueError):
            continue
        is_complete = isinstance(facts, dict) and {"version", "config_hash"} <= facts.keys()
        if is_complete and os.access(file.parent / "linux", os.X_OK):
            found.append(BuiltKernel(file.parent, facts))
    return sorted(found, key=lambda kernel: (version_key(kernel.version), kernel.folder.name))


def names() -> list[str]:
    """Return the names of the kernels with a user's changes."""
    return [kernel.name for kernel in built() if kernel.name is not None]


def find(kind: Kind, version: str | None = None) -> Image:
    """Find a kernel.

    Parameters
    ----------
    version
        Series (`6.1`), version (`6.1.192`), or the name of a kernel with a user's changes. Default
        for virtual kernels: series 6.1, with which the simulator is compared, otherwise the newest.

    Raises
    ------
    KernelMissingError
        If there is none. The message says how to get one.
    """
    check_machine()
    match kind:
        case "virtual":
            return _virtual(version)
        case "realtime":
            return _realtime(version)
        case "native":
            return _native(version)


def _resolve_image(
    kind: Kind, path: Path | None, version: str, modules: Path | None, digest: str
) -> Image:
    """Return the kernel of another process, which may have another path on this machine.

    If it does not exist here, it is returned unchanged, because it may only be passed on.
    """
    image = Image(kind, path, version, modules)
    with contextlib.suppress(KernelMissingError):
        if path is None or image.digest == digest:
            return image
    if kind == "virtual":
        for kernel in built():
            if kernel.facts.get("sha256") == digest and kernel.is_as_built:
                return kernel.image
    return image


def check_machine() -> None:
    """Check the requirements of a run on this machine, other than the kernel.

    Raises
    ------
    KernelMissingError
        If one is missing. The message says how to install it.
    """
    if not sys.platform.startswith("linux"):
        raise KernelMissingError("the kernel backend needs Linux")
    missing = missing_tools()
    if missing:
        packages = " ".join(sorted({TOOLS[tool] for tool in missing}))
        raise KernelMissingError(
            f"{', '.join(missing)} missing, which set up the networks: "
            f"run `apt-get install {packages}`"
        )


def missing_tools() -> list[str]:
    """Return the programs that the kernel backend needs and that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool, path=SYSTEM_PATH) is None]


def image_version(path: Path) -> str | None:
    """Return the version of a User-Mode Linux; None if the file is something else."""
    try:
        completed = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ASK_VERSION_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    output = completed.stdout.strip()
    return output if re.fullmatch(r"\d+\.\d+\S*", output) else None


def version_key(version: str) -> tuple[int, ...]:
    """Return a sort key for versions: 6.9 before 6.12."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _virtual(version: str | None) -> Image:
    named = os.environ.get(IMAGE_VARIABLE)
    if named:
        actual = image_version(Path(named))
        if actual is None:
            raise KernelMissingError(
                f"{IMAGE_VARIABLE}={named} is not a User-Mode Linux that can be run"
            )
        if not _matches(actual, version):
            raise KernelMissingError(f"{IMAGE_VARIABLE}={named} is {actual}, not {version}")
        return Image("virtual", Path(named).resolve(), actual)
    kernels = [
        kernel
        for kernel in built()
        if (kernel.name is None and _matches(kernel.version, version))
        or (kernel.name is not None and kernel.name == version)
    ]
    current = [kernel for kernel in kernels if kernel.current]
    if current:
        chosen = max(current, key=_preference)
        if not chosen.is_as_built:
            raise KernelMissingError(
                f"{chosen.folder / 'linux'} is not the program that was built (its SHA-256 is not "
                f"the one in build.json): `jostle setup kernel --force {chosen.options}` "
                "makes it anew"
            )
        return chosen.image
    if kernels and kernels[-1].name is not None:
        raise KernelMissingError(
            f"the kernel {version} was built by another version of jostle, with other options: "
            f"run `jostle setup kernel {kernels[-1].options}`"
        )
    series = ".".join((version or config.DEFAULT_SERIES).split(".")[:2])
    asked = "" if series == config.DEFAULT_SERIES else f" --version {series}"
    what = f"virtual-time kernel {version}" if version else "virtual-time kernel"
    why = (
        f"the {what} was built by another version of jostle, with other options"
        if kernels
        else f"there is no {what} yet"
    )
    raise KernelMissingError(f"{why}: run `jostle setup kernel{asked}` (some minutes, once)")


def _preference(kernel: BuiltKernel) -> tuple[bool, tuple[int, ...]]:
    return kernel.series == config.DEFAULT_SERIES, version_key(kernel.version)


def _realtime(version: str | None) -> Image:
    actual = image_version(REALTIME_IMAGE)
    if actual is None:
        raise KernelMissingError(
            f"there is no real-time kernel at {REALTIME_IMAGE}: "
            "run `apt-get install user-mode-linux`"
        )
    if not _matches(actual, version):
        raise KernelMissingError(f"the real-time kernel is {actual}, not {version}")
    if version_key(actual) < _ASKS_FOR_REGISTERS and _has_large_registers():
        raise KernelMissingError(
            f"the real-time kernel {actual} cannot run on this machine: its processor has AMX, for "
            "whose registers User-Mode Linux has no room (the virtual-time kernel has)"
        )
    modules = REALTIME_MODULES / actual
    # List of the modules' dependencies.
    if not (modules / "modules.dep").is_file():
        raise KernelMissingError(
            f"the real-time kernel {actual} has no modules at {modules}: "
            "run `apt-get install --reinstall user-mode-linux`"
        )
    return Image("realtime", REALTIME_IMAGE, actual, modules)


def _has_large_registers() -> bool:
    """Return whether the processor has AMX, whose 8 KB of registers Linux only saves completely."""
    try:
        text = CPU_FACTS.read_text("utf-8", "replace")
    except OSError:
        return False
    flags = re.search(r"^flags\s*:(.*)$", text, re.M)
    return flags is not None and "amx_tile" in flags[1].split()


def _native(version: str | None) -> Image:
    actual = platform.release()
    if not _matches(actual, version):
        raise KernelMissingError(f"this machine runs Linux {actual}, not {version}")
    if os.geteuid() != 0:
        raise KernelMissingError(
            "running on this machine's own kernel makes network namespaces: run it as root"
        )
    return Image("native", None, actual)


def _matches(actual: str, wanted: str | None) -> bool:
    return wanted is None or actual == wanted or actual.startswith((f"{wanted}.", f"{wanted}-"))
