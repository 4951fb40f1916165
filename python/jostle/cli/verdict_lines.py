"""Verdict lines: the first line that a command prints answers its question in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jostle.results.number_format import count, decimals, plain, signed, with_interval

if TYPE_CHECKING:
    from jostle.fidelity import Comparison
    from jostle.inference.fit import Fit
    from jostle.inference.identify import Identification
    from jostle.parameter_search.boundary_report import BoundaryResult
    from jostle.parameter_search.sensitivity import Sensitivity
    from jostle.parameter_search.tuning import Part
    from jostle.parameter_search.tuning_report import TuningResult
    from jostle.results import ResultSet
    from jostle.results.compare import ComparisonResult
    from jostle.results.conformance import ConformanceResult
    from jostle.results.measure_samples import MeasureSample
    from jostle.studies import Study
    from jostle.studies.column import Evaluations
    from jostle.studies.evaluate import ClaimRow
    from jostle.suites.evaluate import SuiteResult
    from jostle.suites.ranking import RankedController

_DELAY = "queueing_delay_p95"
_NAMED = 5
"""Number of criteria that a verdict names."""


def run_verdict(results: ResultSet, phases: Sequence[str]) -> str:
    """Say which flow gets most, or what a flow reaches, and how long packets queue.

    The phase is the first requested one, or else the last one of the scenario. Of several
    conditions, the flow is the one that differs most between them.
    """
    known = [phase.name for phase in results.phases]
    phase = phases[0] if phases else known[-1]
    per_condition = [len(results.runs_of(at)) for at in range(len(results.conditions))]
    runs = count(max(per_condition), "run")
    if len(per_condition) > 1:
        each = " each" if min(per_condition) == max(per_condition) else " at most"
        runs = f"{count(len(per_condition), 'condition')}, {runs}{each}"
    if max(per_condition) == 1:
        runs += ", no confidence interval"
    if results.measured:
        runs = count(len(per_condition), "measurement")
    failed = [f"{count(len(results.failures), 'run')} failed"] if results.failures else []
    late = ["INVALID: late"] if results.late_runs else []
    found = _shown_flow(results, phase)
    said = [_flow_verdict(results, found, known)] if found else ["no flow has a value"]
    said += _queueing_delay(results, phase)
    return "; ".join([*late, *said, runs, *failed])


def _shown_flow(results: ResultSet, phase: str) -> list[MeasureSample]:
    """Return the samples of the flow that differs most between conditions.

    If bulk flows compete, these are shares of the throughput. The share of a flow without
    competitor, or of a flow that requests little, says nothing: these have the first measure of
    their table.
    """
    shares = [one for one in _present(results, "share", phase) if _kind_of(results, one) == "bulk"]
    rivals = Counter(one.condition for one in shares)
    if competing := [one for one in shares if rivals[one.condition] > 1]:
        return max(_by_flow(competing), key=lambda flow: (_difference(flow), _largest(flow)))
    flows = _by_flow(_main_measures(results, phase))
    if len(flows) > 1 and all(len(flow) == 1 for flow in flows):
        names = {(one.condition, one.measure.name) for (one,) in flows}
        if len({name for _, name in names}) == 1 and len({at for at, _ in names}) == len(flows):
            # Each capture has one flow, and the names differ.
            return [one for (one,) in flows]
    return max(flows, key=lambda flow: _difference(flow) / (_largest(flow) or 1.0), default=[])


def _main_measures(results: ResultSet, phase: str) -> list[MeasureSample]:
    """Return the first measure with a value of each kind of flows; bulk flows are last."""
    from jostle.results.finished_runs import OVERALL
    from jostle.results.tables import columns_of, kinds_of

    found = []
    for kind in sorted(kinds_of(results), key=lambda kind: kind == "bulk"):
        for wanted in columns_of(results, kind, OVERALL):
            of_kind = [
                one
                for one in (_present(results, wanted.name, phase) if wanted.scope == "flow" else [])
                if _kind_of(results, one) == kind
            ]
            if of_kind:
                found += of_kind
                break
    return found


def _present(results: ResultSet, name: str, phase: str) -> list[MeasureSample]:
    from jostle.results.measure_samples import samples

    return [one for one in samples(results, name, [phase]) if one.estimate().value is not None]


def _kind_of(results: ResultSet, sample: MeasureSample) -> str:
    from jostle.results.flow_groups import flow_groups

    groups = flow_groups(results.spec_of(sample.condition))
    return next(group.kind for group in groups if group.name == sample.place["flow"])


def _by_flow(found: Sequence[MeasureSample]) -> list[list[MeasureSample]]:
    by_flow: dict[str, list[MeasureSample]] = {}
    for sample in found:
        by_flow.setdefault(sample.place["flow"], []).append(sample)
    return list(by_flow.values())


def _value(sample: MeasureSample) -> float:
    return sample.estimate().value or 0.0


def _largest(found: Sequence[MeasureSample]) -> float:
    return max(map(_value, found))


def _difference(found: Sequence[MeasureSample]) -> float:
    return _largest(found) - min(map(_value, found))


def _flow_verdict(results: ResultSet, shown: Sequence[MeasureSample], phases: Sequence[str]) -> str:
    measure = shown[0].measure
    digits = decimals([sample.estimate() for sample in shown], measure)

    def text(sample: MeasureSample) -> str:
        value = with_interval(sample.estimate(), measure.factor, digits)
        return f"{value} {measure.display_unit}".rstrip()

    flow = shown[0].place["flow"]
    if len({sample.place["flow"] for sample in shown}) > 1:
        flow = "one flow each"
    controller = shown[0].place.get("controller", "none")
    if len(results.conditions) == 1 and controller != "none":
        flow += f" ({controller})"
    values = _between_conditions(results, shown, text)
    of_phase = len(phases) > 1 and measure.place not in ("flow", "group")
    where = f" in {shown[0].place['phase']}" if of_phase else ""
    if measure.name == "share":
        return f"{flow} gets {values} of the throughput{where}"
    return f"{flow}: {measure.title} {values}{where}"


def _between_conditions(
    results: ResultSet, shown: Sequence[MeasureSample], text: Callable[[MeasureSample], str]
) -> str:
    """Give the smallest and the largest value with their conditions."""
    least, most = min(shown, key=_value), max(shown, key=_value)
    if len(results.conditions) == 1:
        return text(most)
    if text(least) != text(most):
        low, high = results.labels[least.condition], results.labels[most.condition]
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


def comparison_verdict(compared: ComparisonResult) -> str:
    """Say how many differences are significant, and which is the largest."""
    first, second = compared.names
    tested = [one for one in compared.differences if one.resolved is not None]
    changed = [one for one in compared.differences if one.change.value]
    if not changed:
        return f"{second} and {first} have the same values"
    if not tested:
        found = changed
        text = f"{count(len(changed), 'value')} differ, none of which can be tested"
    else:
        found = [one for one in tested if one.resolved]
        text = (
            f"{len(found)} of {len(tested)} values differ significantly "
            f"(p < 0.05, Holm, {compared.test})"
        )
    sized = [one for one in found if one.relative is not None]
    if not sized:
        return text
    largest = max(sized, key=lambda one: abs(one.relative or 0.0))
    change = f"{signed(100 * (largest.relative or 0.0), 0)} %"
    return f"{text}; largest: {largest.measure.title}, {largest.where}: {change}"


def envelope_verdict(rows: Sequence[ConformanceResult]) -> str:
    """Say how alike the least alike flows are."""
    valued = [one for one in rows if one.estimate("conformance").value is not None]
    if not valued:
        return "no flow has an envelope"
    least = min(valued, key=lambda one: one.estimate("conformance").value or 0.0)
    value = plain(least.estimate("conformance").value, 1.0, 2)
    which = ", ".join(least.condition.values())
    of = f" ({which})" if which else ""
    lowest = f", the lowest of {len(valued)}" if len(valued) > 1 else ""
    return f"conformance of {least.flow} with {least.reference}{of}: {value}{lowest}"


def validation_verdict(comparisons: Sequence[Comparison]) -> str:
    """Say how many cells agree."""
    cells = sum(len(comparison.cells) for comparison in comparisons)
    within = sum(comparison.within for comparison in comparisons)
    are = "is" if cells == 1 else "are"
    return f"{within} of {cells} cells {are} within the tolerances of what is judged."


def suite_verdict(card: SuiteResult) -> str:
    """Say whether the criteria of the strictest level are met."""
    level = next(
        level
        for level in ("must", "should", "explore")
        if level == "explore" or any(row.criterion.level == level for row in card.rows)
    )
    rows = [row for row in card.rows if row.criterion.level == level]
    failed = [row.criterion.id for row in rows if row.verdict == "fail"]
    unknown = [row.criterion.id for row in rows if row.verdict == "unknown"]
    name = f"{level.upper()} criteria"
    if failed:
        return f"FAIL: {len(failed)} of {len(rows)} {name} not met: {_first(failed)}"
    if unknown or not rows:
        return f"UNKNOWN: {len(unknown)} of {len(rows)} {name} not judged: {_first(unknown)}"
    return f"PASS: all {len(rows)} {name} met"


def _first(names: Sequence[str]) -> str:
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more]) or "none"


def scorecard_verdict(cards: Sequence[SuiteResult], places: Sequence[RankedController]) -> str:
    """Name the controller that ranks first; of one controller, say what it meets."""
    if len(places) > 1:
        first = places[0]
        score = "" if first.score is None else f" with {100 * first.score:.0f} %"
        return f"{first.controller} ranks first of {len(places)}{score}"
    return "; ".join(f"{card.suite}: {suite_verdict(card)}" for card in cards)


def network_verdict(fitted: Sequence[ClaimRow], described: Sequence[ClaimRow]) -> str:
    """Count verdicts on the test half with the fitted network and with the described one."""
    from jostle.studies.verdicts import count_text

    return (
        f"Of {len(fitted)} claims of the half held out: {count_text(fitted)} with the fitted "
        f"network; {count_text(described)} with the network as described"
    )


def study_verdict(study: Study, evaluations: Evaluations) -> str:
    """Count claims by their class over all setups, and name the setup with the best numbers."""
    from jostle.studies.deviations import best_setup
    from jostle.studies.verdicts import claim_verdicts, grouped, in_short, plausible_setups

    sentences = []
    groups = grouped(claim_verdicts(evaluations))
    if groups:
        sentences.append(in_short(groups, len(plausible_setups(evaluations))))
    if (best := best_setup(study.file, evaluations)) is not None:
        title, deviation = best
        sentences.append(f"With the setup that fits best ({title}), {deviation}.")
    first = next(iter(evaluations.values()))
    if left := sum(row.incomplete != "" for row in first.claims):
        sentences.append(f"Not judged, because runs failed: {left}.")
    return " ".join(sentences) or "The study makes no claims."


def identification_verdict(found: Identification) -> str:
    """Name the controller that most probably sent the flow."""
    (first, share), *others = found.merged_ranking
    none = f"none of these {found.none_of_these:.2f}"
    if found.none_of_these > share:
        closest = f"{first} comes closest, and is not close"
        if others and others[0][1] > 0.75 * share:
            closest = f"{first} and {others[0][0]} are about equally close"
        return f"none of these (probability {found.none_of_these:.2f}): {closest}"
    following = [f"{name} {less:.2f}" for name, less in others[:1]]
    rest = ", ".join([*following, none])
    return f"{first} (probability {share:.2f}; next: {rest})"


def fit_verdict(found: Fit) -> str:
    """Give the fitted values with their intervals."""
    values = ", ".join(
        f"{one.key.key} = {one.key.written(one.value)} "
        f"(95 % interval {one.key.written(one.low)} … {one.key.written(one.high)})"
        for one in found.parameters
    )
    return f"{values}; misfit {found.misfit:.3g}"


def sensitivity_verdict(found: Sequence[Sensitivity]) -> str:
    """Name the key with the largest effect on each measure."""
    from jostle.parameter_search.sensitivity import by_importance

    return "; ".join(
        f"{one.quantity.text} depends most on {by_importance(one)[0].key}" for one in found
    )


def boundary_verdict(found: BoundaryResult) -> str:
    """Say where the claim stops holding."""
    from jostle.parameter_search.boundary import changes

    known = [one for one in found.places if one.judgement.holds is not None]
    holds = sum(bool(one.judgement.holds) for one in known)
    points = count(len(known), "point")
    if not known:
        return "the claim is not judged at any point"
    if holds == 0:
        return f"the claim holds at none of {points}"
    if holds == len(known):
        return f"the claim holds at all {points}"
    if len(found.variables) == 1:
        (key,) = (variable.key for variable in found.variables)
        steps = [
            f"{'stops' if before.judgement.holds else 'begins'} holding between "
            f"{before.labels[key]} and {after.labels[key]}"
            for before, after in changes(found.places)
        ]
        return f"the claim {', '.join(steps)} of {key}"
    return f"the claim holds at {holds} of {points}"


def tuning_verdict(found: TuningResult) -> str:
    """Give the best values, and their objectives with seeds that the search did not use."""
    if not found.found:
        tried = any(trial.score is not None for trial in found.trials)
        return "no trial holds every constraint" if tried else "no trial could be run"
    best = found.found[0]
    assert best.trial is not None
    values = ", ".join(f"{key} = {label}" for key, label in best.trial.labels.items())
    texts = [one.text for one in found.task.objectives]
    part: Part = "fresh" if "fresh" in best.scores and "fresh" in found.written.scores else "tuned"
    scores = [one.scores.get(part) for one in (best, found.written)]
    after, before = ([None] * len(texts) if s is None else s.objectives for s in scores)
    units = [one.unit for one in found.task.objectives]
    changes = ", ".join(
        f"{text} {_short(new, unit)} instead of {_short(old, unit)}"
        for text, new, old, unit in zip(texts, after, before, units, strict=True)
    )
    if len(texts) == 1 and not _is_better(after[0], before[0], found.task.objectives[0].direction):
        return f"no values are better than the file's; the best trial has {values}: {changes}"
    more = len(found.found) - 1
    others = f"; {count(more, 'other Pareto-optimal trial')}" if more else ""
    return f"best: {values}: {changes}{others}"


def _is_better(new: float | None, old: float | None, direction: str) -> bool:
    if new is None or old is None:
        return new is not None
    return new > old if direction == "maximize" else new < old


def _short(value: float | None, unit: str) -> str:
    return "no value" if value is None else f"{value:.4g} {unit}".rstrip()
