"""Programs of other people's QUIC: where they are looked for, how they are built, what is said."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from jostle import cli
from jostle.errors import InputError
from jostle.quic import build, find_program, folder, program_paths, search_path, status
from jostle.quic import recipes as implementations
from jostle.quic.build import ProgramsBuildError
from jostle.quic.recipes import PLACES, VALUES, BuildRecipe, Recipe, recipes, unknown_placeholders

Run = Callable[..., tuple[int, str, str]]

# What a compiler does here: it says something and leaves both programs, or fails.
MAKES = """echo "compiling in $(basename "$PWD"), $COLOUR"
mkdir -p {into}/bin
cp main.txt {into}/bin/theirs-server
cp main.txt {into}/bin/theirs-client
chmod +x {into}/bin/theirs-*"""


def recipe_of(command: str, needs: dict[str, str] | None = None) -> Recipe:
    return Recipe(
        title="theirs 1.2.3",
        server=["theirs-server"],
        client=["theirs-client"],
        controllers={"reno": "NewReno"},
        install="run `jostle setup quic theirs`",
        build=BuildRecipe(
            needs={"sh": "a shell"} if needs is None else needs,
            command=["sh", "-c", command],
            takes="a moment",
            environment={"COLOUR": "blue"},
        ),
    )


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Recipe], None]:
    """Let there be nothing but a recipe `theirs`, an empty cache, and sources of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(program_paths, "_SOURCES", tmp_path / "sources")
    (tmp_path / "sources" / "theirs").mkdir(parents=True)
    (tmp_path / "sources" / "theirs" / "main.txt").write_text("#!/bin/sh\necho first\n")

    def know(recipe: Recipe) -> None:
        for module in (implementations, program_paths, build, status):
            monkeypatch.setattr(module, "recipes", lambda: {"theirs": recipe})

    return know


