"""What ARCHITECTURE.md promises: who may import whom, what is loaded when, how long a file is."""

from __future__ import annotations

import ast
import functools
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from import_circles import circle, python_graph, rust_graph

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "jostle"
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))

# From the bottom up: a crate may use the crates that are named beside it.
CRATE_MAY_USE = {
    "units": "",
    "registry": "units",
    "congestion": "units registry",
    "controllers": "units registry congestion",
    "link": "units registry",
    "tcp": "units congestion",
    "qlog": "units",
    "quic": "units congestion qlog",
    "run-spec": "units registry congestion controllers link",
    "traffic": "units run-spec",
    "metrics": "units link run-spec traffic",
    "pcap": "units link run-spec metrics",
    "pcap-analysis": "units run-spec metrics",
    "sim": "units registry congestion controllers link tcp quic run-spec traffic metrics pcap",
    "forwarding": "units link run-spec metrics",
    "testkit": "units registry link run-spec metrics pcap qlog forwarding",
    "testkit-c": "testkit",
    "emulator": "units run-spec metrics forwarding",
    "kernel-bridge": "units registry congestion controllers",
    "controller-library": "units registry congestion run-spec kernel-bridge",
    "quic-endpoint": "units congestion quic run-spec traffic sim controller-library",
    "toml-lines": "",
    "python-bindings": "units toml-lines registry congestion controllers link run-spec traffic "
    "metrics pcap pcap-analysis sim forwarding testkit emulator quic-endpoint controller-library",
}
USES_POINTERS = {"kernel-bridge", "controller-library", "testkit-c"}
"""The crates with a C interface: all others forbid unsafe code."""
TESTS_MAY_USE = {"tcp": "controllers", "quic": "controllers registry"}
"""Crates that only the tests of a crate use: a transport is tested with an algorithm."""
# From the bottom up. A package may import packages of lower layers and, within its layer, the
# packages to its left.
LAYERS = (
    "_core errors first_use run_spec safe_io stats",
    "kernel_images controller_crates quic scenario",
    "gym emulate testkit backends",
    "figures results store runner",
    "fidelity measurements report programs inference studies suites parameter_search",
    "cli api",
)
PACKAGE_ORDER = " ".join(LAYERS).split()

MAX_FOLDER_LEVELS = 3
"""Folders below `python/jostle` or below the `src` of a crate."""
VAGUE_FILE_NAMES = {
    "common", "found", "given", "helpers", "kept", "misc", "one", "others", "parts", "several",
    "shape", "shown", "told", "tools", "utils", "whole", "world",
}  # fmt: skip

HEAVY = {"matplotlib", "numpy", "polars", "scipy"}
# These draw, and are themselves loaded only when something is drawn.
DRAWS = {
    "figures/charts.py",
    "figures/draw.py",
    "figures/cwnd_events.py",
    "figures/heat_map.py",
    "figures/scatter_map.py",
    "figures/trace_figure.py",
    "figures/save.py",
    "figures/time_sequence.py",
}

LONGEST_FILE_LINES = 600
GENERATED = "run_spec.py"
"""Written from the schema, a line for each key of a run: nobody reads it from end to end."""
LONGEST_FUNCTION_LINES = 70
# Longer ones that are still to be split: this list only becomes shorter. A function that is better
# long says so inside: `Long: why`.
STILL_LONG: set[str] = set()


@dataclass(frozen=True)
class Import:
    """An import of a module of `jostle`, or of something else."""

    path: Path
    line: int
    module: str
    on_use: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"


