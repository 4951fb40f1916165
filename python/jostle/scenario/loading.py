"""From a scenario's document to what can be planned, each problem placed where it was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from jostle.scenario.models import ScenarioFile
from jostle.scenario.plan import Condition
from jostle.scenario.registry import Registry
from jostle.scenario.resolving.addressing import Places, changed, find, parse_value, value_at
from jostle.scenario.resolving.demand import MAX_ELEMENTS, condition_count, count_elements
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
from jostle.scenario.resolving.sample import OWN_KEYS, Design, Points, read_design
from jostle.scenario.resolving.traces import TraceFiles
from jostle.scenario.resolving.validation import validate
from jostle.scenario.text.positions import KeyPath, line_of, positions
from jostle.scenario.text.problems import (
    MOST_PROBLEMS,
    Problem,
    Report,
    ScenarioError,
    did_you_mean,
    overlaps,
    starts_with,
)
from jostle.scenario.text.units import QuantityError

__all__ = ["Loaded", "Origin", "read"]

_DESIGN: Final = {("grid",): "varies", ("sample",): "samples"}
"""Tables whose keys are those of the scenario that vary."""
_UNQUOTED: Final = (
    "words and quantities of a list are in quotes, and the whole setting is, too, for the shell: "
    """--set 'KEY=["10 ms", "20 ms"]'"""
)


@dataclass(frozen=True)
class Origin:
    """What a scenario is made of, so that it can be made again with other values.

    Attributes
    ----------
    source
        Name of the file, as it was given. Traces are looked for in its folder.
    text, document
        The TOML text, if there was one, and what it holds.
    registry
        What can be named.
    allow_code
        Whether it may name foreign code; see `jostle.foreign_code`.
    overrides
        Values by key; a text is written as in TOML.
    modules
        Folder of modules of controllers written in Python; the scenario's if None.
    points
        Points of the sample, instead of those that it draws.
    """

    source: str
    text: str | None
    document: dict[str, Any]
    registry: Registry
    allow_code: bool
    overrides: Mapping[str, Any] = field(default_factory=dict)
    modules: Path | None = None
    points: Points | None = None


class Loaded(NamedTuple):
    """What is read from a document.

    Attributes
    ----------
    file
        Its values, without those of the grid and of the sample.
    title
        Of the scenario.
    grid
        Labels of the values of each key of the grid.
    sample
        Labels of the values of each sampled key, one for each point.
    design
        What is sampled.
    templates
        Every condition with its run.
    """

    file: ScenarioFile
    title: str
    grid: Mapping[str, tuple[str, ...]]
    sample: Mapping[str, tuple[str, ...]]
    design: Design | None
    templates: tuple[tuple[Condition, Template], ...]


def read(origin: Origin) -> Loaded:
    """Check and resolve a scenario.

    Raises
    ------
    ScenarioError
        If anything is wrong, with all problems that were found.
    """
    return _Loader(origin).load()


class _Loader:
    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.source = origin.source
        self.text = origin.text
        self.document = origin.document
        self.registry = origin.registry
        self.allow_code = origin.allow_code
        self.files = TraceFiles(Path(self.source).parent)
        self.problems: list[Problem] = []
        self.parts = 0
        # What the command line has set: the paths, and how it was written.
        self.overridden: dict[KeyPath, str] = {}

    def load(self) -> Loaded:
        self.override(self.origin.overrides)
        report = Report()
        dimensions = read_grid(self.document, report)
        design = read_design(self.document, dimensions, report)
        if design is not None:
            dimensions += design.dimensions(self.document, report, self.origin.points)
        design_is_sound = not any(path[:1] in _DESIGN for path, _ in report.found)
        if not design_is_sound:
            # A value of each is enough to look for other problems; without one there is no key.
            dimensions = [one for one in dimensions if one.levels]
        try:
            complete = filled(self.document, dimensions)
        except QuantityError as error:
            report.add(("grid",), f"two keys contradict each other: {error}")
            complete, dimensions = self.document, []
        base = validate(complete, report)
        varied = [target for d in dimensions for target in d.targets]
        template = None
        if base.file is not None:
            self.check_until(base.file, report)
            self.limit_element_count(count_elements(base.file) * condition_count(dimensions))
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
                for level in dimension.checked:
                    self.check_level(base.document, hidden, dimension, level)
        templates: list[tuple[Condition, Template]] = []
        if not self.problems and design_is_sound and dimensions:
            templates = self.conditions(dimensions)
        elif template is not None:
            templates = [(Condition(0, {}), template)]
        if self.problems or base.file is None or not templates:
            raise ScenarioError(self.source, self.problems)
        title = base.file.title or Path(self.source).stem
        grid, sample = (
            {
                d.key: tuple(level.label for level in d.levels)
                for d in dimensions
                if d.sampled is one
            }
            for one in (False, True)
        )
        return Loaded(base.file, title, grid, sample, design, tuple(templates))

    def check_until(self, file: ScenarioFile, report: Report) -> None:
        """See that what repeats are made for is there."""
        until = file.until
        if until is None:
            return
        phases = ["overall", *file.phases]
        if until.phase and until.phase not in phases:
            hint = did_you_mean(until.phase, phases)
            report.add(("until",), f'there is no phase "{until.phase}" — {hint}')
        measures = self.registry.measures
        if measures and until.measure not in measures:
            hint = did_you_mean(until.measure, measures, listed="measures")
            report.add(("until",), f'there is no measure "{until.measure}" — {hint}')

    def resolve(self, file: ScenarioFile, report: Report) -> Template | None:
        """Return the run that `file` describes; see `jostle.scenario.resolving.resolve`."""
        self.parts += count_elements(file)
        self.limit_element_count(self.parts)
        folder = Path(self.source).parent
        return resolve(
            file,
            self.registry,
            self.files,
            report,
            folder,
            allow_code=self.allow_code,
            modules=self.origin.modules,
        )

    def limit_element_count(self, parts: int) -> None:
        """Refuse a scenario whose conditions take too long to resolve, and too much memory."""
        if parts <= MAX_ELEMENTS:
            return
        message = (
            f"all conditions together have more than {MAX_ELEMENTS} flows, links and steps of "
            "links — let fewer keys vary, or write several scenarios"
        )
        rooms = [room for (room,) in _DESIGN if room in self.document]
        place = Problem(self.line((*rooms[:1],)), "".join(rooms[:1]), message)
        raise ScenarioError(self.source, [*self.problems, place])

    def override(self, overrides: Mapping[str, Any]) -> None:
        """Set what the command line sets, in its order."""
        for key, given in overrides.items():
            text = str(given)
            value = parse_value(given) if isinstance(given, str) else given
            try:
                targets = find(self.document, key)
                if (
                    isinstance(value, str)
                    and (targets[0][0],) in _DESIGN
                    and text[:1] in {"[", "{"}
                ):
                    raise QuantityError(_UNQUOTED)
                for target in targets:
                    self.document = changed(self.document, target, value)
                    self.overridden[target] = f"--set {key}={text}"
            except QuantityError as error:
                self.problems.append(Problem(0, f"--set {key}={text}", str(error)))
                continue
            self.no_longer_varies(key, text, targets)

    def no_longer_varies(self, key: str, text: str, targets: list[KeyPath]) -> None:
        for (room,), verb in _DESIGN.items():
            table = self.document.get(room)
            if not isinstance(table, dict) or targets[0][0] == room:
                continue
            for varied in [one for one in table if room == "grid" or one not in OWN_KEYS]:
                try:
                    paths = find(self.document, varied)
                except QuantityError:
                    continue
                if set(paths) <= set(targets):
                    self.take_out(room, varied)
                elif any(overlaps(path, target) for path in paths for target in targets):
                    message = (
                        f'the {room} {verb} "{varied}" — set that, or take it out of the {room}'
                    )
                    self.problems.append(Problem(0, f"--set {key}={text}", message))

    def take_out(self, room: str, varied: str) -> None:
        """Let a key vary no longer, and the whole table go with the last one."""
        table = {k: v for k, v in self.document[room].items() if k != varied}
        self.document = {**self.document, room: table}
        if not [one for one in table if room == "grid" or one not in OWN_KEYS]:
            del self.document[room]

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
                room = dimensions[-1].levels[0].path[0]
                self.problems.append(Problem(self.line((room,)), str(room), message))
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
        places = Places(self.document)
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
                key = f'{level.path[0]}."{dimension.key}"' + "".join(f".{step}" for step in below)
            elif only_levels:
                continue
            elif origin is not None:
                line, key = 0, origin
            else:
                line, key = self.line(path), places.show(path)
            self.problems.append(Problem(line, key, message + suffix))

    def line(self, path: KeyPath) -> int:
        if self.text is None:
            return 0
        if not hasattr(self, "_lines"):
            self._lines = positions(self.text)
        return line_of(self._lines, path)
