"""A kernel is good when it boots, its time is virtual, and its random numbers are its seed's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import JostleError
from jostle.kernel_images import config
from jostle.kernel_images.boot import GuestError, GuestTimeoutError, run_guest
from jostle.kernel_images.images import Image
from jostle.locked_folders import temporary_folder

# The guest sleeps for half an hour of its own clock, which is virtual: if that takes more than the
# timeout in real time, its clock is the machine's.
_ASLEEP_S = 1800
_TIMEOUT_S = 60.0

_SCRIPT = f"""\
#!/bin/sh
up() {{ read -r seconds idle </proc/uptime; echo "$1 $seconds"; }}
echo "version $(cat /proc/version)"
echo "controllers $(cat /proc/sys/net/ipv4/tcp_available_congestion_control)"
up before
sleep {_ASLEEP_S}
up after
echo "random $(cat /proc/sys/kernel/random/uuid)"
"""
_SEED = 1


class UnfitKernelError(JostleError):
    """A kernel was built but does not do what it is for."""


@dataclass(frozen=True)
class Check:
    """What booting a kernel showed.

    Attributes
    ----------
    banner
        Version and compiler, as the kernel itself tells them.
    controllers
        Congestion controls that it has.
    wall_s
        Seconds of real time for booting, half an hour of sleep, and shutting down, once.
    """

    banner: str
    controllers: tuple[str, ...]
    wall_s: float


def check(image: Image) -> Check:
    """Boot a virtual-time kernel.

    Raises
    ------
    UnfitKernelError
        When it does not boot, time is not virtual, or a congestion control is not there.
    """
    with temporary_folder("check") as folder:
        script = Path(folder, "check")
        script.write_text(_SCRIPT, "utf-8")
        try:
            output, again = (
                run_guest(image, script, {}, memory_mb=256, seed=_SEED, timeout_s=_TIMEOUT_S)
                for _ in range(2)
            )
        except GuestTimeoutError as error:
            raise UnfitKernelError(
                f"half an hour of sleep was not over after {_TIMEOUT_S:g} s, "
                f"so time is not virtual: {error}"
            ) from error
        except GuestError as error:
            raise UnfitKernelError(f"it does not boot: {error}") from error
    told, retold = (
        dict(re.findall(r"^(version|controllers|before|after|random) (.*)$", text, re.M))
        for text in (output.text, again.text)
    )
    if not output.ok or len(told) != 5:
        raise UnfitKernelError(f"its first program failed:\n{output.tail}")
    slept_s = float(told["after"]) - float(told["before"])
    if slept_s < _ASLEEP_S:
        raise UnfitKernelError(f"its clock is wrong: {_ASLEEP_S} s of sleep lasted {slept_s:g} s")
    if told["random"] != retold.get("random"):
        raise UnfitKernelError("it does not draw the same random numbers from the same seed")
    controllers = tuple(sorted(told["controllers"].split()))
    lacking = config.lacking(controllers)
    if lacking:
        raise UnfitKernelError(f"it lacks the congestion controls {', '.join(lacking)}")
    return Check(told["version"], controllers, output.wall_s)
