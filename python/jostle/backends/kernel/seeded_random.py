"""Seeding of programs that do not draw random numbers from the (seeded) kernel."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from jostle.kernel_images.image_paths import cache_folder

_SOURCE = Path(__file__).with_name("random_device.c")
_COMPILER = "cc"
_COMPILE_S = 60.0

# OpenSSL and BoringSSL read processor features from this variable. Disables RDRAND and RDSEED.
_NO_RDRAND = "~0x4000000000000000:~0x40000"


def environment(libraries: tuple[str, ...]) -> dict[str, str]:
    """Return environment variables that make a program draw random numbers from the kernel.

    Parameters
    ----------
    libraries
        Paths of the shared libraries of the program.
    """
    uses_random_device = any(Path(path).name.startswith("libstdc++.") for path in libraries)
    return _environment(preload=uses_random_device)


def environment_of_any() -> dict[str, str]:
    """Return environment variables for programs whose libraries are unknown; see `environment`."""
    return _environment(preload=True)


def _environment(*, preload: bool) -> dict[str, str]:
    variables = {"OPENSSL_ia32cap": _NO_RDRAND}
    if preload:
        preloaded = random_device()
        if preloaded is not None:
            variables["LD_PRELOAD"] = str(preloaded)
    return variables


@functools.cache
def random_device() -> Path | None:
    """Return the library that replaces `std::random_device`; None without a C compiler."""
    content = _SOURCE.read_bytes()
    name = f"random_device-{hashlib.sha256(content).hexdigest()[:12]}.so"
    found = cache_folder() / name
    if found.exists():
        return found
    if shutil.which(_COMPILER) is None:
        return None
    try:
        found.parent.mkdir(parents=True, exist_ok=True)
        # The file appears under its name only when it is complete.
        with tempfile.TemporaryDirectory(dir=found.parent) as folder:
            partial = Path(folder) / name
            subprocess.run(
                [_COMPILER, "-O1", "-shared", "-fPIC", "-o", str(partial), str(_SOURCE)],
                check=True,
                capture_output=True,
                timeout=_COMPILE_S,
            )
            os.replace(partial, found)
    except (OSError, subprocess.SubprocessError):
        return None
    return found
