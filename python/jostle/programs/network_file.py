"""NETWORK.toml: links as in LINK.toml, the hosts behind them, and commands.

The default hosts are `server` and `client`. Data to the client cross the file's links, and
data from it the reverse links.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, cast

from jostle.backends.kernel.host_network import MOST_HOSTS, NetworkHost
from jostle.emulate import link_file
from jostle.emulate.link_file import LinkFile
from jostle.errors import InputError
from jostle.kernel_images.config import expected
from jostle.run_spec import LinkSpec
from jostle.safe_io.code_consent import admit, require_consent
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import QuantityError, parse_span
from jostle.scenario.parsing.toml_document import parse, read_text
from jostle.scenario.registry import Registry

__all__ = ["Command", "NetworkFile", "load"]

_KEYS: Final = ("duration", "hosts", "commands")
_HOST_KEYS: Final = ("name", "down", "up", "controller")
_COMMAND_KEYS: Final = ("host", "serve", "run", "start")
_NAME: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?")
_TAKEN: Final = ("localhost",)
_CONTROLLER: Final = "cubic"
_DURATION_NS: Final = 600 * 10**9
_LONGEST_NS: Final = 24 * 3600 * 10**9


@dataclass(frozen=True)
class Command:
    """A command on a host.

    Parameters
    ----------
    host
        Name of the host.
    text
        The command, for the shell.
    is_server
        Whether it is started first, and ended when all other commands have ended.
    start_ns
        Start time of a command that is not a server.
    from_file
        Whether the file names it, and not the user.
    """

    host: str
    text: str
    is_server: bool = False
    start_ns: int = 0
    from_file: bool = False

    def digest(self) -> str:
        """Return the hash by which the command is admitted."""
        return hashlib.sha256(f"{self.host}\0{self.text}".encode()).hexdigest()


@dataclass(frozen=True)
class NetworkFile:
    """A resolved NETWORK.toml.

    Parameters
    ----------
    source, title, seed
        See `LinkFile`.
    links
        All links; links of the forward path come first.
    hosts
        Hosts in the order of the file.
    commands
        Commands of the file, or the user's.
    duration_ns
        Virtual time after which commands that still run are ended.
    """

    source: str
    title: str
    seed: int
    links: Sequence[LinkSpec]
    hosts: Sequence[NetworkHost]
    commands: Sequence[Command]
    duration_ns: int

    def with_commands(self, commands: Sequence[Command]) -> NetworkFile:
        """Return the network with other commands.

        Raises
        ------
        InputError
            If one names a host that does not exist.
        """
        names = [host.name for host in self.hosts]
        for command in commands:
            option = "--serve" if command.is_server else "--on"
            if command.host not in names:
                hint = did_you_mean(command.host, names, listed="hosts")
                raise InputError(f"{option} {command.host}: no host of {self.source} — {hint}")
            if not command.text.strip():
                raise InputError(f"{option} {command.host}: empty — write a command")
        return replace(self, commands=tuple(commands))

    def admit_commands(self, *, allow_code: bool) -> None:
        """Admit the commands of the file.

        Raises
        ------
        ConsentError
            If there are any and the user has not allowed them.
        """
        named = [command for command in self.commands if command.from_file]
        if not named:
            return
        listed = ", ".join(f"`{command.text}` on {command.host}" for command in named)
        require_consent(f"the commands of {self.source}: {listed}", allow_code=allow_code)
        for command in named:
            admit(command)


def load(path: str | Path, *, registry: Registry | None = None) -> NetworkFile:
    """Read a NETWORK.toml; nothing in it is executed.

    Parameters
    ----------
    path
        The file. Trace files named in it are relative to its folder.
    registry
        Registry of queue disciplines; by default the installed engine's.

    Raises
    ------
    ScenarioError
        If the file has problems; the error lists all that were found.
    """
    source = str(path)
    text, document = parse(read_text(path), source)
    report = Report()
    links = link_file.resolve(
        document, path, report, registry=registry, more_keys=_KEYS, in_kernel=True
    )
    reader = _Reader(document, links, report)
    hosts = reader.hosts()
    commands = reader.commands([host.name for host in hosts])
    duration_ns = reader.span(("duration",), document.get("duration"), _DURATION_NS)
    if not 0 < duration_ns <= _LONGEST_NS:
        report.add(("duration",), 'give a time up to 24 hours, such as "2 min"')
    if links is None or report.found:
        raise link_file.located(source, text, document, report)
    used = {link for host in hosts for link in (*host.down, *host.up)}
    # Without [[reverse]] there is a default link, which no host may use.
    reverse = links.reverse
    if "reverse" not in document and max(used, default=0) < len(links.links):
        reverse = []
    return NetworkFile(
        source=source,
        title=links.title,
        seed=links.seed,
        links=cast("list[LinkSpec]", [*links.links, *reverse]),
        hosts=hosts,
        commands=commands,
        duration_ns=duration_ns,
    )


class _Reader:
    """Reads the tables that are not links, and reports their problems."""

    def __init__(self, document: Mapping[str, Any], links: LinkFile | None, report: Report) -> None:
        self.document = document
        self.report = report
        self.forward = [] if links is None else [str(link["name"]) for link in links.links]
        self.reverse = [] if links is None else [str(link["name"]) for link in links.reverse]
        self.known_links = links is not None

    def hosts(self) -> list[NetworkHost]:
        """Return the hosts, or the default hosts if the file has none."""
        forward = tuple(range(len(self.forward)))
        reverse = tuple(range(len(forward), len(forward) + len(self.reverse)))
        if "hosts" not in self.document:
            return [
                NetworkHost("server", (), (), _CONTROLLER),
                NetworkHost("client", forward, reverse, _CONTROLLER),
            ]
        hosts = [self._host(number, table) for number, table in self._tables("hosts", _HOST_KEYS)]
        if len(hosts) < 2:
            self.report.add(("hosts",), "one host alone has no network — write two or more")
        if len(hosts) > MOST_HOSTS:
            self.report.add(("hosts",), f"{len(hosts)} hosts — at most {MOST_HOSTS}")
        names = [host.name for host in hosts]
        for number, name in enumerate(names):
            if name in names[:number]:
                self.report.add(("hosts", number, "name"), f'there is another host "{name}"')
        self._check_directions(hosts)
        return hosts

    def commands(self, hosts: Sequence[str]) -> list[Command]:
        """Return the commands of the file."""
        return [
            self._command(number, table, hosts)
            for number, table in self._tables("commands", _COMMAND_KEYS)
        ]

    def span(self, path: tuple[str | int, ...], given: object, default_ns: int) -> int:
        """Return a time of the file."""
        if given is None:
            return default_ns
        try:
            return parse_span(given)
        except QuantityError as error:
            self.report.add(path, str(error))
            return default_ns

    def _tables(self, key: str, keys: Sequence[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the tables of a list, without tables that are not valid."""
        tables = self.document.get(key, [])
        if not isinstance(tables, list):
            self.report.add((key,), f"write [[{key}]] above each of them")
            return
        for number, table in enumerate(tables):
            if not isinstance(table, dict):
                self.report.add((key, number), "write a table")
                continue
            for name in table:
                if name not in keys:
                    hint = did_you_mean(name, keys, listed="accepted")
                    self.report.add((key, number, name), f"unknown key — {hint}")
            yield number, table

    def _text(self, path: tuple[str | int, ...], table: Mapping[str, Any], missing: str) -> str:
        """Return a required text of a table; empty if it is not valid."""
        given = table.get(str(path[-1]))
        if given is None:
            self.report.add(path[:-1], missing)
        elif not isinstance(given, str):
            self.report.add(path, "write a text in quotes")
        elif not given.strip() or "\0" in given:
            self.report.add(path, "empty" if not given.strip() else "a NUL character")
        else:
            return given
        return ""

    def _host(self, number: int, table: Mapping[str, Any]) -> NetworkHost:
        name = self._text(("hosts", number, "name"), table, 'no name — write name = "client"')
        if name and (not _NAME.fullmatch(name) or name in _TAKEN):
            message = f'"{name}": commands use it as a host name — lower-case letters, digits, "-"'
            self.report.add(("hosts", number, "name"), message)
        controller = table.get("controller", _CONTROLLER)
        if controller not in expected():
            hint = did_you_mean(str(controller), expected(), listed="Linux has")
            self.report.add(("hosts", number, "controller"), f"not of this kernel — {hint}")
            controller = _CONTROLLER
        down, up = (self._links(number, key, table.get(key, [])) for key in ("down", "up"))
        return NetworkHost(name, down, up, controller)

    def _links(self, host: int, key: str, given: object) -> tuple[int, ...]:
        """Return the positions of the links of a host's `down` or `up`."""
        path = ("hosts", host, key)
        names = [*self.forward, *self.reverse]
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            self.report.add(path, "write a list of links' names")
            return ()
        if not self.known_links:
            return ()
        for name in given:
            if name not in names:
                self.report.add(path, f'no link "{name}" — {did_you_mean(name, names)}')
        if len(set(given)) < len(given):
            self.report.add(path, "a link is in it twice")
        return tuple(names.index(name) for name in given if name in names)

    def _check_directions(self, hosts: Sequence[NetworkHost]) -> None:
        """Report links that would carry packets of one address in two directions."""
        names = [*self.forward, *self.reverse]
        downs = {link for host in hosts for link in host.down}
        following: dict[int, int | None] = {}
        for number, host in enumerate(hosts):
            for link, after in zip_longest(host.up, host.up[1:]):
                path = ("hosts", number, "up")
                if link in downs:
                    message = f'"{names[link]}" is in a `down`, too — a link has one direction'
                    self.report.add(path, message)
                elif following.setdefault(link, after) != after:
                    message = f'"{names[link]}" is followed by another link at another host'
                    self.report.add(path, message)

    def _command(self, number: int, table: Mapping[str, Any], hosts: Sequence[str]) -> Command:
        path = ("commands", number)
        host = self._text((*path, "host"), table, 'no host — write host = "client"')
        if host and host not in hosts:
            self.report.add((*path, "host"), f"no host — {did_you_mean(host, hosts)}")
        is_server = "serve" in table
        if is_server and "run" in table:
            self.report.add((*path, "run"), "there is `serve`, too — keep either")
        if is_server and "start" in table:
            self.report.add((*path, "start"), "servers are started first — remove it")
        key = "serve" if is_server else "run"
        text = self._text((*path, key), table, 'no command — write run = "…", or serve = "…"')
        start_ns = self.span((*path, "start"), table.get("start"), 0)
        return Command(host, text, is_server, start_ns, from_file=True)
