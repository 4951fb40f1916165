"""Advice in words: the answer in a sentence, and the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from jostle.inference.advise import Advice, ChangeResult, is_better
from jostle.inference.flow_benefits import HIDDEN
from jostle.results.measures import Measure, measure
from jostle.results.number_format import count, decimals, plain, signed, with_interval
from jostle.results.text_table import Table
from jostle.safe_io.terminal_text import wrap_words

__all__ = ["advice_table", "answer_sentences", "shown_results"]

_NOTABLE: Final = 0.01
"""Smallest change of another flow's benefit that the answer names, as a share."""
_NAMED: Final = 3
"""Number of other flows that the answer names, and that the table shows."""
_HEADING: Final = 14
"""Width of headings."""


def answer_sentences(found: Advice) -> list[str]:
    """Return the answer in sentences: what to set, its effect, and what it costs."""
    if not found.ranking:
        return ["Change nothing: no change could be measured.", *_bound_sentence(found)]
    best = found.ranking[0]
    if not found.improves:
        low, least = best.gain.low, 1 if found.setup.goal.relative else 0
        why = "no setting is better than the present one with 95 % confidence"
        if best.eligible and low is not None and low > least:
            why = "the gain of every setting is negligible"
        worse = all(
            not one.eligible or (one.gain.high is not None and one.gain.high < least)
            for one in found.ranking
        )
        named = "All are worse than now. The least bad" if worse else "The best of them"
        effect = f"{named}, {best.change.label}: {_effect(found, best)}."
        return [f"Change nothing: {why}. {effect}", *_bound_sentence(found)]
    sentences = [_recommendation(found, best)]
    if best.change.in_the_modem:
        shaped = next((one for one in found.ranking if _can_be_in_a_router(one, found)), None)
        if shaped is not None:
            sentences.append(
                "If you cannot set the queue of the modem itself: " + _recommendation(found, shaped)
            )
    return [*sentences, *_bound_sentence(found)]


def _bound_sentence(found: Advice) -> list[str]:
    """Say which flows have lower bounds instead of completion times, and what helps."""
    names = found.unfinished
    if not names:
        return []
    longer_s = 2 * found.setup.spec["duration_ns"] / 1e9
    more = f" and {len(names) - _NAMED} more flows" if len(names) > _NAMED else ""
    return [
        f"Not all transfers of {', '.join(names[:_NAMED])}{more} are complete at the end of the "
        f"runs: their times are lower bounds (>). Extend `duration` to {longer_s:g} s."
    ]


def _can_be_in_a_router(one: ChangeResult, found: Advice) -> bool:
    return not one.change.in_the_modem and is_better(one, found.setup.goal)


def _recommendation(found: Advice, one: ChangeResult) -> str:
    costs = _costs(found, one)
    rest = "; ".join(costs) if costs else "no other flow loses more than 1 %"
    if not found.setup.others:
        return f"Set {one.change.label}: {_effect(found, one)}."
    return f"Set {one.change.label}: {_effect(found, one)}; {rest}."


def _effect(found: Advice, one: ChangeResult) -> str:
    """Describe the served flows: of a call the worst now and with the change, else all."""
    names = list(found.setup.served)
    if not found.setup.goal.relative:
        worst = [min(names, key=lambda name: _quality(of, name)) for of in (found.baseline, one)]
        names = list(dict.fromkeys(worst))
    several = len(found.setup.served) > 1
    parts = []
    for name in names[:_NAMED]:
        words = [_instead(key, name, one, found.baseline) for key in _spoken(one, name)]
        parts.append((f"{name} has " if several else "") + " and ".join(words))
    if len(names) > _NAMED:
        parts.append(f"and {len(names) - _NAMED} more flows")
    return ", ".join(parts)


def _quality(of: ChangeResult, name: str) -> float:
    numbers = of.numbers[name]
    if "r_factor" in numbers:
        value = numbers["r_factor"].value
        return 0.0 if value is None else value / 100
    value = numbers["late_frames"].value if "late_frames" in numbers else None
    return 0.0 if value is None else 1 - value


def _spoken(of: ChangeResult, name: str) -> list[str]:
    """Return the measures of a flow that the answer names."""
    keys = list(of.numbers[name])
    return keys[:2] if "late_frames" in keys else keys[:1]


def _instead(key: str, name: str, one: ChangeResult, now: ChangeResult) -> str:
    which = measure(key)
    unit = f" {which.display_unit}" if which.display_unit else ""
    title = "MOS" if key == "mos" else which.title
    new, old = (
        f"{_bound_sign(of, name)}{_short(of.numbers[name][key].value, which)}{unit}"
        for of in (one, now)
    )
    text = f"{title} {new} instead of {old}"
    if name not in one.loses:
        return text
    (some, every), before = one.unfinished[name], now.unfinished.get(name, (0, 0))[0]
    return f"{text} ({some} of {count(every, 'transfer')} not complete, {before} now)"


def _bound_sign(of: ChangeResult, name: str) -> str:
    """Return the sign before the times of a flow that are lower bounds."""
    return "> " if name in of.unfinished else ""


def _short(value: float | None, which: Measure) -> str:
    """Write a number with three digits."""
    if value is None:
        return "–"
    shown = value * which.factor
    before_point = math.floor(math.log10(abs(shown))) + 1 if abs(shown) >= 1e-3 else 1
    return plain(value, which.factor, max(0, min(3 - before_point, 3)))


def _costs(found: Advice, one: ChangeResult) -> list[str]:
    """Describe the flows that lose from a change, those that lose most first."""
    lost = {name: _loss(found, one, name) for name in found.setup.others}
    losers = sorted(
        (name for name in lost if lost[name] > _NOTABLE or name in one.loses),
        key=lambda name: (name not in one.loses, -lost[name]),
    )
    words = []
    for name in losers[:_NAMED]:
        key = next(iter(one.numbers[name]))
        if key == "goodput":
            words.append(f"{name} loses {lost[name] * 100:.0f} % of its goodput")
        else:
            words.append(f"{name} has {_instead(key, name, one, found.baseline)}")
    if len(losers) > _NAMED:
        words.append(f"{len(losers) - _NAMED} more flows lose")
    return words


def _loss(found: Advice, one: ChangeResult, name: str) -> float:
    """Return the share that a flow loses: of its mean goodput, as the table has it, or benefit."""
    new, old = (of.numbers[name].get("goodput") for of in (one, found.baseline))
    if new is None or old is None or new.value is None or not old.value:
        return 1 - one.effects[name]
    return 1 - new.value / old.value


def shown_results(found: Advice, most: int) -> list[ChangeResult]:
    """Return the best changes, among them one that a router can have, and the baseline."""
    shown = list(found.ranking[:most])
    if not any(_can_be_in_a_router(one, found) for one in shown):
        shown += [one for one in found.ranking[most:] if _can_be_in_a_router(one, found)][:1]
    return [*shown, found.baseline]


def advice_table(found: Advice, rows: Sequence[ChangeResult]) -> Table:
    """Return the table of some changes and the baseline, which is last.

    It has the measures of the served flows and the main measure of some other flows. Rows are
    numbered, because descriptions of changes are long.
    """
    goal = found.setup.goal
    columns = [[_gain(one, found) for one in rows]]
    headings = ["factor" if goal.relative else "gain"]
    shown = [(name, key) for name in found.setup.served for key in found.baseline.numbers[name]]
    others = found.setup.others[:_NAMED]
    shown += [(name, next(iter(found.baseline.numbers[name]))) for name in others]
    for name, key in shown:
        if key in HIDDEN:
            continue
        which = measure(key)
        every = [one.numbers[name][key] for one in rows]
        digits = decimals(every, which)
        title = "\n".join(wrap_words(which.title, _HEADING))
        headings.append(f"{name}\n{title}\n{which.display_unit}".rstrip())
        columns.append([_cell(one, name, key, digits) for one in rows])
    texts = tuple(
        ("now" if one is found.baseline else str(at + 1), *(column[at] for column in columns))
        for at, one in enumerate(rows)
    )
    notes = [
        f"{'Factor by which it is better' if goal.relative else 'Gain'}: {goal.meaning}.",
        f"95 % intervals of means of {found.baseline.gain.n} paired runs. Rows whose intervals "
        "overlap may be equal.",
        "Settings that are better with 95 % confidence come first. Those of nearly the same gain "
        "are ordered by delay, effect on other flows, and number of changed values.",
    ]
    if any(name in one.unfinished for one in rows for name, _ in shown):
        notes.append(
            "> lower bound: transfers that are not complete count with the time that they had. "
            "~ gain from lower bounds. Settings with which fewer transfers are complete come last."
        )
    left = len(found.ranking) + 1 - len(rows)
    if left > 0:
        notes.append(f"{count(left, 'more setting')} of the best: --json has them.")
    rest = len(found.setup.others) - len(others)
    if rest:
        notes.append(f"{rest} more flows are not shown: --json has them.")
    return Table(("", *headings), texts, (), 1, notes=tuple(notes))


def _cell(one: ChangeResult, name: str, key: str, digits: int) -> str:
    which, number = measure(key), one.numbers[name][key]
    if number.value is not None and name in one.unfinished:
        # Bounds say nothing about the accuracy of the mean.
        return f"{_bound_sign(one, name)}{plain(number.value, which.factor, digits)}"
    return with_interval(number, which.factor, digits)


def _gain(one: ChangeResult, found: Advice) -> str:
    gain = one.gain
    if one is found.baseline or gain.value is None:
        return ""
    low, high = gain.low, gain.high
    if low is None or high is None or math.isclose(low, high, abs_tol=1e-9):
        # All runs are equal, so that they say nothing about the accuracy of the mean.
        low = high = None
    sign = "~ " if one.from_bounds else ""
    if not found.setup.goal.relative:
        # Differences have a sign; what rounds to 0 has none.
        text = f"{sign}{signed(gain.value * 100, 1)}"
        return text if low is None or high is None else f"{text} ± {(high - low) * 50:.1f}"
    text = f"{sign}{gain.value:.2f}"
    if low is not None and high is not None:
        text += f" [{low:.2f}, {high:.2f}]"
    return text
