"""Verdict lines: the first line that a command prints answers its question in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jostle.results.number_format import count, plain, signed

if TYPE_CHECKING:
    from jostle.fidelity import Comparison
    from jostle.inference.fit import Fit
    from jostle.inference.identify import Identification
    from jostle.results.compare import ComparisonResult, Difference
    from jostle.results.conformance import ConformanceResult
    from jostle.runner.sweeps.plan_progress import PlanProgress
    from jostle.scenario.traces.trace_summary import Summary
    from jostle.studies import NumberRow, Study
    from jostle.studies.column import Evaluations
    from jostle.suites.evaluate import SuiteResult
    from jostle.suites.ranking import RankedController

_NAMED = 5
"""Number of criteria that a verdict names."""


def add_verdict(document: Mapping[str, Any], answer: str) -> dict[str, Any]:
    """Return a document in which the answer follows the name of its format."""
    first = {"schema": document["schema"]} if "schema" in document else {}
    return {**first, "answer": answer, **document}


def comparison_verdict(compared: ComparisonResult) -> str:
    """Say how many differences are significant, and which is the largest."""
    judged = tuple(one for one in compared.differences if not any(_reasons(one)))
    left = [one for one in compared.differences if any(_reasons(one))]
    others = []
    if left:
        each = dict.fromkeys(
            f"{name}: {text}"
            for one in left
            for name, text in zip(compared.names, _reasons(one), strict=True)
            if text
        )
        others.append(f"{count(len(left), 'value')} not judged ({'; '.join(each)})")
    ours = sum(not one.second.n for one in compared.one_sided)
    counts = zip(compared.names, (ours, len(compared.one_sided) - ours), strict=True)
    others += [f"{count(n, 'value')} of {name} alone" for name, n in counts if n]
    if others and not any(one.change.value for one in judged):
        same = "the other is" if len(judged) == 1 else f"the other {len(judged)} are"
        return "; ".join([*others, f"{same} the same"] if judged else others)
    return "; ".join([_differences_verdict(replace(compared, differences=judged)), *others])


def _reasons(one: Difference) -> tuple[str, str]:
    """Return for each side why a difference is not judged; empty texts if it is."""
    if one.change.value is None and not any(one.unfinished):
        return one.first.incomplete, one.second.incomplete
    return one.unfinished


def _differences_verdict(compared: ComparisonResult) -> str:
    first, second = compared.names
    tested = [one for one in compared.differences if one.resolved is not None]
    changed = [one for one in compared.differences if one.change.value]
    if not changed:
        return f"{second} and {first} have the same values"
    if not tested:
        found = changed
        differ = "differs, and cannot" if len(changed) == 1 else "differ, none of which can"
        why = ": nothing is random" if compared.is_deterministic else ""
        text = f"{count(len(changed), 'value')} {differ} be tested{why}"
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
    """Say how many cells agree in the judged quantities, and which quantities are not judged."""
    cells = sum(len(comparison.cells) for comparison in comparisons)
    within = sum(comparison.within for comparison in comparisons)
    judged: dict[str, None] = {}
    left: dict[str, None] = {}
    for comparison in comparisons:
        for cell in comparison.cells:
            judged.update((one.quantity.title, None) for _, one in cell.judged)
            without = (*cell.not_judged, *cell.absent)
            left.update((one.quantity.title, None) for _, one in without)
    are = "is" if cells == 1 else "are"
    of = f" in {_listed(list(judged))}" if judged else ""
    text = f"{within} of {count(cells, 'cell')} {are} within the tolerances{of}"
    if not left:
        return text
    some = " in every cell" if left.keys() & judged.keys() else ""
    return f"{text}; not judged{some}: {', '.join(left)}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def measurement_verdict(manifest: Mapping[str, Any]) -> str:
    """Say which transfer of each direction was fastest, and how long pings took meanwhile."""
    said = []
    idle = manifest["idle"]
    rest_s = None if idle is None else idle["rtt_p50_s"]
    for direction in dict.fromkeys(one["direction"] for one in manifest["transfers"]):
        rated = [
            one
            for one in manifest["transfers"]
            if one["direction"] == direction and one["measured"]["goodput_bps"] is not None
        ]
        if not rated:
            continue
        best = max(rated, key=lambda one: one["measured"]["goodput_bps"])
        first = ", the fastest of " + count(len(rated), "transfer") if len(rated) > 1 else ""
        text = f"{best['name']}: {best['measured']['goodput_bps'] / 1e6:.2f} Mbit/s{first}"
        pings = best["pings"]
        if pings is not None and pings["rtt_p50_s"] is not None:
            text += f", median ping {pings['rtt_p50_s'] * 1e3:.1f} ms"
            text += "" if rest_s is None else f" instead of {rest_s * 1e3:.1f} ms at rest"
        said.append(text)
    said = said or ["no transfer has a goodput"]
    return "; ".join([*said, "one measurement of each, no confidence interval"])


def recording_verdict(
    columns: Sequence[tuple[str, str, float, Summary]], length_s: float, gaps: int
) -> str:
    """Give the mean and the range of each column of a recording, and its gaps.

    A column is its name, its unit, the factor to this unit, and its statistics.
    """
    said = [
        f"{name}: mean {each.mean * factor:.4g} {unit}, 90 % of the time from "
        f"{each.p5 * factor:.4g} to {each.p95 * factor:.4g} {unit}"
        for name, unit, factor, each in columns
    ]
    return "; ".join([*said, f"{length_s:g} s, {count(gaps, 'gap') if gaps else 'no gaps'}"])


def synthesis_verdict(distances: Mapping[str, float]) -> str:
    """Say how far the distributions of a generated recording are from its source."""
    parts = (f"{name} {distance:.4f}" for name, distance in distances.items())
    return (
        f"largest difference of the distributions (Kolmogorov-Smirnov, 0 to 1): {', '.join(parts)}"
    )


def sweeps_verdict(plans: Sequence[PlanProgress]) -> str:
    """Say how many plans and runs are done."""
    done, total, failed = (
        sum(getattr(plan, key) for plan in plans) for key in ("done", "total", "failed")
    )
    finished = sum(plan.left == 0 and plan.failed == 0 for plan in plans)
    text = f"{finished} of {count(len(plans), 'plan')} finished, {done} of {count(total, 'run')}"
    return text + (f", {failed} failed" if failed else "")


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
    """Name the controllers that rank first; of one controller, say what it meets."""
    if len(places) > 1:
        score = places[0].score
        if score is None:
            return f"no criterion is judged for all {len(places)} controllers: no ranking"
        best = [place.controller for place in places if place.rank == 1]
        said = f"{_listed(best)} rank equal first" if len(best) > 1 else f"{best[0]} ranks first"
        return f"{said} of {len(places)} with {100 * score:.0f} %"
    return "; ".join(f"{card.suite}: {suite_verdict(card)}" for card in cards)


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
    return " ".join(sentences) or _range_of_numbers(first.numbers)


def _range_of_numbers(rows: Sequence[NumberRow]) -> str:
    """Give the ends of the first number's table, for a study without claims."""
    from jostle.results.number_format import estimate_text

    known = [row for row in rows if row.ours.finite is not None]
    table = [row for row in known if row.id.split(".")[0] == known[0].id.split(".")[0]]
    if not table:
        return "The study makes no claims, and no number has a value."
    table.sort(key=lambda row: row.ours.finite or 0.0)
    ends = (table[0],) if len(table) == 1 else (table[0], table[-1])
    said = [f"{row.text}: {estimate_text(row.ours, unit=True)}" for row in ends]
    return f"The study makes no claims. {'; '.join(said)}."


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
