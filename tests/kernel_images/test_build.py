"""Building a kernel: what is left of each way it can go."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest
from fake_toolchain import VERSION, FakeToolchain, write_program
from jostle.backends.kernel import KernelBackend
from jostle.errors import InputError, JostleError
from jostle.kernel_images import (
    build,
    config,
    debian,
    image_paths,
    kernel_source,
    source_patches,
    toolchain,
    verify,
)
from jostle.kernel_images.build import BuildError, Request
from jostle.kernel_images.kernel_source import SourceError
from jostle.kernel_images.verify import UnfitKernelError
from jostle.safe_io import folder_lock
from jostle.scenario import Scenario


class Heard:
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.counts: list[tuple[int, int]] = []
        self.lines: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text.split(maxsplit=1)[0])

    def line(self, text: str) -> None:
        self.lines.append(text)

    def compiled(self, done: int, expected: int) -> None:
        self.counts.append((done, expected))


def carry_out(**wishes: object) -> tuple[image_paths.BuiltKernel, Heard]:
    heard = Heard()
    return build.build(Request(**wishes), heard), heard  # type: ignore[arg-type]


def makes(tools: FakeToolchain) -> list[str]:
    return [call.split()[2] for call in tools.calls]


def test_a_build_ends_in_the_cache(tools: FakeToolchain, cache: Path) -> None:
    done, heard = carry_out(jobs=3)
    assert heard.steps == ["fetching", "extracting", "configuring", "compiling", "booting"]
    assert heard.counts == [(1, 1310), (2, 1310), (3, 1310), (4, 1310)]
    assert tools.calls[-2:] == ["make ARCH=um linux -j3", "make ARCH=um modules_prepare"]
    assert done.folder == cache / f"{VERSION}-{config.digest()}"
    assert {path.name for path in done.folder.iterdir()} == {
        "linux", "config", "build.json", "build.log", "headers.tar.xz",
    }  # fmt: skip
    facts = json.loads((done.folder / "build.json").read_text())
    assert facts["version"] == VERSION
    assert facts["compiler"] == "gcc (Fake) 1.2.3"
    assert facts["config_hash"] == config.digest()
    digest = hashlib.sha256(tools.package.read_bytes()).hexdigest()
    assert Path(facts["source"]["file"]).name == tools.package.name
    assert facts["source"]["sha256"] == digest
    assert image_paths.find("virtual") == done.image
    assert sorted(path.name for path in (cache / ".work").iterdir()) == ["6.1.lock"]


def test_a_second_call_finds_it(tools: FakeToolchain) -> None:
    first, _ = carry_out()
    calls = len(tools.calls)
    second, heard = carry_out()
    assert second.folder == first.folder
    assert (heard.steps, len(tools.calls)) == ([], calls)


def test_force_replaces_it_and_knows_how_long_it_takes(tools: FakeToolchain) -> None:
    first, _ = carry_out()
    (first.folder / "linux").write_text("old")
    second, heard = carry_out(force=True)
    assert heard.steps[:2] == ["fetching", "extracting"]
    assert heard.counts[-1] == (4, 4)
    assert (second.folder / "linux").read_text() != "old"


def test_force_begins_from_the_start(tools: FakeToolchain, cache: Path) -> None:
    tools.make("broken")
    with pytest.raises(BuildError):
        carry_out()
    tools.make("good")
    _, heard = carry_out(force=True)
    assert heard.steps == ["fetching", "extracting", "configuring", "compiling", "booting"]


def test_a_failed_compilation_names_the_error_and_the_log(
    tools: FakeToolchain, cache: Path
) -> None:
    tools.make("broken")
    with pytest.raises(BuildError) as failed:
        carry_out()
    text = str(failed.value)
    log = cache / ".work" / "6.1" / "build.log"
    assert "status 2" in text
    assert "error: expected ';'" in text
    assert "CC " not in text
    assert text.endswith(f"the whole log: {log}")
    assert log.is_file()
    assert image_paths.built() == []
    tools.make("good")
    _, heard = carry_out()
    assert heard.steps == ["fetching", "compiling", "booting"]


def test_what_was_compiled_before_counts(tools: FakeToolchain) -> None:
    tools.make("broken")
    with pytest.raises(BuildError):
        carry_out()
    tools.make("good")
    _, heard = carry_out()
    assert heard.counts[-1] == (4, 1310)


def test_a_refused_option_is_named(tools: FakeToolchain) -> None:
    tools.make("refuse")
    with pytest.raises(BuildError, match="cannot be configured as needed: IFB on is refused"):
        carry_out()
    assert "linux" not in makes(tools)


def test_other_options_are_configured_anew(
    tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.make("broken")
    with pytest.raises(BuildError):
        carry_out()
    tools.make("good")
    monkeypatch.setattr(config, "digest", lambda: "0123456789ab")
    done, heard = carry_out()
    assert heard.steps == ["fetching", "configuring", "compiling", "booting"]
    assert done.folder.name == f"{VERSION}-0123456789ab"


def test_no_kernel_after_all(tools: FakeToolchain) -> None:
    tools.make("empty")
    with pytest.raises(BuildError, match="left no kernel"):
        carry_out()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("echo 'Kernel panic - not syncing'; exit 134", r"boot(.|\n)*status 134(.|\n)*panic"),
        ("sleep 60", "time is not virtual"),
        ("echo nothing", "its first program failed"),
        (
            "echo version x; echo controllers reno cubic; echo before 0; echo after 1800.1; "
            "echo random 7",
            "lacks the congestion controls bbr, bbr_415, bic",
        ),
        (
            "echo version x; echo controllers reno cubic; echo before 0; echo after 1800.1; "
            'echo "random $$"',
            "same random numbers from the same seed",
        ),
        (
            "echo version x; echo controllers reno; echo before 0; echo after 10; echo random 7",
            "clock is wrong",
        ),
    ],
)
def test_a_kernel_that_is_not_fit_is_not_installed(
    tools: FakeToolchain,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    message: str,
) -> None:
    if behaviour.startswith("sleep"):
        monkeypatch.setattr(verify, "_TIMEOUT_S", 0.5)
    tools.kernel(behaviour)
    with pytest.raises(UnfitKernelError, match=message) as unfit:
        carry_out()
    assert unfit.value.exit_status == 1
    assert "nothing was installed" in str(unfit.value)
    assert image_paths.built() == []


@pytest.mark.parametrize(
    ("version", "architecture", "message"),
    [
        ("6.12.5", "um", r"is that of Linux 6\.12\.5, not 6\.1"),
        ("6.1.9", "x86", "does not hold that of a Linux kernel"),
    ],
)
def test_the_wrong_source(
    tools: FakeToolchain, version: str, architecture: str, message: str
) -> None:
    tools.source(version, architecture)
    with pytest.raises(SourceError, match=message) as wrong:
        carry_out()
    assert wrong.value.exit_status == 2
    assert tools.calls == []


def test_a_damaged_tarball(tools: FakeToolchain, cache: Path) -> None:
    tools.tarball.write_bytes(tools.tarball.read_bytes()[:200])
    tools.publish()
    with pytest.raises(SourceError, match="cannot be extracted"):
        carry_out()
    assert not (cache / ".work" / "6.1" / "source").exists()
    tools.source()
    assert carry_out()[0].version == VERSION


def test_a_tarball_of_ones_own(tools: FakeToolchain, tmp_path: Path) -> None:
    own = tmp_path / "own.tar.xz"
    tools.tarball.rename(own)
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    with pytest.raises(SourceError, match=r"`sha256sum \S*/own\.tar\.xz` .* add --sha256 DIGEST"):
        carry_out(archive=own)
    with pytest.raises(SourceError, match=f"has the SHA-256 {digest}, not {'0' * 64}"):
        carry_out(archive=own, sha256="0" * 64)
    assert tools.calls == []
    done, _ = carry_out(archive=own, sha256=digest.upper())
    assert done.facts["source"]["file"] == str(own)
    assert tools.apt_calls == []
    with pytest.raises(SourceError, match=r"cannot read the source .*absent"):
        carry_out(archive=tmp_path / "absent", sha256=digest, force=True)


def test_a_package_of_ones_own(tools: FakeToolchain, tmp_path: Path) -> None:
    """As it is copied to a machine that has no network."""
    own = tmp_path / tools.package.name
    tools.package.rename(own)
    digest = hashlib.sha256(own.read_bytes()).hexdigest()
    done, heard = carry_out(archive=own, sha256=digest)
    assert done.facts["source"]["sha256"] == digest
    assert heard.steps[0] == "extracting"


def test_a_package_that_the_lists_do_not_have(tools: FakeToolchain, cache: Path) -> None:
    with tools.package.open("ab") as package:
        package.write(b"more")
    with pytest.raises(
        debian.PackageError, match="which apt's signed lists do not have"
    ) as refused:
        carry_out()
    assert refused.value.exit_status == 2
    assert list((cache / ".work" / "6.1").glob("*.deb")) == []


def test_an_installed_source_is_not_trusted(tools: FakeToolchain) -> None:
    """Neither are the digests of its package, which whoever exchanges the source exchanges, too."""
    tools.package.unlink()
    with pytest.raises(debian.PackageError) as refused:
        carry_out()
    text = str(refused.value)
    assert "E: Failed to fetch the package" in text
    assert f"--source {tools.tarball} --sha256 DIGEST, where `sha256sum {tools.tarball}`" in text
    tools.tarball.unlink()
    with pytest.raises(debian.PackageError, match="reaches its package sources"):
        carry_out()


def test_a_package_is_downloaded_once(tools: FakeToolchain, cache: Path) -> None:
    tools.make("broken")
    for _ in range(2):
        with pytest.raises(BuildError):
            carry_out()
    assert len(tools.apt_calls) == 1
    # Somebody exchanges it meanwhile.
    with (cache / ".work" / "6.1" / tools.package.name).open("ab") as package:
        package.write(b"more")
    tools.make("good")
    carry_out()
    assert len(tools.apt_calls) == 2


@pytest.mark.parametrize("may_update", [False, True])
def test_lists_are_updated_if_that_is_allowed(tools: FakeToolchain, may_update: bool) -> None:
    write_program(
        tools.programs / "apt-get",
        '#!/bin/sh\nhere=${0%/*}; echo "$*" >>"$here/apt"; PATH=/usr/bin:/bin\n'
        'case "$1" in update) : >"$here/lists" ;; esac\n'
        '[ -e "$here/lists" ] || { echo "E: Unable to locate package $4"; exit 100; }\n'
        '[ "$1" = update ] || cp "$here"/repository/*.deb .\n',
    )
    if may_update:
        carry_out(may_update=True)
    else:
        with pytest.raises(debian.PackageError, match=r"no linux-source-6\.1: .*--install"):
            carry_out()
    calls = [call.split()[0] for call in tools.apt_calls]
    assert calls == (["download", "update", "download"] if may_update else ["download"])


def test_a_machine_without_apt(tools: FakeToolchain) -> None:
    (tools.programs / "apt-get").unlink()
    with pytest.raises(debian.PackageError, match=r"no `apt-get` here: .*--source TARBALL"):
        carry_out()


def test_little_room(tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(9e12, 9e12, 2.5e9))
    with pytest.raises(BuildError, match=r"needs 3\.0 GB in .* only 2\.5 GB are free"):
        carry_out()
    assert tools.calls == []


def test_a_disk_that_fills_up_meanwhile(
    tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def extract(_source: kernel_source.Source, folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    monkeypatch.setattr(kernel_source.Source, "extract", extract)
    with pytest.raises(BuildError, match=r"the disk of .* is full"):
        carry_out()
    assert image_paths.built() == []


def test_tar_without_room(tools: FakeToolchain, cache: Path) -> None:
    tar = tools.programs / "tar"
    tar.unlink()
    write_program(tar, "#!/bin/sh\necho 'tar: x: Cannot write: No space left on device'; exit 2\n")
    with pytest.raises(JostleError, match=r"the disk of .* is full") as full:
        carry_out()
    assert full.value.exit_status == 1
    assert not (cache / ".work" / "6.1" / "source").exists()


def test_a_cache_that_cannot_be_written(
    tools: FakeToolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(BuildError, match=r"cannot build in .*Not a directory"):
        carry_out()


def test_unknown_series(tools: FakeToolchain) -> None:
    with pytest.raises(InputError, match=r"6\.5: choose 6\.1 or 6\.12"):
        carry_out(series="6.5")


@pytest.mark.slow
def test_two_builds_at_a_time(
    tools: FakeToolchain, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.make("hang")
    command = "from jostle.cli import status; import sys; sys.exit(status(['setup', 'kernel']))"
    first = subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    try:
        log = cache / ".work" / "6.1" / "build.log"
        until(lambda: log.exists() and "hang.o" in log.read_text())
        monkeypatch.setattr(folder_lock, "PATIENCE_S", 0.1)
        with pytest.raises(BuildError, match=f"another jostle .* by process {first.pid} "):
            carry_out()
        first.terminate()
        assert first.wait(20) == 143
        assert "give the same command again" in first.stderr.read()
    finally:
        first.kill()
        first.stderr.close()
    assert sleeping() == []
    tools.make("good")
    _, heard = carry_out()
    assert heard.steps == ["fetching", "compiling", "booting"]


def test_options_of_the_kernel() -> None:
    text = config.fragment()
    assert config.unmet(text) == []
    assert config.unmet(text.replace("CONFIG_TUN=y\n", "")) == ["TUN on"]
    assert config.unmet(text.replace("CONFIG_TUN=y", "CONFIG_TUN=m")) == ["TUN on"]
    assert config.unmet(text + "CONFIG_AUDIT=y\n") == ["AUDIT off"]


def test_own_queueing_disciplines_are_built_in(
    tools: FakeToolchain, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = config.digest()
    (tmp_path / "sch_own.c").write_text("int own;\n")
    (tmp_path / "own.h").write_text("int own;\n")
    monkeypatch.setattr(config, "MODULE_FOLDER", tmp_path)
    config.digest.cache_clear()
    try:
        assert config.digest() != plain
        tools.make("broken")
        for _ in range(2):
            with pytest.raises(BuildError):
                carry_out()
    finally:
        config.digest.cache_clear()
    schedulers = cache / ".work" / "6.1" / "source" / "net" / "sched"
    assert (schedulers / "Makefile").read_text().count("obj-y += jostle/\n") == 1
    made = (schedulers / "jostle" / "Makefile").read_text()
    copies = [f"tcp_{name}" for name in source_patches.COPIES]
    assert made == "".join(f"obj-y += {name}.o\n" for name in sorted(["sch_own", *copies]))
    for name in ("sch_own.c", "own.h"):
        assert (schedulers / "jostle" / name).read_text() == "int own;\n"


def test_the_kernels_files_are_edited_once(tools: FakeToolchain, cache: Path) -> None:
    tools.make("broken")
    for _ in range(2):
        with pytest.raises(BuildError):
            carry_out()
    tree = cache / ".work" / "6.1" / "source"
    for edit in source_patches.EDITS:
        assert (tree / edit.file).read_text().count(edit.after) == 1, edit
    for name in source_patches.COPIES:
        assert f'"{name}"' in (tree / source_patches.OWN_FOLDER / f"tcp_{name}.c").read_text()


@pytest.mark.parametrize(
    "edit",
    [
        *(edit for edit in source_patches.EDITS if edit.is_needed_without_text),
        *source_patches.COPIES["cubic_415"][1],
        *source_patches.COPIES["bbr_415"][1],
    ],
)
def test_a_source_that_has_moved_on_is_refused(
    tools: FakeToolchain, edit: source_patches.SourcePatch
) -> None:
    tools.source(without=edit.before)
    with pytest.raises(source_patches.PatchContextError) as moved:
        carry_out()
    assert moved.value.exit_status == 2
    assert edit.file in str(moved.value)
    assert tools.calls == []


def test_a_change_that_a_source_has_already_is_left_out(tools: FakeToolchain, cache: Path) -> None:
    (edit,) = (edit for edit in source_patches.EDITS if not edit.is_needed_without_text)
    tools.source(without=edit.before)
    carry_out()
    assert [kernel.version for kernel in image_paths.built()] == [VERSION]
    with pytest.raises(source_patches.PatchContextError, match="2 times"):
        edit.applied_to(2 * edit.before)


def test_edits_of_another_version_are_not_built_upon(
    tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.make("broken")
    with pytest.raises(BuildError):
        carry_out()
    tools.make("good")
    monkeypatch.setattr(source_patches, "EDITS", source_patches.EDITS[:1])
    _, heard = carry_out()
    assert heard.steps[:2] == ["fetching", "extracting"]


def test_what_is_missing_is_named(tools: FakeToolchain) -> None:
    assert toolchain.missing() == []
    (tools.programs / "gcc").unlink()
    (tools.programs / "flex").unlink()
    for name in ("apt-get", "apt-cache"):
        (tools.programs / name).unlink()
    lacking = toolchain.missing()
    assert lacking == ["gcc", "flex"]
    assert "install what your distribution calls them" in toolchain.missing_message(lacking)
    (tools.programs / "apt-get").write_text("#!/bin/sh\n")
    (tools.programs / "apt-get").chmod(0o755)
    command = "apt-get install -y --no-install-recommends gcc flex libc6-dev"
    assert f"as root, run `{command}" in toolchain.missing_message(lacking)


def test_a_compiler_without_the_c_library(tools: FakeToolchain) -> None:
    (tools.programs / "gcc").write_text("#!/bin/sh\nexit 1\n")
    assert toolchain.missing() == ["libc6-dev"]


def test_installing_fetches_lists_of_packages_if_need_be(tools: FakeToolchain) -> None:
    apt = tools.programs / "apt-get"
    apt.write_text(
        '#!/bin/sh\nhere=${0%/*}; echo "$*" >>"$here/apt"\n'
        'case "$1" in update) : >"$here/lists" ;; esac\n'
        '[ -e "$here/lists" ] || { echo "E: Unable to locate package flex"; exit 100; }\n'
    )
    apt.chmod(0o755)
    said: list[str] = []
    toolchain.install(["flex"], said.append)
    calls = [line.split()[0] for line in (tools.programs / "apt").read_text().splitlines()]
    assert calls == ["install", "update", "install"]
    assert said == ["E: Unable to locate package flex"]


def test_installing_fails(tools: FakeToolchain) -> None:
    apt = tools.programs / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: no network'; exit 100\n")
    apt.chmod(0o755)
    with pytest.raises(JostleError, match=r"apt-get install(.|\n)*E: no network"):
        toolchain.install(["flex"], lambda _line: None)


@pytest.mark.parametrize(
    "said",
    [
        "E: Unable to locate package linux-source-6.12",
        "E: Package 'linux-source-6.12' has no installation candidate",
    ],
)
def test_a_source_that_is_not_packaged_is_named(tools: FakeToolchain, said: str) -> None:
    apt = tools.programs / "apt-get"
    apt.write_text(f'#!/bin/sh\n[ "$1" = update ] || {{ echo "{said}"; exit 100; }}\n')
    apt.chmod(0o755)
    expected = r"sources have no linux-source-6\.12: .* --version 6\.12 --source TARBALL --sha256"
    with pytest.raises(debian.PackageError, match=expected):
        carry_out(series="6.12")
    with pytest.raises(toolchain.ToolsMissingError, match=expected):
        toolchain.install(["linux-source-6.12", "flex"], lambda _line: None)
    # Who may not install anything is told the same, if apt has lists of packages.
    cache = tools.programs / "apt-cache"
    cache.write_text('#!/bin/sh\ncase "$3" in linux-source-6.12) exit 100 ;; esac\n')
    cache.chmod(0o755)
    lacking = ["linux-source-6.12", "flex"]
    assert re.search(expected, toolchain.missing_message(lacking))
    cache.write_text("#!/bin/sh\nexit 100\n")
    assert "as root, run `apt-get install" in toolchain.missing_message(lacking)


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("JOSTLE_TEST_KERNEL_BUILD") != "1",
    reason="building a kernel takes minutes: set JOSTLE_TEST_KERNEL_BUILD=1",
)
def test_a_real_build(cache: Path) -> None:
    done, _ = carry_out(jobs=len(os.sched_getaffinity(0)))
    assert done.version.startswith("6.1.")
    assert set(config.expected()) <= set(done.facts["controllers"])
    assert image_paths.image_version(done.folder / "linux") == done.version


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("JOSTLE_TEST_KERNEL_BUILD") != "1",
    reason="building a kernel takes minutes: set JOSTLE_TEST_KERNEL_BUILD=1",
)
def test_linux_is_the_same_without_hooks(
    virtual_kernel: image_paths.Image, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = source_patches.HOOKS
    plain = tuple(edit for edit in source_patches.EDITS if edit not in hooks)
    monkeypatch.setattr(source_patches, "EDITS", plain)
    monkeypatch.setattr(source_patches, "HOOKS", ())
    config.digest.cache_clear()
    try:
        done, _ = carry_out(jobs=len(os.sched_getaffinity(0)))
    finally:
        config.digest.cache_clear()
    flows = [
        {"name": name, "controller": name, "rtt": "40 ms"} for name in ("bbr", "cubic", "westwood")
    ]
    document = {
        "duration": "10 s",
        "bottleneck": {
            "rate": "50 Mbit/s",
            "loss": "0.01 %",
            "queue": {"kind": "drop_tail", "limit": "1 BDP"},
        },
        "flows": flows,
    }
    spec = Scenario.from_dict(document).plan(repeats=1).runs[0].spec
    with_hooks, without = (
        KernelBackend(image=image).run(spec) for image in (virtual_kernel, done.image)
    )
    assert with_hooks.backend_version != without.backend_version
    assert with_hooks.flows.equals(without.flows, null_equal=True)
    assert with_hooks.links.equals(without.links, null_equal=True)


def until(true: object, timeout_s: float = 20.0) -> None:
    assert callable(true)
    end_s = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < end_s, "waited in vain"
        threading.Event().wait(0.02)


def sleeping() -> list[str]:
    """Processes of the fake make that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"300"]:
            found.append(entry.parent.name)
    return found
