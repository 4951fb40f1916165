"""The test kit can be published: the crates that it uses are publishable, in exact versions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def packages() -> dict[str, dict[str, Any]]:
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60)
    return {package["name"]: package for package in json.loads(made.stdout)["packages"]}


def of_workspace(package: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates of the workspace that a published package needs."""
    return [each for each in package["dependencies"] if "path" in each and each["kind"] != "dev"]


def test_what_the_test_kit_needs_is_published_in_exact_versions(packages):
    # `publish` is null without a limit, and empty if it is false.
    published = {name for name, package in packages.items() if package["publish"] is None}
    needed, new = set(), {"jostle-testkit"}
    while new:
        needed |= new
        new = {each["name"] for name in new for each in of_workspace(packages[name])} - needed
    assert published == needed
    for name in published:
        package = packages[name]
        assert package["description"], name
        assert package["license"] == "Apache-2.0 OR MIT", name
        for each in of_workspace(package):
            assert each["req"] == f"={packages[each['name']]['version']}", (name, each["name"])


def test_the_package_of_the_test_kit_has_its_guide_and_licences(packages):
    package = packages["jostle-testkit"]
    assert {"development-tools::testing", "network-programming"} <= set(package["categories"])
    command = ["cargo", "package", "--package", "jostle-testkit", "--list", "--allow-dirty"]
    made = subprocess.run(
        [*command, "--offline"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    files = made.stdout.split()
    assert {"README.md", "LICENSE-APACHE", "LICENSE-MIT", "src/lib.rs"} <= set(files)
    assert not [file for file in files if file.endswith(".py") or file.startswith("tests/")]
