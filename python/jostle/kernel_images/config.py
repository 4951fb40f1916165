"""Build options of the virtual-time kernel, and its required features."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from jostle.kernel_images import source_patches

DEFAULT_SERIES = "6.1"
SERIES = ("6.1", "6.12")
"""Kernel series that can be built."""

MODULE_FOLDER = Path(__file__).parent / "module"
"""Folder with C files that are built into the kernel as queueing disciplines."""

CONTROLLERS: Mapping[str, str] = {
    "bbr": "BBR", "bic": "BIC", "cdg": "CDG", "cubic": "CUBIC", "dctcp": "DCTCP",
    "highspeed": "HSTCP", "htcp": "HTCP", "hybla": "HYBLA", "illinois": "ILLINOIS", "lp": "LP",
    "nv": "NV", "scalable": "SCALABLE", "vegas": "VEGAS", "veno": "VENO",
    "westwood": "WESTWOOD", "yeah": "YEAH",
}  # fmt: skip
"""Kernel name of a congestion controller → its option TCP_CONG_…; reno is always built in."""

_ON = [
    # Virtual time, and the host's file system as root.
    "UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "TMPFS", "DEVTMPFS", "HIGH_RES_TIMERS", "NO_HZ_IDLE",
    "MAGIC_SYSRQ", "IKCONFIG", "IKCONFIG_PROC",
    # Networks of namespaces.
    "NAMESPACES", "NET_NS", "PACKET", "UNIX", "INET_DIAG", "INET_TCP_DIAG",
    "VETH", "TUN", "BRIDGE", "IFB",
    # Queues. IFB depends on mirred actions, which redirect packets to it.
    "NET_SCHED", "NET_SCH_NETEM", "NET_SCH_FQ", "NET_SCH_FQ_CODEL", "NET_SCH_CODEL",
    "NET_SCH_PIE", "NET_SCH_CAKE", "NET_SCH_RED", "NET_SCH_TBF", "NET_SCH_HTB",
    "NET_SCH_DRR", "NET_SCH_PRIO", "NET_SCH_SFQ", "NET_SCH_FQ_PIE", "NET_ACT_POLICE",
    "NET_SCH_INGRESS", "NET_CLS_U32", "NET_CLS_BASIC", "NET_CLS_MATCHALL", "NET_CLS_ACT",
    "NET_ACT_MIRRED",
    # DSCP of flows.
    "NET_ACT_PEDIT", "NET_ACT_CSUM",
    # Congestion control.
    "TCP_CONG_ADVANCED", *(f"TCP_CONG_{option}" for option in CONTROLLERS.values()),
    # UML's defconfig optimises for size, and enables debug information, which makes the image
    # several times as large.
    "CC_OPTIMIZE_FOR_PERFORMANCE", "DEBUG_INFO_NONE",
]  # fmt: skip

_OFF = [
    "SECURITY", "AUDIT", "WLAN", "WIRELESS", "DEBUG_INFO",
    # Random numbers of the host, which are not seeded.
    "HW_RANDOM", "UML_RANDOM",
    # Not needed, and a large part of the compile time.
    "EXT4_FS", "REISERFS_FS", "ISO9660_FS", "SOUND", "ETHERNET", "PPP", "SLIP",
]  # fmt: skip


def options() -> dict[str, bool]:
    """Return option without CONFIG_ → whether it must be built in (true) or off."""
    return dict.fromkeys(_ON, True) | dict.fromkeys(_OFF, False)


def fragment() -> str:
    """Return the options as lines of a .config file, in which the last line of a name counts."""
    return "".join(
        f"CONFIG_{name}=y\n" if on else f"# CONFIG_{name} is not set\n"
        for name, on in options().items()
    )


def unmet(config_text: str) -> list[str]:
    """Return the options of a finished .config file that differ from the required ones.

    Options that are not in the file are off.
    """
    found = dict(re.findall(r"^CONFIG_(\w+)=(\S+)$", config_text, re.M))
    return [
        f"{name} {'on' if on else 'off'}"
        for name, on in options().items()
        if (found.get(name) != "y" if on else name in found)
    ]


def options_of(tree: Path) -> set[str]:
    """Return the options that a kernel's source has."""
    found: set[str] = set()
    for file in tree.rglob("Kconfig*"):
        if file.is_file():
            found.update(
                re.findall(r"^\s*(?:menu)?config (\w+)", file.read_text("utf-8", "replace"), re.M)
            )
    return found


def expected() -> list[str]:
    """Return the congestion controllers that a kernel has without changes of the user."""
    return sorted({"reno", *CONTROLLERS, *source_patches.COPIES})


def own_files() -> list[Path]:
    """Return jostle's C files and headers that are built into the kernel."""
    return sorted(path for path in MODULE_FOLDER.iterdir() if path.suffix in {".c", ".h"})


@functools.cache
def digest() -> str:
    """Return a hash of the kernel's options, source patches and own files."""
    hasher = hashlib.sha256(fragment().encode())
    hasher.update(repr((source_patches.EDITS, source_patches.COPIES)).encode())
    for path in own_files():
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()[:12]
