"""Reading scenarios: from a file and the changes of a command line to what can be planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from jostle.scenario.models import ScenarioFile
from jostle.scenario.plan import Condition, Plan
from jostle.scenario.registry import Registry
from jostle.scenario.resolving.addressing import changed, find, parse_value, show, value_at
from jostle.scenario.resolving.grid import (
    Dimension,
    Level,
    combinations,
    filled,
    read_grid,
    with_level,
    with_levels,
)
from jostle.scenario.resolving.resolve import Template, resolve
from jostle.scenario.resolving.traces import cached_trace_reader
from jostle.scenario.resolving.validation import validate
from jostle.scenario.text.document import parse, read_text
from jostle.scenario.text.positions import KeyPath, line_of, positions
from jostle.scenario.text.problems import Problem, Report, ScenarioError, overlaps, starts_with
from jostle.scenario.text.units import QuantityError

__all__ = ["Scenario", "load", "loads"]

MOST_PROBLEMS: Final = 100
"""Of one file that are told: nobody mends more of them at once."""


@dataclass(frozen=True)
class Scenario:
    """A scenario that has been read, checked and resolved: every condition of it can run.

    Parameters
    ----------
    source
        Name of the file, as it was given.
    title
        Its title; the file's name without an ending if it has none.
    repeats, seed
        Runs per condition, and the first one's seed.
    grid
        Labels of the values of each key that varies.
    file
        The scenario's values, without the grid's.
    """

    source: str
    title: str
    repeats: int
    seed: int
    grid: Mapping[str, tuple[str, ...]]
    file: ScenarioFile
    _templates: tuple[tuple[Condition, Template], ...] = field(repr=False)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every combination of the grid's values, the last key varying fastest."""
        return tuple(condition for condition, _ in self._templates)

    def jittered(self) -> Scenario:
        """Return the scenario with flows that do not start at the same time in every run.

        Where a condition gives no flow a `start_jitter`, all get one of its shortest round trip.
        """
        templates = tuple(
            (condition, template.jittered()) for condition, template in self._templates
        )
        return replace(self, _templates=templates)

    def taking(self, other: Scenario, conditions: Collection[int]) -> Scenario:
        """Return the scenario with some conditions, by position, as another of this grid has them.

        Raises
        ------
        ValueError
            If the two have different grids.
        """
        if self.grid != other.grid:
            raise ValueError("only scenarios of one grid have conditions in common")
        pairs = zip(self._templates, other._templates, strict=True)
        templates = tuple(
            theirs if at in conditions else ours for at, (ours, theirs) in enumerate(pairs)
        )
        return replace(self, _templates=templates)

    def plan(self, repeats: int | None = None, seed: int | None = None) -> Plan:
        """Return the runs of the scenario.

        Parameters
        ----------
        repeats, seed
            Instead of the scenario's own.

        Returns
        -------
        Plan
            Condition by condition, each with the seeds `seed`, `seed + 1`, …

        Raises
        ------
        ValueError
            If `repeats` is not positive or a seed is outside 0 … 2⁶³ - 1.
        """
        return Plan.of(
            self.title,
            self._templates,
            self.repeats if repeats is None else repeats,
            self.seed if seed is None else seed,
        )


def load(
    path: str | Path,
    overrides: Mapping[str, str] | None = None,
    *,
    registry: Registry | None = None,
    python: bool = False,
) -> Scenario:
    """Read a scenario from a TOML file.

    Parameters
    ----------
    path
        The file. Link traces that it names are looked for in its folder.
    overrides
        Values by key (``{"flows.newcomer.controller": "bbr"}``), each written as in TOML; what is
        no TOML value is a text, so words need no quotes. A key of the grid no longer varies.
    registry
        What can be named; the installed engine's if None.
    python
        Whether it may name controllers written in Python, which run with the rights of whoever runs
        the scenario.

    Returns
    -------
    Scenario
        Ready to be planned.

    Raises
    ------
    ScenarioError
        If anything is wrong, with all problems that were found.
    """
    return loads(
        read_text(path), name=str(path), overrides=overrides, registry=registry, python=python
    )


def loads(
    text: str,
    *,
    name: str = "scenario",
    overrides: Mapping[str, str] | None = None,
    registry: Registry | None = None,
    python: bool = False,
) -> Scenario:
    """Read a scenario from a text.

    Parameters
    ----------
    text
        The TOML document.
    name
        What problems call it. Link traces are looked for in its folder.
    overrides, registry, python
        As for `load`.

    Returns
    -------
    Scenario
        Ready to be planned.

    Raises
    ------
    ScenarioError
        If anything is wrong, with all problems that were found.
    """
    text, document = parse(text, name)
    loader = _Loader(name, text, document, registry or Registry.of_engine(), python=python)
    return loader.load(overrides or {})


class _Loader:
    def __init__(
        self,
        source: str,
        text: str,
        document: dict[str, Any],
        registry: Registry,
        *,
        python: bool,
    ) -> None:
        self.source = source
        self.text = text
        self.document = document
        self.registry = registry
        self.python = python
        self.read_trace = cached_trace_reader(Path(source).parent)
        self.problems: list[Problem] = []
        # What the command line has set: the paths, and how it was written.
        self.overridden: dict[KeyPath, str] = {}

    def load(self, overrides: Mapping[str, str]) -> Scenario:
        self.override(overrides)
        report = Report()
        dimensions = read_grid(self.document, report)
        try:
            complete = filled(self.document, dimensions)
        except QuantityError as error:
            report.add(("grid",), f"two keys contradict each other: {error}")
            complete, dimensions = self.document, []
        base = validate(complete, report)
        varied = [target for d in dimensions for target in d.targets]
        grid_is_sound = not any(starts_with(path, ("grid",)) for path, _ in report.found)
        template = None
        if base.file is not None:
            together = Report([*base.replaced, *varied])
            template = self.resolve(base.file, together)
            report.found += together.found
        # What only the grid gives is judged value by value below.
        given = [t for t in varied if not value_at(self.document, t)[0]]
        report.found = [f for f in report.found if not any(overlaps(f[0], t) for t in given)]
        self.tell(report.found)
        for dimension in dimensions if base.file is not None else ():
            others = [t for d in dimensions if d is not dimension for t in d.targets]
            # What lies below or above another varied key is judged only together with it.
            if not any(overlaps(t, o) for t in dimension.targets for o in others):
                hidden = [*base.replaced, *others]
                for level in dimension.levels:
                    self.check_level(base.document, hidden, dimension, level)
        templates: list[tuple[Condition, Template]] = []
        if not self.problems and grid_is_sound and dimensions:
            templates = self.conditions(dimensions)
        elif template is not None:
            templates = [(Condition(0, {}), template)]
        if self.problems or base.file is None or not templates:
            raise ScenarioError(self.source, self.problems)
        return Scenario(
            source=self.source,
            title=base.file.title or Path(self.source).stem,
            repeats=base.file.repeats,
            seed=base.file.seed,
            grid={d.key: tuple(level.label for level in d.levels) for d in dimensions},
            file=base.file,
            _templates=tuple(templates),
        )

    def resolve(self, file: ScenarioFile, report: Report) -> Template | None:
        """Return the run that `file` describes; see `jostle.scenario.resolving.resolve`."""
        folder = Path(self.source).parent
        return resolve(file, self.registry, self.read_trace, report, folder, python=self.python)

    def override(self, overrides: Mapping[str, str]) -> None:
        """Set what the command line sets, in its order."""
        for key, text in overrides.items():
            try:
                targets = find(self.document, key)
                for target in targets:
                    self.document = changed(self.document, target, parse_value(text))
                    self.overridden[target] = f"--set {key}={text}"
            except QuantityError as error:
                self.problems.append(Problem(0, f"--set {key}={text}", str(error)))
                continue
            self.no_longer_varies(key, text, targets)

    def no_longer_varies(self, key: str, text: str, targets: list[KeyPath]) -> None:
        grid = self.document.get("grid")
        for varied in list(grid) if isinstance(grid, dict) and targets[0][0] != "grid" else ():
            try:
                paths = find(self.document, varied)
            except QuantityError:
                continue
            if set(paths) <= set(targets):
                grid = {k: v for k, v in self.document["grid"].items() if k != varied}
                self.document = {**self.document, "grid": grid}
                if not grid:
                    del self.document["grid"]
            elif any(overlaps(path, target) for path in paths for target in targets):
                message = f'the grid varies "{varied}" — set that, or take it out of the grid'
                self.problems.append(Problem(0, f"--set {key}={text}", message))

    def check_level(
        self,
        document: Mapping[str, Any],
        hidden: list[KeyPath],
        dimension: Dimension,
        level: Level,
    ) -> None:
        """Tell the problems of one value of the grid by itself, whatever the others are."""
        report = Report()
        checked = validate(with_level(document, dimension, level), report)
        if checked.file is not None:
            together = Report([*checked.replaced, *hidden])
            self.resolve(checked.file, together)
            report.found += together.found
        self.tell(report.found, [(dimension, level)], only_levels=True)

    def conditions(self, dimensions: list[Dimension]) -> list[tuple[Condition, Template]]:
        """Resolve every combination. What goes wrong here lies in how values fit together."""
        templates = []
        told: set[tuple[KeyPath, str]] = set()
        for index, levels in enumerate(combinations(dimensions)):
            labels = {d.key: level.label for d, level in zip(dimensions, levels, strict=True)}
            pairs = list(zip(dimensions, levels, strict=True))
            report = Report()
            template = None
            try:
                document = with_levels(self.document, dimensions, levels)
            except QuantityError as error:
                message = f"two keys contradict each other: {error}"
                self.problems.append(Problem(self.line(("grid",)), "grid", message))
                break
            checked = validate(document, report)
            if checked.file is not None:
                together = Report(checked.replaced)
                template = self.resolve(checked.file, together)
                report.found += together.found
            if template is not None:
                templates.append((Condition(index, labels), template))
            suffix = ", ".join(f"{key} = {label}" for key, label in labels.items())
            fresh = [found for found in report.found if found not in told]
            told.update(fresh)
            self.tell(fresh, pairs, suffix=f" (in the condition {suffix})")
        return templates

    def tell(
        self,
        found: list[tuple[KeyPath, str]],
        levels: Sequence[tuple[Dimension, Level]] = (),
        *,
        suffix: str = "",
        only_levels: bool = False,
    ) -> None:
        """Place problems where their values were written: file, grid, or command line."""
        for path, message in found[: max(0, MOST_PROBLEMS - len(self.problems))]:
            in_grid = next(
                (
                    (dimension, level, path[len(target) :])
                    for dimension, level in levels
                    for target in dimension.targets
                    if path
                    and (starts_with(path, target) or (only_levels and overlaps(path, target)))
                ),
                None,
            )
            # A key that is missing belongs to the table that the command line has set, too.
            origin = next((o for t, o in self.overridden.items() if starts_with(path, t)), None)
            if in_grid is not None:
                dimension, level, below = in_grid
                line = self.line((*level.path, *below))
                key = f'grid."{dimension.key}"' + "".join(f".{step}" for step in below)
            elif only_levels:
                continue
            elif origin is not None:
                line, key = 0, origin
            else:
                line, key = self.line(path), show(self.document, path)
            self.problems.append(Problem(line, key, message + suffix))

    def line(self, path: KeyPath) -> int:
        if not hasattr(self, "_lines"):
            self._lines = positions(self.text)
        return line_of(self._lines, path)
