"""Controllers written in Python: the bytes that were digested run, and no others."""

from __future__ import annotations

import importlib.util
import inspect
import json
import pickle
import py_compile
import sys
from collections.abc import Callable
from pathlib import Path

import jostle
import pytest
from jostle.runner.executors import make as make_executor
from jostle.scenario import ScenarioError
from jostle.scenario.python_controllers.loader import create
from jostle.scenario.python_controllers.source_files import DIGEST

SCENARIO = """
duration = "1 s"
[bottleneck]
rate = "10 Mbit/s"
queue = {{ kind = "drop_tail", limit = "1 BDP" }}
[[flows]]
name = "one"
controller = "{controller}"
rtt = "40 ms"
"""
CLASS = """
class Mine:
    def __init__(self):
        self.cwnd = START
        self.ssthresh = None

    def on_ack(self, ack): ...

    def on_congestion_event(self, signal):
        self.ssthresh = 2
"""
MINE = f"from helper import START\n{CLASS}"
EVIL = "open({ran!r}, 'w').close()\nSTART = 10\nclass Mine: ...\n"


def write(folder: Path, files: dict[str, str], controller: str = "mine:Mine") -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # A source of its own for each test: Python imports it once.
        file.write_text(f"{content}\n# {folder}\n", "utf-8")
    path = folder / "scenario.toml"
    path.write_text(SCENARIO.format(controller=controller), "utf-8")
    return path


def specification(path: Path) -> tuple[str, str]:
    """Give the name of a scenario's controller and the digest of its source."""
    (planned,) = jostle.load(path, allow_code=True).plan().runs
    controller = planned.spec["flows"][0]["controller"]
    return controller["name"], controller["parameters"][DIGEST]


def make(path: Path) -> object:
    name, digest = specification(path)
    return create(name, {DIGEST: digest}, 1)


def plant_byte_code(folder: Path, module: str, code: str) -> None:
    (folder / "planted").write_text(code, "utf-8")
    py_compile.compile(
        str(folder / "planted"),
        importlib.util.cache_from_source(str(folder / f"{module}.py")),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def plant_package(folder: Path, module: str, code: str) -> None:
    (folder / module).mkdir()
    (folder / module / "__init__.py").write_text(code, "utf-8")


def plant_extension(folder: Path, module: str, _code: str) -> None:
    # It cannot be loaded: a run that tries fails.
    for suffix in (".abi3.so", importlib.machinery.EXTENSION_SUFFIXES[0]):
        (folder / f"{module}{suffix}").write_bytes(b"\x7fELF")


def plant_byte_code_without_source(folder: Path, module: str, code: str) -> None:
    plant_package(folder, module, "")
    (folder / "planted").write_text(code, "utf-8")
    (folder / module / "__init__.py").unlink()
    py_compile.compile(str(folder / "planted"), str(folder / module / "__init__.pyc"))


@pytest.mark.parametrize("module", ["mine", "helper"])
@pytest.mark.parametrize(
    "plant",
    [plant_byte_code, plant_package, plant_extension, plant_byte_code_without_source],
)
def test_nothing_runs_in_place_of_what_was_read(
    tmp_path: Path, module: str, plant: Callable[[Path, str, str], None]
) -> None:
    path = write(tmp_path, {"mine.py": MINE, "helper.py": "START = 10\n"})
    plant(tmp_path, module, EVIL.format(ran=str(tmp_path / "ran")))
    results = jostle.run(path, allow_code=True)
    assert not results.failures
    assert not (tmp_path / "ran").exists()


def test_byte_code_alone_is_no_module(tmp_path: Path) -> None:
    path = write(tmp_path, {"planted": EVIL.format(ran=str(tmp_path / "ran"))})
    py_compile.compile(str(tmp_path / "planted"), str(tmp_path / "mine.pyc"))
    with pytest.raises(ScenarioError, match='there is no module "mine"'):
        jostle.run(path, allow_code=True)
    assert not (tmp_path / "ran").exists()


def test_a_neighbour_that_is_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("START = 10\n", "utf-8")
    path = write(tmp_path / "theirs", {"mine.py": MINE})
    (tmp_path / "theirs" / "helper.py").symlink_to(tmp_path / "elsewhere.py")
    with pytest.raises(ScenarioError, match=r"helper\.py is a link to .*elsewhere\.py, outside"):
        jostle.load(path, allow_code=True)


def test_a_file_that_changes_after_it_was_read_runs_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, {"mine.py": MINE, "helper.py": "START = 10\n"})
    scenario = jostle.load(path, allow_code=True)
    for name in ("mine.py", "helper.py"):
        (tmp_path / name).write_text(EVIL.format(ran=str(tmp_path / "ran")), "utf-8")
    assert not jostle.run(scenario).failures
    assert not (tmp_path / "ran").exists()


