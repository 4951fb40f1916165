"""What jostle is made from: pinned, permitted, and said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = {
    re.split("==", line)[0].lower().replace("_", "-")
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


def test_every_python_package_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    wanted = [
        *project["project"]["dependencies"],
        *project["build-system"]["requires"],
        *(line for group in groups.values() for line in group),
    ]
    names = {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names <= PINNED, f"run `make lock`: {names - PINNED}"
    assert not re.search(r"@ |://", (ROOT / "constraints.txt").read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_few(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []
    assert "permissions:\n  contents: read\n" in text
    assert "secrets." not in text


def test_wheels_are_tried_on_every_platform_before_they_are_released() -> None:
    """What actionlint finds, as far as it can be said without it, and who gets a wheel."""
    told = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    jobs = told["jobs"]
    for job in jobs.values():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job)
        assert set(_words(job.get("needs"))) <= set(jobs)
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    rows = jobs["wheels"]["strategy"]["matrix"]["include"]
    kinds = sorted(row["os"].rpartition("-")[0].rstrip("-.0123456789") for row in rows)
    assert kinds == ["macos", "ubuntu", "ubuntu", "windows"]
    assert len({row["os"] for row in rows}) == len(rows), "artifacts are called after it"
    keys = {key for row in rows for key in row}
    text = json.dumps(jobs["wheels"])
    assert set(re.findall(r"matrix\.(\w+)", text)) == keys
    assert "tools/try_wheel.py" in text
    assert jobs["release"]["needs"] == "wheels"


def _words(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def test_licences_are_permitted() -> None:
    command = [sys.executable, str(ROOT / "tools" / "licences.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pyo3" in done.stdout
    assert "polars" in done.stdout


def test_every_crates_licence_is_permitted() -> None:
    """As `cargo deny` would judge, which is not installed everywhere."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    command = [sys.executable, str(ROOT / "tools" / "licences.py")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    crates = told.split("Python packages")[0].splitlines()[2:]
    for line in filter(None, crates):
        name, _, licence = line.split(maxsplit=2)
        offered = re.split(r" OR |/", licence.replace("(", "").replace(")", ""))
        needed = [set(re.split(" AND ", one)) for one in offered]
        assert any(one <= allowed for one in needed), f"{name}: {licence}"


def test_the_citation_names_this_version() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_promise_names_a_test_that_is_there() -> None:
    promises = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs" / "security.md").read_text())
    assert len(promises) > 8
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    of_package = re.compile(r"`(tests/[a-z_/]+(?:\.py|/))`")
    named = {one for page in pages for one in of_package.findall(page.read_text())}
    assert named > set(promises)
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []
