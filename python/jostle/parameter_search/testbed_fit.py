"""Search for the network of a testbed for which most claims of its studies hold.

The search uses half of the claims. The other half is judged once, on the selected network. As in
tuning, each trial is determined by the seed, its number and the earlier trials.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from jostle.errors import InputError
from jostle.parameter_search.tuning import Carry, Score, SearchSettings, Space, Trial, search
from jostle.scenario import ScenarioError
from jostle.scenario.resolve.grid import label_of
from jostle.studies import Runs
from jostle.studies.evaluate import evaluate
from jostle.studies.fitted_network import (
    SCHEMA,
    ClaimOutcome,
    ClaimScore,
    FittedNetwork,
    Required,
    Search,
    Value,
)

if TYPE_CHECKING:
    from jostle.results import ResultSet
    from jostle.studies import ClaimRow, NumberRow, Study
    from jostle.studies.testbed import FreeParameter, Testbed

FINALISTS: Final = 12
"""Number of best networks that are run again with other seeds, to reduce selection bias."""
_TRIED_FROM: Final = 1000
_FINALISTS_FROM: Final = 2000
"""Seeds of trials and finalists, which differ from the seeds of the studies."""


@dataclass(frozen=True)
class NetworkScore:
    """Judgement of a network.

    Attributes
    ----------
    claims
        Claims by study.
    required
        Numbers that must be reproduced, each with its study.
    """

    claims: Mapping[str, tuple[ClaimRow, ...]]
    required: tuple[tuple[str, NumberRow], ...] = ()

    @property
    def stands(self) -> bool:
        """Whether all required numbers are reproduced."""
        return all(row.holds is True for _, row in self.required)


@dataclass(frozen=True)
class TestbedFit:
    """Result of a search.

    Attributes
    ----------
    trials
        All trials, in order.
    finalists
        The best trials with their losses on the claims of the fit with other seeds; best first.
    values, lost
        Values of the selected network by free parameter, and its loss on the claims of the fit.
    fitted
        Judgement of the selected network.
    """

    __test__ = False

    trials: Sequence[Trial]
    finalists: Sequence[tuple[Trial, float]]
    values: Mapping[str, Any]
    lost: float
    fitted: NetworkScore


def lost(row: ClaimRow) -> float:
    """Return the loss of a claim: 0 if it holds, else between a half and 1.

    A part that misses its bound by a share x contributes x ⁄ (1 + x). So the search always has a
    gradient, and a claim that holds is worth more than any approach to another one.
    """
    if row.holds is True:
        return 0.0
    misses = [math.inf if part.holds is None else max(0.0, part.excess) for part in row.parts]
    return (1 + sum(1.0 if math.isinf(x) else x / (1 + x) for x in misses) / len(misses)) / 2


def fit_testbed(testbed: Testbed, carry: Carry, how: SearchSettings) -> TestbedFit:
    """Search the network of a testbed.

    Parameters
    ----------
    testbed
        The testbed with its free parameters.
    carry
        Carries out a plan.
    how
        Settings of the search.

    Raises
    ------
    InputError
        When Optuna is missing, or no network could be run.
    """
    space = Space(tuple(testbed.variables.values()), ("minimize",))

    def score(values: Mapping[str, Any]) -> Score | None:
        try:
            total = _lost(testbed, values, carry, _TRIED_FROM, None)
        except ScenarioError:
            # Some combinations of values in the ranges are not valid.
            return None
        return None if total is None else Score((total,), ())

    made = search(space, score, how)
    best = sorted((t for t in made if t.score is not None), key=_first_objective)[:FINALISTS]
    again = [
        (trial, found)
        for trial in best
        if (found := _lost(testbed, trial.values, carry, _FINALISTS_FROM, testbed.file.repeats))
        is not None
    ]
    again.sort(key=lambda one: one[1])
    for trial, total in again:
        judged = judge(testbed, trial.values, carry)
        if judged is not None and judged.stands:
            return TestbedFit(made, again, trial.values, total, judged)
    raise InputError("none of the networks that were tried could be run and has what is required")


def omissions(testbed: Testbed, found: TestbedFit) -> Iterator[str]:
    """Say which claims, trials and networks are not part of a search's result."""
    for name, halves in testbed.halves.items():
        used = {*halves.fit, *halves.held_out}
        claims = [one.id for one in testbed.studies[name].file.claims if one.id not in used]
        if claims:
            yield (
                f"Left out of {name}: claims on experiments that testbed.toml does not run "
                f"({', '.join(claims)})."
            )
    failed = sum(trial.score is None for trial in found.trials)
    if failed:
        yield f"Left out: {failed} of {len(found.trials)} networks, which could not be run."
    better = [trial.number + 1 for trial, total in found.finalists if total < found.lost]
    if better:
        yield (
            f"Left out: networks {', '.join(map(str, better))}, which lose less, but could not be "
            "judged or do not have what is required."
        )
    scored = sum(trial.score is not None for trial in found.trials)
    unjudged = min(FINALISTS, scored) - len(found.finalists)
    if unjudged:
        yield f"Left out: {unjudged} of the best networks, of which a run with other seeds failed."


