"""What the tests of the kernel backend share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jostle import _core
from jostle.backends import SimBackend
from jostle.backends.kernel import KernelBackend
from jostle.backends.kernel.controllers import Defaults, defaults_of
from jostle.kernel_images import Image, headers


@pytest.fixture(scope="session")
def defaults() -> Defaults:
    return defaults_of(json.loads(_core.registry()))


@pytest.fixture(scope="session")
def kernel(virtual_kernel: Image) -> Image:
    return virtual_kernel


@pytest.fixture(scope="session")
def backend(kernel: Image) -> KernelBackend:
    return KernelBackend(image=kernel)


@pytest.fixture(scope="session")
def simulator() -> SimBackend:
    return SimBackend()


@pytest.fixture(autouse=True, scope="session")
def unpacked_headers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unpack the headers of a kernel once: 7,500 files, which the build of a module only reads."""
    trees: dict[Path, Path] = {}
    unpack = headers.unpack

    def link(archive: Path, folder: Path, environment: dict[str, str]) -> None:
        if archive not in trees:
            tree = tmp_path_factory.mktemp("headers")
            unpack(archive, tree, environment)
            trees[archive] = tree
        for path in trees[archive].iterdir():
            (folder / path.name).symlink_to(path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(headers, "unpack", link)
        yield
