"""The real apt-get with folders and packages that no other program uses."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from jostle.kernel_images import debian

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("apt-get", "apt-cache", "dpkg-deb")),
    reason="needs Debian's apt-get and dpkg-deb",
)

HOLD = """
import fcntl, sys
files = [open(name, "w") for name in sys.argv[1:]]
for file in files:
    fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Machine:
    """A machine whose only package is a kernel's source."""

    folder: Path

    @property
    def package(self) -> Path:
        return self.folder / "repository" / "linux-source-6.1_6.1.5-1_all.deb"

    @property
    def lists(self) -> Path:
        return self.folder / "state" / "lists"

    def trust(self, option: str) -> None:
        """Give the source of packages an option: it has no signature."""
        text = f"deb [{option}] file:{self.folder}/repository ./\n"
        (self.folder / "etc" / "sources.list").write_text(text)
        assert debian.run_apt(["update"], print)[0] == 0

    @contextmanager
    def locked(self, *files: Path) -> Iterator[subprocess.Popen[str]]:
        """Let another process lock files, as apt does."""
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            yield process
            process.kill()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    for name in ("repository", "etc", "state/lists/partial", "cache/archives/partial", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "status").touch()
    configuration = tmp_path / "apt.conf"
    folders = {"State": "state", "State::status": "status", "Cache": "cache", "Etc": "etc"}
    lines = [f'Dir::{key} "{tmp_path / name}";\n' for key, name in folders.items()]
    # A machine that is set up carelessly.
    lines.append('APT::Get::AllowUnauthenticated "true";\nAPT::Sandbox::User "root";\n')
    configuration.write_text("".join(lines))
    monkeypatch.setenv("APT_CONFIG", str(configuration))
    content = tmp_path / "content"
    (content / "DEBIAN").mkdir(parents=True, mode=0o755)
    control = (
        "Package: linux-source-6.1\nVersion: 6.1.5-1\nArchitecture: all\n"
        "Maintainer: Nobody <nobody@example.org>\nDescription: a source\n"
    )
    (content / "DEBIAN" / "control").write_text(control)
    (content / "usr" / "src").mkdir(parents=True)
    (content / "usr" / "src" / "linux-source-6.1.tar.xz").write_text("the source")
    subprocess.run(
        ["dpkg-deb", "--build", "--root-owner-group", content, made.package],
        check=True,
        capture_output=True,
    )
    data = made.package.read_bytes()
    (tmp_path / "repository" / "Packages").write_text(
        f"{control}Filename: ./{made.package.name}\nSize: {len(data)}\n"
        f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
    )
    return made


def fetched(machine: Machine) -> Path:
    return debian.fetch_source("6.1", machine.folder / "work", print, may_update=False)


def test_the_source_is_in_the_package(machine: Machine) -> None:
    machine.trust("trusted=yes")
    package = fetched(machine)
    assert package.read_bytes() == machine.package.read_bytes()
    tarball = debian.unpack_source(package, machine.folder / "unpacked")
    assert tarball.read_text() == "the source"


def test_a_package_without_signature_is_refused(machine: Machine) -> None:
    machine.trust("allow-insecure=yes")
    with pytest.raises(debian.PackageError, match="could not be authenticated"):
        fetched(machine)


def test_a_package_that_was_exchanged_is_refused(machine: Machine) -> None:
    machine.trust("trusted=yes")
    data = bytearray(machine.package.read_bytes())
    data[-1] ^= 1
    machine.package.write_bytes(data)
    with pytest.raises(debian.PackageError, match=r"Hash Sum mismatch|unexpected size"):
        fetched(machine)
    assert list((machine.folder / "work").glob("*.deb")) == []


@pytest.mark.parametrize("name", ["lists", "archives"])
def test_a_lock_of_another_program_is_waited_for(
    name: str, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.trust("trusted=yes")
    archives = machine.folder / "cache" / "archives"
    # What `apt-get install` locks for its downloads, and what `update` locks.
    arguments = ["update"] if name == "lists" else ["clean"]
    lock = (machine.lists if name == "lists" else archives) / "lock"
    monkeypatch.setattr(debian, "_LOCK_POLL_S", 0.05)
    said: list[str] = []
    with machine.locked(lock) as other:
        threading.Timer(1.5, other.kill).start()
        began_s = time.monotonic()
        status, _ = debian.run_apt(arguments, said.append)
        took_s = time.monotonic() - began_s
    assert status == 0, said
    assert took_s > 1.4
    waiting = [line for line in said if "Could not get lock" in line]
    assert len(waiting) == 1
    assert waiting[0].startswith(f"waiting for up to 10 minutes: E: Could not get lock {lock}")
    assert str(other.pid) in waiting[0]


def test_the_wait_for_a_lock_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.trust("trusted=yes")
    monkeypatch.setattr(debian, "_LOCK_POLL_S", 0.05)
    monkeypatch.setattr(debian, "_LONGEST_LOCK_S", 0.6)
    with machine.locked(machine.lists / "lock"):
        status, said = debian.run_apt(["update"], print)
    assert status == 100
    assert "Could not get lock" in "\n".join(said)


def test_scripts_of_ci_wait_for_a_lock(machine: Machine) -> None:
    machine.trust("trusted=yes")
    script = Path(__file__).parents[2] / ".ci" / "apt-get"
    environment = {**os.environ, "JOSTLE_APT_POLL_S": "0.1"}
    with machine.locked(machine.lists / "lock") as other:
        threading.Timer(1.5, other.kill).start()
        done = subprocess.run(
            [script, "update"], capture_output=True, text=True, env=environment, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("waiting until apt is free") == 1
    with machine.locked(machine.lists / "lock"):
        done = subprocess.run(
            [script, "update"],
            capture_output=True,
            text=True,
            env=environment | {"JOSTLE_APT_WAIT_S": "1"},
            check=False,
        )
    assert done.returncode == 100
    assert "Could not get lock" in done.stderr


def test_scripts_of_ci_do_not_wait_for_other_failures(machine: Machine) -> None:
    script = Path(__file__).parents[2] / ".ci" / "apt-get"
    done = subprocess.run(
        [script, "install", "no-such-package"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 100
    assert "waiting" not in done.stderr
