"""List the licences of all code that is shipped with jostle; fail if one is not permitted.

usage: python tools/licences.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PERMITTED_OF_PACKAGES = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|HPND|MPL|Mozilla|Zlib|0BSD|Unlicense|CC0"
)


def crates() -> list[tuple[str, str, str]]:
    """Return name, version and licence of every crate that is linked into the engine."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    told = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    engine = next(
        i for i, package in packages.items() if package["name"] == "jostle-python-bindings"
    )
    found, open_ = {engine}, [engine]
    while open_:
        for dependency in nodes[open_.pop()]["deps"]:
            linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            if linked and dependency["pkg"] not in found:
                found.add(dependency["pkg"])
                open_.append(dependency["pkg"])
    chosen = (packages[i] for i in found if not packages[i]["name"].startswith("jostle-"))
    return sorted((p["name"], p["version"], p["license"] or "?") for p in chosen)


def packages() -> list[tuple[str, str, str]]:
    """Return name, version and licence of every Python package that jostle needs at run time."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    open_, found = [name_of(line) for line in wanted], {}
    while open_:
        name = open_.pop()
        if name in found:
            continue
        distribution = metadata.distribution(name)
        found[name] = (name, distribution.version, licence_of(distribution))
        for line in distribution.requires or []:
            if "extra ==" not in line and installed(name_of(line)):
                open_.append(name_of(line))
    return sorted(found.values())


def scripts() -> list[tuple[str, str, str]]:
    """Return name, version and licence of every third-party script in generated pages."""
    folder = ROOT / "python" / "jostle" / "report" / "static"
    found = []
    for licence in sorted(folder.glob("*.LICENSE")):
        first = licence.with_suffix(".js").read_text("utf-8").splitlines()[0]
        version = re.search(r"\(v([\d.]+)\)", first)
        kind = licence.read_text("utf-8").splitlines()[0].strip()
        found.append((licence.stem, version[1] if version else "?", kind))
    return found


def name_of(requirement: str) -> str:
    """Return the package name at the start of a requirement."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


def installed(name: str) -> bool:
    """Return whether a package is installed; packages for other platforms are not."""
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def licence_of(distribution: metadata.Distribution) -> str:
    """Return a package's declared licence in one line."""
    told = distribution.metadata
    expression = told.get("License-Expression")
    classified = [c.split(" :: ")[-1] for c in told.get_all("Classifier", []) if "License ::" in c]
    text = (told.get("License") or "?").strip().splitlines()[0]
    return expression or ", ".join(classified) or text


def main() -> int:
    """Print both lists; return 1 if a licence is not permitted."""
    refused = []
    for title, rows in (
        ("Linked into the engine", crates()),
        ("Python packages", packages()),
        ("Scripts in pages", scripts()),
    ):
        print(f"{title}\n")
        for name, version, licence in rows:
            print(f"  {name:28} {version:14} {licence}")
            if title != "Linked into the engine" and not PERMITTED_OF_PACKAGES.search(licence):
                refused.append(f"{name}: {licence}")
        print()
    for one in refused:
        print(f"not permitted: {one}", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
