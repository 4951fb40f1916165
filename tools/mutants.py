"""Change a package in one place at a time and list the changes that no test notices.

usage: python tools/mutants.py {stats,studies} [--shard K/N] [--only PATTERN] [--jobs N]

mutmut makes the changes in a copy of the repository's tracked files and runs the tests that reach
the changed function. K/N selects every Nth file of the package, from file K on, counted from 0.
PATTERN selects functions, for example `jostle.stats.estimate.*`. The exit status is 0 although
changes survive: some of them make no difference.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = {
    "stats": (
        "tests/test_stats_numbers.py",
        "tests/test_stats.py",
        "tests/test_student_t.py",
        "tests/test_expectation.py",
        "tests/test_stats_studies.py",
        "tests/test_envelope.py",
        "tests/test_compare.py",
    ),
    "studies": ("tests/studies",),
}
MARKS: Final = "not slow and not kernel and not browser and not cluster"


def copy_tree(to: Path) -> None:
    """Copy the tracked files and the compiled engine; the package goes to `src/`, as mutmut wants.

    Parameters
    ----------
    to : Path
        Empty folder.
    """
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    engines = (str(path.relative_to(ROOT)) for path in ROOT.glob("python/jostle/_core*.so"))
    for name in (*filter(None, listed.split("\0")), *engines):
        if (ROOT / name).is_file():
            target = to / (
                "src" + name.removeprefix("python") if name.startswith("python/") else name
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)


def select_files(package: str, shard: str) -> list[str]:
    """Return the paths of the shard's files in the copy."""
    first, step = map(int, shard.split("/"))
    names = sorted(path.name for path in (ROOT / "python/jostle" / package).glob("[!_]*.py"))
    return [f"src/jostle/{package}/{name}" for name in names[first::step]]


def configuration(package: str, files: list[str]) -> str:
    """Return the configuration of mutmut for files of a package."""
    return f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = {files}
also_copy = ["scenarios", "studies", "suites", "docs", "examples"]
pytest_add_cli_args = ["-m", "{MARKS}", "-p", "no:cacheprovider"]
pytest_add_cli_args_test_selection = {list(TESTS[package])}
use_git_change_detection = false
"""


def main() -> None:
    """Carry out the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", choices=TESTS)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--only", default="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    files = select_files(options.package, options.shard)
    if not files:
        print(f"jostle.{options.package}: no file in shard {options.shard}")
        return
    with tempfile.TemporaryDirectory(prefix="jostle-mutants-") as temporary:
        folder = Path(temporary)
        copy_tree(folder)
        with (folder / "pyproject.toml").open("a") as file:
            file.write(configuration(options.package, files))

        def mutmut(*words: str, show: bool = False) -> str:
            command = (sys.executable, "-m", "mutmut", *words)
            done = subprocess.run(
                command, cwd=folder, check=True, text=True, stdout=None if show else subprocess.PIPE
            )
            return done.stdout or ""

        mutmut("run", "--max-children", str(options.jobs), options.only, show=True)
        outcomes = [
            line.strip().split(": ") for line in mutmut("results", "--all", "true").splitlines()
        ]
        left = [name for name, outcome in outcomes if outcome == "survived"]
        for name in left:
            print(mutmut("show", name))
        counts = {
            kind: sum(row[-1] == kind for row in outcomes)
            for kind in sorted({row[-1] for row in outcomes})
        }
    print(f"jostle.{options.package}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))


if __name__ == "__main__":
    main()
