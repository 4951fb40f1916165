"""Checks that a kernel boots, runs in virtual time, and draws random numbers from its seed."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import JostleError
from jostle.kernel_images.boot import GuestError, GuestTimeoutError, run_guest
from jostle.kernel_images.image_paths import Image
from jostle.safe_io.scratch_folder import temporary_folder

# The guest sleeps for half an hour of its clock. If this takes longer than the timeout in real
# time, its time is not virtual.
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
    """A kernel was built, but failed a check."""


@dataclass(frozen=True)
class Check:
    """Result of booting a kernel.

    Attributes
    ----------
    banner
        Version and compiler, as reported by the kernel.
    controllers
        Available congestion controllers.
    wall_s
        Wall time of one boot, half an hour of sleep, and shutdown.
    """

    banner: str
    controllers: tuple[str, ...]
    wall_s: float


def check(image: Image, expected: Collection[str]) -> Check:
    """Boot a virtual-time kernel twice, and check it.

    Parameters
    ----------
    expected
        Congestion controllers that it must have.

    Raises
    ------
    UnfitKernelError
        If it does not boot, time is not virtual, random numbers differ, or controllers are missing.
    """
    with temporary_folder("check") as folder:
        script = Path(folder, "check")
        script.write_text(_SCRIPT, "utf-8")
        try:
            output, second_output = (
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
    values, second_values = (
        dict(re.findall(r"^(version|controllers|before|after|random) (.*)$", text, re.M))
        for text in (output.text, second_output.text)
    )
    if not output.ok or len(values) != 5:
        raise UnfitKernelError(f"its first program failed:\n{output.tail}")
    slept_s = float(values["after"]) - float(values["before"])
    if slept_s < _ASLEEP_S:
        raise UnfitKernelError(f"its clock is wrong: {_ASLEEP_S} s of sleep lasted {slept_s:g} s")
    if values["random"] != second_values.get("random"):
        raise UnfitKernelError("it does not draw the same random numbers from the same seed")
    controllers = tuple(sorted(values["controllers"].split()))
    lacking = sorted(set(expected) - set(controllers))
    if lacking:
        raise UnfitKernelError(f"it lacks the congestion controls {', '.join(lacking)}")
    return Check(values["version"], controllers, output.wall_s)
