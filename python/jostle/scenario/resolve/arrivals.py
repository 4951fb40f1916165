"""Arrival processes: converts a flow's arrivals to the form of the run specification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jostle.run_spec import ArrivalsSpec
from jostle.safe_io.untrusted_files import TABLE_BYTES, read_text
from jostle.scenario.models import Flow
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import QuantityError, parse_number, quoted
from jostle.scenario.sources import Arrivals, RequestSessions

__all__ = ["arrivals_spec"]


def arrivals_spec(
    flow: Flow,
    path: KeyPath,
    links: Sequence[tuple[str, int]],
    folder: Path,
    report: Report,
) -> ArrivalsSpec | None:
    """Return the arrivals in the form of the run specification; None for a single connection.

    Parameters
    ----------
    flow, path
        The flow, and its key path in the scenario.
    links
        Names and positions of the links of its path, in order.
    folder
        Folder of the scenario, to which file names are relative.
    report
        Collects problems.
    """
    if isinstance(flow.source, RequestSessions):
        at: KeyPath = (*path, "source")
        if flow.arrivals is not None:
            message = "sessions say themselves how they come — remove this key"
            report.add((*path, "arrivals"), message, at)
            return None
        source = flow.source
        given = Arrivals(rate=None, load=None, load_link=source.load_link, file=None)
        given = given.model_copy(update={"rate": source.rate, "load": source.load})
    elif flow.arrivals is not None:
        at, given = (*path, "arrivals"), flow.arrivals
    else:
        return None
    ways = (
        ("rate", "load") if isinstance(flow.source, RequestSessions) else ("rate", "load", "file")
    )
    said = [key for key in ways if getattr(given, key) is not None]
    if len(said) != 1:
        problem = (
            " and ".join(said) + " say the same" if said else f"{', '.join(ways)}: none is there"
        )
        report.add(at, f'{problem} — write one of them, as in load = "60 %"')
        return None
    if given.load_link is not None and given.load is None:
        report.add(
            (*at, "load_link"), "this is the link of a load, and there is none — remove this key"
        )
    if given.rate is not None:
        return {"kind": "poisson", "rate_per_s": given.rate}
    if given.load is not None:
        return _load(given.load, given.load_link, at, links, report)
    return _listed(folder / str(given.file), at, flow, report)


def _load(
    share: float,
    name: str | None,
    at: KeyPath,
    links: Sequence[tuple[str, int]],
    report: Report,
) -> ArrivalsSpec | None:
    known = tuple(link for link, _ in links)
    if name is None and len(links) == 1:
        name = known[0]
    if name is None and links:
        report.add(at, f'of which link? write for example load_link = "{known[0]}"')
    elif name is not None and name not in known:
        message = f'the flow crosses no link "{name}" — {did_you_mean(name, known)}'
        report.add((*at, "load_link"), message)
    position = dict(links).get(name or "", 0)
    return {"kind": "load", "share": share, "link": position}


def _listed(file: Path, at: KeyPath, flow: Flow, report: Report) -> ArrivalsSpec | None:
    try:
        at_ns, sizes = _read(file)
    except QuantityError as error:
        report.add((*at, "file"), f'"{file.name}"{error}')
        return None
    if sizes is None and flow.source is None and flow.size is None:
        message = f'"{file.name}" says no sizes — write them there, or for example bytes = "20 kB"'
        report.add((*at, "file"), message)
    if sizes is not None and (flow.source is not None or flow.size is not None):
        key = "size" if flow.source is None else "source"
        message = f'"{file.name}" says the size of each connection — remove this key'
        report.add((*at[:-1], key), message, at)
    return {"kind": "listed", "at_ns": at_ns, "bytes": sizes}


def _read(path: Path) -> tuple[list[int], list[int] | None]:
    """Read the times (ns) and, if the file contains them, the sizes (bytes) of connections."""
    try:
        text = read_text(path, TABLE_BYTES)
    except OSError as error:
        raise QuantityError(f": {(error.strerror or 'it cannot be read').lower()}") from None
    except ValueError:
        raise QuantityError(": not a text file") from None
    at_ns: list[int] = []
    sizes: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.partition("#")[0].replace(",", " ").split()
        if not written:
            continue
        try:
            values = [parse_number(one) for one in written]
        except QuantityError:
            values = []
        columns = 1 + bool(sizes) if at_ns else len(values)
        if len(values) != columns or columns not in (1, 2):
            shown = quoted(line.strip())
            raise QuantityError(f", line {number}: {shown} is not seconds, or seconds and bytes")
        at_ns.append(round(values[0] * 1e9))
        if len(at_ns) > 1 and at_ns[-1] < at_ns[-2]:
            raise QuantityError(
                f", line {number}: it is before the line above — times never decrease"
            )
        sizes.extend(max(1, round(size)) for size in values[1:])
    if not at_ns:
        raise QuantityError(": no connection is in it")
    return at_ns, sizes or None
