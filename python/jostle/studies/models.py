"""Format of `study.toml`. A study is data only: it contains no formulas and no code."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from jostle.backends import BACKENDS
from jostle.errors import unknown

EACH_ACK: Final = "ack"
"""Value of `bin`: one bin per ACK, for runs that recorded their ACKs."""
ALL_FLOWS: Final = ("jain", "total_throughput")
"""Panels of a series with one line for all flows: measures of the run."""
Origin = Literal["printed", "derived", "figure"]
"""Where a published number is from: printed in the paper, derived by us, or read from a figure."""
Summary = Literal["mean", "sd", "median", "min", "max", "share"]


def _known_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(unknown("backend", name, BACKENDS))
    return name


Backend = Annotated[str, AfterValidator(lambda name: name and _known_backend(name))]
"""Name of a backend; empty for the backend of the column."""


class DataTable(BaseModel):
    """A table of a study or a suite, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Window(DataTable):
    """A time window of a run that is not a phase of the scenario.

    Attributes
    ----------
    time
        Start and end, such as `["0 s", "30 s"]`.
    bytes
        Start and end as shares of the bytes that the flow delivers: `["50 %", "100 %"]`.
    """

    time: tuple[str, str] | None = None
    bytes: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _check_exclusive(self) -> Window:
        if (self.time is None) == (self.bytes is None):
            raise ValueError("give either `time` or `bytes`")
        return self


class ScenarioChange(DataTable):
    """Values that replace values of a scenario.

    Attributes
    ----------
    set
        Value by key. Keys are written as in a grid or `--set`, values as in the scenario.
    where
        Short name of a grid key → label: conditions to change; all of them if absent.
    experiments
        Experiments to change; all of the study if absent.
    """

    set: Annotated[dict[str, Any], Field(min_length=1)]
    where: dict[str, str] = {}
    experiments: tuple[str, ...] = ()


class SetupEvidence(DataTable):
    """Evidence for a setup.

    Attributes
    ----------
    quote
        Quotation from the paper, or a fact that we measured.
    source
        Place in the paper, or origin of the measurement.
    """

    quote: str
    source: str


class Setup(DataTable):
    """An alternative interpretation of the paper's description of its testbed.

    Attributes
    ----------
    id, title, text
        Name, title of its column, and the difference in a sentence.
    support
        Evidence for the setup.
    over
        Setups that it includes; their changes are applied first.
    changes
        Changes of the scenarios.
    repeats
        Runs per condition, unless the scenario has fewer.
    figures
        Figures that are also drawn for this setup.
    fitted_to, held_out
        If a search chose the values: ids of the claims that it used, and of those it did not use.
        The setup is then an experiment and not counted in verdicts over all setups.
    """

    id: str
    title: str
    text: str
    support: Annotated[tuple[SetupEvidence, ...], Field(min_length=1)]
    over: tuple[str, ...] = ()
    changes: tuple[ScenarioChange, ...] = ()
    repeats: Annotated[int, Field(ge=1)] | None = None
    figures: tuple[str, ...] = ()
    fitted_to: tuple[str, ...] = ()
    held_out: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _different(self) -> Setup:
        if not self.changes and len(self.over) < 2:
            raise ValueError("a setup changes something, or takes two others together")
        if bool(self.fitted_to) != bool(self.held_out):
            raise ValueError("give `fitted_to` and `held_out`: a fit needs claims to test it")
        if both := set(self.fitted_to) & set(self.held_out):
            raise ValueError(f"`{min(both)}` is in `fitted_to` and in `held_out`")
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether a search over claims of the study chose the values."""
        return bool(self.fitted_to)


class CoverageItem(DataTable):
    """A figure or a table of the paper, and its counterpart in the study.

    Attributes
    ----------
    item, shows
        Its name (`Figure 3`, `Table II`), and its content.
    ours
        Ids of our figures, numbers and claims.
    why
        Reason why there is no counterpart, or what is missing in it.
    elsewhere
        Command or page of jostle that shows the content outside the study.
    """

    item: str
    shows: str
    ours: tuple[str, ...] = ()
    why: str = ""
    elsewhere: str = ""

    @model_validator(mode="after")
    def _answered(self) -> CoverageItem:
        if not (self.ours or self.why or self.elsewhere):
            raise ValueError("give `ours`, or say in `why` why there is nothing")
        return self

    @property
    def status(self) -> str:
        """Whether there is a counterpart: `yes`, `in part`, or `no`."""
        there = self.ours or self.elsewhere
        return "no" if not there else "in part" if self.why else "yes"


class ScenarioRuns(DataTable):
    """A scenario of a study or a suite, and how it is run.

    Attributes
    ----------
    scenario
        File in the folder of the study or suite.
    keys
        Short name → key of the scenario's grid.
    windows
        Windows in addition to the phases of the scenario.
    backends
        Backends that can run it.
    repeats
        Runs per condition, unless the scenario has fewer.
    kernel_repeats
        Runs per condition on a real-time backend such as the kernel; by default, as many as in the
        simulator.
    """

    scenario: str
    keys: dict[str, str] = {}
    windows: dict[str, Window] = {}
    backends: tuple[Annotated[str, AfterValidator(_known_backend)], ...] = tuple(BACKENDS)
    repeats: Annotated[int, Field(ge=1)] | None = None
    kernel_repeats: Annotated[int, Field(ge=1)] | None = None


class Experiment(ScenarioRuns):
    """A scenario of a study.

    Attributes
    ----------
    changes
        Changes of the scenario for single conditions.
    """

    changes: tuple[ScenarioChange, ...] = ()


class Reference(DataTable):
    """The flow with which a value's flow is compared. Absent keys are taken from the value.

    Attributes
    ----------
    experiment, flow, backend
        As in a value.
    where
        Short key → label: selects conditions in addition to the value's `where`. Keys that the
        reference's experiment does not have are ignored.
    """

    experiment: str = ""
    where: dict[str, str] = {}
    flow: str = ""
    backend: Backend = ""


class Value(DataTable):
    """A number that is measured: runs, flow, time window, and summary over runs.

    Attributes
    ----------
    experiment
        Name of the experiment; optional if there is one.
    where
        Short name of a grid key → label of its value; selects conditions that match all of them.
    pool
        Short names of grid keys: runs that differ in them are one sample, such as draws of a
        random path. Runs that differ in another key are never pooled.
    flow
        Name of the flow (or link, for a measure of links); absent for measures of a run. For a
        flow with `count`, the name without number selects the mean over the flows.
    measure
        Name of a measure (`jostle info list measures`). Numbers are in the unit of tables.
    window
        A phase of the scenario, or a window of the experiment.
    backend
        Backend of the runs; by default, the backend of the column.
    reference
        For measures of pairs, such as `conformance`: the flow to compare with.
    bin
        Length of the bins for a percentile or a share; by default the sampling interval. `ack`:
        one bin per ACK, for `rtt` and `segment_rtt` in a scenario that records ACKs.
    percentile
        Percentile of the bins in the window, instead of the measure over the window; with the
        measure `echo_rtt`, percentile of the echoes.
    bins_above
        Share of the bins in the window, in %, with at least this value in the measure's unit,
        instead of the measure over the window.
    size
        Number of bytes, for `download_time`.
    relative_to
        Grid keys and labels of runs by which each run is divided, seed by seed:
        `{ memory = "none" }`.
    mode, then
        For measures of states: name of the controller's mode (`probe_bw_up`), or its beginning
        (`probe_bw`). For `mode_followed`, `then` is the mode that follows.
    display
        For measures of states: a mode that every controller with these modes shows in any run. A
        run without it has no value, whereas a run without `mode` has the value 0.
    quantity, take
        For `internal`: name of the quantity in the table `internals`, and its summary over time.
    unset
        For `internal`: the number that means "not set", such as for a bound. Intervals with it
        are ignored.
    below, above
        With the summary `share`: limits of the runs that count, in the measure's unit. With the
        measure `echo_share`: limits of the RTTs that count, in ms.
    summary
        Summary over the runs.
    """

    experiment: str = ""
    where: dict[str, str] = {}
    pool: tuple[str, ...] = ()
    flow: str = ""
    measure: str = ""
    window: str = "overall"
    backend: Backend = ""
    reference: Reference | None = None
    bin: str | None = None
    percentile: Annotated[float, Field(ge=0, le=100)] | None = None
    bins_above: float | None = None
    size: str | None = None
    relative_to: dict[str, str] = {}
    mode: str = ""
    then: str = ""
    display: str = ""
    quantity: str = ""
    take: Literal["mean", "min", "max", "last"] = "mean"
    unset: float | None = None
    below: float | None = None
    above: float | None = None
    summary: Summary = "mean"


class Number(Value):
    """A number that is measured, and optionally published; or one number per value of a grid key.

    Attributes
    ----------
    id, text
        Name and description. `{…}` in the text is replaced by the label of the key `measured_by`.
    measured_by
        Short name of the grid key whose labels are the keys of `published`; without `published`,
        there is one number per label.
    published
        Published value in the measure's unit; absent if there is none.
    published_sd
        Published standard deviation over runs, if any.
    origin
        Where the published value is from; or a table with the origin of each.
    against
        With the statistics `t`, `p` and `d`: the runs to compare with.
    statistic
        Statistic of the runs' values: the value, Student's t, its p-value, or Cohen's d.
    ranking
        Whether the order of the published values is compared with our order.
    finding
        Explanation of differences between our runs and the published values.
    """

    id: str
    text: str
    measured_by: str | None = None
    published: float | dict[str, float] | None = None
    published_sd: dict[str, float] = {}
    origin: Origin | dict[str, Origin] = "printed"
    statistic: Literal["value", "t", "p", "d"] = "value"
    against: dict[str, str] = {}
    ranking: bool = False
    finding: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Number:
        if self.published is not None and (self.measured_by is None) == isinstance(
            self.published, dict
        ):
            raise ValueError(
                "`measured_by` goes with a table of published values, one without the other"
            )
        if self.published is None and (self.ranking or self.published_sd):
            raise ValueError("`ranking` and `published_sd` go with published values")
        labels = self.published if isinstance(self.published, dict) else {}
        if isinstance(self.origin, dict) and self.origin.keys() != labels.keys():
            raise ValueError("`origin` has the labels of `published`")
        if (self.statistic == "value") == bool(self.against):
            raise ValueError("`against` goes with the statistics t, p and d")
        return self


class ClaimPart(DataTable):
    """One comparison of a claim.

    Attributes
    ----------
    left
        Value to judge.
    relation
        `above`: left ≥ factor · right + margin. `below`: left ≤ the same. `about`: differs by at
        most the share `tolerance`, or by `within`, or is at most `times` as large or small.
        `order`: each value of `order` above the next.
    right
        A number in the measure's unit, or another value.
    factor, margin, tolerance, within, times
        See `relation`.
    origin
        For `about`: where the number comes from, if it is a published one.
    order
        Values from the largest to the smallest.
    """

    left: Value | None = None
    relation: Literal["above", "below", "about", "order"]
    right: float | Value | None = None
    factor: float = 1.0
    margin: float = 0.0
    tolerance: float = 0.0
    within: float = 0.0
    times: Annotated[float, Field(gt=1)] | None = None
    origin: Origin | None = None
    order: tuple[Value, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> ClaimPart:
        if self.relation == "order":
            if len(self.order) < 2 or self.left is not None or self.right is not None:
                raise ValueError("`order` takes two values or more, without left and right")
        elif self.left is None or self.right is None or self.order:
            raise ValueError(f"`{self.relation}` takes `left` and `right`")
        ranges = [bool(self.tolerance), bool(self.within), self.times is not None]
        if sum(ranges) != (self.relation == "about"):
            raise ValueError("`about` takes one of `tolerance`, `within` and `times`")
        if self.origin is not None and self.relation != "about":
            raise ValueError("`origin` goes with `about`: a published number has two sides")
        return self

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that are compared."""
        sides = (self.left, self.right, *self.order)
        return tuple(side for side in sides if isinstance(side, Value))


