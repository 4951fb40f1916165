"""Kernels with a user's patches, or from a user's tree."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from fake_toolchain import VERSION, FakeToolchain
from jostle.backends.kernel.kernel_controllers import KernelOffer
from jostle.backends.registry import parse_backend
from jostle.cli import status
from jostle.errors import InputError
from jostle.kernel_images import KernelMissingError, build, config, image_paths, source_patches
from jostle.kernel_images.build import Request
from jostle.kernel_images.kernel_source import SourceError

HEADER = "include/net/inet_connection_sock.h"
ROOM = "room for the data of a user's controller"


@pytest.fixture
def patcher(tools: FakeToolchain) -> FakeToolchain:
    """The fake toolchain, with `patch` and `git`."""
    for name in ("patch", "git"):
        path = "/usr/bin:/bin"
        found = shutil.which(name, path=path)
        if found is None:
            pytest.skip(f"no {name} here")
        (tools.programs / name).symlink_to(found)
    return tools


class Silent:
    def step(self, text: str) -> None: ...

    def line(self, text: str) -> None: ...

    def compiled(self, done: int, expected: int) -> None: ...


def carry_out(**wishes: object) -> image_paths.BuiltKernel:
    return build.build(Request(**wishes), Silent())  # type: ignore[arg-type]


def unpacked(tools: FakeToolchain, folder: Path) -> Path:
    """The fake source as a tree."""
    with tarfile.open(tools.tarball) as tar:
        tar.extractall(folder, filter="data")
    return folder / "linux-source-6.1"


def difference(tree: Path, file: str, after: str) -> str:
    before = (tree / file).read_text()
    return "".join(
        difflib.unified_diff(
            before.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}"
        )
    )


def write_patch(tools: FakeToolchain, folder: Path) -> Path:
    """A patch that changes what one of jostle's edits replaces, as that of BBRv3 does."""
    tree = unpacked(tools, folder / "for-patch")
    text = (tree / HEADER).read_text().replace("[104 / sizeof(u64)]", "[144 / sizeof(u64)]")
    patch = folder / "mine.patch"
    patch.write_text(difference(tree, HEADER, text))
    return patch


def test_a_patch_goes_first_and_what_does_not_apply_is_left_out(
    patcher: FakeToolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = carry_out()
    patch = write_patch(patcher, tmp_path)
    words = ["setup", "kernel", "--patch", str(patch), "--name", "mine"]
    assert status(words) == 0
    said = capsys.readouterr().out
    assert f"left out, because it does not apply to this source: {ROOM}" in said
    assert "run it with --backend kernel:mine" in said
    image = image_paths.find("virtual", "mine")
    assert image.path is not None
    facts = json.loads(image.path.with_name("build.json").read_text())
    assert facts["left_out"] == [ROOM]
    assert [one["file"] for one in facts["source"]["patches"]] == [str(patch)]
    assert facts["build"] != facts["config_hash"] == config.digest()
    # No version means the plain kernel, although both have the same.
    assert image_paths.find("virtual") == image_paths.find("virtual", "6.1") == plain.image
    assert parse_backend("kernel:mine") == ("kernel", {"kernel_version": "mine"})
    with pytest.raises(InputError, match="there is virtual, realtime, native, jostle, mine"):
        parse_backend("kernel:yours")
    calls = len(patcher.calls)
    assert status(words) == 0
    assert len(patcher.calls) == calls, "it is there already"
    patch.write_text(patch.read_text() + "\n")
    assert status(words) == 0
    assert len(patcher.calls) > calls, "the patch is another one"
    assert image_paths.names() == ["mine"], "a name stands for one kernel"
    assert status(["setup", "status"]) == 0
    assert f"mine, {VERSION}: " in capsys.readouterr().out


def test_a_patch_that_does_not_apply(patcher: FakeToolchain, tmp_path: Path) -> None:
    patch = write_patch(patcher, tmp_path)
    patch.write_text(patch.read_text().replace("-\tu64", "-\tu32").replace("-icsk", "-other"))
    with pytest.raises(SourceError, match=r"mine.patch does not apply to this kernel:\n.*FAILED"):
        carry_out(patches=(patch,), name="mine")
    assert image_paths.names() == []
    with pytest.raises(SourceError, match="cannot read the source"):
        carry_out(patches=(tmp_path / "absent",), name="mine")


def test_a_copy_that_does_not_compile_is_left_out(patcher: FakeToolchain, tmp_path: Path) -> None:
    patcher.make("no-copy")
    done = carry_out(patches=(write_patch(patcher, tmp_path),), name="mine")
    assert done.facts["left_out"] == [ROOM, "bbr_415"]
    compiled = [call.split()[2] for call in patcher.calls if call.endswith(".o")]
    assert compiled == [f"net/sched/jostle/tcp_{name}.o" for name in sorted(source_patches.COPIES)]


def test_one_hook_without_a_place_leaves_out_all(patcher: FakeToolchain, tmp_path: Path) -> None:
    tree = unpacked(patcher, tmp_path / "tree")
    file = tree / "net/ipv4/tcp_rate.c"
    file.write_text(file.read_text().replace("rs->last_end_seq", "rs->last_seq"))
    done = carry_out(tree=tree, name="theirs")
    assert done.facts["left_out"] == [source_patches.WITHOUT_HOOKS]
    assert KernelOffer(done.image).without_jostle == (
        "the source of the kernel theirs has no place for the hooks for jostle's controllers"
    )
    # Each of them would not compile without the others.
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy)
    source_patches.apply(copy, is_foreign=True)
    for hook in source_patches.HOOKS:
        assert hook.after not in (copy / hook.file).read_text()


