"""Builds the network of a job: hosts, veth pairs, routes and qdiscs."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import link_qdiscs
from .clock import libc, sleep_until
from .failure import GuestFailure
from .namespaces import Host
from .netlink import Device, Netlink

# One MAC address for both ends of every veth pair. Without ARP, a device sends frames to its own
# address, which the other end accepts as its own. No packet waits for address resolution.
_MAC = bytes.fromhex("020000000001")

# Number of the system call on x86-64, the only machine that User-Mode Linux supports. (`insmod` is
# not installed everywhere.)
_FINIT_MODULE = 313

# linux/syslog.h: SYSLOG_ACTION_READ_ALL.
_READ_LOG = 3
_LOG_BYTES = 1 << 20
_TAINTED = "taints kernel"
"""Part of the kernel's message about every module from outside its tree."""

_REASONS = {
    errno.ENOEXEC: "it was compiled for another kernel",
    errno.EEXIST: "the kernel already has a controller or a module of that name",
    errno.EINVAL: "it refuses to start, or a parameter has no value of its type",
    errno.ENOENT: "it uses a function that this kernel does not have, or a parameter is unknown",
}
"""Error of the kernel → what it means for a module."""

_SHOWN = 200
"""Characters of a registration in a message."""

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_SIOCETHTOOL = 0x8946
_SOFTNET = Path("/proc/net/softnet_stat")

# ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO of linux/ethtool.h.
_GRO = 0x2C
_OFFLOADS = (0x1F, 0x24, _GRO)


def load_modules(paths: Sequence[str]) -> None:
    """Load kernel modules in order; modules that are already loaded are skipped."""
    for path in paths:
        number = _load(path, "")
        if number not in (0, errno.EEXIST):
            raise GuestFailure(f"cannot load the module {path}: {os.strerror(number)}")


def load_controllers(modules: Sequence[Mapping[str, str]], folder: Path) -> None:
    """Load the user's modules, with their parameters.

    Parameters
    ----------
    modules
        `file` in the folder of the job, `arguments` for the kernel, and the module's `name`.

    Raises
    ------
    GuestFailure
        If the kernel refuses a module. The message contains the kernel's reason.
    """
    for module in modules:
        known = len(_messages())
        number = _load(str(folder / module["file"]), module["arguments"])
        if number == 0:
            continue
        reason = _REASONS.get(number, os.strerror(number))
        said = [line for line in _messages()[known:] if _TAINTED not in line]
        log = f" (the kernel says: {'; '.join(said)})" if said else ""
        raise GuestFailure(f"cannot load the module `{module['name']}`: {reason}{log}")


def register_controllers(registrations: Mapping[str, Any], folder: Path) -> None:
    """Load a module with jostle's controllers or a crate's, and register the controllers of a job.

    Parameters
    ----------
    registrations
        The `module`, and the file to which its `lines` are written.

    Raises
    ------
    GuestFailure
        If the kernel refuses the module or a line. The message contains the module's reason.
    """
    load_controllers([registrations["module"]], folder)
    for line in registrations["lines"]:
        known = len(_messages())
        try:
            # A write has at most 4,096 bytes; the line feed ends the line.
            with open(registrations["register"], "wb", buffering=0) as register:
                text = memoryview(line.encode())
                while text:
                    text = text[register.write(text) :]
        except OSError as error:
            said = "; ".join(_messages()[known:]) or error.strerror
            # A file may be a part of the line.
            raise GuestFailure(f"cannot register {line[:_SHOWN].strip()}: {said}") from error


def available_controllers() -> list[str]:
    """Return the names of the congestion controllers that the kernel has now."""
    return sorted(_AVAILABLE.read_text().split())


def _load(path: str, arguments: str) -> int:
    """Load a module, and return the error number of the kernel; 0 without an error."""
    file = os.open(path, os.O_RDONLY)
    try:
        done = libc.syscall(_FINIT_MODULE, file, arguments.encode(), 0)
        return ctypes.get_errno() if done != 0 else 0
    finally:
        os.close(file)


def _messages() -> list[str]:
    """Return the lines of the kernel's log, without their levels and times."""
    buffer = ctypes.create_string_buffer(_LOG_BYTES)
    length = libc.klogctl(_READ_LOG, buffer, _LOG_BYTES)
    lines = buffer.raw[: max(length, 0)].decode("utf-8", "replace").splitlines()
    return [re.sub(r"^<\d+>(?:\[ *[\d.]+\] *)?", "", line) for line in lines]


def check_controllers(wanted: Sequence[str]) -> None:
    """Check that the kernel has every controller.

    Raises
    ------
    GuestFailure
        If one is missing.
    """
    probe = socket.socket()
    missing = []
    for name in wanted:
        try:
            # Setting a controller loads its module, which the list in /proc may not contain.
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            missing.append(name)
    probe.close()
    if missing:
        raise GuestFailure(
            f"this kernel has no congestion control {', '.join(missing)}: "
            f"there is {', '.join(available_controllers())}"
        )


