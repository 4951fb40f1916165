"""Builds a virtual-time kernel: extract, configure, compile, boot twice, move to the cache.

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
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from jostle.errors import InputError, JostleError
from jostle.kernel_images import (
    config,
    debian,
    headers,
    kernel_source,
    source_patches,
    toolchain,
)
from jostle.kernel_images.image_paths import (
    BuiltKernel,
    Image,
    built,
    cache_folder,
    version_key,
)
from jostle.kernel_images.kinds import RESERVED
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
        One of `config.SERIES`; ignored with `tree`.
    jobs
        Number of parallel compile jobs.
    archive
        Kernel source to use instead of Debian's package: a tarball, or such a package. Ignored with
        `tree`.
    sha256
        Digest of `archive`, which is required with it.
    force
        Rebuild from the start, even if the kernel exists.
    may_update
        Whether to update apt's package lists, as root, if the source is not found.
    name
        Name of a kernel with a user's changes; None for jostle's own. Required with `patches` and
        `tree`.
    patches
        Patches of the user, applied before jostle's.
    tree
        Folder with a user's kernel source, instead of Debian's.
    """

    series: str = config.DEFAULT_SERIES
    jobs: int = 1
    archive: Path | None = None
    sha256: str | None = None
    force: bool = False
    may_update: bool = False
    name: str | None = None
    patches: tuple[Path, ...] = ()
    tree: Path | None = None

    @property
    def work_name(self) -> str:
        """Name of the working folder."""
        return self.series if self.name is None else self.name


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
    changed = bool(request.patches) or request.tree is not None
    if changed != (request.name is not None):
        raise InputError(
            "a kernel with your --patch or --source DIR needs a --name, by which "
            "--backend kernel:NAME selects it"
            if changed
            else "--name is for a kernel with your --patch or --source DIR"
        )
    if request.name is not None and (
        not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", request.name) or request.name in RESERVED
    ):
        raise InputError(
            f"--name {request.name}: use up to 32 small letters, digits, `-` and `_`, beginning "
            f"with a letter, and none of {', '.join(RESERVED)}"
        )
    # User-Mode Linux supports no other platform (arch/um/Kconfig, arch/x86/um/Kconfig).
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise InputError(
            "a virtual-time kernel can be built and run on Linux on x86-64 alone, "
            f"not on {platform.system()} on {platform.machine()}"
        )


def existing(request: Request) -> BuiltKernel | None:
    """Return the newest kernel of a request that was built with the current options.

    Raises
    ------
    SourceError
        If a patch or a tree cannot be read.
    """
    found = [kernel for kernel in built() if kernel.name == request.name and kernel.current]
    if request.name is not None:
        changes = _changes(request)
        found = [kernel for kernel in found if kernel.facts.get("changes") == changes]
    if request.tree is None:
        found = [kernel for kernel in found if kernel.series == request.series]
    return found[-1] if found else None


