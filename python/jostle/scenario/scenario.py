"""Scenarios: loaded from a file and command-line overrides, ready to be planned."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from jostle.errors import InputError
from jostle.scenario.loading import ScenarioSource, check_overrides, read
from jostle.scenario.models import ScenarioFile
from jostle.scenario.parsing.key_lines import line_of, positions
from jostle.scenario.parsing.problems import Problem, ScenarioError
from jostle.scenario.parsing.size_limits import check_document_size
from jostle.scenario.parsing.toml_document import parse, read_text
from jostle.scenario.plan import Condition, RunPlan
from jostle.scenario.registry import Registry
from jostle.scenario.resolve.key_paths import changed, find, full_key, parse_value
from jostle.scenario.resolve.run_spec_builder import RunSpecTemplate
from jostle.scenario.resolve.sample import Points, SampleDesign, Variable
from jostle.scenario.resolve.tunable_keys import variable
from jostle.scenario.stopping_rule import LEAST_REPEATS

__all__ = ["Scenario", "load", "load_text"]


@dataclass(frozen=True)
class Scenario:
    """A loaded, validated and resolved scenario. All of its conditions can run.

    Parameters
    ----------
    source
        Name of the file as given by the caller.
    title
        Title of the scenario; by default the file name without its extension.
    repeats, seed
        Runs per condition, and seed of the first run.
    grid
        Labels of the values of each grid key.
    sample
        Labels of the values of each sampled key, one per point.
    design
        Sampling design; None without a sample.
    file
        Values of the scenario, without grid and sample values.
    """

    source: str
    title: str
    repeats: int
    seed: int
    grid: Mapping[str, tuple[str, ...]]
    sample: Mapping[str, tuple[str, ...]]
    design: SampleDesign | None
    file: ScenarioFile
    _templates: tuple[tuple[Condition, RunSpecTemplate], ...] = field(repr=False)
    _origin: ScenarioSource | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", allow_code: bool = False) -> Scenario:
        """Create a scenario from TOML text.

        Parameters
        ----------
        text
            The TOML document.
        name
            Name for error messages. Files named in the scenario are relative to its folder.
        allow_code
            See `load`.

        Raises
        ------
        ScenarioError
            If the scenario has problems; the error lists all that were found.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.Scenario.from_toml('''
        ... duration = "2 s"
        ... bottleneck = { rate = "10 Mbit/s", queue = { kind = "drop_tail", limit = "1 BDP" } }
        ... flows = [{ name = "download", controller = "cubic", rtt = "40 ms" }]
        ... ''')
        >>> len(scenario.plan().runs)
        1
        """
        if not isinstance(text, str):
            raise InputError(f"text: {text!r:.80} is no TOML text: from_dict takes a dictionary")
        return load_text(text, name=name, allow_code=allow_code)

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], *, name: str = "scenario", allow_code: bool = False
    ) -> Scenario:
        """Create a scenario from the dictionary form of its TOML document.

        Parameters
        ----------
        document
            Strings, numbers, lists and dictionaries with the keys of a scenario file.
        name, allow_code
            See `from_toml`.

        Raises
        ------
        ScenarioError
            If the scenario has problems; the error lists all that were found.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.Scenario.from_dict({
        ...     "duration": "2 s",
        ...     "bottleneck": {"rate": "10 Mbit/s", "queue": {"kind": "fq_codel"}},
        ...     "flows": [{"name": "download", "controller": "cubic", "rtt": "40 ms"}],
        ...     "grid": {"bottleneck.rate": ["5 Mbit/s", "10 Mbit/s"]},
        ... })
        >>> [dict(condition) for condition in scenario.conditions]
        [{'bottleneck.rate': '5 Mbit/s'}, {'bottleneck.rate': '10 Mbit/s'}]
        """
        found = check_document_size(document)
        if found is not None:
            path, message = found
            raise ScenarioError(name, [Problem(0, ".".join(map(str, path)), message)])
        try:
            text = json.dumps(document, allow_nan=False, ensure_ascii=False)
            plain = json.loads(text.encode())
            if not isinstance(plain, dict):
                raise TypeError(f"this is a {type(document).__name__}")
        except (TypeError, ValueError) as error:
            message = f"a scenario is made of texts, numbers, lists and dictionaries: {error}"
            raise ScenarioError(name, [Problem(0, "", message)]) from error
        return _load_source(ScenarioSource(name, None, plain, Registry.of_engine(), allow_code))

    def set(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Scenario:
        """Return a copy of the scenario with other values.

        Parameters
        ----------
        values
            Values by key, as for `--set`: `{"bottleneck.rate": "50 Mbit/s"}`. A grid key set here
            no longer varies.
        **named
            Values of keys without a dot: `duration="10 s"`.

        Raises
        ------
        ScenarioError
            If the resulting scenario has problems.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/first.toml")
        >>> scenario.set({"bottleneck.rate": "20 Mbit/s"}, repeats=3).repeats
        3
        """
        if self._origin is None:
            raise ValueError("this scenario was not read from a document")
        values = {} if values is None else values
        check_overrides(values)
        overrides = {**self._origin.overrides, **values, **named}
        made = _load_source(replace(self._origin, overrides=overrides, points=None))
        if self._origin.points is None or made.design is None:
            return made
        # Keep the given points, without the keys that are no longer sampled.
        assert self.design is not None
        keys = [variable.key for variable in self.design.variables]
        places = [keys.index(variable.key) for variable in made.design.variables]
        return made.with_points(tuple(tuple(p[at] for at in places) for p in self._origin.points))

    def with_points(self, points: Points) -> Scenario:
        """Return a copy of the scenario with given sample points instead of drawn ones.

        Parameters
        ----------
        points
            For each point, the position in the range of each sampled key, from 0 to 1, in the order
            of the file. Constraints are not applied.

        Raises
        ------
        ScenarioError
            If the resulting scenario has problems.
        ValueError
            If a point does not have one value per key.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/sensitivity.toml").with_points(((0.0, 0.5, 1.0),))
        >>> str(scenario.conditions[0])
        'bottleneck.rate = 2 Mbit/s, flows.*.rtt = 40 ms, bottleneck.queue.limit = 8 BDP'
        """
        if self._origin is None or self.design is None:
            raise ValueError("this scenario has no sample")
        for point in points:
            if len(point) != len(self.design.variables) or not all(0 <= x <= 1 for x in point):
                keys = ", ".join(variable.key for variable in self.design.variables)
                raise ValueError(f"{point} is no point: a share from 0 to 1 of each of {keys}")
        return _load_source(replace(self._origin, points=points))

    def variable(self, key: str, given: Any = None) -> Variable:
        """Return a key with its possible values.

        Parameters
        ----------
        key
            Key as in a grid: `flows.NAME.controller.beta`.
        given
            A range (`{"from": …, "to": …, "scale": …}`) or a list of values. By default the range
            of the parameter in the registry.

        Raises
        ------
        ValueError
            If the key does not exist, or its range is not known.

        Examples
        --------
        >>> import jostle
        >>> beta = jostle.load("scenarios/tune.toml").variable("flows.f.controller.beta")
        >>> [level.label for level in beta.ends]
        ['1', '1023']
        """
        if self._origin is None:
            raise ValueError("this scenario was not read from a document")
        document = self.document
        return variable(document, self._origin.registry, full_key(document, key), given)

    @property
    def points(self) -> Points:
        """Sample points given by `with_points`; empty if none were given."""
        return (self._origin and self._origin.points) or ()

    @property
    def text(self) -> str:
        """The TOML text from which the scenario was loaded; empty if there was none."""
        return (self._origin and self._origin.text) or ""

    @property
    def document(self) -> Mapping[str, Any]:
        """The parsed document with all overrides applied; empty if there was none."""
        if self._origin is None:
            return {}
        document: Mapping[str, Any] = self._origin.document
        for short, given in self._origin.overrides.items():
            key = full_key(document, short)
            grid = {name: one for name, one in document.get("grid", {}).items() if name != key}
            rest = {name: one for name, one in document.items() if name != "grid"}
            document = {**rest, "grid": grid} if grid else rest
            value = parse_value(given) if isinstance(given, str) else given
            for path in find(document, key):
                document = changed(document, path, value)
        return document

    def _repr_html_(self) -> str:
        varied = "".join(
            f"<li><code>{escape(key)}</code>: {escape(', '.join(labels))}</li>"
            for key, labels in (*self.grid.items(), *self.sample.items())
        )
        runs = len(self._templates) * self.repeats
        return (
            f"<strong>{escape(self.title)}</strong>, {runs} {'run' if runs == 1 else 'runs'}"
            f"<ul>{varied}</ul><pre>{escape(self.text)}</pre>"
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All combinations of grid values and sample points; the last key varies fastest."""
        return tuple(condition for condition, _ in self._templates)

    def with_start_jitter(self) -> Scenario:
        """Return a copy of the scenario whose flows start at different times in each run.

        If no flow of a condition has a `start_jitter`, all get one equal to the shortest base RTT.
        """
        templates = tuple(
            (condition, template.jittered()) for condition, template in self._templates
        )
        return replace(self, _templates=templates)

    def with_runs_from(self, other: Scenario, conditions: Collection[int]) -> Scenario:
        """Return a copy that takes the runs of some conditions, by position, from `other`.

        Raises
        ------
        ValueError
            If the two scenarios have different grids or samples.
        """
        if (self.grid, self.sample) != (other.grid, other.sample):
            raise ValueError("only scenarios of one grid have conditions in common")
        pairs = zip(self._templates, other._templates, strict=True)
        templates = tuple(
            theirs if at in conditions else ours for at, (ours, theirs) in enumerate(pairs)
        )
        return replace(self, _templates=templates)

    def plan(self, repeats: int | None = None, seed: int | None = None) -> RunPlan:
        """Return the planned runs of the scenario.

        Parameters
        ----------
        repeats, seed
            Number of runs per condition and first seed, instead of the scenario's values. If
            `repeats` is given, the scenario's `repeat_until` is ignored.

        Returns
        -------
        RunPlan
            Runs by condition, each with the seeds `seed`, `seed + 1`, …

        Raises
        ------
        ValueError
            If `repeats` is not a positive whole number or a seed is outside 0 … 2⁶³ - 1. It is an
            `InputError`, too.

        Examples
        --------
        >>> import jostle
        >>> plan = jostle.load("scenarios/first.toml").plan(repeats=3)
        >>> [planned.seed for planned in plan.runs]
        [1, 2, 3]
        """
        first = self.seed if seed is None else seed
        until = self.file.repeat_until
        if until is None or repeats is not None:
            wanted = self.repeats if repeats is None else repeats
            planned = RunPlan.of(self.title, self._templates, wanted, first)
            return replace(planned, source=self.source)
        most = self.file.max_repeats
        begin = min(max(self.repeats, LEAST_REPEATS), most)
        planned = replace(RunPlan.of(self.title, self._templates, begin, first), source=self.source)
        until = replace(until, place=f"{self.location_of('repeat_until')}: repeat_until")
        return replace(planned, repeat_until=until, max_repeats=most)

    def location_of(self, *path: str) -> str:
        """Return where a key was written, as messages begin: `FILE:LINE`.

        Parameters
        ----------
        *path
            Names of the key and the tables around it, from the outermost.

        Returns
        -------
        str
            The file alone if the key was set by `set`, or the scenario was not read from a text.

        Examples
        --------
        >>> import jostle
        >>> jostle.load("scenarios/first.toml").location_of("duration")
        'scenarios/first.toml:4'
        """
        origin = self._origin
        if origin is None or origin.text is None or ".".join(path) in origin.overrides:
            return self.source
        return f"{self.source}:{line_of(positions(origin.text), path)}"


