"""Data of a figure as a table with one row per point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jostle.figures.data import (
    CurvesData,
    EventsData,
    GroupsData,
    HeatMapData,
    MapData,
    Multiples,
    RegionData,
    ScatterData,
    StackedData,
)
from jostle.figures.time_sequence_data import SequencesData

if TYPE_CHECKING:
    import polars as pl

    from jostle.figures.renderer import FigureData

Row = dict[str, Any]


def figure_frame(data: FigureData) -> pl.DataFrame:
    """Return the numbers of a figure in the units of its axes.

    Returns
    -------
    polars.DataFrame
        `chart` (title of a small multiple, or quantity of a panel), `label` (of the line, box or
        point series) and columns that depend on the kind: `x`, `y`, `low`, `high` for lines;
        `row`, `column`, `value` for a heat map; `x`, `y`, `value` for a map; `group` and the
        numbers of a box; `time_s`, `what` and `value` for events; `time_s`, `what`, `start` and
        `end` (bytes) for a time–sequence diagram. An ACK's `start` is the acknowledged byte, its
        `end` the edge of the receive window.
    """
    import polars as pl

    return pl.DataFrame(list(_rows(data)), infer_schema_length=None).with_columns(
        pl.selectors.float().fill_nan(None)
    )


def _rows(data: FigureData) -> Iterator[Row]:
    match data:
        case Multiples():
            for title, part in data.parts:
                yield from ({**row, "chart": title} for row in _rows(part))
        case StackedData():
            yield from _lines(data)
        case CurvesData():
            yield from _curves(data)
        case HeatMapData():
            yield from _cells(data)
        case MapData() | RegionData():
            yield from _points(data)
        case ScatterData():
            for cloud in data.clouds:
                for x, y in zip(cloud.x, cloud.y, strict=True):
                    yield _row("", cloud.label, x=x, y=y) | _incomplete((cloud.incomplete,), 0)
        case GroupsData():
            yield from _boxes(data)
        case EventsData():
            yield from _events(data)
        case SequencesData():
            yield from _sequences(data)


def _points(data: MapData | RegionData) -> Iterator[Row]:
    values, texts = (
        (data.values, data.incomplete) if isinstance(data, MapData) else (data.holds, ())
    )
    for at, (x, y, value) in enumerate(zip(data.x, data.y, values, strict=True)):
        yield _row("", "", x=x, y=y, value=value) | _incomplete(texts, at)


def _cells(data: HeatMapData) -> Iterator[Row]:
    for at, (row, values) in enumerate(zip(data.rows, data.values, strict=True)):
        texts = data.incomplete[at] if data.incomplete else ()
        for place, (column, value) in enumerate(zip(data.columns, values, strict=True)):
            cell = {"chart": "", "row": row, "column": column, "value": float(value)}
            yield cell | _incomplete(texts, place)


def _lines(data: StackedData) -> Iterator[Row]:
    for panel in data.panels:
        chart = f"{panel.quantity} ({panel.unit})" if panel.unit else panel.quantity
        for line in panel.lines:
            for x, y, low, high in zip(line.time_s, line.mean, line.low, line.high, strict=True):
                yield _row(chart, line.label, x=x, y=y, low=low, high=high)


def _curves(data: CurvesData) -> Iterator[Row]:
    for curve in data.curves:
        points = zip(curve.x, curve.y, curve.low, curve.high, strict=True)
        for at, (x, y, low, high) in enumerate(points):
            named = {"name": data.x_names[int(x)]} if data.x_names else {}
            row = _row("", curve.label, x=x, y=y, low=low, high=high) | named
            yield row | _incomplete(curve.incomplete, at)


def _boxes(data: GroupsData) -> Iterator[Row]:
    for at, (group, boxes) in enumerate(zip(data.groups, data.boxes, strict=True)):
        texts = data.incomplete[at] if data.incomplete else ()
        for place, (label, box) in enumerate(zip(data.labels, boxes, strict=True)):
            if box is not None:
                names = ("low", "q1", "median", "q3", "high", "mean")
                row = _row("", label, **{name: getattr(box, name) for name in names})
                far = ";".join(f"{value:.17g}" for value in box.outliers)
                box_row = {"chart": "", "group": group, **row, "outliers": far}
                yield box_row | _incomplete(texts, place)


def _incomplete(texts: Sequence[str], at: int) -> Row:
    """Return a column that says how many runs failed, if any text does."""
    return {"incomplete": texts[at] or None} if any(texts) else {}


def _events(data: EventsData) -> Iterator[Row]:
    for flow in data.flows:
        for at, time_s in enumerate(flow.time_s):
            for what, values in (("window (kB)", flow.window), ("threshold (kB)", flow.threshold)):
                yield _event(flow.label, time_s, what, values[at])
        for time_s, window in zip(flow.lost_s, flow.lost_window, strict=True):
            yield _event(flow.label, time_s, "lost at a window of (kB)", window)
        for span in flow.modes:
            yield _event(flow.label, span.from_s, span.mode, span.to_s - span.from_s)


def _sequences(data: SequencesData) -> Iterator[Row]:
    for flow in data.flows:
        packets, answers, sacks = flow.packets, flow.answers, flow.sacks
        whats = [packets.kinds[kind] for kind in packets.kind]
        tables = [
            (whats, packets.time_s, packets.start, packets.end),
            (["ack"] * answers.time_s.size, answers.time_s, answers.acknowledged, answers.edge),
            (["dsack" if twice else "sack" for twice in sacks.is_duplicate], sacks.time_s,
             sacks.start, sacks.end),
        ]  # fmt: skip
        for table in tables:
            for what, time_s, start, end in zip(*table, strict=True):
                row = _row("", flow.label, time_s=time_s, start=start, end=end)
                yield {**row, "what": what}


def _event(label: str, time_s: float, what: str, value: float) -> Row:
    return {
        "chart": "", "label": label, "time_s": float(time_s), "what": what, "value": float(value)
    }  # fmt: skip


def _row(chart: str, label: str, **numbers: float) -> Row:
    return {"chart": chart, "label": label} | {key: float(n) for key, n in numbers.items()}