@functools.cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file but those for type checkers alone."""

    def visit(node: ast.AST, on_use: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                names = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                module = child.module or ""
                below = [f"{module}.{alias.name}" for alias in child.names]
                names = below if module == "jostle" else [module]
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from visit(child, on_use or function)
                continue
            for name in names:
                yield Import(path, child.lineno, name, on_use)

    return tuple(visit(ast.parse(path.read_text("utf-8")), False))


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


def test_the_crate_rule_has_no_circles() -> None:
    above: set[str] = set()
    for crate, used in CRATE_MAY_USE.items():
        assert set(used.split()) <= above, crate
        above.add(crate)


def test_every_crate_and_package_is_in_the_rule() -> None:
    assert {crate.name for crate in CRATES} == set(CRATE_MAY_USE)
    assert {package_of(path) for path in MODULES} | {"_core"} == set(PACKAGE_ORDER)


@pytest.mark.parametrize("crate", CRATES, ids=lambda c: c.name)
def test_crates_import_downwards(crate: Path) -> None:
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    for table in (manifest, *manifest.get("target", {}).values()):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            names = {
                each.get("package", name) if isinstance(each, dict) else name
                for name, each in table.get(kind, {}).items()
            }
            used = {name.removeprefix("jostle-") for name in names if "jostle-" in name}
            allowed = set(CRATE_MAY_USE[crate.name].split())
            if kind == "dev-dependencies":
                allowed |= set(TESTS_MAY_USE.get(crate.name, "").split())
            assert used <= allowed, kind


@pytest.mark.parametrize("crate", CRATES, ids=lambda c: c.name)
def test_crates_say_what_they_are(crate: Path) -> None:
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    assert manifest["package"]["name"] == f"jostle-{crate.name}"
    assert len(manifest["package"]["description"]) > 20
    if crate.name in USES_POINTERS:
        lints = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["lints"]
        lints["rust"]["unsafe_code"] = "allow"
        assert manifest["lints"] == lints
    else:
        assert manifest["lints"] == {"workspace": True}


def test_packages_import_lower_layers_only() -> None:
    wrong = []
    for path in MODULES:
        allowed = PACKAGE_ORDER[: PACKAGE_ORDER.index(package_of(path)) + 1]
        for found in imports(path):
            package, _, rest = found.module.partition(".")
            if package != "jostle":
                continue
            target = rest.split(".")[0]
            if target not in allowed:
                wrong.append(str(found))
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = python_graph(PACKAGE)
    # The package names its modules without importing them.
    del graph["jostle"]
    assert graph["jostle.runner.session"] >= {"jostle.results", "jostle.store.store"}
    assert circle(graph) == []


@pytest.mark.parametrize("crate", CRATES, ids=lambda c: c.name)
def test_no_modules_of_a_crate_use_each_other_in_a_circle(crate: Path) -> None:
    assert circle(rust_graph(crate)) == []


def test_circles_are_found(tmp_path: Path) -> None:
    crate = tmp_path / "src"
    (crate / "one").mkdir(parents=True)
    (crate / "lib.rs").write_text("mod one;\nmod two;\npub use two::Two;\n")
    (crate / "one.rs").write_text("mod inner;\npub use inner::Inner;\n")
    (crate / "one" / "inner.rs").write_text("use crate::{Two, units::Span};\nstruct Inner(Two);")
    (crate / "two.rs").write_text('// crate::one::Inner\nstruct Two; const X: &str = "crate::one";')
    assert circle(rust_graph(tmp_path)) == []
    (crate / "two.rs").write_text("use crate::one::{self, Inner as Other};\nstruct Two(Other);")
    assert set(circle(rust_graph(tmp_path))) == {"one::inner", "two"}


def test_the_package_itself_imports_nothing() -> None:
    found = {i.module for i in imports(PACKAGE / "__init__.py") if not i.on_use}
    assert found <= {"__future__", "importlib", "typing"}


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    wrong = [
        str(found)
        for path in MODULES
        for found in imports(path)
        if found.module.split(".")[0] in HEAVY - {"numpy"}
        and not found.on_use
        and path.relative_to(PACKAGE).as_posix() not in DRAWS
    ]
    assert wrong == []


def modules_of(code: str, folder: Path) -> set[str]:
    """Names of the modules that a program has imported at its end."""
    ask = f"{code}\nimport sys; print('modules', *sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", ask]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def own(modules: set[str]) -> int:
    """Return how many of the modules are jostle's."""
    return sum(name.split(".")[0] == "jostle" for name in modules)