def judge(testbed: Testbed, values: Mapping[str, Any] | None, carry: Carry) -> NetworkScore | None:
    """Judge the claims and required numbers of a network; without values, as described.

    The seeds are those in the studies. The result is None if a run failed.
    """
    repeats = testbed.file.repeats
    claims = {}
    for name, halves in testbed.halves.items():
        study = testbed.studies[name] if values is None else testbed.with_values(name, values)
        wanted = (*halves.fit, *halves.held_out)
        experiments = testbed.file.studies[name].repeats
        rows = _claims(study, wanted, dict.fromkeys(experiments, repeats), carry, None)
        if rows is None:
            return None
        claims[name] = rows
    required: list[tuple[str, NumberRow]] = []
    for one in testbed.file.required if values is not None else ():
        study = testbed.with_values(one.study, values or {})
        results = _carried(study, {one.experiment: one.repeats}, carry, None)
        if results is None:
            return None
        numbers = tuple(row for row in study.file.numbers if row.id in one.numbers)
        shown = study.file.model_copy(update={"claims": (), "numbers": numbers})
        rows_of = evaluate(Runs(replace(study, file=shown), results)).numbers
        required += ((one.study, row) for row in rows_of)
    return NetworkScore(claims, tuple(required))


def fitted_networks(
    testbed: Testbed, found: TestbedFit, described: NetworkScore, told: Mapping[str, Any]
) -> dict[str, FittedNetwork]:
    """Return the document for each study's folder.

    Parameters
    ----------
    testbed, found
        The testbed, and the result of the search.
    described
        Judgement of the network as described.
    told
        `version` and `date` of the runs, `sampler` and `seed` of the search.
    """
    place = f"{testbed.toml.path.parent.name}/{testbed.toml.path.name}"
    how = Search(
        sampler=told["sampler"], seed=told["seed"], trials=len(found.trials),
        finalists=len(found.finalists), lost=round(found.lost, 4),
    )  # fmt: skip
    values = {
        name: Value(
            text=free.text, tried=_tried(free), described=free.described,
            value=label_of(found.values[name]),
        )
        for name, free in testbed.file.free.items()
    }  # fmt: skip
    plain = {(name, row.id): row for name, rows in described.claims.items() for row in rows}
    required = {
        row.id: Required(study=study, published=row.published, ours=row.ours.value, holds=row.holds)
        for study, row in found.fitted.required
    }
    return {
        name: FittedNetwork(
            schema=SCHEMA, testbed=place, title=testbed.file.title, version=told["version"],
            date=told["date"], search=how, repeats=testbed.file.repeats, values=values,
            changes=tuple(testbed.changes(name, found.values)),
            claims={
                row.id: ClaimScore(
                    half="fit" if row.id in testbed.halves[name].fit else "held out",
                    asked=row.decisive.relation, fitted=_claim_outcome(row),
                    described=_claim_outcome(plain[name, row.id]),
                )
                for row in rows
            },
            required=required,
        )
        for name, rows in found.fitted.claims.items()
    }  # fmt: skip


