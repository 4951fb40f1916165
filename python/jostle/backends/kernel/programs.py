"""QUIC of other people: which programs carry a flow, and the words that start them."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel import seeded
from jostle.backends.kernel.problems import Problem, flow_key
from jostle.kernel_images.images import SYSTEM_PATH
from jostle.run_spec import FlowSpec

if TYPE_CHECKING:
    from jostle.run_spec import QuicImplementation

PORT = 4433
"""Where a server listens; each has a host of its own."""

PLACES = ("www", "downloads", "qlog")
"""Placeholders that only the guest can fill in: folders."""

VALUES = (
    "address", "port", "bytes", "controller", "window", "mtu", "seed", "key", "certificate",
)  # fmt: skip
"""Placeholders that are known beforehand."""

_HERE = Path(__file__).parent
_CERTIFICATES = _HERE / "certificates"
_RECIPES = _HERE / "implementations.toml"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_LDD_S = 10.0


@dataclass(frozen=True)
class Implementation:
    """Two programs.

    Attributes
    ----------
    server, client
        Words that start each, with placeholders.
    controllers
        Its word for each controller; None if it is told the flow's.
    install
        What to do when it is missing.
    """

    name: str
    server: Sequence[str]
    client: Sequence[str]
    controllers: Mapping[str, str] | None = None
    install: str = "install it, or give its whole path"
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> Iterator[str]:
        """All words of both."""
        yield from self.server
        yield from self.client

    @property
    def logs(self) -> bool:
        """Whether its server writes a qlog."""
        return any("{qlog}" in word for word in self.server)

    @property
    def counts(self) -> bool:
        """Whether what has arrived can be seen."""
        return any("{downloads}" in word for word in self.client)


@functools.cache
def recipes() -> Mapping[str, Implementation]:
    """All recipes that come with jostle, by name."""
    known = tomllib.loads(_RECIPES.read_text("utf-8"))
    return {
        name: Implementation(
            name,
            recipe["server"],
            recipe["client"],
            recipe["controllers"],
            recipe["install"],
            recipe.get("environment", {}),
        )
        for name, recipe in known.items()
    }


def is_program(flow: FlowSpec) -> bool:
    """Tell whether other people's programs carry a flow."""
    return _asked(flow) is not None


def implementation(flow: FlowSpec) -> Implementation | None:
    """Find what carries a flow; None if there is no such recipe."""
    asked = _asked(flow)
    assert asked is not None
    commands = asked["commands"]
    if commands is None:
        return recipes().get(asked["name"])
    return Implementation(asked["name"], commands["server"], commands["client"])


def _asked(flow: FlowSpec) -> QuicImplementation | None:
    quic = flow.get("quic")
    return None if quic is None else quic["implementation"]


def problems(flow: FlowSpec) -> Iterator[Problem]:
    """List what stands in the way of a flow's programs."""
    key = flow_key(flow, "transport.implementation")
    found = implementation(flow)
    if found is None:
        asked = _asked(flow)
        assert asked is not None
        known = ", ".join(sorted(recipes()))
        text = f"no recipe `{asked['name']}`: there are {known}; for another one give `server`"
        yield Problem(key, f"{text} and `client`")
        return
    for role, words in (("server", found.server), ("client", found.client)):
        if not words:
            yield Problem(f"{key}.{role}", "names no program")
            continue
        yield from _unknown_placeholders(f"{key}.{role}", words)
        if which(words[0]) is None:
            text = f"there is no program `{words[0]}` in {SYSTEM_PATH}: {found.install}"
            yield Problem(f"{key}.{role}", text)
    controller = flow["controller"]["name"]
    if found.controllers is not None and word_for(found, controller) is None:
        has = ", ".join(sorted(found.controllers))
        text = f'`{controller}`: {found.name} has {has}; transport = "quic" has all of jostle\'s'
        yield Problem(flow_key(flow, "controller"), text)
    yield from _problems_of_flow(flow, found)