def command(*words: str) -> str:
    return f"from jostle.cli import status; assert status({list(words)}) == 0"


MOST_AT_START = 101
"""Modules of jostle that a short command imports. Each takes about half a millisecond."""


@pytest.mark.parametrize(
    ("code", "validates"),
    [
        ("import jostle; dir(jostle)", False),
        (command("--help"), False),
        (command("info", "list"), False),
        (command("info", "list", "controllers"), False),
        (command("info", "list", "measures"), False),
        (command("info", "list", "studies"), False),
        (command("info", "list", "suites"), False),
        (command("info", "citations"), False),
        (command("study", "list"), False),
        (command("suite", "list"), True),
        (command("info", "list", "profiles"), True),
        (command("info", "explain", "bbr3"), True),
        (command("info", "schema", "scenario"), True),
    ],
)
def test_nothing_heavy_is_loaded_without_need(code: str, validates: bool, tmp_path: Path) -> None:
    found = modules_of(code, tmp_path)
    assert not HEAVY & found
    assert ("pydantic" in found) == validates
    assert own(found) <= MOST_AT_START + (20 if validates else 0)


@pytest.mark.parametrize("repeats", ["1", "4"])
def test_finding_a_run_loads_nothing_heavy(repeats: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "scenarios" / "first.toml", tmp_path)
    words = (
        "run",
        "first.toml",
        "--store",
        "store",
        "--repeats",
        repeats,
        "--set",
        "duration=11 s",
    )
    modules_of(command(*words, "--set", 'phases.together=["10 s", "11 s"]'), tmp_path)
    found = modules_of(command(*words, "--set", 'phases.together=["10 s", "11 s"]'), tmp_path)
    assert not HEAVY & found
    assert own(found) <= 225


def texts() -> Iterator[Path]:
    """Every text file of the project, as git sees it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix not in {".png", ".gz", ".parquet"}:
            yield path


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    machine = re.compile(r"/(?:work|farm|root|home/[a-z]+|tmp/bash_jobs)/")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if machine.search(line)
    ]
    assert wrong == []


def test_files_have_one_subject() -> None:
    lines = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8").count("\n")
        for path in texts()
        if path.suffix in {".rs", ".py"}
        and not {"tests", "benches"} & set(path.relative_to(ROOT).parts)
        and path.name != GENERATED
    }
    assert {name: n for name, n in lines.items() if n > LONGEST_FILE_LINES} == {}


def source_files() -> Iterator[tuple[Path, Path]]:
    """Yield the source files of the package and of the crates, with the folder they are below."""
    for folder in (PACKAGE, *(crate / "src" for crate in CRATES)):
        for suffix in ("py", "rs"):
            for path in sorted(folder.rglob(f"*.{suffix}")):
                # Programs of their own, which are built with other libraries.
                if "sources" not in path.parts:
                    yield path, folder


def test_folders_are_at_most_three_levels_deep() -> None:
    deep = [
        path.relative_to(ROOT).as_posix()
        for path, folder in source_files()
        if len(path.relative_to(folder).parts) - 1 > MAX_FOLDER_LEVELS
    ]
    assert deep == []


def test_file_names_name_a_concept() -> None:
    vague = [
        path.relative_to(ROOT).as_posix()
        for path, _ in source_files()
        if path.stem in VAGUE_FILE_NAMES
    ]
    assert vague == []


def functions_of_rust(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and lines of the functions of a file that `rustfmt` has formatted."""
    lines = path.read_text("utf-8").splitlines()
    for first, line in enumerate(lines):
        head = re.match(r"( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn (\w+)", line)
        if head is None:
            continue
        # A head may take several lines; it ends with the body's brace, or with a semicolon.
        end = next(i for i in range(first, len(lines)) if lines[i].endswith(("{", ";", "}")))
        if not lines[end].endswith("{"):
            continue
        last = next(i for i in range(end, len(lines)) if lines[i] == head[1] + "}")
        yield head[2], lines[first : last + 1]


