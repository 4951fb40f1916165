"""What a `study.toml` holds. Everything is data: no formula, no code."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from jostle.backends import BACKENDS
from jostle.errors import unknown

EACH_ACK: Final = "ack"
"""As `bin`: every ACK by itself, of runs that recorded them."""
ALL_FLOWS: Final = ("jain", "total")
"""Panels of a series with one line for all flows: measures of the run."""
Summary = Literal["mean", "sd", "median", "min", "max", "share"]


def _known_backend(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(unknown("backend", name, BACKENDS))
    return name


Backend = Annotated[str, AfterValidator(lambda name: name and _known_backend(name))]
"""Name of a backend; empty for the one whose column it is."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Window(_Table):
    """A part of a run that the scenario's phases cannot say.

    Attributes
    ----------
    time
        From and to, such as `["0 s", "30 s"]`.
    bytes
        From and to in shares of the bytes that the flow delivers: `["50 %", "100 %"]`.
    """

    time: tuple[str, str] | None = None
    bytes: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Window:
        if (self.time is None) == (self.bytes is None):
            raise ValueError("give either `time` or `bytes`")
        return self


class Change(_Table):
    """Values that a scenario gets instead of its own.

    Attributes
    ----------
    set
        By key, as a grid or `--set` writes it; values as the scenario would have them.
    where
        Short name of a grid key → label: which conditions; all of them if absent.
    experiments
        Which experiments; all of the study if absent.
    """

    set: Annotated[dict[str, Any], Field(min_length=1)]
    where: dict[str, str] = {}
    experiments: tuple[str, ...] = ()


class Support(_Table):
    """What speaks for a reading.

    Attributes
    ----------
    quote
        The paper's words, or a measured fact in ours.
    source
        Where they stand, or who measured it.
    """

    quote: str
    source: str


class Reading(_Table):
    """Another way to understand what the paper says of its set-up.

    Attributes
    ----------
    id, title, text
        Name, the head of its column, and what is different, in a sentence.
    support
        What speaks for it.
    over
        Readings that it takes as well; their changes come first.
    changes
        What of the scenarios is different.
    repeats
        Runs per condition, where the scenario has more.
    figures
        Figures that are drawn of it, too.
    """

    id: str
    title: str
    text: str
    support: Annotated[tuple[Support, ...], Field(min_length=1)]
    over: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    repeats: Annotated[int, Field(ge=1)] | None = None
    figures: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _different(self) -> Reading:
        if not self.changes and len(self.over) < 2:
            raise ValueError("a reading changes something, or takes two others together")
        return self


class Covered(_Table):
    """A figure or a table of the paper, and where its counterpart is.

    Attributes
    ----------
    item, shows
        Its name (`Figure 3`, `Table II`), and what is in it.
    ours
        Ids of our figures, numbers and claims.
    why
        Why there is no counterpart, or what of it is missing.
    elsewhere
        What of jostle shows it outside of the study: a command, a page.
    """

    item: str
    shows: str
    ours: tuple[str, ...] = ()
    why: str = ""
    elsewhere: str = ""

    @model_validator(mode="after")
    def _answered(self) -> Covered:
        if not (self.ours or self.why or self.elsewhere):
            raise ValueError("give `ours`, or say in `why` why there is nothing")
        return self

    @property
    def status(self) -> str:
        """Whether we have it: `yes`, `in part`, or `no`."""
        there = self.ours or self.elsewhere
        return "no" if not there else "in part" if self.why else "yes"


class Experiment(_Table):
    """A scenario of the study.

    Attributes
    ----------
    scenario
        File beside the study.
    keys
        Short name → key of the scenario's grid.
    windows
        Windows beside the phases of the scenario.
    backends
        What can run it.
    repeats
        Runs per condition, where the scenario has more.
    kernel_repeats
        Runs per condition on a backend that takes its time, as the kernel does; as many as in the
        simulator if absent.
    changes
        What single conditions have instead of what the scenario says.
    """

    scenario: str
    changes: tuple[Change, ...] = ()
    keys: dict[str, str] = {}
    windows: dict[str, Window] = {}
    backends: tuple[Annotated[str, AfterValidator(_known_backend)], ...] = tuple(BACKENDS)
    repeats: Annotated[int, Field(ge=1)] | None = None
    kernel_repeats: Annotated[int, Field(ge=1)] | None = None


class Reference(_Table):
    """The flow that another one is held against, as far as it differs from that one's value.

    Attributes
    ----------
    experiment, flow, backend
        As those of a value.
    where
        Short key → label: which conditions, beside what the value itself says; keys that the
        reference's experiment does not have are of no matter.
    """

    experiment: str = ""
    where: dict[str, str] = {}
    flow: str = ""
    backend: Backend = ""


class Value(_Table):
    """Which number is meant: of which runs, of which flow, when, and how runs are summed up.

    Attributes
    ----------
    experiment
        Its name; may be absent if there is one.
    where
        Short name of a grid key → label of its value; conditions that match all of them.
    flow
        Name of the flow (or of the link, for a measure of links); absent for measures of a run.
        Where several flows were written as one, its name is that of their mean.
    measure
        Name of a measure (`jostle list measures`). Numbers are in the unit that people read.
    window
        A phase of the scenario, or a window of the experiment.
    backend
        What ran it, whichever backend's column it stands in; that one's if absent.
    reference
        Of measures of pairs, such as `conformance`: what the flow is held against.
    bin
        Length of the bins that a percentile or a share is taken over; the scenario's interval if
        absent. `ack`: each ACK by itself, of `rtt` and `ack_rtt` in a scenario that records them.
    percentile
        Of the bins in the window, instead of the measure over all of it; with the measure
        `echo_rtt`, of the echoes.
    bins_above
        Instead of the measure over the window: the share of its bins, in %, that have this much or
        more, in the measure's unit.
    size
        Bytes whose download time is meant, for `download_time`.
    relative_to
        Grid keys and labels of runs that each run is divided by, seed by seed:
        `{ memory = "none" }`.
    mode, then
        Of measures of states: the controller's word for what it does (`probe_bw_up`), or what that
        begins with (`probe_bw`), and with `mode_followed` that of what comes after it.
    shown
        Of measures of states: a mode that a controller of the kind that is meant shows in any run.
        A run without it has no value, where that of one which never was in `mode` would be 0.
    quantity, take
        Of `internal`: its name in the table `internals`, and what is taken of it over time.
    unset
        Of `internal`: the number by which the controller says that there is none, as of a bound
        that is not set. Intervals with it are left out.
    below, above
        With the summary `share`: the runs that are meant, in the measure's unit. With the measure
        `echo_share`: the round trips that are meant, in ms.
    summary
        Over the runs.
    """

    experiment: str = ""
    where: dict[str, str] = {}
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
    shown: str = ""
    quantity: str = ""
    take: Literal["mean", "min", "max", "last"] = "mean"
    unset: float | None = None
    below: float | None = None
    above: float | None = None
    summary: Summary = "mean"


class Number(Value):
    """A number, published or only measured; or one for each value of a grid key.

    Attributes
    ----------
    id, text
        Name, and what it is; `{…}` in the text stands for the label of the key `by`.
    by
        Short name of the grid key whose labels `published` goes by; without that, one number for
        each of its labels.
    published
        In the measure's unit; absent where nobody has published it.
    published_sd
        The published standard deviation over runs, where there is one.
    against
        With the statistic `t` or `d`: the runs that are compared with.
    statistic
        Of what the runs' values give: themselves, Student's t, the p of that test, or Cohen's d.
    ranking
        Whether the order of the published values has to be ours, too.
    finding
        What our runs show where they differ, and why.
    """

    id: str
    text: str
    by: str | None = None
    published: float | dict[str, float] | None = None
    published_sd: dict[str, float] = {}
    statistic: Literal["value", "t", "p", "d"] = "value"
    against: dict[str, str] = {}
    ranking: bool = False
    finding: str = ""

    @model_validator(mode="after")
    def _consistent(self) -> Number:
        if self.published is not None and (self.by is None) == isinstance(self.published, dict):
            raise ValueError("`by` goes with a table of published values, one without the other")
        if self.published is None and (self.ranking or self.published_sd):
            raise ValueError("`ranking` and `published_sd` go with published values")
        if (self.statistic == "value") == bool(self.against):
            raise ValueError("`against` goes with the statistics t, p and d")
        return self


