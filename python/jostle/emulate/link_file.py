"""LINK.toml: the links of an emulation, in the format of a scenario's links.

The file contains `[bottleneck]`, or `[[links]]` in the order of the path, and optionally
`[reverse]` or `[[reverse]]` for the reverse path. The default reverse path has the same rate and
delay, and no loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.run_spec import LinkSpec
from jostle.scenario.models import Queue
from jostle.scenario.parsing.key_lines import KeyPath, line_of, positions
from jostle.scenario.parsing.problems import Problem, Report, ScenarioError, did_you_mean
from jostle.scenario.parsing.quantities import QuantityError, format_amount, parse_span
from jostle.scenario.parsing.toml_document import parse, read_text
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.key_paths import KeyPaths
from jostle.scenario.resolve.links import (
    BOTTLENECK,
    LinkFacts,
    draw,
    link_facts,
    link_spec,
    topology,
)
from jostle.scenario.resolve.model_validation import validate
from jostle.scenario.resolve.trace_files import TraceFiles

__all__ = ["LinkFile", "load", "located", "resolve"]

_KEYS: Final = ("title", "seed", "rtt", "bottleneck", "links", "reverse")
_CLASSFUL: Final = ("drr", "prio")
_LARGEST_SEED: Final = 2**63 - 1
_REVERSE: Final = "reverse"
# Placeholders for the other required keys of a scenario, whose models validate the links.
_AROUND: Final[Mapping[str, Any]] = {
    "duration": "1 h",
    "flows": [{"name": "command", "controller": "-"}],
}
_RECORDED_NS: Final = 3600 * 10**9
"""Duration for which recorded rates and delays are repeated; then the last values hold."""
_REVERSE_PACKETS: Final = 100_000
"""Default queue limit of the reverse path, which normal senders do not fill."""


@dataclass(frozen=True)
class LinkFile:
    """A resolved LINK.toml.

    Parameters
    ----------
    source
        Name of the file as given by the caller.
    title
        Title; by default the file name without its extension.
    seed
        Seed of all random numbers of the links.
    links, reverse
        Links of the forward and the reverse path, in order, in the form of a run specification.
    """

    source: str
    title: str
    seed: int
    links: Sequence[Mapping[str, Any]]
    reverse: Sequence[Mapping[str, Any]]


def load(path: str | Path, *, registry: Registry | None = None) -> LinkFile:
    """Read a LINK.toml.

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
    links = resolve(document, path, report, registry=registry)
    if links is None:
        raise located(source, text, document, report)
    return links


def resolve(
    document: Mapping[str, Any],
    path: str | Path,
    report: Report,
    *,
    registry: Registry | None = None,
    more_keys: Sequence[str] = (),
    in_kernel: bool = False,
) -> LinkFile | None:
    """Resolve the links of a document; None if a problem was reported.

    Parameters
    ----------
    path
        The file, for the default title and the folder of trace files.
    more_keys
        Keys of the document that are not about links.
    in_kernel
        Whether the links are jostle's qdiscs in a kernel, instead of `jostle link emulate`.
    """
    files = TraceFiles(Path(path).parent)
    registry = registry or Registry.of_engine()
    resolver = _Resolver(
        document, registry, files, report, more_keys=more_keys, in_kernel=in_kernel
    )
    resolved = resolver.resolve()
    if resolved is None or report.found:
        return None
    title = document.get("title") or Path(path).stem
    return LinkFile(str(path), title, document.get("seed", 1), *resolved)


def located(source: str, text: str, document: Mapping[str, Any], report: Report) -> ScenarioError:
    """Return the error with all problems of a document, each with its line and key."""
    lines, places = positions(text), KeyPaths(document)
    return ScenarioError(
        source,
        [Problem(line_of(lines, at), places.format_path(at), said) for at, said in report.found],
    )


