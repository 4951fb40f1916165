"""The crates of jostle on which a user's crate depends, as Cargo finds them without a network.

A source checkout has them in `crates/`; the crates of others are those with which the engine was
compiled, in Cargo's own cache. Wheels contain both (`tools/controller_crates.py`).
"""

from __future__ import annotations

import functools
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jostle.errors import InputError
from jostle.safe_io.untrusted_files import SCENARIO_BYTES, read_bytes

__all__ = ["CRATES", "CratesMissingError", "crate_folders", "link_script", "settings", "version"]

CRATES: Final = ("units", "registry", "congestion", "controllers", "kernel-bridge")
"""Crates from which a user's controller is compiled."""
_BRIDGE: Final = "jostle-kernel-bridge"
_PACKAGED: Final = Path(__file__).with_name("sources")
_CHECKOUT: Final = Path(__file__).parents[3]


class CratesMissingError(InputError):
    """The installed package has no sources of the crates."""


def crate_folders(packaged: Path = _PACKAGED, checkout: Path = _CHECKOUT) -> Mapping[str, Path]:
    """Return the folders of crates by name: jostle's, and in wheels their dependencies.

    Raises
    ------
    CratesMissingError
        If there are none.
    """
    root = packaged if packaged.is_dir() else checkout
    own = [root / "crates" / name for name in CRATES]
    if not all(folder.is_dir() for folder in own):
        raise CratesMissingError(
            "this package has no sources of jostle's crates, from which a controller in Rust is "
            "compiled: install a wheel of jostle, or use a source checkout"
        )
    others = sorted((packaged / "vendor").iterdir()) if root == packaged else []
    return {_manifest(folder)["package"]["name"]: folder for folder in (*own, *others)}


def link_script() -> Path:
    """Return the script that links the object for a kernel module."""
    return crate_folders()[_BRIDGE] / "link.sh"


def settings(*, with_bridge: bool = False) -> str:
    """Return the settings of Cargo (`.cargo/config.toml`) by which it finds the crates.

    Parameters
    ----------
    with_bridge
        Whether the crate with the C functions is among them, which a user's crate does not need.
    """
    lines = [
        "# Written by jostle: its crates have no place on crates.io.",
        "[net]",
        "offline = true",
        "",
        "[patch.crates-io]",
        *(
            f"{name} = {{ path = {json.dumps(str(folder))} }}"
            for name, folder in crate_folders().items()
            if with_bridge or name != _BRIDGE
        ),
    ]
    return "\n".join(lines) + "\n"


@functools.cache
def version() -> str:
    """Return the version of the crates."""
    found = crate_folders()["jostle-units"].parents[1]
    return str(_manifest(found)["workspace"]["package"]["version"])


def _manifest(folder: Path) -> dict[str, Any]:
    return tomllib.loads(read_bytes(folder / "Cargo.toml", SCENARIO_BYTES).decode())
