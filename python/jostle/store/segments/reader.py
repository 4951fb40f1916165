"""Lookup of runs in all segments of a store."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jostle.errors import StoreError, brief
from jostle.store.disk import DamagedError, store_error
from jostle.store.segments import folder, index
from jostle.store.segments.folder import Segment
from jostle.store.segments.packing import MEASURES, RUNS
from jostle.store.summary_check import is_summary_of

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Spec

T = TypeVar("T")
Place = tuple[str, int, int, bool]
"""A run, the number of its segment, its row there, and whether the segment has series."""
_Part = tuple[int, bool]
"""The number of a segment, and whether it has series."""
_Rows = tuple[Iterable[int], Iterable[int]]
"""Positions of runs in a list of names, and their rows in a segment."""
OnDamage = Callable[[Path, str], object]
"""Called with the folder of a damaged segment, and the reason."""
_TABLES_BYTES = 256_000_000
"""Size of cached tables; the next run is probably in the same segment."""
_SUMMARIES_BYTES = 64_000_000
"""Size of cached summaries; as objects they take about six times as much."""
_MOST_LISTED = 10_000
"""Number of runs that are looked up in a list, which needs no import of Polars."""
_FEW = 4
"""Number of segments up to which they are verified one after another."""


class _Recent:
    """Cache of recently used values, with a limited number of bytes."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._values: OrderedDict[tuple[str, Any], tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, Any]) -> Any:
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def keep(self, key: tuple[str, Any], value: Any, size_bytes: int) -> None:
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value, size_bytes
            self._bytes += size_bytes
            while self._bytes > self._most_bytes and len(self._values) > 1:
                _, (_, freed) = self._values.popitem(last=False)
                self._bytes -= freed


