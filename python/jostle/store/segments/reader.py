"""Lookup of runs in all segments of a store."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jostle.errors import StoreError, brief
from jostle.store.disk import DamagedError, store_error
from jostle.store.segments import folder, index
from jostle.store.segments.folder import Segment
from jostle.store.segments.packing import RUNS
from jostle.store.summary_check import is_summary_of

if TYPE_CHECKING:
    import polars as pl

    from jostle.backends import Spec

T = TypeVar("T")
OnDamage = Callable[[Path, str], object]
"""Called with the folder of a damaged segment, and the reason."""
_TABLES_BYTES = 256_000_000
"""Size of cached tables; the next run is probably in the same segment."""
_SUMMARIES_BYTES = 64_000_000
"""Size of cached summaries; as objects they take about six times as much."""
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
    _index: list[pl.DataFrame] = field(default_factory=list)
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
            return frozenset(self._refreshed()["run"])

    def find(self, runs: Iterable[str], *, series: bool) -> dict[str, SegmentRun]:
        """Look runs up by name; with `series`, those whose series were kept.

        Raises
        ------
        StoreError
            When the store may not be read.
        """
        import polars as pl

        wanted = pl.DataFrame({"run": pl.Series(list(runs), dtype=pl.String)})
        with self._lock:
            while True:
                # If a run is in several segments, prefer the one with series.
                there = (
                    self._refreshed()
                    .filter(pl.col("series") | pl.lit(not series))
                    .join(wanted, on="run", how="semi")
                    .sort("series", "segment", descending=[True, False])
                    .unique("run", keep="first", maintain_order=True)
                )
                if not self._check(there["segment"].unique().to_list()):
                    continue
                if all(map(self._is_there, *there.get_columns())):
                    break
                self._forget()
            places = zip(there["run"], there["segment"], there["row"], strict=True)
            return {run: SegmentRun(self, self._verified[at], row) for run, at, row in places}

    def _is_there(self, run: str, segment: int, row: int, series: bool) -> bool:
        found = self._verified[segment]
        there = row < len(found.runs) and found.runs[row] == run
        return there and series == ("flows" in found.begins)

    def _forget(self) -> None:
        """Discard the index, which was wrong, and read every segment again."""
        if self.keeps_index:
            index.remove(self.root)
        self._trusts_index = False
        self._known, self._names, self._index = {}, [], []
        self._verified, self._unusable = {}, set()

    def _refreshed(self) -> pl.DataFrame:
        """Return run, segment, row and series of all runs, updated by new and removed segments."""
        import polars as pl

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
        schema = {"run": pl.String, "segment": pl.UInt32, "row": pl.UInt32, "series": pl.Boolean}
        whole = pl.concat([pl.DataFrame(schema=schema), *self._index], rechunk=True)
        self._index = [whole]
        if self._unusable:
            whole = whole.filter(~pl.col("segment").is_in(list(self._unusable)))
        if self.keeps_index and index.is_worth_writing(known, len(new)):
            names = pl.Series(self._names, dtype=pl.String)
            index.write(self.root, whole.with_columns(names[whole["segment"]].alias("segment")))
        return whole

    def _take_index(self, present: set[str]) -> None:
        """Add the index entries of existing segments."""
        import polars as pl

        frame = index.read(self.root)
        if frame is None:
            return
        frame = frame.filter(pl.col("segment").is_in(list(present)))
        self._names = frame["segment"].unique(maintain_order=True).to_list()
        self._known = {name: at for at, name in enumerate(self._names)}
        numbers = pl.Series("segment", range(len(self._names)), dtype=pl.UInt32)
        if self._names:
            segment = pl.col("segment").replace_strict(self._names, numbers)
            self._index = [frame.with_columns(segment)]

    def _take_in(self, name: str) -> None:
        import polars as pl

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
        columns = {"run": runs, "segment": at, "row": range(len(runs)), "series": series}
        types = {"segment": pl.UInt32, "row": pl.UInt32, "series": pl.Boolean}
        self._index.append(pl.DataFrame(columns, schema_overrides=types))

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

    def table(self, segment: Segment, name: str, columns: tuple[str, ...] = ()) -> pl.DataFrame:
        """Read a table of a segment, or some of its columns.

        Raises
        ------
        FileNotFoundError
            When the segment is gone.
        StoreError
            When it cannot be read.
        """
        key = (segment.name, (name, columns))
        found: pl.DataFrame | None = self._tables.get(key)
        if found is None:
            try:
                found = segment.read(name, list(columns) or None)
            except FileNotFoundError:
                raise
            except (OSError, ValueError) as error:
                text = f"segment {segment.name}: {name}.parquet cannot be read: "
                raise StoreError(text + brief(str(error))) from error
            self._tables.keep(key, found, int(found.estimated_size()))
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
            texts = self.table(segment, RUNS, ("spec", "summary"))
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
        return self._segment.runs[self._row]

    @property
    def summary(self) -> Mapping[str, Any]:
        """Measures per flow, link and phase, and fairness per phase."""
        return self._read(lambda: self._segments.summary(self._segment, self._row))

    @property
    def spec(self) -> Spec:
        """Specification of the run."""
        columns = ("spec", "summary")
        texts = self._read(lambda: self._segments.table(self._segment, RUNS, columns))
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


def _looked_up(root: Path, run: str) -> SegmentRun:
    found = _of_this_process(root).find([run], series=False)
    if run not in found:
        raise StoreError(f"run {run} is not in {root}")
    return found[run]


@lru_cache(maxsize=8)
def _of_this_process(root: Path) -> Segments:
    return Segments(root, lambda _folder, _why: None)
