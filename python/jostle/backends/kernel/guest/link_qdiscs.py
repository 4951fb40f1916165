"""jostle's qdiscs: created from files with their options, and notified of the start of the run."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .namespaces import Host
from .netlink import Device, attribute

# jostle_link.h
LINK = "jostle_link"
_ORIGIN = 1

Disciplines = Sequence[Mapping[str, Any]]


def make(disciplines: Disciplines, folder: Path) -> None:
    """Create the qdiscs of a host, in the current network namespace.

    Parameters
    ----------
    disciplines
        `device`, `kind`, `handle`, `parent` and the file with the `options` of each.
    folder
        Folder of the files.
    """
    for discipline in disciplines:
        device = Device(discipline["device"])
        set_options = device.add
        for options in _messages((folder / discipline["options"]).read_bytes()):
            set_options(discipline["kind"], discipline["handle"], discipline["parent"], options)
            set_options = device.change
        device.close()


def begin(job: Mapping[str, Any], hosts: Mapping[str, Host], start_ns: int) -> None:
    """Set time 0 of all links to `start_ns` on the monotonic clock."""
    origin = attribute(_ORIGIN, struct.pack("=Q", start_ns))
    for host in job["hosts"]:
        for discipline in host["disciplines"]:
            if discipline["kind"] == LINK:
                with hosts[host["name"]].entered():
                    device = Device(discipline["device"])
                device.change(LINK, discipline["handle"], discipline["parent"], origin)
                device.close()


def _messages(content: bytes) -> Iterator[bytes]:
    """Split a file into messages, each preceded by its length."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("=I", content, at)
        yield content[at + 4 : at + 4 + length]
        at += 4 + length