def load(
    path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    registry: Registry | None = None,
    allow_code: bool = False,
    modules: Path | None = None,
) -> Scenario:
    """Read a scenario from a TOML file.

    Parameters
    ----------
    path
        Scenario file. Trace files named in it are relative to its folder.
    overrides
        Values by key (``{"flows.newcomer.controller": "bbr"}``), written as in TOML. Text that is
        not a TOML value is a string, so words need no quotes. A grid key set here no longer varies.
    registry
        Registry of names that the scenario can use; by default the installed engine's.
    allow_code
        Whether the scenario may run foreign code with your rights; see
        `jostle.safe_io.code_consent`.
    modules
        Folder with the modules of Python controllers; by default the scenario's folder.

    Returns
    -------
    Scenario
        The loaded scenario.

    Raises
    ------
    ScenarioError
        If the scenario has problems; the error lists all that were found.
    """
    return load_text(
        read_text(path),
        name=str(path),
        overrides=overrides,
        registry=registry,
        allow_code=allow_code,
        modules=modules,
    )


def load_text(
    text: str,
    *,
    name: str = "scenario",
    overrides: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    allow_code: bool = False,
    modules: Path | None = None,
) -> Scenario:
    """Create a scenario from TOML text.

    Parameters
    ----------
    text
        The TOML document.
    name
        Name for error messages. Trace files are relative to its folder.
    overrides, registry, allow_code, modules
        See `load`.

    Returns
    -------
    Scenario
        The loaded scenario.

    Raises
    ------
    ScenarioError
        If the scenario has problems; the error lists all that were found.
    """
    text, document = parse(text, name)
    named = registry or Registry.of_engine()
    return _load_source(
        ScenarioSource(name, text, document, named, allow_code, overrides or {}, modules=modules)
    )


def _load_source(origin: ScenarioSource) -> Scenario:
    file, title, grid, sample, design, templates = read(origin)
    return Scenario(
        source=origin.source,
        title=title,
        repeats=file.repeats,
        seed=file.seed,
        grid=grid,
        sample=sample,
        design=design,
        file=file,
        _templates=templates,
        _origin=origin,
    )
