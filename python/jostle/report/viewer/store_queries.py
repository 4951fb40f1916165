"""Queries of the viewer: plans of a store, tables of a plan, series of selected runs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle.errors import InputError, StoreError, unknown
from jostle.report.chart_data import SHOWN, charts
from jostle.report.topology_svg import topology
from jostle.report.viewer.measure_cache import MeasureCache, shown_measures
from jostle.results.condition_names import labels
from jostle.results.finished_runs import ConditionRun, FinishedRuns
from jostle.results.measures import measure
from jostle.results.tables import application_measures
from jostle.store.store import Reader
from jostle.store.stored_plans import StoredPlan, plan_names, read_plan

MOST_CHOSEN = 12
"""Largest number of conditions and single runs in charts."""
MOST_RUNS = 60
"""Largest number of runs in charts."""
_PLANS_KEPT = 8


class StoreQueries:
    """Read-only access of the viewer to a store.

    Parameters
    ----------
    root
        The store's folder.

    Raises
    ------
    InputError
        When there is no such folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"there is no store {root}: `jostle run` makes one")
        self.root = root
        self._reader = Reader(root)
        self._lock = threading.Lock()
        self._plans: dict[str, StoredPlan] = {}
        self._numbers: OrderedDict[str, MeasureCache] = OrderedDict()
        self._present: tuple[tuple[int, ...], frozenset[str]] = ((), frozenset())

    def plans(self) -> list[dict[str, Any]]:
        """Return every plan with its progress, latest first."""
        present = self._runs()
        failures = self._failures(present)
        found = []
        for name, when_s in plan_names(self.root):
            try:
                plan = self._plan(name)
            except StoreError:
                continue
            runs = {run for _, _, run in plan.runs}
            found.append(
                {
                    "name": name,
                    "when_s": when_s,
                    "title": plan.title or "Untitled scenario",
                    "backend": plan.backend,
                    "version": plan.backend_version,
                    "conditions": len(plan.conditions),
                    "runs": len(runs),
                    "done": len(runs & present),
                    "failed": failures.get(name, 0),
                }
            )
        return found

    def _failures(self, present: frozenset[str]) -> dict[str, int]:
        """Return the number of failed runs by plan, as far as the store has a record of them."""
        from jostle.runner.sweeps.plan_progress import progress_by_plan
        from jostle.runner.sweeps.sweep_files import sweeps_of

        try:
            every = progress_by_plan(self.root, sweeps_of(self.root), present)
        except StoreError:
            return {}
        return {plan.plan: plan.failed for plan in every if plan.plan}

    def table(self, name: str, phase: str, measure_name: str) -> dict[str, Any]:
        """Return a table of a measure over the conditions of a plan, for the runs that are stored.

        Without a phase, it is of the phase that compares flows; without a measure, of the measure
        that answers the question of the plan.

        If `read` < `done`, some runs have not been read yet; repeat the query for the rest.
        """
        plan = self._plan(name)
        numbers = self._numbers_of(plan)
        present = self._runs()
        read = numbers.read(present)
        shown = measure(measure_name) if measure_name else numbers.first_measure
        if shown.elsewhere:
            raise InputError(shown.elsewhere)
        if phase and phase not in numbers.phases:
            raise InputError(unknown("phase", phase, numbers.phases))
        wanted = phase or numbers.phases[0]
        main = [*application_measures(), *map(measure, SHOWN)]
        every = list(dict.fromkeys((shown, *main, *shown_measures())))
        return {
            "title": plan.title or "Untitled scenario",
            "keys": list(dict.fromkeys(key for one in plan.conditions for key in one)),
            "conditions": [
                {"label": label, "values": dict(condition)}
                for label, condition in zip(labels(plan.conditions), plan.conditions, strict=True)
            ],
            "phases": numbers.phases,
            "phase": wanted,
            "measures": [{"name": m.name, "title": m.heading, "scope": m.scope} for m in every],
            "measure": {"name": shown.name, "title": shown.heading, "unit": shown.display_unit,
                        "definition": shown.definition},
            "rows": numbers.table(wanted, shown),
            "read": read,
            "done": len({run for _, _, run in plan.runs} & present),
            "runs": len({run for _, _, run in plan.runs}),
            "failed": self._failures(present).get(name, 0),
            "unreadable": numbers.unreadable,
        }  # fmt: skip

    def runs(self, name: str, condition: int) -> list[dict[str, Any]]:
        """Return the runs of a condition: seed, name, and whether each is stored."""
        plan = self._plan(name)
        _check_condition(plan, condition, f"condition {condition}")
        present = self._runs()
        return [
            {"seed": seed, "run": run, "there": run in present}
            for at, seed, run in plan.runs
            if at == condition
        ]

    def charts(self, chosen: Sequence[str]) -> dict[str, Any]:
        """Return series of conditions and single runs, for the charts of a page.

        Parameters
        ----------
        chosen
            `PLAN:CONDITION` or `PLAN:CONDITION:SEED`, each.
        """
        if not 1 <= len(chosen) <= MOST_CHOSEN:
            raise InputError(f"choose 1 to {MOST_CHOSEN} conditions or runs")
        present = self._runs()
        picked = [self._pick(one, present, MOST_RUNS // len(chosen)) for one in chosen]
        plans = {plan.name for plan, _, _, _ in picked}
        names, conditions, results, left = [], [], [], 0
        for plan, label, runs, more in picked:
            title = plan.title if len(plans) > 1 or not label else ""
            conditions.append({"chosen": " · ".join(filter(None, (title, label))) or "run"})
            names.append(plan.title)
            left += more
            for seed, run in runs:
                stored = self._reader.get(run)
                results.append(ConditionRun(len(conditions) - 1, seed, stored))
        found = FinishedRuns(names[0], "", "", conditions=conditions, results=results)
        packed = charts(found)
        notes = list(packed.notes)
        if left:
            notes.append(f"The charts are of {len(results)} runs; {left} more are not drawn.")
        drawings = [topology(found.runs_of(at)[0].run.spec) for at in range(len(conditions))]
        return {
            "data": packed.data,
            "values": packed.values,
            "notes": notes,
            "drawings": drawings,
        }

    def _pick(
        self, chosen: str, present: frozenset[str], most: int
    ) -> tuple[StoredPlan, str, list[tuple[int, str]], int]:
        """Return plan, name, stored runs to show, and the number of omitted runs."""
        name, _, rest = chosen.partition(":")
        plan = self._plan(name)
        words = rest.split(":")
        # Other scripts have digits, too.
        whole = all(word.isascii() and word.isdigit() for word in words)
        if not whole or len(words) not in {1, 2}:
            raise InputError(f"{chosen}: write it as PLAN:CONDITION or PLAN:CONDITION:SEED")
        condition, *seed = map(int, words)
        _check_condition(plan, condition, chosen)
        runs = [
            (its, run)
            for at, its, run in plan.runs
            if at == condition and run in present and (not seed or its == seed[0])
        ]
        if not runs:
            raise InputError(f"{chosen}: no run of it is stored")
        label = labels(plan.conditions)[condition]
        if seed:
            label = ", ".join(filter(None, (label, f"seed {seed[0]}")))
        return plan, label, runs[:most], len(runs) - len(runs[:most])

    def _plan(self, name: str) -> StoredPlan:
        with self._lock:
            if name not in self._plans:
                known = [known for known, _ in plan_names(self.root)]
                if name not in known:
                    raise InputError(unknown("plan", name, known))
                self._plans[name] = read_plan(self.root, name)
            return self._plans[name]

    def _numbers_of(self, plan: StoredPlan) -> MeasureCache:
        with self._lock:
            if plan.name not in self._numbers:
                self._numbers[plan.name] = MeasureCache(plan, self._reader)
            self._numbers.move_to_end(plan.name)
            while len(self._numbers) > _PLANS_KEPT:
                self._numbers.popitem(last=False)
            return self._numbers[plan.name]

    def _runs(self) -> frozenset[str]:
        """Return the names of the stored runs; they are listed again if the store has changed."""
        changed = self._reader.changed()
        with self._lock:
            if changed != self._present[0]:
                self._present = changed, self._reader.names()
            return self._present[1]


def _check_condition(plan: StoredPlan, condition: int, asked: str) -> None:
    if not 0 <= condition < len(plan.conditions):
        raise InputError(f"{asked}: the plan has {len(plan.conditions)} conditions")