@pytest.fixture
def jostle(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.status(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_recipes_are_whole():
    for name, recipe in recipes().items():
        words = [*recipe.server, *recipe.client]
        assert list(unknown_placeholders(words)) == [], name
        assert recipe.controllers, name
        # What is measured depends on both: docs/howto/run-on-linux.md.
        assert any("{qlog}" in word for word in recipe.server), name
        assert not any("{qlog}" in word for word in recipe.server_without_qlog), name
        assert any("{downloads}" in word for word in recipe.client), name
        if recipe.build is None:
            continue
        assert recipe.install == f"run `jostle setup quic {name}`"
        made = [*recipe.build.command, *recipe.build.environment.values()]
        assert set(unknown_placeholders(made)) <= {"into", "work"}, name
        assert not {"into", "work"} & {*VALUES, *PLACES}


def test_versions_are_pinned():
    for name, recipe in recipes().items():
        if recipe.build is None:
            continue
        ours = program_paths.sources(name)
        if ours is None:
            assert "--version" in recipe.build.command
            version = recipe.build.command[recipe.build.command.index("--version") + 1]
        elif (ours / "go.mod").exists():
            assert (ours / "go.sum").stat().st_size > 0
            pinned = (ours / "go.mod").read_text()
            version = pinned.partition(f"/{name} v")[2].split()[0]
        else:
            assert (ours / "Cargo.lock").stat().st_size > 0
            pinned = (ours / "Cargo.toml").read_text()
            version = pinned.partition('version = "=')[2].partition('"')[0]
        assert version in recipe.title, name


def test_what_is_built_is_found_before_the_systems(theirs):
    theirs(recipe_of(MAKES))
    assert find_program("theirs", "theirs-server") is None
    said: list[str] = []
    there = build.build("theirs", said.append)
    assert said == ["compiling in sources, blue"]
    assert find_program("theirs", "theirs-server") == str(there / "bin" / "theirs-server")
    assert search_path("theirs").startswith(f"{there}/bin:/usr/local/sbin:")
    assert search_path("another") == program_paths.SYSTEM_PATH
    # Nothing else is left, and nothing is built twice.
    assert [path.name for path in there.parent.iterdir() if path.name != ".work"] == [there.name]
    assert [path.suffix for path in (there.parent / ".work").iterdir()] == [".lock"]
    build.build("theirs", said.append)
    assert len(said) == 1
    build.build("theirs", said.append, anew=True)
    assert len(said) == 2


def test_other_sources_are_another_folder(theirs, tmp_path):
    theirs(recipe_of(MAKES))
    before = folder("theirs")
    (tmp_path / "sources" / "theirs" / "main.txt").write_text("#!/bin/sh\necho second\n")
    assert folder("theirs") != before
    theirs(recipe_of(f"true; {MAKES}"))
    assert folder("theirs") not in (before, None)
    assert folder("absent") is None


def test_what_cannot_be_built(theirs):
    theirs(recipe_of("echo no; echo such module; exit 7"))
    with pytest.raises(ProgramsBuildError, match=r"failed with status 7:\n  no\n  such module"):
        build.build("theirs", lambda _line: None)
    theirs(recipe_of("true"))
    with pytest.raises(ProgramsBuildError, match="`sh` made no theirs-server, theirs-client"):
        build.build("theirs", lambda _line: None)
    theirs(recipe_of(MAKES, {"no-such-compiler": "Whatever 1.2 or later"}))
    with pytest.raises(InputError, match=r"without `no-such-compiler`: install Whatever 1\.2"):
        build.build("theirs", lambda _line: None)
    with pytest.raises(InputError, match="there is no recipe `mine`: there are theirs"):
        build.build("mine", lambda _line: None)


def test_what_failed_can_be_built_later(theirs):
    # What was compiled stays; half of a result does not.
    theirs(recipe_of("mkdir -p {into}/bin {work}/target; touch {into}/bin/half; exit 1"))
    with pytest.raises(ProgramsBuildError):
        build.build("theirs", lambda _line: None)
    (work,) = (
        path for path in (program_paths.programs_folder() / ".work").iterdir() if path.is_dir()
    )
    assert (work / "target").is_dir()
    theirs(recipe_of(MAKES))
    there = build.build("theirs", lambda _line: None)
    assert sorted(path.name for path in (there / "bin").iterdir()) == [
        "theirs-client", "theirs-server",
    ]  # fmt: skip


def test_the_command_builds_and_tells(jostle, theirs):
    theirs(recipe_of(MAKES))
    code, out, _ = jostle("setup", "status", "--json")
    document = json.loads(out)
    assert document["schema"] == "jostle.setup/1"
    (state,) = document["implementations"]
    assert (code, state["available"]) == (0, False)
    assert state["advice"] == "run `jostle setup quic theirs` (a moment, once; it needs a shell)"
    code, out, err = jostle("setup", "quic", "theirs")
    assert code == 0
    assert out.startswith("theirs, built in 0.0 min: ")
    assert err == "  compiling in sources, blue\n"
    assert "theirs is there already" in jostle("setup", "quic", "theirs")[1]
    (state,) = json.loads(jostle("setup", "status", "--json")[1])["implementations"]
    assert state["available"]
    assert state["server"].endswith("/bin/theirs-server")
    assert "yes" in jostle("setup", "status")[1]


def test_the_command_says_what_is_wrong(jostle, theirs):
    code, _, err = jostle("setup", "quic", "nobody")
    assert code == 2
    assert "there is no recipe `nobody`" in err
    theirs(recipe_of("echo oh; exit 1"))
    code, _, err = jostle("setup", "quic", "theirs")
    assert code == 1
    assert err.endswith("failed with status 1:\n  oh\n")


def test_what_comes_with_a_package_is_not_built(jostle):
    code, _, err = jostle("setup", "quic", "ngtcp2")
    assert code == 2
    assert "not built but installed: on Debian: apt-get install ngtcp2-server" in err


@pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is missing")
def test_rust_is_formatted():
    own = Path(program_paths.__file__).parent / "sources"
    files = [str(path) for path in own.glob("*/src/*.rs")]
    command = ["rustfmt", "--check", "--edition", "2024", *files]
    done = subprocess.run(command, cwd=own, capture_output=True, text=True, check=False)
    assert (bool(files), done.stdout) == (True, "")


@pytest.mark.skipif(shutil.which("gofmt") is None, reason="gofmt is missing")
def test_go_is_formatted():
    own = Path(program_paths.__file__).parent / "sources" / "quic-go"
    done = subprocess.run(["gofmt", "-l", str(own)], capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_the_guide_lists_every_placeholder() -> None:
    guide = (Path(__file__).parents[1] / "docs/howto/run-on-linux.md").read_text("utf-8")
    (table,) = re.findall(r"\| Placeholder \|.*?\n\n", guide, re.DOTALL)
    assert sorted(re.findall(r"`\{([a-z]+)\}`", table)) == sorted((*VALUES, *PLACES))
