"""QUIC of other people: whether its programs can carry a flow here, and how they are started."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.backends.base import Spec
from jostle.backends.kernel import seeded
from jostle.backends.kernel.libraries import libraries_of
from jostle.backends.kernel.problems import Problem, flow_key
from jostle.foreign_code import admitted, require_consent
from jostle.implementations import (
    PLACES,
    VALUES,
    Programs,
    filled,
    recipes,
    unknown_placeholders,
)
from jostle.quic_programs import search_path, which
from jostle.run_spec import FlowSpec

if TYPE_CHECKING:
    from jostle.run_spec import QuicImplementation

PORT = 4433
"""Where a server listens; each has a host of its own."""

_CERTIFICATES = Path(__file__).parent / "certificates"
_DATAGRAM_HEADER_BYTES = 28


def is_program(flow: FlowSpec) -> bool:
    """Tell whether other people's programs carry a flow."""
    return _asked(flow) is not None


def shows_itself(flow: FlowSpec) -> bool:
    """Tell whether a program at the sender writes a qlog."""
    return any("{qlog}" in word for word in _implementation(flow)["commands"]["server"])


def shows_delivery(flow: FlowSpec) -> bool:
    """Tell whether the program at the receiver shows what it has got."""
    return any("{downloads}" in word for word in _implementation(flow)["commands"]["client"])


def _asked(flow: FlowSpec) -> QuicImplementation | None:
    quic = flow.get("quic")
    return None if quic is None else quic.get("implementation")


def _implementation(flow: FlowSpec) -> QuicImplementation:
    asked = _asked(flow)
    assert asked is not None, "jostle's own QUIC carries it"
    return asked


def problems(flow: FlowSpec) -> Iterator[Problem]:
    """List what stands in the way of a flow's programs."""
    found, key = _implementation(flow), flow_key(flow, "transport.implementation")
    recipe = recipes().get(found["name"])
    install = "install it, or give its whole path" if recipe is None else recipe.advice
    for role, words in _commands(flow):
        for name in unknown_placeholders(words):
            known = ", ".join(f"{{{one}}}" for one in sorted((*VALUES, *PLACES)))
            yield Problem(f"{key}.{role}", f"{{{name}}} stands for nothing: there are {known}")
        if which(found["name"], words[0]) is None:
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
    """Return the words of both programs: a bundled recipe's, or words that were admitted.

    Raises
    ------
    ConsentError
        When they are neither. A scenario with such programs is refused before; a specification
        that was made by hand, or read from a store, reaches this point.
    """
    found = _implementation(flow)
    programs = Programs.of(found["commands"]["server"], found["commands"]["client"])
    recipe = recipes().get(found["name"])
    if recipe is None or programs not in recipe.programs:
        known = admitted(programs.digest()) is not None
        require_consent(f"the programs {programs}", allow_code=known)
    return ("server", programs.server), ("client", programs.client)


def word_for(name: str, controller: str) -> str | None:
    """Translate a controller's name; None if the recipe of that name has no such controller."""
    recipe = recipes().get(name)
    return controller if recipe is None else recipe.controllers.get(controller)


def digest(flow: FlowSpec) -> str:
    """Hash of both programs and of the libraries that they load: other ones measure otherwise."""
    whole = hashlib.sha256()
    for path in _paths(flow):
        for file in (path, *libraries_of(path)):
            whole.update(_file_digest(file, Path(file).stat().st_mtime_ns))
    # Where random numbers cannot be the seed's, another run of the same seed is another draw.
    whole.update(json.dumps(sorted(_seeding(flow))).encode())
    return whole.hexdigest()[:12]


def _paths(flow: FlowSpec) -> Iterator[str]:
    """Paths of both programs, as far as they are there."""
    for _, words in _commands(flow):
        path = which(_implementation(flow)["name"], words[0])
        if path is not None:
            yield path


@functools.cache
def _file_digest(path: str, _changed_ns: int) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _seeding(flow: FlowSpec) -> dict[str, str]:
    """Variables under which both programs draw random numbers from the kernel."""
    return seeded.environment(
        tuple(library for path in _paths(flow) for library in libraries_of(path))
    )


def memory_bytes(flow: FlowSpec, size_bytes: int) -> int:
    """Memory that the programs need because of the file that is asked for.

    Parameters
    ----------
    size_bytes
        Of the file.
    """
    recipe = recipes().get(_implementation(flow)["name"])
    return size_bytes if recipe is not None and recipe.loads_file else 0


def job(spec: Spec, flow: FlowSpec, address: str, size_bytes: int) -> dict[str, Any]:
    """Give the guest what it needs to start both.

    Parameters
    ----------
    address
        Of the sender, where the server is.
    size_bytes
        Of the file that is asked for.
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
        "mtu": str(flow["mtu_bytes"] - _DATAGRAM_HEADER_BYTES),
        "seed": str(spec["seed"]),
        "key": str(_CERTIFICATES / "key.pem"),
        "certificate": str(_CERTIFICATES / "certificate.pem"),
    }
    return {
        **{role: filled(words, stand_for) for role, words in _commands(flow)},
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
