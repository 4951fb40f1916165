"""`jostle setup`: what it prints where, and how it ends."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

import pytest
from fake_toolchain import VERSION, FakeToolchain, write_program
from jostle.cli import status
from jostle.kernel_images import KernelMissingError, image_paths, toolchain

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def jostle(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = status(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_build_and_build_again(jostle: Run, tools: FakeToolchain) -> None:
    code, out, err = jostle("setup", "kernel", "--jobs", "2")
    assert code == 0
    assert out.startswith(f"Linux {VERSION}, built in ")
    assert [line.split()[0] for line in err.splitlines()] == [
        "fetching", "extracting", "configuring", "compiling", "booting",
    ]  # fmt: skip
    code, out, err = jostle("setup", "kernel")
    assert code == 0
    assert f"Linux {VERSION} is there already" in out
    _, _, err = jostle("setup", "kernel", "--force")
    assert "  about 50 % compiled" in err.splitlines()


def test_failures_end_with_1_and_wrong_wishes_with_2(jostle: Run, tools: FakeToolchain) -> None:
    assert jostle("setup", "kernel", "--version", "5.4")[0] == 2
    assert jostle("setup", "kernel", "--jobs", "0")[0] == 2
    assert jostle("setup", "kernel", "--source", "absent.tar.xz")[0] == 2
    tools.make("broken")
    code, out, err = jostle("setup", "kernel")
    assert (code, out) == (1, "")
    assert "error: `make ARCH=um linux -j" in err


def test_without_a_compiler(
    jostle: Run, tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools.programs / "gcc").unlink()
    monkeypatch.setattr(toolchain.os, "geteuid", lambda: 1000)
    write_program(tools.programs / "apt-get", "#!/bin/sh\nexit 1\n")
    code, _, err = jostle("setup", "kernel")
    assert code == 2
    assert "error: not installed: gcc; as root, run `apt-get install -y " in err
    assert tools.calls == []


def test_root_gets_it_installed(
    jostle: Run, tools: FakeToolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    gcc = tools.programs / "gcc"
    gcc.rename(tools.programs / "gcc.away")
    monkeypatch.setattr(toolchain.os, "geteuid", lambda: 0)
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115
    write_program(
        tools.programs / "apt-get",
        "#!/bin/sh\nhere=${0%/*}\n"
        'if [ "$1" = download ]; then /bin/cp "$here"/repository/*.deb .; exit; fi\n'
        '/bin/mv "$here/gcc.away" "$here/gcc"; echo Setting up gcc\n',
    )
    code, _, err = jostle("setup", "kernel", "--no-install")
    assert code == 2
    assert "--install" not in err
    code, _, err = jostle("setup", "kernel")
    assert code == 2, "nobody was there to be asked"
    assert "or add --install" in err
    code, _, err = jostle("setup", "kernel", "--install")
    assert code == 0
    assert "installing what is missing: apt-get install" in err
    assert "  Setting up gcc" in err


def test_a_source_that_is_not_what_it_should_be(jostle: Run, tools: FakeToolchain) -> None:
    own = str(tools.tarball)
    code, _, err = jostle("setup", "kernel", "--source", own)
    assert code == 2
    assert f"`sha256sum {own}`" in err
    code, _, err = jostle("setup", "kernel", "--source", own, "--sha256", "0" * 64)
    assert code == 2
    assert f"not {'0' * 64}" in err
    code, _, err = jostle("setup", "kernel", "--sha256", "0" * 64)
    assert code == 2
    assert "--sha256 is the digest of a --source" in err
    sha256 = hashlib.sha256(tools.tarball.read_bytes()).hexdigest()
    assert jostle("setup", "kernel", "--source", own, "--sha256", sha256.upper())[0] == 0


def test_a_kernel_that_was_changed_does_not_boot(jostle: Run, tools: FakeToolchain) -> None:
    assert jostle("setup", "kernel")[0] == 0
    (kernel,) = image_paths.built()
    with kernel.image.path.open("ab") as program:
        program.write(b"# more\n")
    with pytest.raises(KernelMissingError, match="is not the program that was built"):
        image_paths.find("virtual")


def test_status(jostle: Run, tools: FakeToolchain) -> None:
    code, out, _ = jostle("setup", "status")
    assert code == 0
    assert "jostle setup kernel" in out
    jostle("setup", "kernel")
    code, out, _ = jostle("setup", "status", "--json")
    assert code == 0
    assert json.loads(out)["kernels"][0]["version"] == VERSION
    assert str(VERSION) in jostle("setup", "status")[1]


def test_help_is_instant(jostle: Run) -> None:
    started_s = time.process_time()
    assert jostle("setup", "--help")[0] == 0
    assert jostle("setup", "kernel", "--help")[0] == 0
    assert time.process_time() - started_s < 0.3
