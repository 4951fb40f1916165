"""What jostle is made from: pinned, permitted, and said."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# A name, a version, perhaps a condition; hashes, one a line.
PACKAGE = re.compile(
    r"([\w.-]+)==([\w.]+)(?: ; [^\n\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)


def normalized(name: str) -> str:
    """Return a name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9_.-]", name)[0]).lower()


def test_every_python_package_is_pinned_with_hashes() -> None:
    lines = CONSTRAINTS.splitlines(keepends=True)
    packages = "".join(line for line in lines if not line.startswith("#"))
    assert PACKAGE.sub("", packages) == ""
    pinned = {
        normalized(match[1]): match[3].count("--hash") for match in PACKAGE.finditer(packages)
    }
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(line for extra in PROJECT["project"]["optional-dependencies"].values() for line in extra),
        *PROJECT["build-system"]["requires"],
        *(line for group in PROJECT["dependency-groups"].values() for line in group),
    ]
    names = {normalized(line) for line in wanted}
    assert names <= set(pinned), f"run `make lock`: {names - set(pinned)}"
    # Other machines get other files of a release.
    assert min(pinned[name] for name in ("numpy", "polars-runtime-32", "maturin")) > 5
    assert not re.search(r"@ |://|index", CONSTRAINTS)


def test_what_builds_the_engine_is_pinned() -> None:
    """`make` installs the group, since pip has no option for `build-system.requires`."""
    assert set(PROJECT["build-system"]["requires"]) < set(PROJECT["dependency-groups"]["build"])


def test_packages_are_installed_with_hashes_only() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", "")
    assert "\nexport PIP_REQUIRE_HASHES := 1\n" in makefile
    without = [line for line in makefile.splitlines() if "$(WITHOUT_HASHES)" in line]
    assert [line for line in without if "--no-deps" not in line] == []
    for path in WORKFLOWS:
        for line in path.read_text().splitlines():
            assert "pip install" not in line or "--require-hashes" in line, line


@pytest.mark.parametrize("is_expected", [True, False])
def test_pip_takes_hashes_from_constraints(tmp_path: Path, is_expected: bool) -> None:
    wheel = tmp_path / "little-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        folder = "little-1.0.dist-info"
        archive.writestr(
            f"{folder}/METADATA", "Metadata-Version: 2.1\nName: little\nVersion: 1.0\n"
        )
        archive.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{folder}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(
        f"little==1.0 \\\n    --hash=sha256:{digest if is_expected else '0' * 64}\n"
    )
    pip = [sys.executable, "-m", "pip", "--isolated", "install", "--no-index", "--require-hashes"]
    options = ["--find-links", tmp_path, "--constraint", constraints, "--target", tmp_path / "to"]
    done = subprocess.run(
        [*pip, *options, "little>=0.9"], capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == is_expected, done.stderr
    assert is_expected or "DO NOT MATCH THE HASHES" in done.stderr


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
    promises = re.findall(
        r"`(tests/[\w/.]+)`", (ROOT / "docs" / "explanation" / "security.md").read_text()
    )
    assert len(promises) > 8
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    of_package = re.compile(r"`(tests/[a-z_/]+(?:\.py|/))`")
    named = {one for page in pages for one in of_package.findall(page.read_text())}
    assert named > set(promises)
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []
