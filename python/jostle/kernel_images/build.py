"""Build the virtual-time kernel: extract, configure, compile, boot once, put into the cache.

Each step leaves something that the next call of the same build goes on from; the kernel enters the
cache by a rename, after it has booted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from jostle.errors import InputError, JostleError
from jostle.kernel_images import config, debian, source, toolchain
from jostle.kernel_images.images import Built, Image, built, cache_folder, version_key
from jostle.kernel_images.processes import running
from jostle.kernel_images.verify import Check, UnfitKernelError, check
from jostle.locks import LockFile, still_locked
from jostle.open_folder import OpenFolder

FORMAT = "jostle.kernel/1"

_PACKAGE_BYTES = 150_000_000
"""Room for Debian's package of the source."""
_SOURCE_BYTES = 3_000_000_000
"""Room for the source and all that is compiled from it."""
_OBJECTS_BYTES = 1_000_000_000
"""Room for what is compiled."""
_FULL_BYTES = 20_000_000

# How many steps `make` announces; once a kernel has been built here, that is known better.
_EXPECTED_STEPS = {"6.1": 1310, "6.12": 1450}
_STEP = re.compile(r"  ([A-Z][A-Z0-9_]*) +(\S+)")

_WAIT_S = 0.25
_TIDY_UP_S = 10.0
_TAIL_LINES = 15


class Reporter(Protocol):
    """Told how a build proceeds."""

    def step(self, text: str) -> None:
        """Something that takes its time begins."""

    def line(self, text: str) -> None:
        """Another program writes a line."""

    def compiled(self, done: int, expected: int) -> None:
        """So many steps of compiling are done, of about so many."""


class BuildError(JostleError):
    """The kernel could not be built."""


@dataclass(frozen=True)
class Request:
    """What to build.

    Attributes
    ----------
    series
        One of `config.SERIES`.
    jobs
        Compilers at the same time.
    archive
        A kernel's source to use instead of Debian's package: a tarball, or such a package.
    sha256
        Digest of `archive`, which is refused without it.
    force
        Build anew, even if it is there, and from the start.
    may_update
        Whether to renew apt's lists of packages, as root, if the source is not found.
    """

    series: str = config.DEFAULT_SERIES
    jobs: int = 1
    archive: Path | None = None
    sha256: str | None = None
    force: bool = False
    may_update: bool = False


def check_request(request: Request) -> None:
    """Refuse what cannot be built at all.

    Raises
    ------
    InputError
        With what would be accepted.
    """
    if request.series not in config.SERIES:
        known = " or ".join(config.SERIES)
        raise InputError(f"cannot build Linux {request.series}: choose {known}")
    # Elsewhere User-Mode Linux does not exist (arch/um/Kconfig, arch/x86/um/Kconfig).
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise InputError(
            "a virtual-time kernel can be built and run on Linux on x86-64 alone, "
            f"not on {platform.system()} on {platform.machine()}"
        )


def existing(series: str) -> Built | None:
    """Newest kernel of a series that is built with the present options."""
    found = [kernel for kernel in built() if kernel.series == series and kernel.current]
    return found[-1] if found else None


def build(request: Request, reporter: Reporter) -> Built:
    """Build a kernel, unless it is there.

    Everything that is needed has to be installed (see `toolchain.missing`). May be interrupted at
    any time; a later call goes on from there.

    Raises
    ------
    InputError
        When the source is not what it should be.
    BuildError
        When it cannot be built, with the last lines of the log and where that is.
    UnfitKernelError
        When what was built does not do what it is for.
    """
    check_request(request)
    there = existing(request.series)
    if there is not None and not request.force:
        return there
    folder = cache_folder() / ".work" / request.series
    try:
        with _alone(folder):
            # Another process may have built it meanwhile.
            there = existing(request.series)
            if there is not None and not request.force:
                return there
            return _Build(request, reporter, folder).carry_out()
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise BuildError(f"the disk of {folder} is full") from error
        where = error.filename or folder
        raise BuildError(f"cannot build in {where}: {error.strerror or error}") from error


