"""Samples every socket and queue at fixed times, and writes the samples to a file.

A sample is a record of fixed size (`sample_format.py`), read by
`jostle.backends.kernel.guest_samples`: the time in ns of the run, a part per flow, and the counters
of each queue.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol

from .clock import sleep_until
from .failure import GuestFailure
from .link_qdiscs import LINK
from .namespaces import Host
from .netlink import TC_BYTES, Device, attributes
from .sample_format import QUEUE, XSTATS_BYTES

# linux/rtnetlink.h, linux/gen_stats.h
_TCA_XSTATS, _TCA_STATS2 = 4, 7
_STATS_BASIC, _STATS_QUEUE, _STATS_APP, _STATS_PKT64 = 1, 3, 4, 8
# linux/pkt_sched.h: CAKE reports its statistics in attributes, one list per tin.
_CAKE_TINS = 10
# Marks, and drops of the ACK filter.
_CAKE_COUNTS = (8, 6)


def moments_ns(job: Mapping[str, Any]) -> list[int]:
    """Return the sample times: equal parts of every interval, the job's cuts, and the end."""
    interval_ns, parts = job["interval_ns"], job["samples_per_interval"]
    regular = (
        begin_ns + part * interval_ns // parts
        for begin_ns in range(0, job["duration_ns"], interval_ns)
        for part in range(parts)
    )
    within = {moment_ns for moment_ns in regular if moment_ns < job["duration_ns"]}
    return sorted({*within, *job["cuts_ns"], job["duration_ns"]})


class SampledObjects(Protocol):
    """An object with a part in every sample."""

    def sample(self) -> bytes:
        """Return the object's part of a sample, always of the same size."""


class QueueProbe:
    """Counters of a link's queue, read by netlink, because `tc` would cost a process per sample.

    Parameters
    ----------
    job
        Location of the queue, and of the qdisc that loses packets, if there is one.
    """

    def __init__(self, job: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        self._queue = _Qdisc(job["queue"], hosts)
        inner = job["queue"].get("inner")
        self._inner = None if inner is None else _Qdisc({**job["queue"], "handle": inner}, hosts)
        self._losses = None if job["losses"] is None else _Qdisc(job["losses"], hosts)

    def sample(self) -> bytes:
        """Return the record of the queue."""
        found = self._queue.read()
        if self._inner is not None:
            # The drops of the outer queue include the drops of the inner queue.
            found["xstats"] = struct.pack("=I", self._inner.read()["drops"])
        return QUEUE.pack(
            found["bytes"],
            found["packets"],
            found["backlog"],
            found["qlen"],
            found["drops"],
            found["overlimits"],
            found["xstats"],
            *self._link_counters(),
        )

    def _link_counters(self) -> tuple[int, ...]:
        """Return the last nine counters of `QUEUE`."""
        if self._losses is None:
            return (0,) * 9
        found = self._losses.read()
        if self._losses.kind == LINK:
            # struct jostle_link_xstats of jostle_link.h.
            return struct.unpack_from("=16xQQ16x7Q", found["xstats"])
        return (found["drops"], *(0,) * 8)


class _Qdisc:
    def __init__(self, place: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        self.kind: str = place["kind"]
        with hosts[place["host"]].entered():
            self._device = Device(place["device"])
        self._query = self._device.query(place["handle"])

    def read(self) -> dict[str, Any]:
        try:
            reply, length = self._device.ask(self._query)
        except OSError as error:
            raise GuestFailure(f"a queue cannot be read: {error.strerror}") from error
        found: dict[str, Any] = {"xstats": b""}
        for name, content in attributes(reply, TC_BYTES, length):
            if name == _TCA_XSTATS:
                found["xstats"] = content[:XSTATS_BYTES]
            elif name == _TCA_STATS2:
                _read_stats(content, found)
                if self.kind == "cake":
                    counts = (_counted_by_cake(content, name) for name in _CAKE_COUNTS)
                    found["xstats"] = struct.pack("=2I", *counts)
        return found


def _counted_by_cake(stats: bytes, name: int) -> int:
    """Return the sum of a counter over all tins."""
    return sum(
        int.from_bytes(count, sys.byteorder)
        for own in _named(stats, _STATS_APP)
        for tins in _named(own, _CAKE_TINS)
        for _, tin in attributes(tins, 0, len(tins))
        for count in _named(tin, name)
    )


def _named(content: bytes, name: int) -> Iterator[bytes]:
    """Return the contents of the attributes with a number."""
    return (inner for found, inner in attributes(content, 0, len(content)) if found == name)


def _read_stats(content: bytes, found: dict[str, Any]) -> None:
    for name, value in attributes(content, 0, len(content)):
        if name == _STATS_BASIC:
            found["bytes"], packets = struct.unpack_from("=QI", value)
            found.setdefault("packets", packets)
        elif name == _STATS_PKT64:
            (found["packets"],) = struct.unpack_from("=Q", value)
        elif name == _STATS_QUEUE:
            keys = ("qlen", "backlog", "drops", "requeues", "overlimits")
            found.update(zip(keys, struct.unpack_from("=5I", value), strict=True))


class Recording:
    """File of samples.

    Parameters
    ----------
    path
        The file.
    flows, queues
        Objects to sample.
    """

    def __init__(
        self, path: Path, flows: Sequence[SampledObjects], queues: Sequence[SampledObjects]
    ) -> None:
        self._flows = flows
        self._queues = queues
        self._file: BinaryIO = path.open("xb", buffering=1 << 18)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def follow(self, start_ns: int, moments_ns: Sequence[int], is_over: Callable[[], bool]) -> None:
        """Take samples at `moments_ns` after `start_ns`, until the end or until `is_over`."""
        for moment_ns in moments_ns:
            sleep_until(start_ns + moment_ns)
            if is_over():
                break
            self._file.write(self._sample(start_ns))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _sample(self, start_ns: int) -> bytes:
        parts = [struct.pack("=q", time.monotonic_ns() - start_ns)]
        parts.extend(flow.sample() for flow in self._flows)
        parts.extend(queue.sample() for queue in self._queues)
        return b"".join(parts)
