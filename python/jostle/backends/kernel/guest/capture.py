"""Captures packets of hosts, up to a snap length, in a separate process.

The kernel writes packets to a ring buffer that the process maps (packet(7), TPACKET_V3). Filled
blocks are written unchanged to a file, which `jostle._core` converts later. Thus a packet causes
neither a system call nor a wake-up. In virtual time, a capture takes no time, and nothing waits for
it.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .clock import clock_offset_ns
from .failure import GuestFailure
from .namespaces import Host

BLOCK_BYTES = 128 << 10
BLOCKS = 16

# linux/if_packet.h, asm/socket.h
_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION = 5, 6, 10
_TPACKET_V3 = 2
_TP_STATUS_KERNEL, _TP_STATUS_USER = 0, 1
_SO_ATTACH_FILTER = 26
_ETH_P_ALL = 3
# linux/filter.h, linux/if_arp.h: the type of the device, not of the packet.
_SKF_AD_OFF, _SKF_AD_HATYPE = 0x1_0000_0000 - 0x1000, 28
_ARPHRD_LOOPBACK = 772

# Offsets in struct tpacket_block_desc.
_STATUS_AT, _SIZE_AT = 8, 20
_WORD = struct.Struct("=I")

# Timeout after which a block is passed on that is not full.
_PATIENCE_MS = 100
# Version 3 stores packets of variable length; the kernel requires a size anyway.
_FRAME_BYTES = 256

# Classic BPF. Offsets count from the Ethernet header.
_Program = tuple[tuple[int, int, int, int], ...]


def _filter(kept_bytes: int) -> _Program:
    """Return a filter for TCP headers, and `kept_bytes` of a datagram; it drops other packets."""
    return (
        (0x28, 0, 0, 12),  # ldh [12]            type of what is inside
        (0x15, 0, 11, 0x0800),  # jeq IPv4, else 13
        (0x30, 0, 0, 23),  # ldb [23]            protocol
        (0x15, 8, 0, 17),  # jeq UDP: 12
        (0x15, 0, 8, 6),  # jeq TCP, else 13
        (0xB1, 0, 0, 14),  # ldxb 4*([14]&0xf)   length of the IP header
        (0x50, 0, 0, 26),  # ldb [x + 26]        length of the TCP header, in the upper half
        (0x54, 0, 0, 0xF0),  # and
        (0x74, 0, 0, 2),  # rsh 2
        (0x0C, 0, 0, 0),  # add x
        (0x04, 0, 0, 14),  # add 14
        (0x16, 0, 0, 0),  # ret a
        (0x06, 0, 0, kept_bytes),  # ret
        (0x06, 0, 0, 0),  # ret 0
    )


_NOTHING: _Program = ((0x06, 0, 0, 0),)


def _filter_of_host(kept_bytes: int) -> _Program:
    """Return a filter for `kept_bytes` of every packet that is not on the loopback device."""
    return (
        (0x28, 0, 0, _SKF_AD_OFF + _SKF_AD_HATYPE),  # ldh hatype
        (0x15, 1, 0, _ARPHRD_LOOPBACK),  # jeq loopback: 3
        (0x06, 0, 0, kept_bytes),  # ret
        (0x06, 0, 0, 0),  # ret 0
    )


class _HostCapture:
    """Capture of one host into a file."""

    def __init__(self, host: Host, path: Path, program: _Program) -> None:
        with host.entered():
            self.socket = _packet_socket(program)
        self._view: memoryview
        self._next = 0
        self._file: BinaryIO = path.open("xb")

    def share(self) -> None:
        """Map the ring in the process that reads it.

        Only after the fork, because User-Mode Linux 6.12 miscounts pages mapped by two processes.
        """
        self._view = memoryview(mmap.mmap(self.socket.fileno(), BLOCK_BYTES * BLOCKS))

    def forget(self) -> None:
        """Close the copies of the parent process."""
        self.socket.close()
        self._file.close()

    def drain(self) -> None:
        """Write the filled blocks to the file, and return them to the kernel."""
        while True:
            at = self._next * BLOCK_BYTES
            (status,) = _WORD.unpack_from(self._view, at + _STATUS_AT)
            if not status & _TP_STATUS_USER:
                return
            (size_bytes,) = _WORD.unpack_from(self._view, at + _SIZE_AT)
            self._file.write(self._view[at : at + size_bytes])
            _WORD.pack_into(self._view, at + _STATUS_AT, _TP_STATUS_KERNEL)
            self._next = (self._next + 1) % BLOCKS

    def close(self) -> tuple[int, int]:
        """Stop capturing; return the numbers of received and of dropped packets."""
        _attach(self.socket, _NOTHING)
        statistics = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12)
        received, dropped, _ = struct.unpack("=3I", statistics)
        return received, dropped

    def finish(self) -> None:
        """Write the last block, which the kernel has passed on by now."""
        self.drain()
        self._file.flush()
        # Detects a full disk.
        os.fsync(self._file.fileno())


def _packet_socket(program: _Program) -> socket.socket:
    try:
        # Captures all devices of the namespace, which has no traffic yet.
        packet_socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    except OSError as error:
        raise GuestFailure(
            f"this kernel cannot capture packets ({error.strerror}): it lacks af_packet"
        ) from error
    _attach(packet_socket, program)
    packet_socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
    frames = BLOCK_BYTES // _FRAME_BYTES * BLOCKS
    # struct tpacket_req3
    wanted = struct.pack("=7I", BLOCK_BYTES, BLOCKS, _FRAME_BYTES, frames, _PATIENCE_MS, 0, 0)
    packet_socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, wanted)
    return packet_socket


def _attach(packet_socket: socket.socket, program: _Program) -> None:
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    held = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog
    described = struct.pack("HP", len(program), ctypes.addressof(held))
    packet_socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


class Capture:
    """The capture of a run.

    Parameters
    ----------
    wanted
        Host → name of its file in `folder`, and the snap length of datagrams.
    keep_all
        Whether to capture packets of every protocol, and apply the snap length to all of them.

    Raises
    ------
    GuestFailure
        If the kernel does not support captures.
    """

    def __init__(
        self,
        wanted: Mapping[str, tuple[str, int]],
        hosts: Mapping[str, Host],
        folder: Path,
        *,
        keep_all: bool = False,
    ) -> None:
        self._names = list(wanted)
        self._result_pipe: int | None = None
        if not wanted:
            return
        self._clock_ns = clock_offset_ns()
        # Each host needs two files and a socket, in addition to its namespace.
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        program_of = _filter_of_host if keep_all else _filter
        taps = [
            _HostCapture(hosts[name], folder / file, program_of(kept))
            for name, (file, kept) in wanted.items()
        ]
        self._fork(taps)

    def _fork(self, taps: Sequence[_HostCapture]) -> None:
        until, self._until = os.pipe()
        self._result_pipe, result_pipe = os.pipe()
        # Before any thread is started.
        self._process = os.fork()
        if self._process == 0:
            # This pipe is closed at the end of the run, even if the run fails.
            os.close(self._until)
            _capture_and_exit(taps, until, result_pipe)
        os.close(until)
        os.close(result_pipe)
        for tap in taps:
            tap.forget()

    def finish(self, start_ns: int) -> dict[str, Any]:
        """End the capture; return its metadata.

        They are the packet counts per host, and the packets' time at the start of the run.

        Raises
        ------
        GuestFailure
            If the capture failed.
        """
        if self._result_pipe is None:
            return {}
        os.close(self._until)
        with os.fdopen(self._result_pipe) as pipe:
            result = json.loads(pipe.read() or '{"failure": "it ended early"}')
        os.waitpid(self._process, 0)
        if "failure" in result:
            raise GuestFailure(f"the capture failed: {result['failure']}")
        hosts = dict(zip(self._names, result["counts"], strict=True))
        return {"start_ns": start_ns + self._clock_ns, "hosts": hosts}


def _capture_and_exit(taps: Sequence[_HostCapture], until: int, result_pipe: int) -> None:
    """Capture until the other end of `until` is closed, write the result, and exit."""
    try:
        result: dict[str, Any] = {"counts": _follow(taps, until)}
    except OSError as error:
        result = {"failure": error.strerror or str(error)}
    except BaseException as error:
        result = {"failure": repr(error)}
    try:
        os.write(result_pipe, json.dumps(result).encode())
    finally:
        os._exit(0)


def _follow(taps: Sequence[_HostCapture], until: int) -> list[tuple[int, int]]:
    for tap in taps:
        tap.share()
    by_number = {tap.socket.fileno(): tap for tap in taps}
    waiting = select.poll()
    waiting.register(until, select.POLLIN)
    for number in by_number:
        waiting.register(number, select.POLLIN)
    ended = False
    while not ended:
        for number, _ in waiting.poll():
            if number in by_number:
                by_number[number].drain()
            else:
                ended = True
    counts = [tap.close() for tap in taps]
    # The kernel passes on its last blocks within `_PATIENCE_MS`.
    time.sleep(3 * _PATIENCE_MS / 1000)
    for tap in taps:
        tap.finish()
    return counts