def set_parameters(parameters: Mapping[str, str], may_set: bool) -> None:
    """Set module parameters, such as `tcp_cubic/hystart`.

    Raises
    ------
    GuestFailure
        If a parameter does not exist, or differs on a kernel that must not be changed.
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
    """Create all hosts of a job and connect them; `folder` contains the files of the job."""
    _set_sysctls(job["sysctls"])
    hosts = {host["name"]: Host(host["name"]) for host in job["hosts"]}
    for host in job["hosts"]:
        with hosts[host["name"]].entered():
            _set_sysctls(host["sysctls"])
    netlink = Netlink()
    for a, a_device, b, b_device in job["wires"]:
        netlink.add_veth(a_device, hosts[a].descriptor, b_device, hosts[b].descriptor, _MAC)
    netlink.close()
    devices: dict[str, list[str]] = {name: [] for name in hosts}
    for a, a_device, b, b_device in job["wires"]:
        devices[a].append(a_device)
        devices[b].append(b_device)
    for host in job["hosts"]:
        name = host["name"]
        with hosts[name].entered():
            _set_offloads(devices[name], host["merging"])
            _set_devices(host, devices[name])
            link_qdiscs.make(host["disciplines"], folder)
        if host["tc"]:
            hosts[name].change_queues(host["tc"])
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


def _set_devices(host: Mapping[str, Any], names: Sequence[str]) -> None:
    """Enable a host's devices; set its addresses, routes and delays."""
    loopback = Device("lo")
    loopback.enable()
    for address in host["addresses"]:
        loopback.add_address(address)
    devices = {name: Device(name) for name in names}
    for name, device in devices.items():
        device.enable(host["mtu_bytes"], single_segment=name in host["single_segment"])
    for route in host["routes"]:
        settings = {key: route[key] for key in ("source", "initial_window_packets")}
        devices[route["device"]].route(route["destination"], **settings)
    for name, delay_us in host["delays_us"].items():
        devices[name].delay(delay_us)
    for device in (loopback, *devices.values()):
        device.close()


def _set_offloads(devices: Sequence[str], merging: Sequence[str]) -> None:
    """Disable segmentation offloads, so that a queue of 100 packets does not hold 100 times 64 kB.

    GRO is enabled on the devices in `merging`.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for device in devices:
            for command in _OFFLOADS:
                on = command == _GRO and device in merging
                value = ctypes.create_string_buffer(struct.pack("=II", command, on), 8)
                request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
                fcntl.ioctl(control, _SIOCETHTOOL, request.ljust(40, b"\0"))


class Wires:
    """Counter of packets that were dropped between two hosts outside of the scenario's links.

    The receiving end of a veth pair has a backlog, which belongs to the machine.
    """

    def __init__(self) -> None:
        self._before = _lost_on_wires()

    def check(self) -> None:
        """Check that no packet was dropped since the creation of this object.

        Raises
        ------
        GuestFailure
            If packets were dropped.
        """
        lost = _lost_on_wires() - self._before
        if lost:
            raise GuestFailure(
                f"{lost} packets were lost between hosts, outside the scenario's links: "
                "raise net.core.netdev_max_backlog of this machine"
            )


def _lost_on_wires() -> int:
    # One line per processor; the second number counts backlog drops (net/core/net-procfs.c).
    lines = _SOFTNET.read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


class LinkSchedule:
    """Changes of qdiscs and routes that are due at times of the run.

    Parameters
    ----------
    entries
        `at_ns`, `host`, and either commands of `tc`, `delays_us` of devices, or the address of a
        `route` and its `device`; in order of time.
    """

    def __init__(self, entries: Sequence[Mapping[str, Any]], hosts: Mapping[str, Host]) -> None:
        self._entries = entries
        self._hosts = hosts
        self._devices = self._changed_devices()
        self.failure: str | None = None

    def start(self, start_ns: int) -> None:
        """Start the execution, with the run's time 0 at `start_ns`."""
        if self._entries:
            threading.Thread(target=self._follow, args=(start_ns,), daemon=True).start()

    def _changed_devices(self) -> dict[tuple[str, str], Device]:
        """Open the devices of routes and delays."""
        names: dict[tuple[str, str], None] = {}
        for entry in self._entries:
            used = [entry["device"]] if "route" in entry else entry.get("delays_us", ())
            names |= {(entry["host"], device): None for device in used}
        devices = {}
        for host, device in names:
            with self._hosts[host].entered():
                devices[host, device] = Device(device)
        return devices

    def _change(self, entry: Mapping[str, Any]) -> None:
        if "route" in entry:
            self._devices[entry["host"], entry["device"]].route(entry["route"])
        elif "delays_us" in entry:
            for device, delay_us in entry["delays_us"].items():
                self._devices[entry["host"], device].delay(delay_us, change=True)
        else:
            self._hosts[entry["host"]].change_queues(entry["tc"])

    def _follow(self, start_ns: int) -> None:
        for entry in self._entries:
            sleep_until(start_ns + entry["at_ns"])
            try:
                self._change(entry)
            except GuestFailure as failure:
                self.failure = str(failure)
                return
