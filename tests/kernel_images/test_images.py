"""Where kernels are found, and what is said when they are not."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from fake_toolchain import kernel_script, write_program
from jostle.kernel_images import KernelMissingError, config, find, image_paths, status
from jostle.kernel_images.status import states


def put(cache: Path, version: str, config_hash: str | None = None) -> Path:
    config_hash = config_hash or config.digest()
    folder = cache / f"{version}-{config_hash}"
    folder.mkdir(parents=True)
    write_program(folder / "linux", kernel_script(version=version))
    record(folder, {"version": version, "config_hash": config_hash})
    return folder / "linux"


def record(folder: Path, facts: dict[str, str]) -> None:
    """Write what is recorded of a build."""
    facts["sha256"] = hashlib.sha256((folder / "linux").read_bytes()).hexdigest()
    (folder / "build.json").write_text(json.dumps(facts))


@pytest.fixture
def realtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the distribution's kernel is looked for."""
    monkeypatch.setattr(image_paths, "REALTIME_IMAGE", tmp_path / "linux.uml")
    monkeypatch.setattr(image_paths, "REALTIME_MODULES", tmp_path / "modules")
    monkeypatch.setattr(image_paths, "CPU_FACTS", tmp_path / "cpuinfo")
    return tmp_path / "linux.uml"


def test_none_yet(cache: Path) -> None:
    with pytest.raises(KernelMissingError, match="run `jostle setup kernel`") as missing:
        find("virtual")
    assert missing.value.exit_status == 2
    with pytest.raises(KernelMissingError, match=r"`jostle setup kernel --version 6\.12`"):
        find("virtual", "6.12")


def test_the_series_that_the_simulator_follows_comes_first(cache: Path) -> None:
    put(cache, "6.12.8")
    assert find("virtual").version == "6.12.8"
    put(cache, "6.1.9")
    newest = put(cache, "6.1.10")
    assert find("virtual").path == newest
    assert find("virtual", "6.12").version == "6.12.8"
    assert find("virtual", "6.1").version == "6.1.10"
    assert find("virtual", "6.1.9").version == "6.1.9"


def test_kernels_with_other_options_do_not_count(cache: Path) -> None:
    put(cache, "6.1.9", "0" * 12)
    with pytest.raises(KernelMissingError, match="built by another version of jostle"):
        find("virtual")


@pytest.mark.parametrize(
    "damage", ["linux", "build.json", "pipe", "no json", "no object", "no version"]
)
def test_what_is_not_whole_does_not_count(cache: Path, damage: str) -> None:
    folder = put(cache, "6.1.9").parent
    if damage in {"linux", "build.json"}:
        (folder / damage).unlink()
    elif damage == "pipe":
        (folder / "build.json").unlink()
        os.mkfifo(folder / "build.json")
    else:
        text = {"no json": "{", "no object": "[]", "no version": "{}"}[damage]
        (folder / "build.json").write_text(text)
    assert image_paths.built() == []


def test_one_that_was_built_elsewhere(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache, "6.1.9")
    own = write_program(tmp_path / "own", kernel_script(version="6.7.1"))
    monkeypatch.setenv("JOSTLE_KERNEL", str(own))
    assert find("virtual").path == own
    with pytest.raises(KernelMissingError, match=r"is 6\.7\.1, not 6\.1"):
        find("virtual", "6.1")
    own.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(KernelMissingError, match="is not a User-Mode Linux"):
        find("virtual")


def test_identity_follows_the_content(cache: Path) -> None:
    path = put(cache, "6.1.9")
    first = find("virtual").identity
    assert first == find("virtual").identity
    assert first.startswith("virtual-6.1.9-")
    path.write_text("#!/bin/sh\n")
    record(path.parent, json.loads((path.parent / "build.json").read_text()))
    assert find("virtual").identity != first


def test_realtime(realtime: Path) -> None:
    with pytest.raises(KernelMissingError, match="apt-get install user-mode-linux"):
        find("realtime")
    write_program(realtime, kernel_script(version="6.1.5"))
    with pytest.raises(KernelMissingError, match=r"no modules at .*6\.1\.5"):
        find("realtime")
    modules = realtime.parent / "modules" / "6.1.5"
    modules.mkdir(parents=True)
    with pytest.raises(KernelMissingError, match=r"no modules at .*6\.1\.5"):
        find("realtime")
    (modules / "modules.dep").write_text("")
    assert find("realtime").modules == modules
    with pytest.raises(KernelMissingError, match=r"6\.1\.5, not 6\.12"):
        find("realtime", "6.12")


def test_native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_paths.platform, "release", lambda: "6.1.0-21-amd64")
    monkeypatch.setattr(image_paths.os, "geteuid", lambda: 0)
    assert find("native", "6.1").path is None
    assert find("native").version == "6.1.0-21-amd64"
    with pytest.raises(KernelMissingError, match="runs Linux"):
        find("native", "6.12")
    monkeypatch.setattr(image_paths.os, "geteuid", lambda: 1000)
    with pytest.raises(KernelMissingError, match="as root"):
        find("native")


def test_tools_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_paths, "SYSTEM_PATH", str(tmp_path))
    with pytest.raises(KernelMissingError, match="apt-get install ethtool iproute2"):
        find("virtual")


def test_a_processor_that_the_realtime_kernel_cannot_run_on(realtime: Path) -> None:
    modules = realtime.parent / "modules"
    for version in ("6.1.5", "6.13.2"):
        (modules / version).mkdir(parents=True)
        (modules / version / "modules.dep").write_text("")
    facts = realtime.parent / "cpuinfo"
    facts.write_text("processor\t: 0\nflags\t\t: fpu sse avx512f amx_tile amx_int8\n")
    write_program(realtime, kernel_script(version="6.1.5"))
    with pytest.raises(KernelMissingError, match="its processor has AMX"):
        find("realtime")
    facts.write_text("processor\t: 0\nflags\t\t: fpu sse avx512f\n")
    assert find("realtime").version == "6.1.5"
    facts.write_text("processor\t: 0\nflags\t\t: fpu sse avx512f amx_tile\n")
    write_program(realtime, kernel_script(version="6.13.2"))
    assert find("realtime").version == "6.13.2"


def test_status(cache: Path, realtime: Path) -> None:
    put(cache, "6.1.9")
    put(cache, "6.1.8", "0" * 12)
    kernels = {state.kind: state.to_dict() for state in states()}
    assert list(kernels) == ["virtual", "realtime", "native"]
    assert kernels["virtual"]["available"] is True
    assert kernels["virtual"]["version"] == "6.1.9"
    built = [(kernel["version"], kernel["current"]) for kernel in kernels["virtual"]["built"]]
    assert built == [("6.1.8", False), ("6.1.9", True)]
    assert kernels["realtime"]["available"] is False
    assert "apt-get install user-mode-linux" in kernels["realtime"]["advice"]
    assert "reno" in kernels["native"]["controllers"]


def test_a_machine_without_netem_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_paths.os, "geteuid", lambda: 0)
    for lacking, available in ((["codel"], True), (["netem", "codel"], False)):
        monkeypatch.setattr(status, "_lacking_disciplines", lambda lacking=lacking: lacking)
        native = states()[2].to_dict()
        assert native["available"] is available
        assert native["lacking_disciplines"] == lacking
    assert "lacks sch_netem, without which there are no links" in native["advice"]
