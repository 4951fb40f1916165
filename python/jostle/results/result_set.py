"""A ResultSet: the runs of a scenario with condition, seed, flow and phase as dimensions."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from jostle.errors import InputError, unknown
from jostle.results import frames
from jostle.results.compared_phase import OVERALL
from jostle.results.condition_names import Condition
from jostle.results.finished_runs import FinishedRuns
from jostle.results.measures import keys, measure
from jostle.results.summary_document import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from jostle.backends import Run
    from jostle.results.plots import Plots
    from jostle.stats import Method

_NAMED_CONDITIONS = 3
"""Number of conditions that a note names; the remaining ones are counted."""


class ResultSet(FinishedRuns):
    """The runs of a scenario, in the order of the plan; see `FinishedRuns` for its parameters."""

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per run, flow and phase.

        Columns: condition, grid keys, seed, run_id, flow, group, transport, controller, measures
        of the flow's whole run (completion_time_s, completion_rate_bps, unfinished, efficiency,
        bandwidth_estimate_bps), phase, and every measure of a flow in it.
        """
        facts = ("group", "transport", "controller")
        return self._table("flows", "flow", facts, keys("flow", "flow"), keys("flow", "phases"))

    @cached_property
    def groups(self) -> pl.DataFrame:
        """One row per run, group and phase; the flows of an entry with `count` are a group.

        Columns: condition, grid keys, seed, run_id, group, flows (number of flows), measures of
        the group's complete run (completion_time_mean_s, completion_time_p50_s, …, unfinished),
        phase, and every measure of a group in it.
        """
        whole = ("flows", *keys("group", "group"))
        return self._table("groups", "group", (), whole, keys("group", "phases"))

    @cached_property
    def links(self) -> pl.DataFrame:
        """One row per run, link and phase.

        Columns: condition, grid keys, seed, run_id, link, phase, and every measure of a link.
        """
        return self._table("links", "link", (), (), keys("link", "phases"))

    @cached_property
    def fairness(self) -> pl.DataFrame:
        """One row per run and phase: condition, grid keys, seed, run_id, phase, jain, …."""
        return self._run_table("fairness")

    @cached_property
    def run_totals(self) -> pl.DataFrame:
        """One row per run and phase: keys of the run, phase, and measures of all flows together."""
        return self._run_table("totals")

    @cached_property
    def captures(self) -> pl.DataFrame:
        """Files of packet headers of runs that captured them, one row per run and host.

        Columns: condition, grid keys, seed, run_id, host (`flow.sender`, `flow.receiver`), path.
        """
        rows = [
            {**place, "host": host, "path": str(path)}
            for place, run in self._placed()
            for host, path in run.captures.items()
        ]
        return frames.table(rows, [*self._key_columns, "host", "path"], (), self.grid)

    def series(
        self,
        who: str | Sequence[str] | None,
        quantity: str,
        condition: int | str | Condition | None = None,
    ) -> pl.DataFrame:
        """Time series of flows or links.

        Parameters
        ----------
        who
            Name of a flow or a link. Several names, or None for every flow, give a tidy frame.
        quantity
            A column of the series (`cwnd`, `rtt`, `throughput`, `queue_length`, … with or without
            its unit), an internal quantity of a flow's controller, or `mode`: the controller's
            state as text.
        condition
            Position, label, or (part of) the grid's keys and values; may be left out if there is
            one condition, or for a tidy frame of all of them.

        Returns
        -------
        polars.DataFrame
            Of one name: `time_s` (ends of the bins; times of the samples for an internal quantity)
            and `seed_<n>` for each seed. Of several: one row per condition, seed, name and time,
            with `value`. In the unit that the quantity's name ends with.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.series("newcomer", "cwnd").columns
        ['time_s', 'seed_1']
        >>> results.series(None, "throughput").columns
        ['condition', 'seed', 'flow', 'time_s', 'value']
        >>> results.series("bottleneck", "queue_length").height
        400
        """
        import polars as pl

        if not isinstance(who, str):
            every = condition is None
            chosen = range(len(self.conditions)) if every else [self.condition_index(condition)]
            parts = [part for index in chosen for part in self._tidy(index, who, quantity)]
            if not parts:
                raise self.unfinished_error("", *chosen)
            return pl.concat(parts)
        index = self.condition_index(condition)
        self._known(index, who)
        whole: pl.DataFrame | None = None
        for result in self.runs_of(index):
            one = frames.series_frame(result.run, who, quantity).rename(
                {"value": f"seed_{result.seed}"}
            )
            if whole is None:
                whole = one
            else:
                whole = whole.join(
                    one, on="time_s", how="full", coalesce=True, maintain_order="left_right"
                )
        if whole is None:
            raise self.unfinished_error("", index)
        return whole.sort("time_s")

    def _known(self, index: int, who: str) -> None:
        """Check that a condition has a flow or a link of that name."""
        known = [*self.flow_names(index), *self.link_names(index)]
        if who not in known:
            raise InputError(unknown("flow", who, known))

    def _tidy(self, index: int, who: Sequence[str] | None, quantity: str) -> list[pl.DataFrame]:
        import polars as pl

        names = self.flow_names(index) if who is None else list(who)
        for name in names:
            self._known(index, name)
        return [
            frames.series_frame(result.run, name, quantity).select(
                pl.lit(self.labels[index]).alias("condition"),
                pl.lit(result.seed, dtype=pl.UInt64).alias("seed"),
                pl.lit(name).alias("flow"),
                "time_s",
                "value",
            )
            for result in self.runs_of(index)
            for name in names
        ]

    def to_pandas(self, name: str = "flows") -> Any:
        """Give one of the frames (`flows`, `links`, `fairness`, `run_totals`, …) to pandas.

        Parameters
        ----------
        name
            Name of the frame.

        Raises
        ------
        InputError
            When there is no such frame, or no pandas.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> len(results.to_pandas("links"))
        3
        """
        known = [
            key
            for key, value in vars(ResultSet).items()
            if isinstance(value, cached_property) and not key.startswith("_")
        ]
        if name not in known:
            raise InputError(unknown("frame", name, known))
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise InputError("pandas is not installed: pip install pandas") from error
        frame: pl.DataFrame = getattr(self, name)
        return pandas.DataFrame({column: frame[column].to_list() for column in frame.columns})

    def estimate(
        self,
        name: str,
        phase: str = OVERALL,
        method: Method = "t",
        confidence: float = 0.95,
    ) -> pl.DataFrame:
        """Estimate a measure for each condition and flow (or group, link, run) from its seeds.

        Parameters
        ----------
        name
            `goodput`, `throughput`, `rtt`, `retransmission_ratio`, `utilisation`, `jain`, …
        phase
            Name of a phase.
        method, confidence
            See `jostle.stats.estimate`.

        Returns
        -------
        polars.DataFrame
            condition, grid keys, `flow` (or `group`, or `link`), value, low, high, n, unit, method,
            incomplete; low and high are null if only one run has a value, and are clipped to the
            possible range of the measure. Completion percentiles of a single flow are over its
            runs. `incomplete` says how many runs failed, and why; it is null if none did.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.estimate("throughput", phase="together").columns[1:]
        ['flow', 'value', 'low', 'high', 'n', 'unit', 'method', 'incomplete']
        """
        import polars as pl

        from jostle.stats import estimate, percentile_estimate

        wanted = measure(name)
        if phase not in [p.name for p in self.phases]:
            raise InputError(unknown("phase", phase, [p.name for p in self.phases]))
        if wanted.name == "harm":
            return self.harm(phase=phase, method=method, confidence=confidence).drop("alone")
        if wanted.elsewhere:
            raise InputError(wanted.elsewhere)
        by_run = {"fairness": "fairness", "totals": "run_totals"}
        table: pl.DataFrame = getattr(self, by_run.get(wanted.place, f"{wanted.scope}s"))
        who = [] if wanted.scope == "run" else [wanted.scope]
        by = ["condition", *self._grid_keys, *who]
        rows = []
        selected = table.filter(pl.col("phase") == phase)
        for place, group in selected.group_by(by, maintain_order=True):
            index = self.labels.index(str(place[0]))
            spec = self.spec_of(index)
            if wanted.percent is not None and group["flows"].max() == 1:
                values = group[wanted.key]
                found = percentile_estimate(values, wanted.percent, wanted.unit, confidence)
            else:
                bounds = wanted.bounds_in(spec)
                found = estimate(group[wanted.key], wanted.unit, method, confidence, bounds=bounds)
            incomplete = {"incomplete": self.incomplete(index) or None}
            rows.append(dict(zip(by, place, strict=True)) | vars(found) | incomplete)
        columns = [*by, "value", "low", "high", "n", "unit", "method", "incomplete"]
        return frames.table(rows, columns, ("value", "low", "high"), self.grid)

    def harm(
        self,
        name: str = "throughput",
        phase: str = OVERALL,
        method: Method = "t",
        confidence: float = 0.95,
    ) -> pl.DataFrame:
        """Estimate the performance that flows lose to a newcomer, by the condition without it.

        See `jostle.results.harm` for the definition, and for which conditions belong together.

        Parameters
        ----------
        name
            A measure of flows: a rate, a time or a delay.
        phase
            Name of a phase.
        method, confidence
            See `jostle.stats.estimate`.

        Returns
        -------
        polars.DataFrame
            condition, grid keys, `alone` (the condition without the newcomer), `flow`, value, low,
            high (shares of what the flow has alone), n, unit, method, incomplete (see `estimate`).

        Raises
        ------
        InputError
            When no condition differs from another by fewer flows.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/first.toml", {"flows.newcomer.count": 1})
        >>> scenario = scenario.set({"grid": {"flows.newcomer.count": [0, 1]}})
        >>> results = jostle.run(scenario, store=False)
        >>> results.harm("throughput", phase="together")["flow"].to_list()
        ['incumbent']
        """
        from jostle.results.harm import harms

        rows = [
            {
                "condition": self.labels[one.condition],
                **{key: self.grid[key][one.condition] for key in self._grid_keys},
                "alone": self.labels[one.alone],
                "flow": one.flow,
            }
            | vars(one.harm)
            | {"incomplete": one.harm.incomplete or None}
            for one in harms(self, name, phase, method, confidence)
        ]
        if not rows:
            raise InputError(
                "harm needs a condition without the newcomer — add it to the grid: "
                '"flows.NEWCOMER.count" = [0, 1]'
            )
        columns = [
            "condition", *self._grid_keys, "alone", "flow",
            "value", "low", "high", "n", "unit", "method", "incomplete",
        ]  # fmt: skip
        return frames.table(rows, columns, ("value", "low", "high"), self.grid)

    def conformance(
        self,
        reference: ResultSet | None = None,
        flows: str | Sequence[str] = (),
        *,
        against: str = "",
        phase: str = "",
        method: Method = "t",
        confidence: float = 0.95,
    ) -> pl.DataFrame:
        """Compare flows with a reference by their Performance Envelopes.

        See `jostle.results.conformance` for how runs are paired, and
        `jostle.stats.performance_envelope` for the definition. Points are in parts of the path's
        rate and of its base RTT.

        Parameters
        ----------
        reference
            Results of the reference, such as runs of another backend; these results if absent.
        flows
            Names of flows; all flows of both sides if empty.
        against
            Name of the reference's flow, if it differs.
        phase
            Name of a phase; if empty, the first 95 % of each flow's life.
        method, confidence
            See `jostle.stats.estimate`.

        Returns
        -------
        polars.DataFrame
            condition, grid keys, flow, reference (its flow), conformance (0 … 1) with its interval
            (low, high), itself (conformance of the reference's runs to each other), deviation and
            throughput_shift (relative to the rate), delay_shift (base RTTs), n, unit, method,
            incomplete (see `estimate`).

        Raises
        ------
        InputError
            When a name is not known, nothing is common to both sides, or the sampling interval is
            longer than ten base RTTs.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/first.toml", {"sampling_interval": "100 ms"})
        >>> results = jostle.run(scenario, store=False)
        >>> results.conformance(flows="newcomer")["conformance"].to_list()
        [1.0]
        >>> found = results.conformance(flows="newcomer", against="incumbent", phase="together")
        >>> found["conformance"].item() < 0.5
        True
        """
        from jostle.results.conformance import conformance_frame, conformance_results

        found = conformance_results(
            self,
            self if reference is None else reference,
            (flows,) if isinstance(flows, str) else flows,
            against=against,
            phase=phase,
        )
        return conformance_frame(found, method, confidence)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks that the user needs to interpret the numbers."""
        return (*self.failure_notes, *self.said, *self.identical_runs)

    @cached_property
    def identical_runs(self) -> tuple[str, ...]:
        """Remark on conditions whose runs are all identical; empty if there are none."""
        identical = [i for i in range(len(self.conditions)) if self._all_identical(i)]
        if not identical:
            return ()
        several = [i for i in range(len(self.conditions)) if len(self.runs_of(i)) > 1]
        counts = {len(self.runs_of(i)) for i in identical}
        which = f"all {counts.pop()} runs" if len(counts) == 1 else "all runs"
        if identical == several:
            where = " of every condition" if len(several) > 1 else ""
            subject = "in this scenario"
        else:
            named = [self.labels[i] for i in identical[:_NAMED_CONDITIONS]]
            more = len(identical) - len(named)
            where = " of " + "; ".join(named) + (f" and {more} more" if more else "")
            subject = "there"
        return (
            f"{which}{where} are identical: nothing {subject} is random; "
            "give the flows start_jitter",
        )

    @property
    def plot(self) -> Plots:
        """Figures: `plot()` draws the default figure; `plot.lines(x=…, y=…, by=…)` and others any.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.plot().savefig("first.png")  # doctest: +SKIP
        """
        from jostle.results.plots import Plots

        return Plots(self)

    def compare(
        self,
        other: ResultSet,
        columns: Sequence[str] = (),
        phases: Sequence[str] = (),
        *,
        test: Literal["welch", "mann-whitney"] = "welch",
    ) -> pl.DataFrame:
        """Compare another set of results with this one, such as results of another backend.

        Runs are independent samples: the sides may differ in number and seeds.

        Parameters
        ----------
        other
            Results with conditions, flows and phases of the same names. A grid key may differ if
            each side has at most one value of it.
        columns
            Names of measures; if empty, the measures that suit the flows.
        phases
            Names of phases; the complete run if empty.
        test
            `welch` compares means, `mann-whitney` ranks.

        Returns
        -------
        polars.DataFrame
            Differences (`other` minus this), significant ones first, then by size: both means
            with their intervals, `difference` with Welch's 95 % interval (`low`, `high`), which is
            not adjusted for the number of differences, `relative`, `p` and `p_corrected`, adjusted
            for all tests (Holm): below 0.05 a difference is statistically significant.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.compare(results, ["throughput"], ["together"])["difference"].to_list()
        [0.0, 0.0]
        """
        from jostle.results.compare import compare

        if not isinstance(other, ResultSet):
            raise InputError(f"other: {other!r:.80} is no results: give those of another run")
        return compare(self, other, columns, phases, test=test).frame()

    def to_dict(self, phases: Sequence[str] = ()) -> dict[str, Any]:
        """Give the summary document, `jostle.summary/3`, as plain data.

        Parameters
        ----------
        phases
            Names of the phases that are given; all of them if empty.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.to_dict(["together"])["schema"]
        'jostle.summary/3'
        """
        return document(self, phases)

    def to_json(self, indent: int | None = None, phases: Sequence[str] = ()) -> str:
        """Give the summary document, `jostle.summary/3`, as JSON text; see `to_dict`.

        Examples
        --------
        >>> import jostle
        >>> results = jostle.run("scenarios/first.toml", store=False)
        >>> results.to_json()[:1]
        '{'
        """
        return json.dumps(self.to_dict(phases), indent=indent, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        return (
            f"<ResultSet {self.title!r}: {len(self.conditions)} conditions, "
            f"{len(self.results)} runs, {len(self.failures)} failed>"
        )

    page: Callable[[Any], str] | None = None
    """Renders the report for notebooks; without it a notebook shows tables only."""

    def _repr_html_(self) -> str:
        if self.page is None or not self.results:
            return self._tables_html()
        # An iframe isolates styles and scripts from the notebook and needs no server.
        held = escape(self.page(self), quote=True)
        return (
            f'<iframe srcdoc="{held}" style="width:100%;height:48rem;border:0" '
            f'title="{escape(self.title, quote=True)}"></iframe>'
        )

    def _tables_html(self) -> str:
        from jostle.results.tables import phase_tables
        from jostle.results.text_table import html_table

        if not self.results:
            return "".join(f'<p class="note">{escape(note)}</p>' for note in self.failure_notes)
        return "".join(
            f"<strong>{phase.name}</strong>"
            + "".join(html_table(table) for table in phase_tables(self, phase.name))
            for phase in self.phases
        )

    @property
    def _grid_keys(self) -> list[str]:
        return [key for key in self.grid if key not in {"condition", "seed", "run_id"}]

    @property
    def _key_columns(self) -> list[str]:
        return ["condition", *self._grid_keys, "seed", "run_id"]

    def _placed(self) -> list[tuple[dict[str, Any], Run]]:
        return [
            (
                {"condition": self.labels[r.condition]}
                | {key: self.grid[key][r.condition] for key in self._grid_keys}
                | {"seed": r.seed, "run_id": r.run.run_id},
                r.run,
            )
            for r in self.results
        ]

    def _table(
        self,
        part: str,
        who: str,
        facts: tuple[str, ...],
        whole: tuple[str, ...],
        keys: tuple[str, ...],
    ) -> pl.DataFrame:
        rows = [
            {**place, who: entry["name"]}
            | {key: entry.get(key) for key in (*facts, *whole)}
            | {"phase": phase}
            | {key: values.get(key) for key in keys}
            for place, run in self._placed()
            for entry in run.summary.get(part, ())
            for phase, values in entry["phases"].items()
        ]
        columns = [*self._key_columns, who, *facts, *whole, "phase", *keys]
        return frames.table(rows, columns, (*whole, *keys), self.grid)

    def _run_table(self, part: Literal["fairness", "totals"]) -> pl.DataFrame:
        wanted = keys("run", part)
        rows = [
            {**place, "phase": phase} | {key: values.get(key) for key in wanted}
            for place, run in self._placed()
            for phase, values in run.summary[part].items()
        ]
        return frames.table(rows, [*self._key_columns, "phase", *wanted], wanted, self.grid)
