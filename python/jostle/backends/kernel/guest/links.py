"""Links and queues of our own: made from files with their options, and told when the run begins."""

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
    """Make a host's disciplines of ours, in the present network namespace.

    Parameters
    ----------
    disciplines
        `device`, `kind`, `handle`, `parent` and the file with the `options` of each.
    folder
        Holds the files.
    """
    for made in disciplines:
        device = Device(made["device"])
        set_options = device.add
        for options in _messages((folder / made["options"]).read_bytes()):
            set_options(made["kind"], made["handle"], made["parent"], options)
            set_options = device.change
        device.close()


def begin(job: Mapping[str, Any], hosts: Mapping[str, Host], start_ns: int) -> None:
    """Tell every link that its time 0 is at `start_ns` of the monotonic clock."""
    origin = attribute(_ORIGIN, struct.pack("=Q", start_ns))
    for host in job["hosts"]:
        for made in host["disciplines"]:
            if made["kind"] == LINK:
                with hosts[host["name"]].entered():
                    device = Device(made["device"])
                device.change(LINK, made["handle"], made["parent"], origin)
                device.close()


def _messages(content: bytes) -> Iterator[bytes]:
    """Split a file: each message is preceded by its length."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("=I", content, at)
        yield content[at + 4 : at + 4 + length]
        at += 4 + length
