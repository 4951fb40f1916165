"""Kernels that can be used on this machine, and how to obtain the others."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.kernel_images import config, image_paths
from jostle.kernel_images.image_paths import IMAGE_VARIABLE, Image, KernelMissingError
from jostle.kernel_images.kinds import KINDS, Kind

_CONTROLLERS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_MODULES = Path("/lib/modules")

# Every scenario needs these for rates and delays; the others are for queues, pacing or NICs.
_ALWAYS_NEEDED = ("htb", "netem")
_DISCIPLINES: Mapping[str, str] = {
    "htb": "", "netem": "", "codel": "", "fq_codel": "", "pie": "", "fq": "",
    "red": "limit 40000 min 3000 max 9000 avpkt 1000", "tbf": "rate 1mbit burst 9000 limit 9000",
}  # fmt: skip
"""Queueing discipline → options that `tc` requires."""


@dataclass(frozen=True)
class KernelStatus:
    """Availability of kernels of one kind.

    Attributes
    ----------
    image
        Kernel that is used without a version; None if there is none.
    advice
        How to obtain one; empty if there is nothing to do.
    details
        Additional facts.
    """

    kind: Kind
    image: Image | None
    advice: str
    details: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain data."""
        image = self.image
        return {
            "kind": self.kind,
            "available": image is not None,
            "version": None if image is None else image.version,
            "path": None if image is None or image.path is None else str(image.path),
            "advice": self.advice or None,
            **self.details,
        }


def states() -> list[KernelStatus]:
    """Return the status of every kind."""
    return [_state(kind) for kind in KINDS]


def _state(kind: Kind) -> KernelStatus:
    details = {"virtual": _virtual, "realtime": _realtime, "native": _native}[kind]()
    try:
        image = image_paths.find(kind)
    except KernelMissingError as error:
        return KernelStatus(kind, None, str(error), details)
    lacking = [d for d in details.get("lacking_disciplines", ()) if d in _ALWAYS_NEEDED]
    if lacking:
        modules = " and ".join(f"sch_{discipline}" for discipline in lacking)
        advice = f"this machine's kernel lacks {modules}, without which there are no links"
        return KernelStatus(kind, None, advice, details)
    return KernelStatus(kind, image, "", details)


def _virtual() -> dict[str, Any]:
    kernels = [
        {
            "name": kernel.name,
            "version": kernel.version,
            "path": str(kernel.image.path),
            "current": kernel.current,
            "compiler": kernel.facts.get("compiler"),
        }
        for kernel in image_paths.built()
    ]
    return {
        "built": kernels,
        "named_by_environment": os.environ.get(IMAGE_VARIABLE) or None,
        "buildable": list(config.SERIES),
    }


def _realtime() -> dict[str, Any]:
    modules = image_paths.REALTIME_MODULES
    found = sorted(path.name for path in modules.iterdir()) if modules.is_dir() else []
    return {"modules": found}


def _native() -> dict[str, Any]:
    try:
        ready = sorted(_CONTROLLERS.read_text("utf-8").split())
    except OSError:
        ready = []
    return {
        "running": platform.release(),
        "root": os.geteuid() == 0,
        "controllers": ready,
        "loadable_controllers": sorted(_loadable(platform.release()) - set(ready)),
        "missing_tools": image_paths.missing_tools(),
        "lacking_disciplines": _lacking_disciplines(),
    }


def _lacking_disciplines() -> list[str]:
    """Return the queueing disciplines that the running kernel lacks; checked only as root."""
    if os.geteuid() != 0 or image_paths.missing_tools():
        return []
    lacking = []
    for name, options in _DISCIPLINES.items():
        command = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", name]
        try:
            completed = subprocess.run(
                [*command, *options.split()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PATH": image_paths.SYSTEM_PATH, "LC_ALL": "C"},
            )
        except OSError:
            return []
        if "kind is unknown" in completed.stderr:
            lacking.append(name)
    return lacking


def _loadable(release: str) -> set[str]:
    """Return the congestion controllers that are modules of the running kernel."""
    folder = _MODULES / release / "kernel" / "net" / "ipv4"
    names = {
        found[1]
        for path in folder.glob("tcp_*.ko*")
        if (found := re.match(r"tcp_(\w+)\.ko", path.name))
    }
    # tcp_diag is not a controller.
    return names - {"diag"}
