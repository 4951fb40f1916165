"""Builds the virtual-time kernel: extract, configure, compile, boot twice, move to the cache.

An interrupted build continues with its last step. The kernel is moved to the cache by a rename,
after it has booted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import time
import uuid
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from jostle.errors import InputError, JostleError
from jostle.kernel_images import config, debian, kernel_source, toolchain
from jostle.kernel_images.image_paths import BuiltKernel, Image, built, cache_folder, version_key
from jostle.kernel_images.process_group import run_to_end
from jostle.kernel_images.verify import Check, UnfitKernelError, check
from jostle.safe_io.folder_lock import locked_folder

FORMAT = "jostle.kernel/1"

_PACKAGE_BYTES = 150_000_000
"""Disk space for Debian's package of the source."""
_SOURCE_BYTES = 3_000_000_000
"""Disk space for the source and the compiled files."""
_OBJECTS_BYTES = 1_000_000_000
"""Disk space for the compiled files."""
_FULL_BYTES = 20_000_000

# Expected steps of `make`, used until a kernel of the series was built on this machine.
_EXPECTED_STEPS = {"6.1": 1310, "6.12": 1450}
_STEP = re.compile(r"  ([A-Z][A-Z0-9_]*) +(\S+)")

_TIDY_UP_S = 10.0
_TAIL_LINES = 15


class Reporter(Protocol):
    """Receiver of the progress of a build."""

    def step(self, text: str) -> None:
        """Report that a long step begins."""

    def line(self, text: str) -> None:
        """Report an output line of another program."""

    def compiled(self, done: int, expected: int) -> None:
        """Report the number of completed compile steps, and the expected total."""


class BuildError(JostleError):
    """The kernel could not be built."""


@dataclass(frozen=True)
class Request:
    """Options of a build.

    Attributes
    ----------
    series
        One of `config.SERIES`.
    jobs
        Number of parallel compile jobs.
    archive
        Kernel source to use instead of Debian's package: a tarball, or such a package.
    sha256
        Digest of `archive`, which is required with it.
    force
        Rebuild from the start, even if the kernel exists.
    may_update
        Whether to update apt's package lists, as root, if the source is not found.
    """

    series: str = config.DEFAULT_SERIES
    jobs: int = 1
    archive: Path | None = None
    sha256: str | None = None
    force: bool = False
    may_update: bool = False


def check_request(request: Request) -> None:
    """Reject options that cannot be built.

    Raises
    ------
    InputError
        The message names the accepted values.
    """
    if request.series not in config.SERIES:
        known = " or ".join(config.SERIES)
        raise InputError(f"cannot build Linux {request.series}: choose {known}")
    # User-Mode Linux supports no other platform (arch/um/Kconfig, arch/x86/um/Kconfig).
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise InputError(
            "a virtual-time kernel can be built and run on Linux on x86-64 alone, "
            f"not on {platform.system()} on {platform.machine()}"
        )


def existing(series: str) -> BuiltKernel | None:
    """Return the newest kernel of a series that was built with the current options."""
    found = [kernel for kernel in built() if kernel.series == series and kernel.current]
    return found[-1] if found else None


def build(request: Request, reporter: Reporter) -> BuiltKernel:
    """Build a kernel, unless it exists.

    All tools must be installed (see `toolchain.missing`). A build can be interrupted at any time;
    the next call continues it.

    Raises
    ------
    InputError
        If the source is not valid.
    BuildError
        If it cannot be built. The message contains the last lines of the log, and its path.
    UnfitKernelError
        If the built kernel fails a check.
    """
    check_request(request)
    existing_kernel = existing(request.series)
    if existing_kernel is not None and not request.force:
        return existing_kernel
    folder = cache_folder() / ".work" / request.series
    try:
        with _alone(folder):
            # Another process may have built it meanwhile.
            existing_kernel = existing(request.series)
            if existing_kernel is not None and not request.force:
                return existing_kernel
            return _Build(request, reporter, folder).carry_out()
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise BuildError(f"the disk of {folder} is full") from error
        where = error.filename or folder
        raise BuildError(f"cannot build in {where}: {error.strerror or error}") from error