def _claim_outcome(row: ClaimRow) -> ClaimOutcome:
    return ClaimOutcome(holds=row.holds, ours=row.decisive.ours.finite)


def _tried(free: FreeParameter) -> str:
    if free.range is None:
        return ", ".join(map(label_of, free.values))
    return f"{free.range['from']} … {free.range['to']}"


def fingerprint(testbed: Testbed, sampler: str, seed: int, version: str) -> str:
    """Return a name of a search that depends on its parameters and on the engine only."""
    asked = {
        "version": version,
        "sampler": sampler,
        "seed": seed,
        "testbed": testbed.file.model_dump(mode="json", exclude={"title"}),
        "studies": {
            name: {
                "claims": [one.model_dump(mode="json") for one in study.file.claims],
                "fit": testbed.halves[name].fit,
                "runs": [
                    [
                        one.spec
                        for one in study.scenarios[experiment]
                        .plan(repeats=1)
                        .first_run_of_each_condition()
                    ]
                    for experiment in testbed.file.studies[name].repeats
                ],
            }
            for name, study in testbed.studies.items()
        },
    }
    content = json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(content).hexdigest()[:32]


def _first_objective(trial: Trial) -> tuple[float, int]:
    assert trial.score is not None
    value = trial.score.objectives[0]
    assert value is not None
    return value, trial.number


def _lost(
    testbed: Testbed, values: Mapping[str, Any], carry: Carry, seed: int, repeats: int | None
) -> float | None:
    """Return the total loss of the claims of the fit; None if a run failed."""
    total = 0.0
    for name, halves in testbed.halves.items():
        study = testbed.with_values(name, values)
        own = testbed.file.studies[name].repeats
        each = own if repeats is None else dict.fromkeys(own, repeats)
        rows = _claims(study, halves.fit, each, carry, seed)
        if rows is None:
            return None
        total += sum(map(lost, rows))
    return total


def _claims(
    study: Study,
    names: Collection[str],
    repeats: Mapping[str, int],
    carry: Carry,
    seed: int | None,
) -> tuple[ClaimRow, ...] | None:
    """Judge some claims of a study; None if a run failed."""
    claims = tuple(claim for claim in study.file.claims if claim.id in names)
    needed: dict[str, set[int]] = {}
    for value in (value for claim in claims for value in claim.values):
        divided_by = value.model_copy(update={"where": {**value.where, **value.relative_to}})
        used = needed.setdefault(study.experiment_of(value)[0], set())
        used.update(study.conditions(value), study.conditions(divided_by))
    each = {name: wanted for name, wanted in repeats.items() if name in needed}
    results = _carried(study, each, carry, seed, needed)
    if results is None:
        return None
    shown = study.file.model_copy(update={"claims": claims, "numbers": ()})
    return evaluate(Runs(replace(study, file=shown), results)).claims


def _carried(
    study: Study,
    repeats: Mapping[str, int],
    carry: Carry,
    seed: int | None,
    needed: Mapping[str, Collection[int]] | None = None,
) -> dict[str, ResultSet] | None:
    """Run some experiments, or only the conditions that are needed.

    The number of runs per condition is at most the study's.
    """
    results = {}
    for name, wanted in repeats.items():
        scenario = study.scenarios[name]
        most = min(study.file.experiments[name].repeats or scenario.repeats, scenario.repeats)
        plan = scenario.plan(repeats=min(wanted, most), seed=seed)
        if needed is not None:
            plan = plan.without(set(range(len(plan.conditions))) - set(needed[name]))
        found = carry(plan)
        if found.failures:
            return None
        results[name] = found
    return results
