"""Datagrams at a rate, which nobody answers, and pings, over real sockets.

Every namespace has the same clock: how long a datagram was on its way is what it shows when it is
taken from the device less what it showed when it was sent.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .clock import clock_offset_ns, sleep_until
from .failure import GuestFailure
from .flow import Flow
from .namespaces import Host
from .records import ARRIVAL, DEPARTURE, FLOW_BYTES

_PORT = 5201
_NO_RECORD = bytes(FLOW_BYTES)
# asm/socket.h: when the kernel took a packet from its device; buffers beyond the usual limits.
_SO_TIMESTAMPNS, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 35, 32, 33
_TIMESTAMP = struct.Struct("=qq")
_NUMBER = struct.Struct("=Iq")
# What waits here is read at once.
_BUFFER_BYTES = 4 << 20
_LARGEST_BYTES = 1 << 16


class DatagramFlow:
    """A flow's two ends, a thread each.

    Parameters
    ----------
    number
        Its position in the job.
    job
        Its part of the job.
    folder
        Takes what each end saw.
    """

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], *, folder: Path
    ) -> None:
        self.number = number
        self.failure: BaseException | None = None
        self.complete = threading.Event()
        self.completed_ns: int | None = None
        self._job = job
        self._hosts = hosts
        self._listens = threading.Event()
        self._start_ns = 0
        self._offset_ns = 0
        self._due_ns: int | None = None
        self._before: Flow | None = None
        folder = folder / "datagrams"
        folder.mkdir(exist_ok=True)
        self._sent = (folder / f"{number}.sent").open("xb", buffering=1 << 16)
        self._came = (folder / f"{number}.came").open("xb", buffering=1 << 16)

    def listen(self) -> None:
        """Start the receiver; return when it can be reached."""
        self._thread(self._receive)
        self._listens.wait()

    def start(self, start_ns: int, flows: Sequence[Flow]) -> None:
        """Start the sender, with the run's time 0 at `start_ns`; it may wait for one of `flows`."""
        self._start_ns = start_ns
        self._offset_ns = clock_offset_ns()
        after = self._job["after"]
        self._before = None if after is None else flows[after]
        self._thread(self._send)

    def sample(self) -> bytes:
        """Nothing: both ends write down every datagram."""
        return _NO_RECORD

    def end(self) -> None:
        """Nothing: the sockets end with the process that has them."""

    def check(self) -> None:
        """See that both ends did what they were asked to, and write down what they saw.

        Raises
        ------
        GuestFailure
            When one did not.
        """
        if self.failure is not None:
            raise GuestFailure(f"flow {self.number}: {self.failure}") from self.failure
        self._sent.flush()
        self._came.flush()

    def events(self, start_ns: int) -> dict[str, Any]:
        """When it opened, in ns of the run, if it did."""
        return {} if self._due_ns is None else {"due_ns": self._due_ns - start_ns}

    def _thread(self, target: Any) -> None:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                self.failure = error
                self._listens.set()

        threading.Thread(target=guarded, daemon=True).start()

    def _receive(self) -> None:
        self._hosts[self._job["receiver"]].enter()
        receiver = _socket((self._job["receiver_address"], _PORT))
        self._listens.set()
        while True:
            came, payload, sender = self._taken(receiver)
            self._came.write(came)
            self._answer(receiver, payload, sender)

    def _taken(self, end: socket.socket) -> tuple[bytes, bytes, Any]:
        """Take a datagram: what is written down of it, what it holds, and who sent it."""
        payload, ancillary, _, sender = end.recvmsg(_LARGEST_BYTES, 64)
        number, sent_ns = _NUMBER.unpack_from(payload)
        (_, _, stamp) = ancillary[0]
        seconds, rest_ns = _TIMESTAMP.unpack(stamp)
        came_ns = seconds * 10**9 + rest_ns - self._offset_ns
        return ARRIVAL.pack(came_ns - self._start_ns, sent_ns, number), payload, sender

    def _answer(self, receiver: socket.socket, payload: bytes, sender: Any) -> None:
        """Nothing: nobody answers."""

    def _opened(self, sender: socket.socket) -> None:
        """Nothing: nothing comes back."""

    def _send(self) -> None:
        self._hosts[self._job["sender"]].enter()
        sender = _socket((self._job["sender_address"], 0))
        sender.connect((self._job["receiver_address"], _PORT))
        self._opened(sender)
        begin_ns = self._start_ns
        if self._before is not None:
            self._before.complete.wait()
            begin_ns = self._before.completed_ns or begin_ns
        due_ns = begin_ns + self._job["start_ns"]
        stop_ns = self._job["stop_ns"]
        size = self._job["source"]["bytes"]
        for number, at_ns in enumerate(moments_ns(self._job["source"], due_ns - self._start_ns)):
            if stop_ns is not None and at_ns >= stop_ns:
                return
            if number == 0:
                self._due_ns = due_ns
            sleep_until(self._start_ns + at_ns)
            sent_ns = time.monotonic_ns() - self._start_ns
            sender.send(_NUMBER.pack(number, sent_ns).ljust(size, b"\0"))
            self._sent.write(DEPARTURE.pack(sent_ns))


class PingFlow(DatagramFlow):
    """Pings: the receiver sends back what comes, and a third thread takes it."""

    def __init__(
        self, number: int, job: Mapping[str, Any], hosts: Mapping[str, Host], *, folder: Path
    ) -> None:
        super().__init__(number, job, hosts, folder=folder)
        self._back = (folder / "datagrams" / f"{number}.back").open("xb", buffering=1 << 16)

    def check(self) -> None:
        """See that both ends did what they were asked to, and write down what they saw."""
        super().check()
        self._back.flush()

    def _answer(self, receiver: socket.socket, payload: bytes, sender: Any) -> None:
        receiver.sendto(payload, sender)

    def _opened(self, sender: socket.socket) -> None:
        def take() -> None:
            while True:
                self._back.write(self._taken(sender)[0])

        self._thread(take)


def _socket(address: tuple[str, int]) -> socket.socket:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    for option in (_SO_RCVBUFFORCE, _SO_SNDBUFFORCE):
        end.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    end.bind(address)
    return end


def moments_ns(source: Mapping[str, Any], start_ns: int) -> Iterator[int]:
    """Yield when datagrams leave, in ns of the run: pings at even distances, others by a rate."""
    if source["kind"] == "ping":
        return itertools.count(start_ns, source["every_ns"])
    return _at_a_rate(source, start_ns)


def _at_a_rate(source: Mapping[str, Any], start_ns: int) -> Iterator[int]:
    """Yield when datagrams of a rate leave, as `Cadence` of `crates/sim` has it.

    Each leaves as soon as the rate has made up for the one before; what is rounded up to a whole
    nanosecond is taken off the next wait.
    """
    steps = [(step["at_ns"], step["rate_bps"]) for step in source["steps"]]
    ends_ns: list[int | None] = [at for at, _ in steps[1:]]
    ends_ns.append(None)
    size_bit_ns = 8_000_000_000 * source["bytes"]
    now_ns, needed = start_ns, 0
    for (begins_ns, rate_bps), ends in zip(steps, ends_ns, strict=True):
        now_ns = max(now_ns, begins_ns)
        if rate_bps == 0 or (ends is not None and now_ns >= ends):
            continue
        while True:
            wait_ns = -(-needed // rate_bps)
            if ends is not None and now_ns + wait_ns > ends:
                needed -= rate_bps * (ends - now_ns)
                break
            now_ns += wait_ns
            yield now_ns
            needed += size_bit_ns - wait_ns * rate_bps