@dataclass
class Segments:
    """Looks up runs in the segments of a store.

    Parameters
    ----------
    root
        The store.
    on_damage
        Called for damaged segments, which are then ignored.
    keeps_index
        Whether the store's index is rewritten when many segments are not in it.
    """

    root: Path
    on_damage: OnDamage
    keeps_index: bool = False
    _trusts_index: bool = True
    _known: dict[str, int] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _listed: list[Place] = field(default_factory=list)
    _frames: list[pl.DataFrame] = field(default_factory=list)
    _verified: dict[int, Segment] = field(default_factory=dict)
    _unusable: set[int] = field(default_factory=set)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _tables: _Recent = field(default_factory=lambda: _Recent(_TABLES_BYTES))
    _summaries: _Recent = field(default_factory=lambda: _Recent(_SUMMARIES_BYTES))

    def names(self) -> frozenset[str]:
        """Return the names of all runs, unverified.

        Raises
        ------
        StoreError
            When the store may not be read.
        """
        with self._lock:
            self._refresh()
            known = {place[0] for place in self._listed if place[1] not in self._unusable}
            if self._frames:
                known.update(self._usable_frame()["run"])
            return frozenset(known)

    def find(self, runs: Iterable[str], *, series: bool) -> dict[str, SegmentRun]:
        """Look runs up by name; with `series`, those whose series were kept.

        Raises
        ------
        StoreError
            When the store may not be read.
        """
        wanted = list(dict.fromkeys(runs))
        with self._lock:
            while True:
                self._refresh()
                places = self._locate(wanted, series=series)
                if not self._check(list(dict.fromkeys(at for at, _ in places))):
                    continue
                if all(self._are_there(*place, wanted) for place in places.items()):
                    break
                self._forget()
            # The names of the caller, because those in the segments take memory again.
            return {
                wanted[position]: SegmentRun(self, self._verified[at], row)
                for (at, _), found in places.items()
                for position, row in zip(*found, strict=True)
            }

    def _locate(self, wanted: Sequence[str], *, series: bool) -> Mapping[_Part, _Rows]:
        """Return the best places of runs in usable segments; with `series`, in those with series.

        If a run is in several segments, one with series is preferred.
        """
        if self._frames:
            return self._locate_in_frames(wanted, series=series)
        known = {run: position for position, run in enumerate(wanted)}
        best: dict[int, Place] = {}
        for place in self._listed:
            position = known.get(place[0])
            if position is None or place[3] < series or place[1] in self._unusable:
                continue
            other = best.setdefault(position, place)
            if (place[3], -place[1]) > (other[3], -other[1]):
                best[position] = place
        parts: dict[_Part, tuple[list[int], list[int]]] = {}
        for position, (_, segment, row, has_series) in best.items():
            positions, rows = parts.setdefault((segment, has_series), ([], []))
            positions.append(position)
            rows.append(row)
        return parts

    def _locate_in_frames(self, wanted: Sequence[str], *, series: bool) -> Mapping[_Part, _Rows]:
        import polars as pl

        if self._listed:
            self._list_in_frames()
        names = pl.LazyFrame({"run": pl.Series(wanted, dtype=pl.String)}).with_row_index("position")
        usable = self._usable_frame().lazy()
        found = (usable.filter("series") if series else usable).join(names, on="run")
        there = found.select("segment", "series", "position", "row").collect()
        if there["position"].n_unique() < there.height:
            there = there.sort("series", "segment", descending=[True, False])
            there = there.unique("position", keep="first", maintain_order=True)
        parts = there.partition_by("segment", "series", as_dict=True)
        return {(at, has): (part["position"], part["row"]) for (at, has), part in parts.items()}

    def _are_there(self, part: _Part, found: _Rows, wanted: Sequence[str]) -> bool:
        """Return whether a segment has runs in the rows that the index says, and has series."""
        segment = self._verified[part[0]]
        there = segment.runs.is_at
        return part[1] == ("flows" in segment.begins) and all(
            there(row, wanted[position]) for position, row in zip(*found, strict=True)
        )

    def _forget(self) -> None:
        """Discard the index, which was wrong, and read every segment again."""
        if self.keeps_index:
            index.remove(self.root)
        self._trusts_index = False
        self._known, self._names, self._listed, self._frames = {}, [], [], []
        self._verified, self._unusable = {}, set()

    def _refresh(self) -> None:
        """Take in new segments, and leave out removed ones."""
        try:
            present = set(folder.names(self.root))
            # A segment that was moved aside may be written again.
            for name in self._known.keys() - present:
                self._unusable.add(self._known.pop(name))
            if not self._names and self._trusts_index:
                self._take_index(present)
            known, new = len(self._names), sorted(present - self._known.keys())
            for name in new:
                self._take_in(name)
        except OSError as error:
            raise store_error(self.root, error) from error
        if self.keeps_index and index.is_worth_writing(known, len(new)):
            import polars as pl

            self._list_in_frames()
            whole, names = self._usable_frame(), pl.Series(self._names, dtype=pl.String)
            index.write(self.root, whole.with_columns(names[whole["segment"]].alias("segment")))

    def _usable_frame(self) -> pl.DataFrame:
        """Return run, segment, row and series of runs in `_frames`, of usable segments only."""
        import polars as pl

        self._frames = [pl.concat(self._frames, rechunk=True)]
        if not self._unusable:
            return self._frames[0]
        return self._frames[0].filter(~pl.col("segment").is_in(list(self._unusable)))

    def _list_in_frames(self) -> None:
        """Move the places from the list to a frame, which takes less memory."""
        import polars as pl

        schema = {"run": pl.String, "segment": pl.UInt32, "row": pl.UInt32, "series": pl.Boolean}
        self._frames.append(pl.DataFrame(self._listed, schema=schema, orient="row"))
        self._listed = []

    def _take_index(self, present: set[str]) -> None:
        """Add the index entries of existing segments."""
        entries = index.read(self.root, present)
        if entries is None:
            return
        if isinstance(entries, list):
            self._names = list(dict.fromkeys(name for _, name, _, _ in entries))
            self._known = {name: at for at, name in enumerate(self._names)}
            self._listed = [
                (run, self._known[name], row, series) for run, name, row, series in entries
            ]
            return
        import polars as pl

        self._names = entries["segment"].unique(maintain_order=True).to_list()
        self._known = {name: at for at, name in enumerate(self._names)}
        numbers = pl.Series("segment", range(len(self._names)), dtype=pl.UInt32)
        if self._names:
            segment = pl.col("segment").replace_strict(self._names, numbers)
            self._frames = [entries.with_columns(segment)]

    def _take_in(self, name: str) -> None:
        at = self._known[name] = len(self._names)
        self._names.append(name)
        path = self.root / folder.FOLDER / name
        try:
            runs, series = folder.run_names(path)
        except FileNotFoundError as error:
            self._leave_out(at, f"{Path(str(error.filename)).name} is missing")
            return
        except (DamagedError, OSError) as damage:
            self._leave_out(at, str(damage))
            return
        self._listed += ((run, at, row, series) for row, run in enumerate(runs))
        if len(self._listed) > _MOST_LISTED:
            self._list_in_frames()

    def _leave_out(self, at: int, why: str) -> None:
        """Ignore a segment, because it is damaged or was merged into another one."""
        name = self._names[at]
        self._unusable.add(at)
        path = self.root / folder.FOLDER / name
        if path.is_dir():
            self.on_damage(path, why)
        if not path.exists():
            # The segment may be written again.
            self._known.pop(name, None)

    def _check(self, numbers: list[int]) -> bool:
        """Return whether segments are intact; each is verified once."""
        new = [at for at in numbers if at not in self._verified]
        if len(new) <= _FEW:
            outcomes = list(map(self._outcome, new))
        else:
            # Digests are computed without the interpreter's lock.
            with ThreadPoolExecutor(_FEW) as threads:
                outcomes = list(threads.map(self._outcome, new))
        for at, outcome in zip(new, outcomes, strict=True):
            if isinstance(outcome, Segment):
                self._verified[at] = outcome
            else:
                self._leave_out(at, outcome)
        return not self._unusable.intersection(new)

    def _outcome(self, at: int) -> Segment | str:
        path = self.root / folder.FOLDER / self._names[at]
        try:
            return folder.verified(path)
        except DamagedError as damage:
            return str(damage)
        except OSError as error:
            raise store_error(path, error) from error

    def table(self, segment: Segment, name: str) -> pl.DataFrame:
        """Read a table of a segment.

        Raises
        ------
        FileNotFoundError
            When the segment is gone.
        StoreError
            When it cannot be read.
        """
        return self._cached(
            segment, name, lambda: segment.read(name), lambda frame: int(frame.estimated_size())
        )

    def texts(self, segment: Segment) -> Mapping[str, Sequence[str]]:
        """Read the specifications (`spec`) and summaries (`summary`) of a segment; see `table`."""
        return self._cached(
            segment,
            RUNS,
            segment.texts,
            lambda found: sum(len(text or "") for text in chain(*found.values())),
        )

    def measures(self, segment: Segment, keys: Sequence[str], heads: Sequence[str]) -> pl.DataFrame:
        """Read some measures of all runs of a segment; see `table`."""
        return _readable(segment, MEASURES, lambda: segment.measures(keys, heads))

    def _cached(
        self, segment: Segment, name: str, read: Callable[[], T], size: Callable[[T], int]
    ) -> T:
        """Return a table from the cache, or else read it."""
        found: T | None = self._tables.get((segment.name, name))
        if found is None:
            found = _readable(segment, name, read)
            self._tables.keep((segment.name, name), found, size(found))
        return found

    def summary(self, segment: Segment, row: int) -> Mapping[str, Any]:
        """Read the summary of a run, and check that it matches the specification.

        Raises
        ------
        FileNotFoundError
            When the segment no longer exists.
        StoreError
            When the summary is not valid.
        """
        key = (segment.name, row)
        found: Mapping[str, Any] | None = self._summaries.get(key)
        if found is None:
            texts = self.texts(segment)
            text = texts["summary"][row]
            try:
                found = json.loads(text)
                if not is_summary_of(found, json.loads(texts["spec"][row])):
                    raise ValueError("not a summary")
            except (ValueError, TypeError, RecursionError) as error:
                why = f"run {segment.runs[row]}: its summary is not a summary of that run"
                raise StoreError(why) from error
            self._summaries.keep(key, found, len(text))
        return found