def _changes(request: Request) -> list[str]:
    """Return the digests of a user's tree and patches."""
    found = [kernel_source.identity_of_patch(patch)["sha256"] for patch in request.patches]
    if request.tree is not None:
        found.insert(0, kernel_source.identity_of_tree(request.tree)["sha256"])
    return found


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
    existing_kernel = existing(request)
    if existing_kernel is not None and not request.force:
        return existing_kernel
    folder = cache_folder() / ".work" / request.work_name
    try:
        with _alone(folder):
            # Another process may have built it meanwhile.
            existing_kernel = existing(request)
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
        self._left_out: list[str] = []
        self._steps: set[tuple[str, str]] = set()

    def carry_out(self) -> BuiltKernel:
        if self._request.force:
            packages = self._folder.glob("*.deb")
            for path in (self._tree, self._configured, *packages):
                _remove(path)
        source = self._source()
        extracted = source.is_extracted(self._tree)
        self._require_disk_space(_OBJECTS_BYTES if extracted else _SOURCE_BYTES)
        if not extracted:
            self._reporter.step(f"extracting {source.path}")
            _remove(self._configured)
            source.extract(self._tree)
        is_tree = self._request.tree is not None
        version = kernel_source.version(self._tree, None if is_tree else self._request.series)
        build = self._build_id(source)
        self._configure(version, build)
        if self._is_foreign:
            self._leave_out_copies()
        self._compile(version)
        self._reporter.step("booting it twice as a test")
        image = Image("virtual", self._tree / "linux", version)
        try:
            checked = check(image, self._expected())
        except UnfitKernelError as error:
            raise UnfitKernelError(
                f"Linux {version} was built, but {error}\nnothing was installed; "
                f"the kernel is {image.path}, the log {self._log}"
            ) from error
        return self._publish(version, build, source.origin, checked)

    @property
    def _is_foreign(self) -> bool:
        return self._request.name is not None

    def _source(self) -> kernel_source.Source:
        patches = self._request.patches
        tree = self._request.tree
        if tree is not None:
            path, origin = tree, kernel_source.identity_of_tree(tree)
        else:
            path = self._archive()
            origin = kernel_source.identity(path)
        if patches:
            origin["patches"] = [kernel_source.identity_of_patch(patch) for patch in patches]
        return kernel_source.Source(path, origin, patches)

    def _archive(self) -> Path:
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

    def _build_id(self, source: kernel_source.Source) -> str:
        """Return the name of the build in the version magic of its modules."""
        if not self._is_foreign:
            return config.digest()
        parts = [config.digest(), source.origin["sha256"]]
        parts += [patch["sha256"] for patch in source.origin.get("patches", ())]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]

    @property
    def _configured(self) -> Path:
        return self._folder / "configured"

    def _configure(self, version: str, build: str) -> None:
        self._left_out = kernel_source.make_ours(self._tree, build, is_foreign=self._is_foreign)
        file = self._tree / ".config"
        if not _is_stamped(self._configured, build):
            self._reporter.step(f"configuring Linux {version}")
            for path in (self._log, self._configured):
                _remove(path)
            if self._request.tree is not None:
                # Objects of another architecture would be in the way.
                self._make("mrproper")
            self._make("defconfig")
            with file.open("a", encoding="utf-8") as config_file:
                config_file.write(config.fragment())
            self._make("olddefconfig")
        unmet = config.unmet(file.read_text("utf-8"))
        if self._is_foreign:
            known = config.options_of(self._tree)
            self._left_out += [text for text in unmet if text.split()[0] not in known]
            unmet = [text for text in unmet if text.split()[0] in known]
        if unmet:
            raise BuildError(
                f"Linux {version} cannot be configured as needed: {', '.join(unmet)} is refused "
                f"(configuration: {file}, log: {self._log})"
            )
        self._configured.write_text(build, "utf-8")

    def _leave_out_copies(self) -> None:
        """Compile jostle's copies of controllers, and leave out those that a user's changes break.

        The texts that a copy replaces may be there while it uses something that is not.
        """
        texts, missing = source_patches.copies(self._tree, is_foreign=True)
        for name in sorted(set(source_patches.COPIES) - set(missing)):
            file = source_patches.OWN_FOLDER / source_patches.copy_file(name)
            try:
                self._make(str(file.with_suffix(".o")))
            except BuildError:
                del texts[file.name]
                self._left_out.append(name)
        kernel_source.write_own(self._tree, texts)

    def _expected(self) -> list[str]:
        """Return the congestion controllers that the kernel must have."""
        absent = set(self._left_out)
        options = {f"TCP_CONG_{option} on": name for name, option in config.CONTROLLERS.items()}
        absent |= {options[text] for text in self._left_out if text in options}
        return [name for name in config.expected() if name not in absent]

    def _compile(self, version: str) -> None:
        self._reporter.step(f"compiling Linux {version} ({self._request.jobs} at a time)")
        if self._log.exists():
            # `make` does not repeat the steps of an interrupted build, so they are read from the
            # log.
            with self._log.open(encoding="utf-8", errors="replace") as log:
                self._steps.update(step for line in log if (step := _announced(line)))
        started_s = time.monotonic()
        self._make("linux", f"-j{self._request.jobs}", counting=True)
        # Files that only the build of a module needs.
        self._make("modules_prepare")
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
                environment=environment(),
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

    def _publish(
        self, version: str, build: str, origin: dict[str, Any], checked: Check
    ) -> BuiltKernel:
        ready = self._folder / "ready"
        _remove(ready)
        ready.mkdir()
        program = ready / "linux"
        shutil.copy2(self._tree / "linux", program)
        shutil.copy2(self._tree / ".config", ready / "config")
        shutil.copy2(self._log, ready / "build.log")
        headers.pack(self._tree, ready / headers.FILE, environment())
        facts = {
            "format": FORMAT,
            "version": version,
            "config_hash": config.digest(),
            "build": build,
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
        name = self._request.name
        if name is not None:
            facts |= {
                "name": name, "changes": _changes(self._request), "left_out": self._left_out,
            }  # fmt: skip
        (ready / "build.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        destination = cache_folder() / "-".join(filter(None, (version, name, build)))
        # A name belongs to one kernel.
        replaced = [destination] if destination.exists() else []
        replaced += [kernel.folder for kernel in built() if name and kernel.name == name]
        for number, folder in enumerate(dict.fromkeys(replaced)):
            # Running guests keep the file from which they were started.
            folder.rename(self._folder / f"old-{number}")
        ready.rename(destination)
        shutil.rmtree(self._folder, ignore_errors=True)
        return BuiltKernel(destination, facts)


def _alone(folder: Path) -> AbstractContextManager[None]:
    """Lock the build folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "another jostle is building this kernel"
    return locked_folder(folder, lambda holder: BuildError(f"{text}: {holder}"))


def environment() -> dict[str, str]:
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
