"""Which options the virtual-time kernel is built with, and what it then must be able to do."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from jostle.kernel_images import edits

DEFAULT_SERIES = "6.1"
SERIES = ("6.1", "6.12")
"""Kernel series that can be built."""

MODULE_FOLDER = Path(__file__).parent / "module"
"""C files here are built into the kernel, beside its queueing disciplines."""

CONTROLLERS: Mapping[str, str] = {
    "bbr": "BBR", "bic": "BIC", "cdg": "CDG", "cubic": "CUBIC", "dctcp": "DCTCP",
    "highspeed": "HSTCP", "htcp": "HTCP", "hybla": "HYBLA", "illinois": "ILLINOIS", "lp": "LP",
    "nv": "NV", "scalable": "SCALABLE", "vegas": "VEGAS", "veno": "VENO",
    "westwood": "WESTWOOD", "yeah": "YEAH",
}  # fmt: skip
"""Name of a congestion control in the kernel → its option TCP_CONG_…; reno is always there."""

_ON = [
    # Virtual time, and the host's files as root.
    "UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "TMPFS", "DEVTMPFS", "HIGH_RES_TIMERS", "NO_HZ_IDLE",
    "MAGIC_SYSRQ", "IKCONFIG", "IKCONFIG_PROC",
    # Networks of namespaces.
    "NAMESPACES", "NET_NS", "PACKET", "UNIX", "INET_DIAG", "INET_TCP_DIAG",
    "VETH", "TUN", "BRIDGE", "IFB",
    # Queues. A mirrored action is what brings packets into an IFB device, which depends on it.
    "NET_SCHED", "NET_SCH_NETEM", "NET_SCH_FQ", "NET_SCH_FQ_CODEL", "NET_SCH_CODEL",
    "NET_SCH_PIE", "NET_SCH_CAKE", "NET_SCH_RED", "NET_SCH_TBF", "NET_SCH_HTB",
    "NET_SCH_DRR", "NET_SCH_SFQ", "NET_SCH_FQ_PIE", "NET_ACT_POLICE",
    "NET_SCH_INGRESS", "NET_CLS_U32", "NET_CLS_BASIC", "NET_CLS_MATCHALL", "NET_CLS_ACT",
    "NET_ACT_MIRRED",
    # Congestion control.
    "TCP_CONG_ADVANCED", *(f"TCP_CONG_{option}" for option in CONTROLLERS.values()),
    # UML's defconfig prefers a small kernel to a fast one, and asks for debugging information,
    # which makes the image several times as large.
    "CC_OPTIMIZE_FOR_PERFORMANCE", "DEBUG_INFO_NONE",
]  # fmt: skip

_OFF = [
    "SECURITY", "AUDIT", "WLAN", "WIRELESS", "DEBUG_INFO",
    # Random numbers of the host, which no seed fixes.
    "HW_RANDOM", "UML_RANDOM",
    # Not needed by anybody here, and a good part of what would have to be compiled.
    "EXT4_FS", "REISERFS_FS", "ISO9660_FS", "SOUND", "ETHERNET", "PPP", "SLIP",
]  # fmt: skip


def options() -> dict[str, bool]:
    """Option without CONFIG_ → whether it has to be on (built in) or off."""
    return dict.fromkeys(_ON, True) | dict.fromkeys(_OFF, False)


def fragment() -> str:
    """Write the options as lines of a .config file, where the last one of a name counts."""
    return "".join(
        f"CONFIG_{name}=y\n" if on else f"# CONFIG_{name} is not set\n"
        for name, on in options().items()
    )


def unmet(config_text: str) -> list[str]:
    """Options of a finished .config file that are not as they have to be.

    What the file does not mention is off.
    """
    found = dict(re.findall(r"^CONFIG_(\w+)=(\S+)$", config_text, re.M))
    return [
        f"{name} {'on' if on else 'off'}"
        for name, on in options().items()
        if (found.get(name) != "y" if on else name in found)
    ]


def lacking(available: Iterable[str]) -> list[str]:
    """Congestion controls that a kernel should have and does not."""
    return sorted({"reno", *CONTROLLERS, *edits.COPIES} - set(available))


def own_files() -> list[Path]:
    """C files of our own that are built into the kernel, and their headers."""
    return sorted(path for path in MODULE_FOLDER.iterdir() if path.suffix in {".c", ".h"})


@functools.cache
def digest() -> str:
    """Hash of all that is asked of the kernel: options, edits, and files of our own."""
    whole = hashlib.sha256(fragment().encode())
    whole.update(repr((edits.EDITS, edits.COPIES)).encode())
    for path in own_files():
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]
