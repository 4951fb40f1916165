"""The first line of a run: what flows get, how they differ, and how long packets queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jostle.results.number_format import count, decimals, plain, with_interval

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.results.measure_samples import MeasureSample

__all__ = ["run_verdict"]

_DELAY = "queueing_delay_p95"
_APPLICATIONS = 3
"""Number of kinds of applications that a verdict names."""


def run_verdict(results: ResultSet, phases: Sequence[str]) -> str:
    """Say what applications get or which flow gets most, and how long packets queue.

    The phase is the first requested one, or else the one that compares flows. Of several
    conditions, the flow is the one that differs most between them.
    """
    from jostle.results.unfinished import UnfinishedFlows

    known = [phase.name for phase in results.phases]
    phase = phases[0] if phases else known[0]
    per_condition = [len(results.runs_of(at)) for at in range(len(results.conditions))]
    runs = count(max(per_condition), "run")
    if len(per_condition) > 1:
        each = " each" if min(per_condition) == max(per_condition) else " at most"
        runs = f"{count(len(per_condition), 'condition')}, {runs}{each}"
    if max(per_condition) == 1:
        runs += ", no confidence interval: repeat with --repeats 10"
    if results.measured:
        runs = count(len(per_condition), "measurement")
    failed = [f"{count(len(results.failures), 'run')} failed"] if results.failures else []
    late = ["INVALID: late"] if results.late_runs else []
    unfinished = UnfinishedFlows(results, phase)
    said = _traffic_verdicts(results, phase) or ["no flow has a value"]
    said += unfinished.texts()
    said += _queueing_delay(results, phase)
    return "; ".join([*late, *said, runs, *failed])


def _traffic_verdicts(results: ResultSet, phase: str) -> list[str]:
    """Return a statement for each kind of application, or else one on flows that compete.

    Applications have the main measure of their table. Bulk flows that compete have shares of the
    throughput. The share of a flow without competitor, or of a flow that requests little, says
    nothing: these have the first measure of their table.
    """
    from jostle.results.main_measures import kind_of, main_samples
    from jostle.results.tables import APPLICATIONS, kinds_of

    # A tunnel or a proxy carries the data of other flows.
    kinds = [kind for kind in kinds_of(results) if kind not in ("tunnels", "relays")]
    by_kind = {kind: _with_value(main_samples(results, kind, phase)) for kind in kinds}
    applications = [found for kind, found in by_kind.items() if kind in APPLICATIONS and found]
    rates = {}
    if results.measured:
        # The first flow may be a control connection with hardly any data, as of iperf3.
        rates = {one.place["flow"]: _value(one) for one in _present(results, "throughput", phase)}
    if applications:
        shown = applications[:_APPLICATIONS]
        return [_flow_verdict(results, _differing_most(_by_flow(each), rates)) for each in shown]
    shares = [one for one in _present(results, "share", phase) if kind_of(results, one) == "bulk"]
    totals: dict[int, float] = defaultdict(float)
    for one in shares:
        totals[one.condition] += _total(one)
    shares = [one for one in shares if not _has_no_competitor(one, totals[one.condition])]
    rivals = Counter(one.condition for one in shares)
    if competing := [one for one in shares if rivals[one.condition] > 1]:
        if len(results.conditions) == 1:
            return [_share_verdict(competing, several_phases=len(results.phases) > 1)]
        flow = max(_by_flow(competing), key=lambda each: (_difference(each), _largest(each)))
        return [_flow_verdict(results, flow)]
    flows = _by_flow([one for found in by_kind.values() for one in found])
    if len(flows) > 1 and all(len(flow) == 1 for flow in flows):
        names = {(one.condition, one.measure.name) for (one,) in flows}
        if len({name for _, name in names}) == 1 and len({at for at, _ in names}) == len(flows):
            # Each capture has one flow, and the names differ.
            return [_flow_verdict(results, [one for (one,) in flows])]
    return [_flow_verdict(results, _differing_most(flows, rates))] if flows else []


def _present(results: ResultSet, name: str, phase: str) -> list[MeasureSample]:
    from jostle.results.measure_samples import samples

    return _with_value(samples(results, name, [phase]))


def _with_value(found: Sequence[MeasureSample]) -> list[MeasureSample]:
    return [one for one in found if one.estimate().value is not None]


def _by_flow(found: Sequence[MeasureSample]) -> list[list[MeasureSample]]:
    by_flow: dict[str, list[MeasureSample]] = {}
    for sample in found:
        by_flow.setdefault(sample.place["flow"], []).append(sample)
    return list(by_flow.values())


def _differing_most(
    flows: Sequence[list[MeasureSample]], rates: Mapping[str, float]
) -> list[MeasureSample]:
    """Return the flow that differs most between conditions, in relation to its largest value."""
    # Of flows that differ equally, the one with the highest rate, or else the first.
    flows = sorted(flows, key=lambda flow: -rates.get(flow[0].place["flow"], 0.0))
    return max(flows, key=lambda flow: _difference(flow) / (_largest(flow) or 1.0))


def _value(sample: MeasureSample) -> float:
    return sample.estimate().value or 0.0


def _largest(found: Sequence[MeasureSample]) -> float:
    return max(map(_value, found))


def _difference(found: Sequence[MeasureSample]) -> float:
    return _largest(found) - min(map(_value, found))


def _texts(shown: Sequence[MeasureSample]) -> Callable[[MeasureSample], str]:
    """Return a function that writes a sample with its interval and unit."""
    measure = shown[0].measure
    digits = decimals([sample.estimate() for sample in shown], measure)

    def text(sample: MeasureSample) -> str:
        value = with_interval(sample.estimate(), measure.factor, digits)
        return f"{value} {measure.display_unit}".rstrip()

    return text


def _total(share: MeasureSample) -> float:
    """Return the share that the flows of a sample have together."""
    return len(share.flows[0]) * _value(share)


def _has_no_competitor(share: MeasureSample, total: float) -> bool:
    """Return whether the flows of a sample have a link for themselves.

    `total` is the sum of all shares of the condition, more than 1 if its flows use several links.
    """
    has_everything = _total(share) > 1 - 1e-6
    return has_everything and (len(share.flows[0]) > 1 or total > 1 + 1e-6)


def _who(sample: MeasureSample) -> str:
    flow, controller = sample.place["flow"], sample.place.get("controller", "none")
    # The value of a group is the mean over its flows.
    flow = f"each flow of {flow}" if sample.is_of_several else flow
    return flow if controller == "none" else f"{flow} ({controller})"


def _share_verdict(shares: Sequence[MeasureSample], *, several_phases: bool) -> str:
    """Say which of the flows of a condition gets most, unless chance may have chosen it."""
    first, second, *others = sorted(shares, key=_value, reverse=True)
    text = _texts(shares)
    where = f" in {first.place['phase']}" if several_phases else ""
    rest = f", the most of {len(shares)}" if others else ""
    if _may_be_equal(first, second, paired=True):
        both = f"{_who(first)} and {_who(second)}"
        return (
            f"the shares of {both} do not differ significantly{where}: {text(first)} and "
            f"{text(second)} of the throughput{rest}"
        )
    said = f"{_who(first)} gets {text(first)} of the throughput{where}"
    return f"{said}{rest}" if others else f"{said}, {_who(second)} {text(second)}"


def _may_be_equal(one: MeasureSample, other: MeasureSample, *, paired: bool = False) -> bool:
    """Return whether the 95 % interval of the difference contains 0; single runs have none.

    Flows of the same runs are `paired`.
    """
    from jostle.stats import difference, estimate

    if one.single and one.measure.percent is not None:
        # The value is a percentile over runs, which has no interval of a difference.
        return False
    if paired:
        pairs = zip(one.values, other.values, strict=True)
        found = estimate(
            [a - b for a, b in pairs if a is not None and b is not None], one.measure.unit
        )
    else:
        found = difference(one.values, other.values, one.measure.unit)
    return found.low is not None and found.high is not None and found.low <= 0.0 <= found.high


def _flow_verdict(results: ResultSet, shown: Sequence[MeasureSample]) -> str:
    measure = shown[0].measure
    flow = shown[0].place["flow"]
    if len({sample.place["flow"] for sample in shown}) > 1:
        flow = "one flow each"
    elif len(results.conditions) == 1:
        flow = _who(shown[0])
    values = _between_conditions(results, shown, _texts(shown))
    of_phase = len(results.phases) > 1 and measure.place not in ("flow", "group")
    where = f" in {shown[0].place['phase']}" if of_phase else ""
    some = " among those that finished" if _is_of_some(results, shown) else _of_runs(shown)
    return f"{flow}: {measure.title} {values}{where}{some}"


def _of_runs(shown: Sequence[MeasureSample]) -> str:
    """Return in how many runs there is a value; empty if in all."""
    runs = sum(len(sample.values) for sample in shown)
    absent = sum(sample.values.count(None) for sample in shown)
    return f" in {runs - absent} of {count(runs, 'run')}, none in the others" if absent else ""


def _is_of_some(results: ResultSet, shown: Sequence[MeasureSample]) -> bool:
    """Return whether values are missing because something did not finish."""
    if not shown[0].measure.is_of_finished:
        return False
    conditions = {sample.condition for sample in shown}
    return len(conditions) < len(results.conditions) or any(
        sample.finish is not None and sample.finish.unfinished for sample in shown
    )


def _between_conditions(
    results: ResultSet, shown: Sequence[MeasureSample], text: Callable[[MeasureSample], str]
) -> str:
    """Give the smallest and the largest value with their conditions, if these differ."""
    least, most = min(shown, key=_value), max(shown, key=_value)
    if len(results.conditions) == 1:
        return text(most)
    if text(least) != text(most):
        low, high = results.labels[least.condition], results.labels[most.condition]
        if _may_be_equal(least, most) and not _is_of_some(results, shown):
            return f"{text(least)} to {text(most)}, no significant difference between conditions"
        return f"{text(least)} ({low}) to {text(most)} ({high})"
    conditions = {sample.condition for sample in shown}
    if len(conditions) == 1:
        return f"{text(most)} ({results.labels[most.condition]})"
    few = len(conditions) < len(results.conditions)
    where = f"{len(conditions)} of {len(results.conditions)}" if few else "all"
    return f"{text(most)} in {where} conditions"


def _queueing_delay(results: ResultSet, phase: str) -> list[str]:
    """Give the p95 queueing delay of the link on which packets wait longest."""
    longest: dict[int, MeasureSample] = {}
    found = _present(results, _DELAY, phase)
    for sample in sorted(found, key=_value):
        longest[sample.condition] = sample
    if not longest:
        return []
    shown = list(longest.values())
    measure = shown[0].measure
    digits = decimals([max(shown, key=_value).estimate()], measure)

    def text(sample: MeasureSample) -> str:
        value = plain(sample.estimate().value, measure.factor, digits)
        return f"{value} {measure.display_unit}"

    upto = "up to " if len(found) > len(longest) and len(longest) == 1 else ""
    return [f"{measure.title} {upto}{_between_conditions(results, shown, text)}"]