def functions_of_python(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Names and lines of the functions of a file."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, lines[node.lineno - 1 : node.end_lineno]


def too_long(name: str, lines: list[str]) -> bool:
    says_why = any(re.search(r"(//|#) Long: \w", line) for line in lines)
    return len(lines) > LONGEST_FUNCTION_LINES and not says_why


def test_functions_fit_on_a_page() -> None:
    found = []
    for path in texts():
        name = path.relative_to(ROOT).as_posix()
        read = {".rs": functions_of_rust, ".py": functions_of_python}.get(path.suffix)
        if read is not None:
            long = [f for f, lines in read(path) if too_long(f, lines)]
            found += [f"{name}: {function}" for function in long]
    assert set(found) - STILL_LONG == set(), "split it, or say `Long: why` in a comment inside"
    assert STILL_LONG - set(found) == set(), "it is short now: take it out of the list"


def test_long_functions_are_found(tmp_path: Path) -> None:
    body = "        x += 1;\n" * LONGEST_FUNCTION_LINES
    rust = tmp_path / "example.rs"
    rust.write_text(
        f"impl A {{\n    pub(crate) fn long(\n        x: u32,\n    ) -> u32 {{\n{body}    }}\n\n"
        "    fn declared(&self);\n\n    fn empty() {}\n\n    fn short() {\n    }\n"
        f"    fn excused() {{\n        // Long: a table.\n{body}    }}\n}}\n"
    )
    python = tmp_path / "example.py"
    python.write_text("async def long():\n" + "    x = 1\n" * LONGEST_FUNCTION_LINES)
    for path, read, names in [
        (rust, functions_of_rust, ["long", "short", "excused"]),
        (python, functions_of_python, ["long"]),
    ]:
        functions = list(read(path))
        assert [name for name, _ in functions] == names
        assert [name for name, lines in functions if too_long(name, lines)] == ["long"]


def test_modules_stand_beside_their_folders() -> None:
    """`name.rs` beside `name/`; but Cargo would take `tests/common.rs` for a test of its own."""
    folders = [path for path in texts() if path.name == "mod.rs" and "src" in path.parts]
    assert folders == []


def test_tests_that_are_one_program_are_all_in_it() -> None:
    """Where Cargo does not look for tests, a file that `all.rs` does not name is run by nobody."""
    manifests = {crate: tomllib.loads((crate / "Cargo.toml").read_text()) for crate in CRATES}
    together = [
        crate for crate, it in manifests.items() if not it["package"].get("autotests", True)
    ]
    assert "sim" in [crate.name for crate in together]
    for crate in together:
        named = re.findall(r"^mod (\w+);$", (crate / "tests/all.rs").read_text("utf-8"), re.M)
        files = {path.stem for path in crate.glob("tests/*.rs")} - {"all"}
        assert files - set(named) == set(), crate.name


def test_what_subclasses_have_to_do_is_abstract() -> None:
    """A class that lacks a method cannot be made, rather than failing when it is called."""
    stub = re.compile(r"raise NotImplementedError|\b(?:unimplemented|todo)!")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        if path.suffix in {".py", ".rs"} and path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if stub.search(line)
    ]
    assert wrong == []


def test_commands_share_the_options_that_they_have_in_common() -> None:
    """An option that is the same to the letter is imported, for otherwise one of them changes."""
    where: dict[str, list[str]] = {}
    for path in sorted((PACKAGE / "cli").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
                where.setdefault(ast.unparse(node), []).append(f"{path.name}:{node.lineno}")
    assert {option: places for option, places in where.items() if len(places) > 1} == {}