class _Build:
    """One build in its folder."""

    def __init__(self, request: Request, reporter: Reporter, folder: Path) -> None:
        self._request = request
        self._reporter = reporter
        self._folder = folder
        self._tree = folder / "source"
        self._log = folder / "build.log"
        self._compile_s = 0.0
        self._steps: set[tuple[str, str]] = set()

    def carry_out(self) -> Built:
        if self._request.force:
            packages = self._folder.glob("*.deb")
            for path in (self._tree, self._configured, *packages):
                _remove(path)
        archive = self._source()
        origin = source.identity(archive)
        extracted = source.is_extracted(archive, self._tree)
        self._need_room(_OBJECTS_BYTES if extracted else _SOURCE_BYTES)
        if not extracted:
            self._reporter.step(f"extracting {archive}")
            _remove(self._configured)
            source.extract(archive, self._tree)
        version = source.version(self._tree, self._request.series)
        self._configure(version)
        self._compile(version)
        self._reporter.step("booting it once")
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
            source.verify(self._request.archive, self._request.sha256)
            return self._request.archive
        self._need_room(_PACKAGE_BYTES)
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
        source.make_ours(self._tree)
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
            # What an interrupted build has compiled is not announced again.
            with self._log.open(encoding="utf-8", errors="replace") as log:
                self._steps.update(step for line in log if (step := _announced(line)))
        started_s = time.monotonic()
        self._make("linux", f"-j{self._request.jobs}", counting=True)
        self._compile_s = time.monotonic() - started_s

    def _make(self, *arguments: str, counting: bool = False) -> None:
        expected = _expected_steps(self._request.series)
        said: list[str] = []
        with self._log.open("a", encoding="utf-8", buffering=1) as log:

            def hear(line: str) -> None:
                log.write(f"{line}\n")
                step = _announced(line)
                if step is None:
                    said.append(line)
                elif counting:
                    self._steps.add(step)
                    self._reporter.compiled(len(self._steps), max(expected, len(self._steps)))

            # make removes what it was about to write when it is asked to end.
            with running(
                ["make", "ARCH=um", *arguments],
                hear,
                environment=_environment(),
                cwd=self._tree,
                first=signal.SIGTERM,
                patience_s=_TIDY_UP_S,
            ) as group:
                while (status := group.wait(_WAIT_S)) is None:
                    pass
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

    def _need_room(self, needed_bytes: int) -> None:
        free_bytes = shutil.disk_usage(self._folder).free
        if free_bytes < needed_bytes:
            raise BuildError(
                f"building needs {needed_bytes / 1e9:.1f} GB in {self._folder}, and only "
                f"{free_bytes / 1e9:.1f} GB are free there; XDG_CACHE_HOME can name another place"
            )

    def _publish(self, version: str, origin: dict[str, Any], checked: Check) -> Built:
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
        place = cache_folder() / f"{version}-{config.digest()}"
        old = self._folder / f"old-{uuid.uuid4().hex}"
        if place.exists():
            # Guests that run keep the file that they were started from.
            place.rename(old)
        ready.rename(place)
        _remove(old)
        shutil.rmtree(self._folder, ignore_errors=True)
        return Built(place, facts)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others from building the same kernel; the system lets go when this process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{folder.name}.lock"
    with OpenFolder.at(folder.parent) as work:
        lock = LockFile.take(work, name, wait_s=None, of=str(folder))
        if lock is None:
            told = still_locked(work, name, str(folder))
            raise BuildError(f"another jostle is building this kernel: {told}")
    try:
        yield
    finally:
        lock.release()


def _environment() -> dict[str, str]:
    """Environment of make: nothing in it that changes the kernel."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    # Who built it, where and when would otherwise be part of the kernel.
    fixed = {
        "KBUILD_BUILD_TIMESTAMP": "1970-01-01",
        "KBUILD_BUILD_USER": "jostle",
        "KBUILD_BUILD_HOST": "jostle",
        "KBUILD_BUILD_VERSION": "1",
        "LC_ALL": "C",
    }
    return kept | fixed


def _announced(line: str) -> tuple[str, str] | None:
    """Read what a line of make says is being made; None for other lines."""
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