class _Build:
    """A build in its working folder."""

    def __init__(self, request: Request, reporter: Reporter, folder: Path) -> None:
        self._request = request
        self._reporter = reporter
        self._folder = folder
        self._tree = folder / "source"
        self._log = folder / "build.log"
        self._compile_s = 0.0
        self._steps: set[tuple[str, str]] = set()

    def carry_out(self) -> BuiltKernel:
        if self._request.force:
            packages = self._folder.glob("*.deb")
            for path in (self._tree, self._configured, *packages):
                _remove(path)
        archive = self._source()
        origin = kernel_source.identity(archive)
        extracted = kernel_source.is_extracted(archive, self._tree)
        self._require_disk_space(_OBJECTS_BYTES if extracted else _SOURCE_BYTES)
        if not extracted:
            self._reporter.step(f"extracting {archive}")
            _remove(self._configured)
            kernel_source.extract(archive, self._tree)
        version = kernel_source.version(self._tree, self._request.series)
        self._configure(version)
        self._compile(version)
        self._reporter.step("booting it twice as a test")
        image = Image("virtual", self._tree / "linux", version)
        try:
            checked = check(image)
        except UnfitKernelError as error:
            raise UnfitKernelError(
                f"Linux {version} was built, but {error}\nnothing was installed; "
                f"the kernel is {image.path}, the log {self._log}"
            ) from error
        return self._publish(version, origin, checked)

    def _source(self) -> Path:
        if self._request.archive is not None:
            kernel_source.verify(self._request.archive, self._request.sha256)
            return self._request.archive
        self._require_disk_space(_PACKAGE_BYTES)
        package = debian.source_package(self._request.series)
        self._reporter.step(f"fetching {package}")
        return debian.fetch_source(
            self._request.series,
            self._folder,
            self._reporter.line,
            may_update=self._request.may_update,
        )

    @property
    def _configured(self) -> Path:
        return self._folder / "configured"

    def _configure(self, version: str) -> None:
        kernel_source.make_ours(self._tree)
        if _is_stamped(self._configured, config.digest()):
            return
        self._reporter.step(f"configuring Linux {version}")
        for path in (self._log, self._configured):
            _remove(path)
        self._make("defconfig")
        file = self._tree / ".config"
        with file.open("a", encoding="utf-8") as config_file:
            config_file.write(config.fragment())
        self._make("olddefconfig")
        unmet = config.unmet(file.read_text("utf-8"))
        if unmet:
            raise BuildError(
                f"Linux {version} cannot be configured as needed: {', '.join(unmet)} is refused "
                f"(configuration: {file}, log: {self._log})"
            )
        self._configured.write_text(config.digest(), "utf-8")

    def _compile(self, version: str) -> None:
        self._reporter.step(f"compiling Linux {version} ({self._request.jobs} at a time)")
        if self._log.exists():
            # `make` does not repeat the steps of an interrupted build, so they are read from the
            # log.
            with self._log.open(encoding="utf-8", errors="replace") as log:
                self._steps.update(step for line in log if (step := _announced(line)))
        started_s = time.monotonic()
        self._make("linux", f"-j{self._request.jobs}", counting=True)
        self._compile_s = time.monotonic() - started_s

    def _make(self, *arguments: str, counting: bool = False) -> None:
        expected = _expected_steps(self._request.series)
        said: list[str] = []
        with self._log.open("a", encoding="utf-8", buffering=1) as log:

            def on_line(line: str) -> None:
                log.write(f"{line}\n")
                step = _announced(line)
                if step is None:
                    said.append(line)
                elif counting:
                    self._steps.add(step)
                    self._reporter.compiled(len(self._steps), max(expected, len(self._steps)))

            # On SIGTERM, make removes incomplete files.
            status = run_to_end(
                ["make", "ARCH=um", *arguments],
                on_line,
                environment=_environment(),
                cwd=self._tree,
                patience_s=_TIDY_UP_S,
            )
        if status != 0:
            if shutil.disk_usage(self._folder).free < _FULL_BYTES:
                raise BuildError(f"the disk of {self._folder} is full (log: {self._log})")
            last = "\n".join(f"  {line}" for line in said[-_TAIL_LINES:])
            raise BuildError(
                f"`make ARCH=um {' '.join(arguments)}` failed with status {status}:\n{last}\n"
                f"the whole log: {self._log}"
            )
        if counting and not os.access(self._tree / "linux", os.X_OK):
            raise BuildError(f"make left no kernel (log: {self._log})")

    def _require_disk_space(self, needed_bytes: int) -> None:
        free_bytes = shutil.disk_usage(self._folder).free
        if free_bytes < needed_bytes:
            raise BuildError(
                f"building needs {needed_bytes / 1e9:.1f} GB in {self._folder}, and only "
                f"{free_bytes / 1e9:.1f} GB are free there; XDG_CACHE_HOME can name another place"
            )

    def _publish(self, version: str, origin: dict[str, Any], checked: Check) -> BuiltKernel:
        ready = self._folder / "ready"
        _remove(ready)
        ready.mkdir()
        program = ready / "linux"
        shutil.copy2(self._tree / "linux", program)
        shutil.copy2(self._tree / ".config", ready / "config")
        shutil.copy2(self._log, ready / "build.log")
        facts = {
            "format": FORMAT,
            "version": version,
            "config_hash": config.digest(),
            "source": origin,
            "compiler": toolchain.compiler(),
            "banner": checked.banner,
            "controllers": list(checked.controllers),
            "sha256": hashlib.sha256(program.read_bytes()).hexdigest(),
            "steps": len(self._steps),
            "compile_s": round(self._compile_s, 1),
            "boot_s": round(checked.wall_s, 2),
            "jostle": metadata.version("jostle"),
        }
        (ready / "build.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        destination = cache_folder() / f"{version}-{config.digest()}"
        old = self._folder / f"old-{uuid.uuid4().hex}"
        if destination.exists():
            # Running guests keep the file from which they were started.
            destination.rename(old)
        ready.rename(destination)
        _remove(old)
        shutil.rmtree(self._folder, ignore_errors=True)
        return BuiltKernel(destination, facts)


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Lock the build folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "another jostle is building this kernel"
    return locked_folder(folder, lambda holder: BuildError(f"{text}: {holder}"))


def _environment() -> dict[str, str]:
    """Return the environment of make, without variables that affect the kernel."""
    inherited = {
        name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ
    }
    # Otherwise builder, host and time would become part of the kernel.
    fixed = {
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
        "KBUILD_BUILD_USER": "jostle",
        "KBUILD_BUILD_HOST": "jostle",
        "KBUILD_BUILD_VERSION": "1",
        "LC_ALL": "C",
    }
    return inherited | fixed


def _announced(line: str) -> tuple[str, str] | None:
    """Return action and target of a make output line; None for other lines."""
    found = _STEP.match(line)
    return (found[1], found[2]) if found else None


def _expected_steps(series: str) -> int:
    known = [kernel for kernel in built() if kernel.series == series]
    latest = max(known, key=lambda kernel: version_key(kernel.version), default=None)
    steps = latest.facts.get("steps") if latest is not None else None
    return steps if isinstance(steps, int) and steps > 0 else _EXPECTED_STEPS[series]


def _is_stamped(stamp: Path, text: str) -> bool:
    try:
        return stamp.read_text("utf-8") == text
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
