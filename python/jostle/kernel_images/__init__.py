"""Linux kernels: locations, builds, and starting one as a process."""

from __future__ import annotations

from jostle.kernel_images.boot import GuestError, GuestOutput, GuestTimeoutError, run_guest
from jostle.kernel_images.image_paths import Image, KernelMissingError, Kind, find

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
