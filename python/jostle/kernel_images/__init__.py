"""Linux kernels as things: where they are, how one is built, how one is started as a process."""

from __future__ import annotations

from jostle.kernel_images.boot import GuestError, GuestOutput, GuestTimeoutError, run_guest
from jostle.kernel_images.images import Image, KernelMissingError, Kind, find

__all__ = [
    "GuestError",
    "GuestOutput",
    "GuestTimeoutError",
    "Image",
    "KernelMissingError",
    "Kind",
    "find",
    "run_guest",
]