class SegmentRun:
    """A run in a segment; its data are read on demand."""

    __slots__ = ("_row", "_segment", "_segments")

    def __init__(self, segments: Segments, segment: Segment, row: int) -> None:
        self._segments = segments
        self._segment = segment
        self._row = row

    def __reduce__(self) -> tuple[Callable[[Path, str], SegmentRun], tuple[Path, str]]:
        return _looked_up, (self._segments.root, self.run_id)

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return self._segment.runs.name(self._row)

    @property
    def segment(self) -> str:
        """Name of the segment."""
        return self._segment.name

    @property
    def has_measures(self) -> bool:
        """Whether the segment has a table of measures with the names of this version."""
        return self._segment.has_measures

    def measure_table(self, keys: Sequence[str], heads: Sequence[str]) -> pl.DataFrame:
        """Return measures of all runs of the segment, and columns that name their rows."""
        return self._read(lambda: self._segments.measures(self._segment, keys, heads))

    @property
    def summary_text(self) -> str:
        """The summary as canonical JSON, which is equal for equal summaries."""
        return self._read(lambda: self._segments.texts(self._segment))["summary"][self._row]

    @property
    def summary(self) -> Mapping[str, Any]:
        """Measures per flow, link and phase, and fairness per phase."""
        return self._read(lambda: self._segments.summary(self._segment, self._row))

    @property
    def spec(self) -> Spec:
        """Specification of the run."""
        texts = self._read(lambda: self._segments.texts(self._segment))
        return cast("Spec", json.loads(texts["spec"][self._row]))

    @property
    def provenance(self) -> Mapping[str, str]:
        """Versions of what produced the run."""
        backend, version = self._segment.made_by[self._row]
        made = {"run_id": self.run_id, "backend": backend, "backend_version": version}
        return {"format": folder.FORMAT, **made, **self._segment.versions}

    @property
    def flows(self) -> pl.DataFrame:
        """Series of the flows."""
        return self._series("flows")

    @property
    def links(self) -> pl.DataFrame:
        """Series of the links."""
        return self._series("links")

    @property
    def internals(self) -> pl.DataFrame:
        """Internal quantities of the controllers."""
        return self._series("internals")

    @property
    def acks(self) -> pl.DataFrame | None:
        """Every ACK that reached a sender, if it was recorded."""
        return self._series("acks") if "acks" in self._segment.begins else None

    @property
    def transfers(self) -> pl.DataFrame | None:
        """Every transfer of flows with `arrivals`, if there are any."""
        return self._series("transfers") if "transfers" in self._segment.begins else None

    @property
    def captures(self) -> Mapping[str, Path]:
        """Captures; always empty, because runs with captures have folders."""
        return {}

    def _series(self, kind: str) -> pl.DataFrame:
        if kind not in self._segment.begins:
            raise StoreError(
                f"run {self.run_id} was stored without its series (`--store-level summary`): "
                "run it again with `--store-level series`"
            )
        whole = self._read(lambda: self._segments.table(self._segment, kind))
        begin, end = self._segment.begins[kind][self._row : self._row + 2]
        return whole[begin:end].drop("run")

    def _read(self, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except FileNotFoundError as error:
            # The segment was merged into another one, which contains the run.
            run = self.run_id
            again = self._segments.find([run], series="flows" in self._segment.begins).get(run)
            if again is None:
                raise StoreError(f"run {run} is no longer in {self._segments.root}") from error
            self._segment, self._row = again._segment, again._row
            return ask()


def _readable(segment: Segment, name: str, read: Callable[[], T]) -> T:
    """Read a table of a segment, and name it in errors."""
    try:
        return read()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        text = f"segment {segment.name}: {name}.parquet cannot be read: "
        raise StoreError(text + brief(str(error))) from error


def _looked_up(root: Path, run: str) -> SegmentRun:
    found = _of_this_process(root).find([run], series=False)
    if run not in found:
        raise StoreError(f"run {run} is not in {root}")
    return found[run]


@lru_cache(maxsize=8)
def _of_this_process(root: Path) -> Segments:
    return Segments(root, lambda _folder, _why: None)