class Part(_Table):
    """One comparison of a claim.

    Attributes
    ----------
    left
        What is judged.
    relation
        `above`: left ≥ factor · right + margin. `below`: the contrary. `about`: off by at most
        `tolerance` of it, or by `within`. `order`: every value of `order` above the next.
    right
        A number in the measure's unit, or another value.
    factor, margin, tolerance, within
        See `relation`.
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
    order: tuple[Value, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Part:
        if self.relation == "order":
            if len(self.order) < 2 or self.left is not None or self.right is not None:
                raise ValueError("`order` takes two values or more, without left and right")
        elif self.left is None or self.right is None or self.order:
            raise ValueError(f"`{self.relation}` takes `left` and `right`")
        if (self.relation == "about") != bool(self.tolerance or self.within):
            raise ValueError("`tolerance` or `within` goes with `about`")
        return self


class Claim(_Table):
    """A claim of the paper. It holds if all of its parts do.

    Attributes
    ----------
    id, text
        Name, and the claim in one sentence.
    parts
        What has to be true of the runs.
    finding
        What our runs show where it does not hold, and why.
    """

    id: str
    text: str
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]
    finding: str = ""

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it compares."""
        sides = [side for part in self.parts for side in (part.left, part.right, *part.order)]
        return tuple(side for side in sides if isinstance(side, Value))


class Curve(Value):
    """A line, a bar or a box of a figure; `label` names it."""

    label: str


class ModelCurve(_Table):
    """A line of a figure that a published formula gives; see `studies/published_models.py`.

    Attributes
    ----------
    label
        Its name.
    model
        Which formula.
    x
        Which of its parameters the x axis is; numbers are those that the key's labels begin with.
    parameters
        The others, as a scenario writes quantities.
    """

    label: str
    model: str
    x: str
    parameters: dict[str, float | str] = {}


class FigureSpec(_Table):
    """A figure in the paper's layout.

    Attributes
    ----------
    id, caption
        Name, and what is to be seen.
    kind
        `series`: stacked panels over time of one condition. `boxes`, `bars`: one per curve, with
        the runs' distribution or mean and interval. `cdf`: distribution of the bins of all runs.
        `lines`: a measure against a grid key or against download size. `heat_map`: a measure by two
        grid keys. `representative`: stacked panels over the time since a flow's start, of one run
        for each curve: the one whose measure is the median.
        `envelopes`: delay and throughput of each curve's first run, with its Performance Envelope.
    experiment, where, flows
        Of a `series`: the condition, and the flows that are shown.
    panels
        Of a `series`, from top to bottom: measures that the series shows, `jain` and `total`. Of
        `representative`: measures that have bins.
    curves
        Of the other kinds.
    models
        Of `lines` over a key of the grid: curves of published formulas beside those of the runs.
    groups
        Of `boxes`, `bars` and `envelopes`: names of the groups of curves, each with as many curves;
        of `envelopes` each has a chart of its own.
    x
        Of `lines`: short name of the grid key along the x axis, or `size`.
    x_label, x_scale
        Of `lines`: words for it; whether the axis is linear, logarithmic, or has the key's values
        at even distances.
    rows, columns
        Of a `heat_map`: short names of grid keys; `columns` may be `window`.
    row_label, column_label
        Of a `heat_map`: words for them, where their labels do not say it.
    windows
        Of a `heat_map` by window.
    diverging
        Of a `heat_map`: whether 0 is its neutral middle.
    finding
        What it shows, in a paragraph; `{id}` of a number, or `{id.label}`, stands for what our
        runs gave.
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


class StudyFile(_Table):
    """A study.

    Attributes
    ----------
    title, paper
        In a few words, and the citation.
    setup
        Markdown file with the setup and every choice that the paper leaves open.
    learned
        What the study shows, for whoever reads no further: sentences in which `{id}` stands for
        what our runs gave.
    tolerance
        Relative difference up to which a number counts as reproduced, beside lying inside our
        interval.
    defaults
        Keys that every value has unless it says otherwise.
    experiments, numbers, claims, figures
        What was run, what came out, what was said of it, what was drawn.
    described
        How the set-up is taken that the scenarios have; head of its column where there are others.
    readings
        Other ways to take it.
    coverage
        Every figure and table of the paper.
    """

    title: str
    paper: str
    setup: str = "setup.md"
    learned: tuple[str, ...] = ()
    tolerance: float = 0.1
    defaults: Value = Value()
    experiments: Annotated[dict[str, Experiment], Field(min_length=1)]
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    described: str = "as described"
    readings: tuple[Reading, ...] = ()
    coverage: tuple[Covered, ...] = ()
