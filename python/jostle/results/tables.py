"""Results as tables, with the measures that suit the flows, in convenient units.

Bulk flows, transfers, requests, pings, links and so on have separate tables, because their measures
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from jostle.results import condition_names
from jostle.results.compared_phase import OVERALL
from jostle.results.flow_groups import TrafficKind
from jostle.results.flow_notes import flow_notes, named
from jostle.results.measure_samples import MeasureSample, full_key, grid_keys, samples
from jostle.results.measures import Measure, measure, measures
from jostle.results.number_format import count, decimals, spread, with_interval
from jostle.results.suitable_measures import SUITABLE
from jostle.results.text_table import Table
from jostle.safe_io.terminal_text import wrap_words
from jostle.stats import Estimate
from jostle.stats.mean_estimate import present

if TYPE_CHECKING:
    from jostle.results.finished_runs import FinishedRuns

Sort = Literal["up", "down"]


@dataclass(frozen=True)
class View:
    """Layout of tables.

    Attributes
    ----------
    columns
        Names of measures; if empty, the measures that suit the flows.
    sort
        A measure, or `flow`, `link`, `controller` or a key of the grid; the plan's order if empty.
    order
        Whether the smallest or the largest value comes first.
    each
        Whether each flow of an entry with `count` has its own row.
    limit
        Largest number of rows of a table; 0 for all.
    width
        Largest number of characters of a line; None for no limit.
    """

    columns: tuple[str, ...] = ()
    sort: str = ""
    order: Sort = "down"
    each: bool = False
    limit: int = 0
    width: int | None = None


APPLICATIONS: Final[tuple[TrafficKind, ...]] = ("datagrams", "pages", "videos", "media", "requests")
"""Kinds of traffic with a measure of what a user notices."""

LINKS: Final = "links"
"""Title of tables of links."""
_TITLES: Final = {
    "bulk": "bulk flows", "transfers": "flows that end", "requests": "requests", "pings": "pings",
    "media": "frames", "datagrams": "datagrams", "videos": "videos", "pages": "pages",
    "tunnels": "tunnels", "relays": "connections of proxies", "link": LINKS,
}  # fmt: skip
_ALIKE: Final = {"jain": 2, "starvation": 3}
"""Smallest number of bulk flows for which a measure is shown by default."""
_SCOPES: Final = {"flow": ("flow", "group", "run"), "link": ("link", "run")}
_HEADING: Final = 14
_GAP: Final = 2
_NAMED: Final = 3
"""Number of names that a note lists; the remaining ones are counted."""
SPREAD: Final = "  min–max"
_RUNS: Final = "runs"


@dataclass(frozen=True)
class Row:
    """A table row: its condition, the words that name it, and the flow, group or link."""

    condition: int
    words: Mapping[str, str]
    who: str


@dataclass(frozen=True)
class _Column:
    """Column of a measure: texts and, below them, spreads of groups, by row."""

    measure: Measure
    heading: str
    texts: tuple[str, ...]
    spreads: tuple[str, ...]
    values: tuple[float | None, ...]
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        lines = [*self.heading.split("\n"), *self.texts, *self.spreads]
        return max(len(line) for line in lines)


def phase_tables(results: FinishedRuns, phase: str, view: View | None = None) -> list[Table]:
    """Return the tables of one phase: one for each kind of flows, and one for the links.

    Raises
    ------
    InputError
        When a column or the sort key is not known.
    """
    view = view or View()
    if not results.results:
        return []
    chosen = [measure(name) for name in view.columns]
    kinds = kinds_of(results)
    found: list[Table] = []
    for kind in (*kinds, "link"):
        scope = "link" if kind == "link" else "flow"
        # Measures of the run are shown in the first table only.
        left = [m for m in chosen if m.scope != "run" or not found]
        of_kind = left if chosen else columns_of(results, kind, phase)
        of_kind = [m for m in of_kind if m.scope in _SCOPES[scope]]
        if not of_kind:
            continue
        rows = rows_of(results, kind, view.each)
        if not rows:
            # Captures have no links.
            continue
        title = _TITLES[kind] if len(kinds) > 1 or kind == "link" else ""
        made = _tables(results, phase, rows, of_kind, title=title, view=view)
        if kind != "link":
            flows = [(row.condition, row.who) for row in rows]
            notes = flow_notes(results, phase, kind, flows, each=view.each)
            made[-1] = replace(made[-1], notes=(*made[-1].notes, *notes))
        found += made
    return found


def kinds_of(results: FinishedRuns) -> list[TrafficKind]:
    """Return the kinds of flows in the order of their tables."""
    kinds = {
        group.kind
        for index in range(len(results.conditions))
        if results.runs_of(index)
        for group in results.flow_groups(index)
    }
    return sorted(kinds, key=list(SUITABLE).index)


def applicable_measures(results: FinishedRuns) -> list[Measure]:
    """Return the measures that suit the flows and the links, without duplicates."""
    kinds = (*kinds_of(results), "link")
    every = (one for kind in kinds for one in columns_of(results, kind, OVERALL))
    return list(dict.fromkeys(every))


def application_measures() -> list[Measure]:
    """Return the first measure of each kind of application."""
    return [measure(SUITABLE[kind][0]) for kind in APPLICATIONS]


def columns_of(results: FinishedRuns, kind: str, phase: str) -> list[Measure]:
    """Return the measures that suit flows of a kind (or `link`), most important first."""
    known = measures()
    names = [name for name in SUITABLE[kind] if name in known]
    alike = _most_alike(results)
    # Fairness indices need bulk flows; for two flows the shares are sufficient.
    names = [name for name in names if alike >= _ALIKE.get(name, 0)]
    suitable = [known[name] for name in names]
    return [m for m in suitable if m.place not in ("flow", "group") or phase == OVERALL]


def _most_alike(results: FinishedRuns) -> int:
    """Return the largest number of bulk flows of a condition without flows that end."""
    every = [at for at in range(len(results.conditions)) if results.runs_of(at)]
    return max((_alike(results, at) for at in every), default=0)


def _alike(results: FinishedRuns, condition: int) -> int:
    found = results.flow_groups(condition)
    if any(group.kind in ("transfers", "requests") for group in found):
        return 0
    return sum(len(group.members) for group in found if group.kind == "bulk")


def rows_of(results: FinishedRuns, kind: str, each: bool) -> list[Row]:
    """Return the rows of all flows of a kind (or links), condition by condition."""
    rows = []
    for index, condition in enumerate(results.conditions):
        if not results.runs_of(index):
            continue
        spec = results.spec_of(index)
        if kind == "link":
            names = [({"link": link["name"]}, link["name"]) for link in spec["links"]]
        else:
            names = [
                (
                    {
                        "flow": group.label,
                        "controller": group.controller,
                        # A grid key with this name already shows the transport.
                        **({} if "transport" in condition else {"transport": group.transport}),
                    },
                    group.name,
                )
                for group in results.flow_groups(index, each=each)
                if group.kind == kind
            ]
        runs = results.run_count(index)
        # If runs failed, every row says how many its values are of.
        finished = {_RUNS: f"{runs.finished} of {runs.total}"} if results.failures else {}
        rows += [Row(index, {**condition, **words, **finished}, who) for words, who in names]
    return rows


def _tables(
    results: FinishedRuns,
    phase: str,
    rows: Sequence[Row],
    wanted: Sequence[Measure],
    *,
    title: str,
    view: View,
) -> list[Table]:
    by_name = {m.name: m for m in wanted}
    if view.sort in measures() and view.sort not in by_name:
        by_name[view.sort] = measure(view.sort)
    every = {m.name: _column(results, phase, rows, m, view) for m in by_name.values()}
    if view.sort:
        order = _order(results, rows, every, view)
        rows = [rows[at] for at in order]
        every = {name: _picked(column, order) for name, column in every.items()}
    columns = [every[m.name] for m in wanted]
    if not view.columns:
        columns = [c for c in columns if any(value is not None for value in c.values)] or columns
    words = _words(results, rows)
    sections = bool(view.width and not view.sort and _too_wide(words, rows, view.width))
    if sections:
        grid = grid_keys(results)
        words = [key for key in words if key not in grid]
    room = None if view.width is None else view.width - _words_width(words, rows)
    parts, left_out = _distribute_columns(columns, room, split=bool(view.columns))
    made = [
        _table(results, rows, words, part, title=title, view=view, sections=sections)
        for part in parts
    ]
    if left_out:
        names = ",".join(c.measure.name for c in left_out)
        made[-1] = replace(made[-1], notes=(*made[-1].notes, f"There is more: --measures {names}"))
    return made


def _words(results: FinishedRuns, rows: Sequence[Row]) -> list[str]:
    """Return the keys that name the rows, without keys that are redundant."""
    words = list(dict.fromkeys(key for row in rows for key in row.words))
    if "controller" in words and all(
        row.words["controller"] in (row.words["flow"], "none") for row in rows
    ):
        words.remove("controller")
    varying = [key for key in grid_keys(results) if len({r.words.get(key) for r in rows}) > 1]
    # TCP is the default and is not mentioned.
    named = any(row.words.get("transport", "").startswith("QUIC") for row in rows)
    own = ("flow", "link", "controller", _RUNS, *(("transport",) if named else ()))
    return [key for key in words if key in varying or key in own]


def _words_width(words: Sequence[str], rows: Sequence[Row]) -> int:
    short = condition_names.short_names(words)
    # A group has a second line, which names the spread.
    names = {"flow": [SPREAD] if any("×" in row.words.get("flow", "") for row in rows) else []}
    widths = [
        max(map(len, (short[key], *names.get(key, ()), *(r.words.get(key, "") for r in rows))))
        for key in words
    ]
    return sum(widths) + _GAP * len(widths)


def _too_wide(words: Sequence[str], rows: Sequence[Row], width: int) -> bool:
    """Return whether names of rows need over half of the width; then headings replace them."""
    return len(rows) > 0 and _words_width(words, rows) > width / 2


def _distribute_columns(
    columns: Sequence[_Column], room: int | None, *, split: bool
) -> tuple[list[list[_Column]], list[_Column]]:
    """Distribute columns over tables; without `split`, return the omitted columns instead."""
    parts: list[list[_Column]] = [[]]
    left_out = []
    used = 0
    for column in columns:
        taken = column.width + _GAP
        if room is not None and parts[-1] and used + taken > room + _GAP:
            if not split:
                left_out.append(column)
                continue
            parts.append([])
            used = 0
        parts[-1].append(column)
        used += taken
    return parts, left_out


def _column(
    results: FinishedRuns, phase: str, rows: Sequence[Row], wanted: Measure, view: View
) -> _Column:
    scope = wanted.scope
    found = {
        (sample.condition, sample.place.get(scope, "")): sample
        for sample in samples(results, wanted, (phase,), each=view.each)
    }
    taken = [found.get((row.condition, "" if scope == "run" else row.who)) for row in rows]
    if not view.columns and wanted.name in _ALIKE:
        few = {at for at in {row.condition for row in rows}
               if _alike(results, at) < _ALIKE[wanted.name]}  # fmt: skip
        taken = [
            None if row.condition in few else one for row, one in zip(rows, taken, strict=True)
        ]
    estimates = [_estimate(sample) for sample in taken]
    places = decimals(estimates, wanted)
    texts = [with_interval(one, wanted.factor, places) for one in estimates]
    if scope == "run":
        # A value of the run is shown in the first row of each condition.
        firsts = {row.condition: at for at, row in reversed(list(enumerate(rows)))}
        texts = [text if firsts[row.condition] == at else "" for at, (row, text) in
                 enumerate(zip(rows, texts, strict=True))]  # fmt: skip
    spreads = tuple(
        "" if sample is None or sample.spread is None
        else spread(sample.spread, wanted.factor, places)
        for sample in taken
    )  # fmt: skip
    values = tuple(one.value for one in estimates)
    notes = _missing(results, wanted, [sample for sample in taken if sample is not None])
    return _Column(wanted, _heading(wanted), tuple(texts), spreads, values, notes)


def _estimate(sample: MeasureSample | None) -> Estimate:
    nothing = Estimate(None, None, None, 0, "", "")
    if sample is None or (sample.single and sample.measure.percent and len(sample.values) == 1):
        # Percentiles need more than one flow or run.
        return nothing
    return sample.estimate()


def _missing(
    results: FinishedRuns, wanted: Measure, found: Sequence[MeasureSample]
) -> tuple[str, ...]:
    """Return a note on means over some of the runs, or some flows of a group, only."""
    told = []
    for sample in found:
        if sample.single and wanted.percent is not None:
            continue
        have = len(present(sample.values))
        who = named(results, (sample.condition, sample.place.get(wanted.scope, "the run")))
        if 0 < have < len(sample.values):
            told.append(f"{who} has one in {have} of {count(len(sample.values), 'run')}")
        elif have and sample.missing:
            flows = sum(len(run) for run in sample.flows)
            told.append(f"{flows - sample.missing} of {flows} of {who} have one")
    if not told:
        return ()
    told = list(dict.fromkeys(told))
    more = f"; {len(told) - _NAMED} more are not complete" if len(told) > _NAMED else ""
    return (f"{wanted.heading}: " + "; ".join(told[:_NAMED]) + more + ".",)


def _heading(wanted: Measure) -> str:
    words = "\n".join(wrap_words(wanted.title, _HEADING))
    return (
        f"{words}\n{wanted.display_unit}"
        if wanted.display_unit and wanted.display_unit not in words.split()
        else words
    )


def _order(
    results: FinishedRuns, rows: Sequence[Row], every: Mapping[str, _Column], view: View
) -> list[int]:
    """Return the positions of the rows in sorted order; rows without a value are last."""
    places = range(len(rows))
    down = view.order == "down"
    if view.sort in every:
        values = every[view.sort].values
        present = [at for at in places if values[at] is not None]
        present.sort(key=lambda at: values[at] or 0.0, reverse=down)
        return present + [at for at in places if values[at] is None]
    key = full_key(results, view.sort)
    return sorted(places, key=lambda at: rows[at].words.get(key, ""))


def _picked(column: _Column, order: Sequence[int]) -> _Column:
    return replace(
        column,
        texts=tuple(column.texts[at] for at in order),
        spreads=tuple(column.spreads[at] for at in order),
        values=tuple(column.values[at] for at in order),
    )


def _table(
    results: FinishedRuns,
    rows: Sequence[Row],
    words: Sequence[str],
    columns: Sequence[_Column],
    *,
    title: str,
    view: View,
    sections: bool,
) -> Table:
    short = condition_names.short_names(words)
    grid = set(grid_keys(results))
    lines: list[tuple[str, ...]] = []
    starts: list[int] = []
    headings = []
    last = None
    notes = tuple(dict.fromkeys(note for column in columns for note in column.notes))
    for at, row in enumerate(rows):
        new = row.condition != last
        spreads = [column.spreads[at] for column in columns]
        if view.limit and at and len(lines) + 1 + any(spreads) > view.limit:
            notes += (_not_shown(rows[at:]),)
            break
        if new or view.sort:
            starts.append(len(lines))
            headings.append(results.labels[row.condition])
        last = row.condition
        shown = [
            row.words.get(key, "") if new or view.sort or key not in grid else "" for key in words
        ]
        lines.append((*shown, *(column.texts[at] for column in columns)))
        if any(spreads):
            who = max(at for at, key in enumerate(words) if key in ("flow", "link"))
            blank = ["" for _ in words]
            blank[who] = SPREAD
            lines.append((*blank, *spreads))
    header = (*(short[key] for key in words), *(column.heading for column in columns))
    notes += results.failure_notes
    return Table(
        header,
        tuple(lines),
        () if view.sort else tuple(starts),
        len(words),
        title,
        tuple(headings) if sections else (),
        notes,
    )


def _not_shown(rows: Sequence[Row]) -> str:
    conditions = len({row.condition for row in rows})
    of = f" of {count(conditions, 'condition')}" if conditions > 1 else ""
    return f"… {count(len(rows), 'more row')}{of}: --max-rows 0 shows all"


def interval_note(results: FinishedRuns) -> str:
    """Explain ± and groups in tables of these results; empty if no run finished."""
    groups = any(
        len(group.members) > 1
        for condition in range(len(results.conditions))
        if results.runs_of(condition)
        for group in results.flow_groups(condition)
    )
    of_groups = " Rows with ×: mean per flow, then the smallest and the largest flow." * groups
    return _of_runs(results) + of_groups


def _of_runs(results: FinishedRuns) -> str:
    counts = sorted({len(results.runs_of(c)) for c in range(len(results.conditions))} - {0})
    if not counts:
        return ""
    if counts == [1]:
        runs = "One run" if len(results) == 1 else "One run per condition"
        if results.measured:
            runs = "One measurement" if len(results) == 1 else "One measurement per condition"
            return f"{runs}: there is no confidence interval."
        return f"{runs}: there is no confidence interval; give --repeats."
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    two = " Of two runs it is wide; where it would leave what can be, its ends stand in brackets."
    return (
        f"± half of the 95 % confidence interval of the mean over {n} runs (Student t)."
        + two * (2 in counts)
    )
