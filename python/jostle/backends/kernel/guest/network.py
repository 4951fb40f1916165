"""Builds the network of a job: hosts, wires between them, routes, queueing disciplines."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import links
from .clock import libc, sleep_until
from .failure import GuestFailure
from .namespaces import Host, batch

# One address for both ends of every wire: without ARP a device addresses frames to itself, and
# that is whom the other end takes them for. Nothing waits for address resolution.
_MAC = "02:00:00:00:00:01"

# Number of the system call on x86-64, the only machine that User-Mode Linux is for. (`insmod` is
# not installed everywhere.)
_FINIT_MODULE = 313

_SIOCETHTOOL = 0x8946
_SOFTNET = Path("/proc/net/softnet_stat")

# ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO of linux/ethtool.h.
_GRO = 0x2C
_OFFLOADS = (0x1F, 0x24, _GRO)


def load_modules(paths: Sequence[str]) -> None:
    """Load kernel modules, in order; those that are there already are no mistake."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        try:
            if libc.syscall(_FINIT_MODULE, file, b"", 0) != 0:
                number = ctypes.get_errno()
                if number != errno.EEXIST:
                    raise GuestFailure(f"cannot load the module {path}: {os.strerror(number)}")
        finally:
            os.close(file)


def check_controllers(wanted: Sequence[str]) -> None:
    """See that the kernel has every controller.

    Raises
    ------
    GuestFailure
        When it has not.
    """
    probe = socket.socket()
    missing = []
    for name in wanted:
        try:
            # Asking for a controller loads its module, which the list of /proc does not know.
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            missing.append(name)
    probe.close()
    if missing:
        known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
        raise GuestFailure(
            f"this kernel has no congestion control {', '.join(missing)}: "
            f"there is {', '.join(sorted(known))}"
        )


def set_parameters(parameters: Mapping[str, str], may_set: bool) -> None:
    """Give module parameters (`tcp_cubic/hystart`) their values.

    Raises
    ------
    GuestFailure
        When a parameter does not exist, or differs and may not be set because it is not ours.
    """
    for name, value in parameters.items():
        path = Path("/sys/module", *name.replace("/", "/parameters/").split("/"))
        try:
            present = path.read_text().strip()
        except FileNotFoundError:
            raise GuestFailure(f"this kernel has no module parameter {path}") from None
        if _plain(present) == value:
            continue
        if not may_set:
            raise GuestFailure(
                f"the scenario needs {value} in {path}, which is {present} on this machine: "
                "set it yourself, or use another kernel"
            )
        try:
            path.write_text(value)
        except OSError as error:
            raise GuestFailure(f"cannot set {path} to {value}: {error.strerror}") from error


def _plain(value: str) -> str:
    return {"Y": "1", "N": "0"}.get(value, value)


def build(job: Mapping[str, Any], folder: Path) -> dict[str, Host]:
    """Make all hosts of a job and connect them; `folder` has the files that it names."""
    _set_sysctls(job["sysctls"])
    hosts = {host["name"]: Host(host["name"]) for host in job["hosts"]}
    for host in job["hosts"]:
        with hosts[host["name"]].entered():
            _set_sysctls(host["sysctls"])
    batch(
        "ip",
        [
            f"link add {a_device} address {_MAC} netns {hosts[a].path} type veth "
            f"peer name {b_device} address {_MAC} netns {hosts[b].path}"
            for a, a_device, b, b_device in job["wires"]
        ],
    )
    devices: dict[str, list[str]] = {name: [] for name in hosts}
    for a, a_device, b, b_device in job["wires"]:
        devices[a].append(a_device)
        devices[b].append(b_device)
    for host in job["hosts"]:
        name = host["name"]
        with hosts[name].entered():
            _set_offloads(devices[name], host["merging"])
            settings = f"mtu {host['mtu_bytes']} arp off up"
            up = [f"link set dev {device} {settings}" for device in devices[name]]
            batch("ip", ["link set dev lo up", *up, *host["ip"]])
            links.make(host["disciplines"], folder)
            if host["tc"]:
                batch("tc", host["tc"])
    return hosts


def _set_sysctls(values: Mapping[str, str]) -> None:
    for name, value in values.items():
        path = Path("/proc/sys", *name.split("."))
        if not path.exists() and name.startswith("net.ipv6."):
            continue
        try:
            path.write_text(value)
        except OSError as error:
            raise GuestFailure(f"cannot set {name} to {value}: {error.strerror}") from error


def _set_offloads(devices: Sequence[str], merging: Sequence[str]) -> None:
    """Let every packet cross by itself: a queue of 100 packets must not hold 100 times 64 kB.

    Receivers may put together what arrives at the same moment.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for device in devices:
            for command in _OFFLOADS:
                on = command == _GRO and device in merging
                value = ctypes.create_string_buffer(struct.pack("=II", command, on), 8)
                request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
                fcntl.ioctl(control, _SIOCETHTOOL, request.ljust(40, b"\0"))


class Wires:
    """What is lost on the way between two hosts, where nothing should be.

    The receiving end of a wire has a queue of its own, which belongs to the machine.
    """

    def __init__(self) -> None:
        self._before = _lost_on_wires()

    def check(self) -> None:
        """See that nothing was lost since this was made.

        Raises
        ------
        GuestFailure
            When something was.
        """
        lost = _lost_on_wires() - self._before
        if lost:
            raise GuestFailure(
                f"{lost} packets were lost between hosts, beside the scenario's links: "
                "raise net.core.netdev_max_backlog of this machine"
            )


def _lost_on_wires() -> int:
    # A line per processor; the second number counts what did not fit (net/core/net-procfs.c).
    lines = _SOFTNET.read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


class Timetable:
    """Commands of `tc` that are due at a time of the run.

    Parameters
    ----------
    entries
        `at_ns`, `host` and `tc` of each, in order of time.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]], hosts: Mapping[str, Host]) -> None:
        self._entries = entries
        self._hosts = hosts
        self.failure: str | None = None

    def start(self, start_ns: int) -> None:
        """Carry it out, with the run's time 0 at `start_ns`."""
        if self._entries:
            threading.Thread(target=self._follow, args=(start_ns,), daemon=True).start()

    def _follow(self, start_ns: int) -> None:
        for entry in self._entries:
            sleep_until(start_ns + entry["at_ns"])
            try:
                self._hosts[entry["host"]].batch("tc", entry["tc"])
            except GuestFailure as failure:
                self.failure = str(failure)
                return