class Claim(DataTable):
    """A claim of the paper. It holds if all of its parts do.

    Attributes
    ----------
    id, text
        Name, and the claim in one sentence.
    parts
        Comparisons that have to hold.
    finding
        Explanation if the claim does not hold in our runs.
    """

    id: str
    text: str
    parts: Annotated[tuple[ClaimPart, ...], Field(min_length=1)]
    finding: str = ""

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that the claim compares."""
        return tuple(value for part in self.parts for value in part.values)


class Curve(Value):
    """A line, a bar or a box of a figure; `label` names it."""

    label: str


class ModelCurve(DataTable):
    """A curve of a published formula in a figure; see `studies/published_models.py`.

    Attributes
    ----------
    label
        Name of the curve.
    model
        Name of the formula.
    x
        Parameter on the x axis. Its values are the numbers at the start of the key's labels.
    parameters
        Values of the other parameters, written as in a scenario.
    """

    label: str
    model: str
    x: str
    parameters: dict[str, float | str] = {}


class FigureSpec(DataTable):
    """A figure in the paper's layout, with the published values of what it shows.

    Attributes
    ----------
    id, caption
        Name and caption.
    kind
        `series`: stacked panels over time of one condition. `boxes`, `bars`: one per curve, with
        the runs' distribution or mean and interval. `cdf`: distribution of the bins of all runs.
        `lines`: a measure over a grid key or over download size. `heat_map`: a measure by two
        grid keys. `representative`: stacked panels over the time since a flow's start, of one run
        for each curve: the run whose measure is the median.
        `envelopes`: delay and throughput of each curve's first run, with its Performance Envelope.
    experiment, where, flows
        For `series`: the condition, and the flows to show.
    panels
        For `series`, from top to bottom: measures of the series, `jain` and
        `total_throughput`. For
        `representative`: measures that have bins.
    curves
        For the other kinds.
    models
        For `lines` over a grid key: curves of published formulas in addition to the runs.
    groups
        For `boxes`, `bars` and `envelopes`: names of groups of curves of equal size. For
        `envelopes`, each group has a separate chart.
    x
        For `lines`: short name of the grid key on the x axis, or `size`.
    x_label, x_scale
        For `lines`: label of the x axis; whether the axis is linear, logarithmic, or has the key's
        values at even distances.
    rows, columns
        For `heat_map`: short names of grid keys; `columns` may be `window`.
    row_label, column_label
        For `heat_map`: labels of the axes, if the labels of the keys need an explanation.
    windows
        For `heat_map` by window.
    diverging
        For `heat_map`: whether 0 is the neutral centre of the colours.
    finding
        Explanation in a paragraph. `{id}` or `{id.label}` of a number is replaced by the value
        from our runs.
    """

    id: str
    caption: str
    finding: str = ""
    kind: Literal[
        "series", "representative", "boxes", "bars", "cdf", "lines", "heat_map", "envelopes"
    ]
    experiment: str = ""
    where: dict[str, str] = {}
    flows: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    curves: tuple[Curve, ...] = ()
    models: tuple[ModelCurve, ...] = ()
    groups: tuple[str, ...] = ()
    x: str = ""
    x_label: str = ""
    x_scale: Literal["linear", "log", "even"] = "linear"
    rows: str = ""
    columns: str = ""
    row_label: str = ""
    column_label: str = ""
    windows: tuple[str, ...] = ()
    diverging: bool = False


class StudyFile(DataTable):
    """A study.

    Attributes
    ----------
    title, paper
        Short title, and the citation.
    setup
        Markdown file with the setup and every choice that the paper leaves open.
    findings
        Summary of the study in sentences. `{id}` is replaced by the value from our runs.
    tolerance
        Relative difference up to which a number counts as reproduced, even if it is outside our
        confidence interval.
    defaults
        Default keys of every value.
    experiments, numbers, claims, figures
        Scenarios to run, numbers to compare, claims to check, and figures to draw.
    described
        Title of the column of the scenarios' own setup, if there are other setups.
    setups
        Alternative setups.
    coverage
        Every figure and table of the paper.
    """

    title: str
    paper: str
    setup: str = "setup.md"
    findings: tuple[str, ...] = ()
    tolerance: float = 0.1
    defaults: Value = Value()
    experiments: Annotated[dict[str, Experiment], Field(min_length=1)]
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    described: str = "as described"
    setups: tuple[Setup, ...] = ()
    coverage: tuple[CoverageItem, ...] = ()