def test_code_travels_with_the_jobs(tmp_path: Path) -> None:
    path = write(tmp_path, {"mine.py": MINE, "helper.py": "START = 10\n"})
    scenario = jostle.load(path, allow_code=True)
    (tmp_path / "mine.py").unlink()
    (tmp_path / "helper.py").write_text(EVIL.format(ran=str(tmp_path / "ran")), "utf-8")
    with make_executor("processes", 1) as executor:
        assert not jostle.run(scenario, executor=executor).failures
    assert not (tmp_path / "ran").exists()


def test_installed_modules_do_not_find_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "installed"
    write(installed, {"outer_module.py": "import inner_module\n", "inner_module.py": "START = 10"})
    monkeypatch.syspath_prepend(installed)
    evil = EVIL.format(ran=str(tmp_path / "ran"))
    files = {"mine.py": "import outer_module\n" + MINE, "helper.py": "START = 10\n"}
    path = write(tmp_path / "theirs", {**files, "inner_module.py": evil})
    assert not jostle.run(path, allow_code=True).failures
    assert sys.modules["outer_module"].inner_module.START == 10
    assert not (tmp_path / "ran").exists()


def test_a_module_like_an_installed_one_is_for_the_folder_alone(tmp_path: Path) -> None:
    files = {"mine.py": MINE.replace("helper", "json"), "json.py": "import numpy\nSTART = 7\n"}
    made = make(write(tmp_path, {**files, "numpy.py": "import time\n", "time.py": "1 / 0\n"}))
    assert made.cwnd == 7  # type: ignore[attr-defined]
    assert sys.modules["json"] is json
    assert "START" not in vars(json)


def test_what_was_not_digested_is_not_found(tmp_path: Path) -> None:
    dynamic = "import importlib\nSTART = importlib.import_module('hidden').START\n"
    evil = EVIL.format(ran=str(tmp_path / "ran"))
    path = write(tmp_path, {"mine.py": MINE, "helper.py": dynamic, "hidden.py": evil})
    with pytest.warns(RuntimeWarning, match="1 runs failed"):
        (failed,) = jostle.run(path, allow_code=True).failures
    assert "No module named 'hidden'" in failed.error
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("controller", "file", "statement"),
    [
        ("mine:Mine", "mine/__init__.py", "from .part import START"),
        ("mine:Mine", "mine.py", "from parts.part import START"),
        ("mine:Mine", "mine.py", "import parts.part\nSTART = parts.part.START"),
        ("mine:Mine", "mine.py", "import parts.part as part\nSTART = part.START"),
        ("mine:Mine", "mine.py", "from .parts import part\nSTART = part.START"),
        ("mine.deep:Mine", "mine/deep.py", "from parts.part import START"),
        ("mine.deep:Mine", "mine/deep.py", "from ..parts.part import START"),
        ("mine.deep:Mine", "mine/deep.py", "from .part import START"),
        ("mine.deep:Mine", "mine/deep.py", "from . import part\nSTART = part.START"),
    ],
)
def test_parts_of_packages_are_digested(
    tmp_path: Path, controller: str, file: str, statement: str
) -> None:
    (tmp_path / "part.py").write_text("1 / 0\n", "utf-8")
    package = "parts" if "parts" in statement else "mine"
    part = f"{package}/part.py"
    path = write(tmp_path, {file: f"{statement}\n{CLASS}", part: "START = 5\n"}, controller)
    made = make(path)
    assert made.cwnd == 5  # type: ignore[attr-defined]
    _, first = specification(path)
    write(tmp_path, {part: "START = 6\n"}, controller)
    _, second = specification(path)
    assert second != first
    # What Python runs before a part of a package.
    with (tmp_path / package / "__init__.py").open("a") as around:
        around.write("# changed\n")
    _, third = specification(path)
    assert third != second


def test_imports_work_while_it_runs(tmp_path: Path) -> None:
    late = MINE.replace("from helper import START\n", "").replace(
        "self.cwnd = START", "from helper import START\n        self.cwnd = START"
    )
    made = make(write(tmp_path, {"mine.py": late, "helper.py": "import mine\nSTART = 6\n"}))
    assert made.cwnd == 6  # type: ignore[attr-defined]


def test_it_pickles_and_shows_the_source_that_runs(tmp_path: Path) -> None:
    path = write(tmp_path, {"mine.py": MINE, "helper.py": "START = 3\n"})
    made = make(path)
    (tmp_path / "mine.py").write_text("# changed\n" * 20, "utf-8")
    assert vars(pickle.loads(pickle.dumps(made))) == vars(made)
    assert inspect.getsource(type(made)).startswith("class Mine:")
    assert inspect.getfile(type(made)) == str(tmp_path.resolve() / "mine.py")


def test_no_byte_code_is_written_into_the_folder(tmp_path: Path) -> None:
    path = write(tmp_path, {"mine.py": MINE, "helper.py": "START = 10\n"})
    make(path)
    assert {file.name for file in tmp_path.iterdir()} == {"mine.py", "helper.py", "scenario.toml"}


def test_code_that_nests_too_deeply_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"mine.py": "x = " + "-" * 100_000 + "1\n"})
    with pytest.raises(ScenarioError, match=r"mine\.py"):
        jostle.load(path, allow_code=True)
