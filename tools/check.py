"""Check what changed: format, lint, types, and the tests that the change can affect.

usage: python tools/check.py [--base REVISION] [--list]

A file counts as changed if it differs from REVISION: by default the commit where this branch left
`main`, or the last commit if the branch is `main`. Tests that are slow or need a kernel, a browser
or a cluster are left to `make test` and `make nightly`.
"""

from __future__ import annotations

import argparse
import ast
import functools
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from import_circles import python_graph  # noqa: E402

FAST: Final = "not slow and not kernel and not browser and not cluster"
MOST_TESTS: Final = 120
DATA: Final = ("scenarios/", "studies/", "suites/", "docs/", "examples/")


@dataclass(frozen=True)
class Step:
    """A command, with the title under which its duration is printed."""

    title: str
    command: tuple[str, ...]


def changed_files(base: str | None) -> list[str]:
    """Return the paths that differ from `base` or that git does not know yet."""
    if base is None:
        main = _git("rev-parse", "--verify", "--quiet", "origin/main") or _git("rev-parse", "main")
        base = _git("merge-base", "HEAD", main)
        if base == _git("rev-parse", "HEAD") and not _git("status", "--porcelain"):
            base = "HEAD~1"
    known = _git("diff", "--name-only", base).splitlines()
    return sorted({*known, *_git("ls-files", "--others", "--exclude-standard").splitlines()})


def affected_tests(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files nearest to the changed files, counted in imports.

    Nearly every test reaches nearly every module through `jostle.cli`, so the farthest are left
    out once `MOST_TESTS` tests are chosen: `make test` runs them. A change of a file that no import
    shows (data, configuration) chooses the tests that name its folder.
    """
    paths = list(changed)
    tests = {path.relative_to(root).as_posix(): path for path in root.glob("tests/**/test_*.py")}
    helpers = {path.stem: path for path in root.glob("tests/**/*.py") if path.stem[:5] != "test_"}
    modules = python_graph(root / "python" / "jostle")
    uses = {name: set(used) for name, used in modules.items()}
    uses |= {name: _names(path) for name, path in (helpers | tests).items()}
    dirty = {_module(path) for path in paths if path.startswith("python/jostle/")}
    dirty |= {Path(path).stem for path in paths if path.startswith("tests/")}
    dirty |= {path for path in paths if path in tests}
    for folder in DATA:
        if any(path.startswith(folder) for path in paths):
            word = f'"{folder.rstrip("/")}'
            dirty |= {name for name, path in tests.items() if word in path.read_text("utf-8")}
    counts = {name: path.read_text("utf-8").count("\ndef test_") for name, path in tests.items()}
    chosen: list[str] = []
    for nodes in _by_distance(uses, dirty):
        for name in sorted(nodes & tests.keys(), key=lambda name: (counts[name], name)):
            if chosen and counts[name] + sum(map(counts.__getitem__, chosen)) > MOST_TESTS:
                return chosen
            chosen.append(name)
    return chosen


def affected_crates(changed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the crates that changed and the crates that depend on them."""
    uses = {}
    for manifest in root.glob("crates/*/Cargo.toml"):
        document = tomllib.loads(manifest.read_text("utf-8"))
        tables = (document, *document.get("target", {}).values())
        names = {name for table in tables for name in table.get("dependencies", {})}
        uses[f"jostle-{manifest.parent.name}"] = {n for n in names if n.startswith("jostle-")}
    paths = list(changed)
    if {"Cargo.toml", "Cargo.lock"} & set(paths):
        return sorted(uses)
    dirty = {f"jostle-{path.split('/')[1]}" for path in paths if path.startswith("crates/")}
    return sorted(set().union(*_by_distance(uses, dirty)) & uses.keys())


def steps(changed: list[str]) -> list[Step]:
    """Return the commands that check the changed files, the quickest first."""
    found = []
    crates = affected_crates(changed)
    python = [path for path in changed if path.endswith((".py", ".pyi")) and (ROOT / path).exists()]
    if crates:
        found.append(Step("format (Rust)", ("cargo", "fmt", "--all", "--check")))
    if python:
        ruff = str(_bin("ruff"))
        found.append(Step("format (Python)", (ruff, "format", "--check", "--quiet", *python)))
        found.append(Step("lint (Python)", (ruff, "check", "--quiet", *python)))
        found.append(Step("types", (str(_bin("mypy")),)))
    if crates:
        packages = tuple(part for crate in crates for part in ("--package", crate))
        tested = tuple(
            part for crate in crates if crate != "jostle-python-bindings"
            for part in ("--package", crate)
        )  # fmt: skip
        lint = ("cargo", "clippy", "--quiet", *packages, "--all-targets", "--", "-D", "warnings")
        found.append(Step("lint (Rust)", lint))
        if tested:
            found.append(Step("tests (Rust)", ("cargo", "test", "--quiet", *tested)))
        found.append(Step("engine", ("make", "--silent", "engine")))
    reference = (sys.executable, "tools/reference.py", "--check")
    if pages := [path for path in changed if path.endswith(".md") and (ROOT / path).exists()]:
        found.append(Step("generated text", (*reference, *pages)))
    if any(path.endswith((".md", ".py", ".rs", ".toml")) for path in changed):
        found.append(Step("prose", (sys.executable, "tools/prose_rates.py")))
    # A change of the engine can change any result; the tests of its interface come first.
    tests = ["tests/test_core.py", "tests/test_scenarios.py"] if crates else []
    tests += [path for path in affected_tests(changed) if path not in tests]
    if tests:
        pytest = (str(_bin("pytest")), "--numprocesses", "auto", "--dist", "worksteal", "-m", FAST)
        found.append(Step("tests (Python)", (*pytest, *tests)))
    return found


def main() -> int:
    """Run the steps, stop at the first that fails, and print how long each took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--base", help="revision that the working tree is compared with")
    parser.add_argument("--list", action="store_true", help="print the commands, run none")
    arguments = parser.parse_args()
    changed = changed_files(arguments.base)
    if not changed:
        print("nothing changed")
        return 0
    durations = []
    for step in steps(changed):
        if arguments.list:
            print(f"{step.title}: {' '.join(step.command)}")
            continue
        print(f"==> {step.title}", flush=True)
        start_s = time.monotonic()
        status = subprocess.run(step.command, cwd=ROOT, check=False).returncode
        durations.append(f"{step.title} {time.monotonic() - start_s:.0f} s")
        # 5: every test of these files is left to `make test`.
        if status not in (0, 5 if step.title == "tests (Python)" else 0):
            print(f"failed: {step.title} ({', '.join(durations)})", file=sys.stderr)
            return 1
    if durations:
        print(f"{len(changed)} files changed; {', '.join(durations)}")
    return 0


def _by_distance(uses: Mapping[str, set[str]], dirty: set[str]) -> Iterator[set[str]]:
    """Yield the nodes of `dirty`, then the nodes that use them, then their users, and so on."""
    seen, level = set(dirty), set(dirty)
    while level:
        yield level
        level = {name for name, used in uses.items() if used & level} - seen
        seen |= level


@functools.cache
def _names(path: Path) -> set[str]:
    """Return the modules that a test file imports, also inside functions, and their members."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _module(path: str) -> str:
    parts = Path(path).relative_to("python").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _bin(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def _git(*words: str) -> str:
    command = ("git", *words)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()  # noqa: PLW1510


if __name__ == "__main__":
    sys.exit(main())
