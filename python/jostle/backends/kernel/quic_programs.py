"""External QUIC implementations: checks and commands of their programs."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel import seeded_random
from jostle.backends.kernel.elf_libraries import libraries_of
from jostle.backends.kernel.unsupported import Problem, flow_key
from jostle.quic import find_program, search_path
from jostle.quic.recipes import (
    PLACES,
    VALUES,
    Programs,
    recipes,
    substitute_placeholders,
    unknown_placeholders,
)
from jostle.run_spec import FlowSpec
from jostle.safe_io.code_consent import admitted, require_consent
from jostle.scenario.resolve.sources import DATAGRAM_HEADER_BYTES

if TYPE_CHECKING:
    from jostle.run_spec import QuicImplementation

PORT = 4433
"""Port of the servers. Each server has its own host."""

_CERTIFICATES = Path(__file__).parent / "certificates"


def is_program(flow: FlowSpec) -> bool:
    """Return whether a flow uses an external QUIC implementation."""
    return _external_implementation(flow) is not None


def shows_itself(flow: FlowSpec) -> bool:
    """Return whether the program at the sender writes a qlog."""
    return any("{qlog}" in word for word in _implementation(flow)["commands"]["server"])


def shows_delivery(flow: FlowSpec) -> bool:
    """Return whether the program at the receiver writes the received file."""
    return any("{downloads}" in word for word in _implementation(flow)["commands"]["client"])


def _external_implementation(flow: FlowSpec) -> QuicImplementation | None:
    quic = flow.get("quic")
    return None if quic is None else quic.get("implementation")


def _implementation(flow: FlowSpec) -> QuicImplementation:
    implementation = _external_implementation(flow)
    assert implementation is not None, "jostle's own QUIC carries it"
    return implementation


def problems(flow: FlowSpec) -> Iterator[Problem]:
    """Yield the reasons why a flow's programs cannot be used."""
    found, key = _implementation(flow), flow_key(flow, "transport.implementation")
    recipe = recipes().get(found["name"])
    install = "install it, or give its whole path" if recipe is None else recipe.advice
    for role, words in _commands(flow):
        for name in unknown_placeholders(words):
            known = ", ".join(f"{{{one}}}" for one in sorted((*VALUES, *PLACES)))
            yield Problem(f"{key}.{role}", f"{{{name}}} is unknown — accepted: {known}")
        if find_program(found["name"], words[0]) is None:
            places = search_path(found["name"])
            text = f"there is no program `{words[0]}` in {places}: {install}"
            yield Problem(f"{key}.{role}", text)
    if word_for(found["name"], flow["controller"]["name"]) is None:
        has = ", ".join(sorted(recipes()[found["name"]].controllers))
        text = f"`{flow['controller']['name']}`: {found['name']} has {has}"
        yield Problem(flow_key(flow, "controller"), text)
    if flow["source"]["kind"] not in ("bulk", "fixed"):
        text = f"`{flow['source']['kind']}`: programs are asked for one file: `bulk` or `fixed`"
        yield Problem(flow_key(flow, "source"), text)
    if flow["ecn"]:
        text = f"nothing tells {found['name']} to use it: leave it out"
        yield Problem(flow_key(flow, "ecn"), text)


def _commands(flow: FlowSpec) -> tuple[tuple[str, Sequence[str]], tuple[str, Sequence[str]]]:
    """Return the commands of both programs, from a bundled recipe or admitted by the user.

    Raises
    ------
    ConsentError
        If they are neither. Scenarios with such programs are rejected earlier, but specifications
        that were written by hand or read from a store are checked here.
    """
    found = _implementation(flow)
    programs = Programs.of(found["commands"]["server"], found["commands"]["client"])
    recipe = recipes().get(found["name"])
    if recipe is None or programs not in recipe.programs:
        known = admitted(programs.digest()) is not None
        require_consent(f"the programs {programs}", allow_code=known)
    return ("server", programs.server), ("client", programs.client)


def word_for(name: str, controller: str) -> str | None:
    """Return the program's name of a controller; None if the recipe lacks the controller."""
    recipe = recipes().get(name)
    return controller if recipe is None else recipe.controllers.get(controller)


def digest(flow: FlowSpec) -> str:
    """Hash both programs and their shared libraries, because other versions give other results."""
    checksum = hashlib.sha256()
    for path in _paths(flow):
        for file in (path, *libraries_of(path)):
            checksum.update(_file_digest(file, Path(file).stat().st_mtime_ns))
    # The random source is hashed, too: if a program cannot be seeded, equal seeds give other
    # values.
    checksum.update(json.dumps(sorted(_seeding(flow))).encode())
    return checksum.hexdigest()[:12]


def _paths(flow: FlowSpec) -> Iterator[str]:
    """Yield the paths of both programs that are installed."""
    for _, words in _commands(flow):
        path = find_program(_implementation(flow)["name"], words[0])
        if path is not None:
            yield path


@functools.cache
def _file_digest(path: str, _changed_ns: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _seeding(flow: FlowSpec) -> dict[str, str]:
    """Return environment variables that make both programs draw random numbers from the kernel."""
    return seeded_random.environment(
        tuple(library for path in _paths(flow) for library in libraries_of(path))
    )


def memory_bytes(flow: FlowSpec, size_bytes: int) -> int:
    """Return the memory that the programs need for the transferred file.

    Parameters
    ----------
    size_bytes
        Size of the file.
    """
    recipe = recipes().get(_implementation(flow)["name"])
    return size_bytes if recipe is not None and recipe.loads_file else 0


def job(spec: Spec, flow: FlowSpec, address: str, size_bytes: int) -> dict[str, Any]:
    """Return the guest's instructions to start both programs.

    Parameters
    ----------
    address
        Address of the sender, which runs the server.
    size_bytes
        Size of the requested file.
    """
    found = _implementation(flow)
    recipe = recipes().get(found["name"])
    controller = word_for(found["name"], flow["controller"]["name"])
    assert controller is not None, "a flow without problems has one"
    stand_for = {
        "address": address,
        "port": str(PORT),
        "bytes": str(size_bytes),
        "controller": controller,
        "window": str(flow["receive_window_bytes"]),
        "mtu": str(flow["mtu_bytes"] - DATAGRAM_HEADER_BYTES),
        "seed": str(spec["seed"]),
        "key": str(_CERTIFICATES / "key.pem"),
        "certificate": str(_CERTIFICATES / "certificate.pem"),
    }
    return {
        **{role: substitute_placeholders(words, stand_for) for role, words in _commands(flow)},
        "environment": {
            "PATH": search_path(found["name"]),
            **_seeding(flow),
            **({} if recipe is None else recipe.environment),
        },
        "port": PORT,
        "bytes": size_bytes,
        "downloads": shows_delivery(flow),
        "qlog": shows_itself(flow),
        "key": flow_key(flow, "transport.implementation"),
    }
