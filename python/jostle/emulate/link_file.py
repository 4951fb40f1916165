"""LINK.toml: the links of an emulation, spelt as those of a scenario.

`[bottleneck]`, or `[[links]]` in the order in which packets cross them, and optionally `[reverse]`
or `[[reverse]]` for the way back. Without it, the way back is as fast and as long as the way there
and loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jostle.scenario.models import Queue
from jostle.scenario.registry import Registry
from jostle.scenario.resolving.addressing import Places
from jostle.scenario.resolving.links import (
    BOTTLENECK,
    LinkFacts,
    draw,
    link_facts,
    link_spec,
    topology,
)
from jostle.scenario.resolving.traces import TraceFiles
from jostle.scenario.resolving.validation import validate
from jostle.scenario.text.document import parse, read_text
from jostle.scenario.text.positions import KeyPath, line_of, positions
from jostle.scenario.text.problems import Problem, Report, ScenarioError, did_you_mean
from jostle.scenario.text.units import QuantityError, format_amount, parse_span

__all__ = ["LinkFile", "load"]

_KEYS: Final = ("title", "seed", "rtt", "bottleneck", "links", "reverse")
_LARGEST_SEED: Final = 2**63 - 1
_REVERSE: Final = "reverse"
# The format of links is that of scenarios, whose models want a whole scenario around them.
_AROUND: Final[Mapping[str, Any]] = {
    "duration": "1 h",
    "flows": [{"name": "command", "controller": "-"}],
}
_RECORDED_NS: Final = 3600 * 10**9
"""For so long recorded rates and delays are repeated; then the last ones hold."""
_REVERSE_PACKETS: Final = 100_000
"""Queue of the way back if nobody describes it: more than any working sender leaves there."""


@dataclass(frozen=True)
class LinkFile:
    """What a LINK.toml says, resolved.

    Parameters
    ----------
    source
        Name of the file, as it was given.
    title
        Its title; the file's name without an ending if it has none.
    seed
        What all randomness of the links is derived from.
    links, reverse
        Links there and back, in order, as in a run's specification.
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
        The file. Traces that it names are looked for in its folder.
    registry
        Which queues exist; the installed engine's if None.

    Raises
    ------
    ScenarioError
        If anything is wrong, with all problems that were found.
    """
    source = str(path)
    text, document = parse(read_text(path), source)
    registry = registry or Registry.of_engine()
    report = Report()
    files = TraceFiles(Path(path).parent)
    resolved = _Resolver(document, registry, files, report).resolve()
    if resolved is None or report.found:
        lines, places = positions(text), Places(document)
        raise ScenarioError(
            source,
            [Problem(line_of(lines, at), places.show(at), said) for at, said in report.found],
        )
    links, reverse = resolved
    title = document.get("title") or Path(path).stem
    return LinkFile(source, title, document.get("seed", 1), links, reverse)


class _Resolver:
    def __init__(
        self,
        document: Mapping[str, Any],
        registry: Registry,
        files: TraceFiles,
        report: Report,
    ) -> None:
        self.document = document
        self.registry = registry
        self.files = files
        self.report = report

    def resolve(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
        """Return the links there and back; None if something was reported."""
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
            # The way back is as long as the way there; its jitter is its own.
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
                add((key,), "an emulated link has no flows — COMMAND makes the traffic")
            elif key not in _KEYS:
                add((key,), f"unknown key — {did_you_mean(key, _KEYS, listed='accepted')}")
        seed, title = self.document.get("seed", 1), self.document.get("title", "")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
            add(("seed",), f"a seed is a whole number from 0 to {_LARGEST_SEED}")
        if not isinstance(title, str):
            add(("title",), "write a text in quotes")

    def facts(self, tables: Mapping[str, Any], renamed: str | None = None) -> list[LinkFacts]:
        """Check the links of one way; `renamed` is what their table is called in the file."""
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
        """Return the links back; None if the file leaves them out."""
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
        """Return the round trip that the file or a profile gives; None if the delays say it all."""
        given = self.document.get("rtt")
        if back is not None:
            if given is not None:
                message = "the links of [reverse] have delays of their own — keep either"
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

    def specs(self, facts: Sequence[LinkFacts], rtt_ns: int) -> list[dict[str, Any]]:
        for one in facts:
            if one.link.queue is not None and one.link.queue.classes is not None:
                message = "a program's flows have no names — remove it: each is a class of its own"
                self.report.add((*one.path, "queue", "classes"), message)
            if one.link.queue is not None:
                self._check_headers(one, one.link.queue)
            if one.link.ack_thinning is not None:
                message = "emulated links do not look for ACKs in packets — remove it"
                self.report.add((*one.path, "ack_thinning"), message)
        specs = [link_spec(one, rtt_ns, self.registry, self.report, [("rtt",)]) for one in facts]
        return [spec for spec in specs if spec is not None]

    def _check_headers(self, one: LinkFacts, queue: Queue) -> None:
        """Refuse what would need a look into a packet beyond its flow."""
        given = queue.parameters
        for key, known in (("isolation", ("flows", "none")), ("ack_filter", ("none",))):
            if queue.kind == "cake" and given.get(key, known[0]) not in known:
                allowed = " or ".join(f'"{value}"' for value in known)
                message = f'"{given[key]}": emulated links tell flows apart alone — {allowed}'
                self.report.add((*one.path, "queue", key), message)

    def default_reverse(
        self, there: Sequence[LinkFacts], delay_ns: int, *, mirrored: bool
    ) -> dict[str, Any]:
        narrowest = min(there, key=lambda one: one.initial_bps)
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