def _problems_of_flow(flow: FlowSpec, found: Implementation) -> Iterator[Problem]:
    kind = flow["source"]["kind"]
    if kind not in ("bulk", "fixed"):
        text = f"`{kind}`: other people's programs are asked for one file; `bulk` or `fixed` can be"
        yield Problem(flow_key(flow, "source"), f"{text} one")
    if flow["ecn"]:
        text = f'{found.name} is not told to use ECN; leave it out, or use transport = "quic"'
        yield Problem(flow_key(flow, "ecn"), text)


def _unknown_placeholders(key: str, words: Sequence[str]) -> Iterator[Problem]:
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in (*VALUES, *PLACES):
                known = ", ".join(f"{{{one}}}" for one in sorted((*VALUES, *PLACES)))
                yield Problem(key, f"{{{name}}} stands for nothing: there are {known}")


def word_for(found: Implementation, controller: str) -> str | None:
    """Translate a controller's name; None if it has no such controller."""
    of_stack, _, word = controller.partition(":")
    if word and of_stack == found.name:
        controller = word
    return controller if found.controllers is None else found.controllers.get(controller)


def which(program: str) -> str | None:
    """Find a program where the guest will look for it."""
    return shutil.which(program, path=SYSTEM_PATH)


def digest(flow: FlowSpec) -> str:
    """Hash of both programs and of the libraries that they load: other ones measure otherwise."""
    found = implementation(flow)
    assert found is not None
    whole = hashlib.sha256()
    for program in (found.server[0], found.client[0]):
        path = which(program)
        if path is None:
            continue
        for file in (path, *_libraries(path)):
            whole.update(_file_digest(file, Path(file).stat().st_mtime_ns))
    # Where they cannot be, another run of the same seed is another draw.
    whole.update(json.dumps(sorted(_seeding(found))).encode())
    return whole.hexdigest()[:12]


@functools.cache
def _libraries(program: str) -> tuple[str, ...]:
    """Paths of the shared libraries of a program; none of a script's or a static one's."""
    done = subprocess.run(
        ["ldd", program], check=False, capture_output=True, text=True, timeout=_LDD_S
    )
    return tuple(sorted(set(re.findall(r"(?:=> |^\s+)(/\S+)", done.stdout, re.MULTILINE))))


@functools.cache
def _file_digest(path: str, _changed_ns: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _seeding(found: Implementation) -> dict[str, str]:
    """Variables under which both programs draw random numbers from the kernel."""
    paths = (which(words[0]) for words in (found.server, found.client))
    return seeded.environment(
        tuple(library for path in paths if path is not None for library in _libraries(path))
    )


def values(spec: Spec, flow: FlowSpec, address: str, bytes_: int) -> dict[str, str]:
    """Say what the placeholders of a flow's words stand for."""
    found = implementation(flow)
    assert found is not None
    return {
        "address": address,
        "port": str(PORT),
        "bytes": str(bytes_),
        "controller": word_for(found, flow["controller"]["name"]) or flow["controller"]["name"],
        "window": str(flow["receive_window_bytes"]),
        "mtu": str(flow["mtu_bytes"] - 28),
        "seed": str(spec["seed"]),
        "key": str(_CERTIFICATES / "key.pem"),
        "certificate": str(_CERTIFICATES / "certificate.pem"),
    }


def filled(words: Sequence[str], stand_for: Mapping[str, str]) -> list[str]:
    """Replace placeholders, all but those that are the guest's."""

    def value(match: re.Match[str]) -> str:
        return stand_for.get(match[1], match[0])

    return [_PLACEHOLDER.sub(value, word) for word in words]


def job(spec: Spec, flow: FlowSpec, address: str, bytes_: int) -> dict[str, Any]:
    """Give the guest what it needs to start both."""
    found = implementation(flow)
    assert found is not None
    stand_for = values(spec, flow, address, bytes_)
    return {
        "server": filled(found.server, stand_for),
        "client": filled(found.client, stand_for),
        "environment": {**_seeding(found), **found.environment},
        "port": PORT,
        "bytes": bytes_,
        "downloads": found.counts,
        "qlog": found.logs,
        "key": flow_key(flow, "transport.implementation"),
    }
