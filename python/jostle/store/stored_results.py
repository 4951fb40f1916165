"""Results of plans that were carried out in a store, without carrying anything out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jostle.errors import StoreError
from jostle.results import ConditionRun, Failure, ResultSet
from jostle.store.store import Store
from jostle.store.stored_plans import StoredPlan, plan_names, read_plan

_MISSING = "not in the store, because they failed or were not carried out"


def stored_plans(root: Path) -> dict[str, list[StoredPlan]]:
    """Plans of a store by their titles; of each title the one that was carried out last first.

    A plan of the same title, backend and version as a later one is left out: it was changed.

    Raises
    ------
    StoreError
        When the folder is no store, or has no plans.
    """
    found: dict[str, list[StoredPlan]] = {}
    for name, _ in plan_names(root):
        plan = read_plan(root, name)
        earlier = found.setdefault(plan.title, [])
        made = [(one.backend, one.backend_version) for one in earlier]
        if (plan.backend, plan.backend_version) not in made:
            earlier.append(plan)
    if not found:
        raise StoreError(f"{root} is no store with plans: `jostle run --store {root}` makes one")
    return found


def stored_results(root: Path, plan: StoredPlan, warn: Callable[[str], object]) -> ResultSet:
    """Look up the runs of a plan. Those that are not stored count as failed."""
    store = Store(root, warn=warn)
    there = store.find([name for _, _, name in plan.runs], series=False)
    found = [ConditionRun(at, seed, there[name]) for at, seed, name in plan.runs if name in there]
    return ResultSet(
        plan.title,
        plan.backend,
        plan.backend_version,
        conditions=plan.conditions,
        results=found,
        failures=[Failure(at, seed, _MISSING) for at, seed, name in plan.runs if name not in there],
    )
