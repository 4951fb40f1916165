"""Put the sources from which a user's controller is compiled into the package: for wheels.

The folder `python/jostle/controller_crates/sources` gets jostle's crates and those on which they
depend, so that `jostle new --crate` and `controller = "crate:…"` need no network. A source checkout
uses `crates/` and Cargo's cache instead.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python"))

from jostle.controller_crates.dependencies import CRATES  # noqa: E402

SOURCES = ROOT / "python" / "jostle" / "controller_crates" / "sources"
BRIDGE = "jostle-kernel-bridge"
# Not compiled with the crates.
LEFT_OUT = shutil.ignore_patterns("tests", "benches", "examples", ".*", "Cargo.lock", "*.orig")
# A target that Cargo would look for.
TARGETS = re.compile(r"^\[\[(?:test|bench|example)\]\]\n(?:[^\[\n][^\n]*\n|\n)*", re.MULTILINE)


def assemble(to: Path) -> None:
    """Write the sources into a new folder."""
    for name in CRATES:
        copy(ROOT / "crates" / name, to / "crates" / name)
    root = (ROOT / "Cargo.toml").read_text("utf-8")
    members, replaced = re.subn(r"^members = .*$", 'members = ["crates/*"]', root, flags=re.M)
    assert replaced == 1
    without_default = re.sub(r"^default-members = .*\n", "", members, flags=re.M)
    (to / "Cargo.toml").write_text(without_default, "utf-8")
    for package in packages_of_others():
        folder = Path(package["manifest_path"]).parent
        copy(folder, to / "vendor" / package["name"])


def copy(folder: Path, to: Path) -> None:
    """Copy what is compiled of a crate."""
    shutil.copytree(folder, to, ignore=LEFT_OUT)
    manifest = to / "Cargo.toml"
    manifest.write_text(TARGETS.sub("", manifest.read_text("utf-8")), "utf-8")


def packages_of_others() -> Iterator[dict[str, Any]]:
    """Yield the packages of others that are compiled with the crates."""
    words = ["cargo", "metadata", "--locked", "--format-version=1", "--features=library"]
    metadata = json.loads(
        subprocess.run(
            words, cwd=ROOT / "crates" / "kernel-bridge", stdout=subprocess.PIPE, check=True
        ).stdout
    )
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [found for found, package in packages.items() if package["name"] == BRIDGE]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            compiled = any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            if compiled and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    for found in sorted(seen):
        if packages[found]["source"] is not None:
            yield packages[found]


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
