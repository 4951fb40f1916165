"""Linux kernels: locations, builds, and starting one as a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.first_use import lazy_names

if TYPE_CHECKING:
    from jostle.kernel_images.boot import GuestError, GuestOutput, GuestTimeoutError, run_guest
    from jostle.kernel_images.image_paths import Image, KernelMissingError, find
    from jostle.kernel_images.kinds import Kind

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

__getattr__ = lazy_names(
    __name__,
    {
        "GuestError": "boot",
        "GuestOutput": "boot",
        "GuestTimeoutError": "boot",
        "Image": "image_paths",
        "KernelMissingError": "image_paths",
        "Kind": "kinds",
        "find": "image_paths",
        "run_guest": "boot",
    },
)
