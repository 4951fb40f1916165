"""Loading of scenarios: validates a document and reports each problem with its line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from jostle.errors import InputError
from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.key_lines import KeyPath, line_of, positions
from jostle.scenario.parsing.problems import (
    MOST_PROBLEMS,
    Problem,
    Report,
    ScenarioError,
    did_you_mean,
    overlaps,
    starts_with,
)
from jostle.scenario.parsing.quantities import QuantityError
from jostle.scenario.parsing.renamed_keys import MIGRATE, renames_in
from jostle.scenario.parsing.value_words import quoting_hint
from jostle.scenario.plan import Condition
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.grid import (
    ConditionDocuments,
    GridKey,
    GridValue,
    combinations,
    filled,
    read_grid,
    with_level,
)
from jostle.scenario.resolve.key_paths import (
    KeyPaths,
    changed,
    find,
    full_key,
    parse_value,
    value_at,
)
from jostle.scenario.resolve.model_validation import ValidatedDocument, validate
from jostle.scenario.resolve.parts_cache import PartsCache
from jostle.scenario.resolve.run_spec_builder import RunSpecTemplate, resolve
from jostle.scenario.resolve.sample import OWN_KEYS, Points, SampleDesign, read_design
from jostle.scenario.resolve.size_limits import MAX_ELEMENTS, condition_count, count_elements
from jostle.scenario.resolve.trace_files import TraceFiles

__all__ = ["ParsedScenario", "ScenarioSource", "read"]

_DESIGN: Final = {("grid",): "varies", ("sample",): "samples"}
"""Tables whose keys name the keys of the scenario that vary, with a verb for error messages."""
_UNQUOTED: Final = (
    "words and quantities of a list are in quotes, and the whole setting is, too, for the shell: "
    """--set 'KEY=["10 ms", "20 ms"]'"""
)


@dataclass(frozen=True)
class ScenarioSource:
    """The inputs of a scenario, from which it can be loaded again with other values.

    Attributes
    ----------
    source
        Name of the file as given by the caller. Trace files are relative to its folder.
    text, document
        The TOML text, if the scenario was read from text, and the parsed document.
    registry
        Registry of controllers, queues and other names that the scenario can use.
    allow_code
        Whether the scenario may run foreign code; see `jostle.safe_io.code_consent`.
    overrides
        Values by key; strings are parsed as TOML values.
    modules
        Folder with the modules of Python controllers; the scenario's folder if None.
    points
        Sample points that replace the drawn ones.
    """

    source: str
    text: str | None
    document: dict[str, Any]
    registry: Registry
    allow_code: bool
    overrides: Mapping[str, Any] = field(default_factory=dict)
    modules: Path | None = None
    points: Points | None = None

    def __post_init__(self) -> None:
        # A text such as "no" is true, too.
        if not isinstance(self.allow_code, bool):
            raise InputError(f"allow_code: {self.allow_code!r} is neither True nor False")
        check_overrides(self.overrides)


def check_overrides(overrides: object) -> None:
    """Check that an argument maps keys to values.

    Raises
    ------
    InputError
        If it does not.
    """
    if not isinstance(overrides, Mapping) or not all(isinstance(key, str) for key in overrides):
        raise InputError(
            f"overrides: {overrides!r:.80} does not map keys to values, as in "
            '{"bottleneck.rate": "50 Mbit/s"}'
        )


class ParsedScenario(NamedTuple):
    """The contents of a validated document.

    Attributes
    ----------
    file
        Values of the scenario, without grid and sample values.
    title
        Title of the scenario.
    grid
        Labels of the values of each grid key.
    sample
        Labels of the values of each sampled key, one per point.
    design
        Sampling design; None without a sample.
    templates
        Conditions with their run templates.
    """

    file: ScenarioFile
    title: str
    grid: Mapping[str, tuple[str, ...]]
    sample: Mapping[str, tuple[str, ...]]
    design: SampleDesign | None
    templates: tuple[tuple[Condition, RunSpecTemplate], ...]


def read(origin: ScenarioSource) -> ParsedScenario:
    """Validate and resolve a scenario.

    Raises
    ------
    ScenarioError
        If the scenario has problems; the error lists all that were found.
    """
    return _Loader(origin).load()


class _Loader:
    def __init__(self, origin: ScenarioSource) -> None:
        self.origin = origin
        self.source = origin.source
        self.text = origin.text
        self.document = origin.document
        self.registry = origin.registry
        self.allow_code = origin.allow_code
        self.folder = Path(self.source).parent
        self.files = TraceFiles(self.folder)
        self.cache = PartsCache()
        self.problems: list[Problem] = []
        self.parts = 0
        # Paths of the keys set on the command line, and the text of the option.
        self.overridden: dict[KeyPath, str] = {}

    def load(self) -> ParsedScenario:
        self.override(self.origin.overrides)
        self.refuse_old_names()
        report = Report()
        dimensions = read_grid(self.document, report)
        design = read_design(self.document, dimensions, report)
        if design is not None:
            dimensions += design.dimensions(self.document, report, self.origin.points)
        design_is_sound = not any(path[:1] in _DESIGN for path, _ in report.found)
        if not design_is_sound:
            # One value per key is enough to find other problems. Drop keys without a value.
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
            self.check_repeat_until(base.file, report)
            self.limit_element_count(count_elements(base.file) * condition_count(dimensions))
            together = Report([*base.replaced, *varied])
            template = self.resolve(base.file, together)
            report.found += together.found
        # Check keys that only the grid gives value by value below.
        given = [t for t in varied if not value_at(self.document, t)[0]]
        report.found = [f for f in report.found if not any(overlaps(f[0], t) for t in given)]
        self.attach_lines(report.found)
        templates: list[tuple[Condition, RunSpecTemplate]] = []
        if not self.problems and design_is_sound and dimensions:
            templates = self.sound_conditions(dimensions)
        if base.file is not None and not templates:
            self.check_levels(base, dimensions, dimensions)
        if templates:
            self.check_levels(base, [one for one in dimensions if one.ends], dimensions)
        elif not self.problems and design_is_sound and dimensions:
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
        return ParsedScenario(base.file, title, grid, sample, design, tuple(templates))

    def refuse_old_names(self) -> None:
        """Refuse a document of an earlier format, with the new name of each of its keys."""
        report = Report()
        for renamed in islice(renames_in(self.document, "scenario"), MOST_PROBLEMS):
            of_file = not any(starts_with(renamed.path, target) for target in self.overridden)
            hint = f" — {MIGRATE}" if of_file and self.text is not None else ""
            report.add(renamed.path, renamed.message + hint)
        self.attach_lines(report.found)
        if report.found:
            raise ScenarioError(self.source, self.problems)

    def check_repeat_until(self, file: ScenarioFile, report: Report) -> None:
        """Report an unknown phase or measure in `repeat_until`."""
        until = file.repeat_until
        if until is None:
            return
        phases = ["overall", *file.phases]
        if until.phase and until.phase not in phases:
            hint = did_you_mean(until.phase, phases)
            hint += quoting_hint(until.who, until.phase, [flow.name for flow in file.flows])
            report.add(("repeat_until",), f'there is no phase "{until.phase}" — {hint}')
        measures = self.registry.measures
        if measures and until.measure not in measures:
            hint = did_you_mean(until.measure, measures, listed="measures")
            report.add(("repeat_until",), f'there is no measure "{until.measure}" — {hint}')

    def resolve(self, file: ScenarioFile, report: Report) -> RunSpecTemplate | None:
        """Return the run that `file` describes; see `jostle.scenario.resolve.run_spec_builder`."""
        self.parts += count_elements(file)
        self.limit_element_count(self.parts)
        return resolve(
            file,
            self.registry,
            self.files,
            report,
            self.folder,
            allow_code=self.allow_code,
            modules=self.origin.modules,
            cache=self.cache,
        )

    def limit_element_count(self, parts: int) -> None:
        """Raise an error if the conditions together have too many flows, links and steps."""
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
        """Apply the values set on the command line, in their order."""
        for key, given in overrides.items():
            text = str(given)
            value = parse_value(given) if isinstance(given, str) else given
            try:
                targets = find(self.document, full_key(self.document, key))
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
                    self.remove_grid_key(room, varied)
                elif any(overlaps(path, target) for path in paths for target in targets):
                    message = (
                        f'the {room} {verb} "{varied}" — set that, or take it out of the {room}'
                    )
                    self.problems.append(Problem(0, f"--set {key}={text}", message))

    def remove_grid_key(self, room: str, varied: str) -> None:
        """Remove a key from the grid or sample, and the table with its last key."""
        table = {k: v for k, v in self.document[room].items() if k != varied}
        self.document = {**self.document, room: table}
        if not [one for one in table if room == "grid" or one not in OWN_KEYS]:
            del self.document[room]

    def sound_conditions(
        self, dimensions: list[GridKey]
    ) -> list[tuple[Condition, RunSpecTemplate]]:
        """Resolve all combinations. Return an empty list, and report nothing, if one is wrong."""
        parts = self.parts
        templates = self.conditions(dimensions, probe=True)
        if self.problems:
            self.problems, self.parts, templates = [], parts, []
        return templates

    def check_levels(
        self, base: ValidatedDocument, dimensions: Sequence[GridKey], every: Sequence[GridKey]
    ) -> None:
        """Check values of the grid one by one, for problems that do not depend on other keys."""
        for dimension in dimensions:
            others = [t for d in every if d is not dimension for t in d.targets]
            # If a path overlaps another varied key, its values are checked in combination only.
            if not any(overlaps(t, o) for t in dimension.targets for o in others):
                hidden = [*base.replaced, *others]
                for level in dimension.checked:
                    self.check_level(base.document, hidden, dimension, level)

    def check_level(
        self,
        document: Mapping[str, Any],
        hidden: list[KeyPath],
        dimension: GridKey,
        level: GridValue,
    ) -> None:
        """Report the problems of one value of the grid that do not depend on the other keys."""
        report = Report()
        checked = validate(with_level(document, dimension, level), report, self.cache)
        if checked.file is not None:
            together = Report([*checked.replaced, *hidden])
            self.resolve(checked.file, together)
            report.found += together.found
        self.attach_lines(report.found, [(dimension, level)], only_levels=True)

    def conditions(
        self, dimensions: list[GridKey], *, probe: bool = False
    ) -> list[tuple[Condition, RunSpecTemplate]]:
        """Resolve all combinations, and report the values that are incompatible.

        With `probe`, the search ends with the first problem.
        """
        templates = []
        told: set[tuple[KeyPath, str]] = set()
        documents = ConditionDocuments(self.document, dimensions)
        for index, levels in enumerate(combinations(dimensions)):
            labels = {d.key: level.label for d, level in zip(dimensions, levels, strict=True)}
            report = Report()
            template = None
            try:
                document = documents.with_levels(levels)
            except QuantityError as error:
                message = f"two keys contradict each other: {error}"
                room = dimensions[-1].levels[0].path[0]
                self.problems.append(Problem(self.line((room,)), str(room), message))
                break
            checked = validate(document, report, self.cache)
            if checked.file is not None:
                together = Report(checked.replaced)
                template = self.resolve(checked.file, together)
                report.found += together.found
            if template is not None:
                templates.append((Condition(index, labels), template))
            if not report.found:
                continue
            suffix = ", ".join(f"{key} = {label}" for key, label in labels.items())
            fresh = [found for found in report.found if found not in told]
            told.update(fresh)
            pairs = list(zip(dimensions, levels, strict=True))
            self.attach_lines(fresh, pairs, suffix=f" (in the condition {suffix})")
            if probe and self.problems:
                break
        return templates

    def attach_lines(
        self,
        found: list[tuple[KeyPath, str]],
        levels: Sequence[tuple[GridKey, GridValue]] = (),
        *,
        suffix: str = "",
        only_levels: bool = False,
    ) -> None:
        """Add the problems with the line of the value in the file or grid, or the option."""
        places = KeyPaths(self.document)
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
            # A missing key belongs to its table, which may have been set on the command line.
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
                line, key = self.line(path), places.format_path(path)
            self.problems.append(Problem(line, key, message + suffix))

    def line(self, path: KeyPath) -> int:
        if self.text is None:
            return 0
        if not hasattr(self, "_lines"):
            self._lines = positions(self.text)
        return line_of(self._lines, path)