class _Resolver:
    def __init__(
        self,
        document: Mapping[str, Any],
        registry: Registry,
        files: TraceFiles,
        report: Report,
        *,
        more_keys: Sequence[str],
        in_kernel: bool,
    ) -> None:
        self.document = document
        self.registry = registry
        self.files = files
        self.report = report
        self.keys = (*_KEYS, *more_keys)
        self.in_kernel = in_kernel

    def resolve(self) -> tuple[list[LinkSpec], list[LinkSpec]] | None:
        """Return the forward and reverse links; None if a problem was reported."""
        self.check_keys()
        there = self.facts(
            {k: self.document[k] for k in ("bottleneck", "links") if k in self.document}
        )
        back = self.reverse_facts()
        rtt_ns = self.rtt_ns(there, back)
        if self.report.found or not there:
            return None
        there_ns = sum(one.base_delay_ns for one in there)
        back_ns = sum(one.base_delay_ns for one in back or ())
        if rtt_ns is None and back is None:
            # The reverse path has the delay of the forward path, without its jitter.
            back_ns = sum(one.delay_steps[0][1] for one in there)
        elif rtt_ns is not None:
            back_ns = rtt_ns - there_ns
        specs = self.specs(there, there_ns + back_ns)
        if back is not None:
            reverse = self.specs(back, there_ns + back_ns)
        else:
            reverse = [self.default_reverse(there, back_ns, mirrored=rtt_ns is None)]
        return None if self.report.found else (specs, reverse)

    def check_keys(self) -> None:
        add = self.report.add
        for key in self.document:
            if key == "flows":
                cross = ", and `iperf3` on more hosts cross traffic" if self.in_kernel else ""
                add((key,), f"no flows run here — commands make the traffic{cross}")
            elif key not in self.keys:
                add((key,), f"unknown key — {did_you_mean(key, self.keys, listed='accepted')}")
        seed, title = self.document.get("seed", 1), self.document.get("title", "")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
            add(("seed",), f"a seed is a whole number from 0 to {_LARGEST_SEED}")
        if not isinstance(title, str):
            add(("title",), "write a text in quotes")

    def facts(self, tables: Mapping[str, Any], renamed: str | None = None) -> list[LinkFacts]:
        """Check the links of one direction; `renamed` is the name of their table in the file."""
        if not tables:
            self.report.add((), "no link — write a [bottleneck] table, or [[links]]")
            return []
        report = Report()
        checked = validate({**_AROUND, **tables}, report)
        facts: list[LinkFacts] = []
        if checked.file is not None and not report.found:
            facts = [
                link_facts(name, path, link, self.files, report, duration_ns=_RECORDED_NS)
                for name, path, link in topology(checked.file, report)
            ]
        seed = self.document.get("seed", 1)
        for one in facts:
            draw(one, seed if isinstance(seed, int) else 1)
            if one.link.quick_start is not None:
                message = "an emulated link grants nothing — take it out"
                report.add((*one.path, "quick_start"), message)
        for path, message in report.found:
            self.report.add(_renamed(path, renamed), message)
        for one in facts:
            one.path = _renamed(one.path, renamed)
            one.depends = tuple(_renamed(path, renamed) for path in one.depends)
            one.name = renamed if renamed and one.name == BOTTLENECK else one.name
        return facts

    def reverse_facts(self) -> list[LinkFacts] | None:
        """Return the reverse links; None if the file does not contain any."""
        given = self.document.get(_REVERSE)
        if given is None:
            return None
        tables = {"links" if isinstance(given, list) else BOTTLENECK: given}
        facts = self.facts(tables, _REVERSE)
        links = self.document.get("links")
        taken = (
            [link.get("name") for link in links if isinstance(link, dict)]
            if isinstance(links, list)
            else []
        )
        for one in facts:
            if one.name in taken:
                self.report.add(one.path, f'there is another link "{one.name}" on the way there')
        return facts

    def rtt_ns(self, there: Sequence[LinkFacts], back: Sequence[LinkFacts] | None) -> int | None:
        """Return the RTT from the file or a profile; None if it follows from the delays."""
        given = self.document.get("rtt")
        if back is not None:
            if given is not None:
                message = "the links of [reverse] have delays, too — keep either"
                self.report.add(("rtt",), message)
            return None
        if given is None:
            return max((one.rtt_ns for one in there if one.rtt_ns is not None), default=None)
        try:
            rtt_ns = parse_span(given)
        except QuantityError as error:
            self.report.add(("rtt",), str(error))
            return None
        delay_ns = sum(one.base_delay_ns for one in there)
        if rtt_ns < delay_ns:
            shown = format_amount(delay_ns, "time")
            message = f'"{given}" is less than the {shown} that the links take on the way there'
            self.report.add(("rtt",), message)
        return rtt_ns

    def specs(self, facts: Sequence[LinkFacts], rtt_ns: int) -> list[LinkSpec]:
        for one in facts:
            if one.link.queue is not None:
                self._check_queue(one, one.link.queue)
            for index, rule in enumerate(one.link.faults.packets if one.link.faults else ()):
                if rule.flow is not None:
                    message = "a program's flows have no names — remove it: all are counted"
                    self.report.add((*one.path, "faults", "packets", index, "flow"), message)
            if one.link.ack_thinning is not None and not self.in_kernel:
                message = "emulated links do not look for ACKs in packets — remove it"
                self.report.add((*one.path, "ack_thinning"), message)
        specs = [link_spec(one, rtt_ns, self.registry, self.report, [("rtt",)]) for one in facts]
        return [spec for spec in specs if spec is not None]

    def _check_queue(self, one: LinkFacts, queue: Queue) -> None:
        if not self.in_kernel:
            self._check_classes(one, queue)
            self._check_headers(one, queue)
        elif queue.kind in _CLASSFUL:
            message = f'"{queue.kind}": commands have no flows for its classes — fq_codel or cake'
            self.report.add((*one.path, "queue", "kind"), message)

    def _check_classes(self, one: LinkFacts, queue: Queue) -> None:
        """Report classes that no codepoint leads to, except one for all other packets."""
        others = [name for name, each in (queue.classes or {}).items() if not each.dscp]
        for name in others[1:]:
            message = (
                f'a program\'s flows have no names: give the class a dscp; "{others[0]}" is for '
                "all other packets"
            )
            self.report.add((*one.path, "queue", "classes", name), message)

    def _check_headers(self, one: LinkFacts, queue: Queue) -> None:
        """Report queue settings that would require parsing of packet headers beyond the flow."""
        given = queue.parameters
        for key, known in (("isolation", ("flows", "none")), ("ack_filter", ("none",))):
            if queue.kind == "cake" and given.get(key, known[0]) not in known:
                allowed = " or ".join(f'"{value}"' for value in known)
                message = f'"{given[key]}": emulated links tell flows apart alone — {allowed}'
                self.report.add((*one.path, "queue", key), message)

    def default_reverse(
        self, there: Sequence[LinkFacts], delay_ns: int, *, mirrored: bool
    ) -> LinkSpec:
        narrowest = min(there, key=lambda one: one.initial_bps)
        assert narrowest.capacity is not None, "no problem was reported"
        steps = [(0, delay_ns)]
        if mirrored and len(there) == 1:
            steps = there[0].delay_steps
        name = _REVERSE
        while name in {one.name for one in there}:
            name += "-way"
        return {
            "name": name,
            "capacity": narrowest.capacity,
            "queue": {
                "kind": "drop_tail",
                "parameters": {"limit": {"packets": _REVERSE_PACKETS}},
            },
            "classes": None,
            "delay": {
                "steps": [{"at_ns": at, "delay_ns": delay} for at, delay in steps],
                "jitter": None,
            },
            "loss": None,
            "outages": None,
            "quick_start": None,
        }


def _renamed(path: KeyPath, table: str | None) -> KeyPath:
    return path if table is None or not path else (table, *path[1:])