@pytest.mark.parametrize("has_git", [True, False])
def test_a_tree(patcher: FakeToolchain, tmp_path: Path, has_git: bool) -> None:
    tree = unpacked(patcher, tmp_path / "tree")
    (tree / "Makefile").write_text("VERSION = 5\nPATCHLEVEL = 19\nSUBLEVEL = 0\n")
    (tree / "net/ipv4/tcp_bbr.c").write_text("/* another BBR */\n")
    if has_git:
        subprocess.run(["git", "init", "-q", str(tree)], check=True)
        (tree / ".gitignore").write_text("*.o\n")
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    done = carry_out(tree=tree, name="theirs")
    assert done.version == "5.19.0"
    assert done.facts["left_out"] == ["bbr_415"]
    assert "make ARCH=um mrproper" in patcher.calls
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
    calls = len(patcher.calls)
    (tree / "net" / "old.o").write_bytes(b"an object")
    again = carry_out(tree=tree, name="theirs")
    assert (len(patcher.calls) == calls) == has_git, "Git ignores objects"
    (tree / "net" / "new.c").write_text("int x;\n")
    changed = carry_out(tree=tree, name="theirs")
    assert changed.facts["build"] != again.facts["build"]
    assert image_paths.names() == ["theirs"]
    assert changed.options == f"--source {tree} --name theirs"


def test_a_tree_on_the_command_line(
    patcher: FakeToolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = unpacked(patcher, tmp_path / "tree")
    words = ["setup", "kernel", "--source", str(tree)]
    assert status(words) == 2
    assert "--source DIR needs a --name" in capsys.readouterr().err
    assert status([*words, "--name", "theirs", "--sha256", "0" * 64]) == 2
    assert "--source is a folder" in capsys.readouterr().err
    assert status([*words, "--name", "theirs"]) == 0
    assert image_paths.names() == ["theirs"]


def test_options_that_a_tree_does_not_have(patcher: FakeToolchain, tmp_path: Path) -> None:
    tree = unpacked(patcher, tmp_path / "tree")
    # The fake `make` takes CONFIG_IFB out of the configuration.
    patcher.make("refuse")
    assert "IFB on" in carry_out(tree=tree, name="theirs").facts["left_out"]
    (tree / "net" / "Kconfig").write_text("config IFB\n\tbool\n")
    with pytest.raises(build.BuildError, match="IFB on is refused"):
        carry_out(tree=tree, name="theirs")


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"patches": (Path("a"),)}, "needs a --name"),
        ({"tree": Path("a")}, "needs a --name"),
        ({"name": "mine"}, "--name is for a kernel with your"),
        ({"tree": Path("a"), "name": "realtime"}, "none of virtual, realtime, native"),
        ({"tree": Path("a"), "name": "6.1"}, "beginning with a letter"),
        ({"tree": Path("a"), "name": "../up"}, "beginning with a letter"),
        ({"tree": Path("/absent"), "name": "mine"}, "there is no folder /absent"),
    ],
)
def test_wishes_that_do_not_fit(
    patcher: FakeToolchain, wishes: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        carry_out(**wishes)
    assert patcher.calls == []


def test_a_changed_kernel_of_another_version_says_how_to_build_it(
    patcher: FakeToolchain, tmp_path: Path
) -> None:
    patch = write_patch(patcher, tmp_path)
    done = carry_out(patches=(patch,), name="mine")
    facts = {**done.facts, "config_hash": "another"}
    (done.folder / "build.json").write_text(json.dumps(facts))
    again = f"--patch {patch} --version 6.1 --name mine"
    with pytest.raises(KernelMissingError, match=f"`jostle setup kernel {again}`"):
        image_paths.find("virtual", "mine")
