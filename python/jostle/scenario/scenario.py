"""Reading scenarios: from a file and the changes of a command line to what can be planned."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from jostle.scenario.loading import Origin, read
from jostle.scenario.models import ScenarioFile
from jostle.scenario.plan import Condition, Plan
from jostle.scenario.registry import Registry
from jostle.scenario.resolving.addressing import changed, find, parse_value
from jostle.scenario.resolving.resolve import Template
from jostle.scenario.resolving.sample import Design, Points, Variable
from jostle.scenario.resolving.tunable import variable
from jostle.scenario.text.document import parse, read_text
from jostle.scenario.text.positions import line_of, positions
from jostle.scenario.text.problems import Problem, ScenarioError
from jostle.scenario.text.shape import misshapen
from jostle.scenario.until import LEAST_REPEATS

__all__ = ["Scenario", "load", "loads"]


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
        Labels of the values of each key of the grid.
    sample
        Labels of the values of each sampled key, one for each point.
    design
        What is sampled and how; None without a sample.
    file
        The scenario's values, without the grid's and the sample's.
    """

    source: str
    title: str
    repeats: int
    seed: int
    grid: Mapping[str, tuple[str, ...]]
    sample: Mapping[str, tuple[str, ...]]
    design: Design | None
    file: ScenarioFile
    _templates: tuple[tuple[Condition, Template], ...] = field(repr=False)
    _origin: Origin | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario", allow_code: bool = False) -> Scenario:
        """Read a scenario from a text.

        Parameters
        ----------
        text
            The TOML document.
        name
            What problems call it. Files that it names are looked for in its folder.
        allow_code
            As for `load`.

        Raises
        ------
        ScenarioError
            If anything is wrong, with all problems that were found.

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
        return loads(text, name=name, allow_code=allow_code)

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], *, name: str = "scenario", allow_code: bool = False
    ) -> Scenario:
        """Make a scenario of what its TOML document would hold.

        Parameters
        ----------
        document
            Texts, numbers, lists and dictionaries under the keys of a scenario file.
        name, allow_code
            As for `from_toml`.

        Raises
        ------
        ScenarioError
            If anything is wrong, with all problems that were found.

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
        found = misshapen(document)
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
        return _made(Origin(name, None, plain, Registry.of_engine(), allow_code))

    def set(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> Scenario:
        """Return the scenario with other values.

        Parameters
        ----------
        values
            By key, as `--set` takes them: `{"bottleneck.rate": "50 Mbit/s"}`; a key of the grid no
            longer varies.
        **named
            The same for keys without a dot: `duration="10 s"`.

        Raises
        ------
        ScenarioError
            If the scenario would be wrong then.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/first.toml")
        >>> scenario.set({"bottleneck.rate": "20 Mbit/s"}, repeats=3).repeats
        3
        """
        if self._origin is None:
            raise ValueError("this scenario was not read from a document")
        overrides = {**self._origin.overrides, **(values or {}), **named}
        made = _made(replace(self._origin, overrides=overrides, points=None))
        if self._origin.points is None or made.design is None:
            return made
        # Points that were given are kept, without the keys that are sampled no longer.
        assert self.design is not None
        keys = [variable.key for variable in self.design.variables]
        places = [keys.index(variable.key) for variable in made.design.variables]
        return made.at(tuple(tuple(p[at] for at in places) for p in self._origin.points))

    def at(self, points: Points) -> Scenario:
        """Return the scenario with points of the sample that are given, not drawn.

        Parameters
        ----------
        points
            For each point a share from 0 to 1 of the range of each sampled key, in the order of
            the file. Constraints do not choose among them.

        Raises
        ------
        ScenarioError
            If the scenario would be wrong then.
        ValueError
            If a point has not one share for each key.

        Examples
        --------
        >>> import jostle
        >>> scenario = jostle.load("scenarios/sensitivity.toml").at(((0.0, 0.5, 1.0),))
        >>> str(scenario.conditions[0])
        'bottleneck.rate = 2 Mbit/s, flows.*.rtt = 40 ms, bottleneck.queue.limit = 8 BDP'
        """
        if self._origin is None or self.design is None:
            raise ValueError("this scenario has no sample")
        for point in points:
            if len(point) != len(self.design.variables) or not all(0 <= x <= 1 for x in point):
                keys = ", ".join(variable.key for variable in self.design.variables)
                raise ValueError(f"{point} is no point: a share from 0 to 1 of each of {keys}")
        return _made(replace(self._origin, points=points))

    def variable(self, key: str, given: Any = None) -> Variable:
        """Return a key with the values that it may take.

        Parameters
        ----------
        key
            As in a grid: `flows.NAME.controller.beta`.
        given
            A range (`{"from": …, "to": …, "scale": …}`) or values; if absent those of the
            registry, for a parameter of a controller, queue or the like.

        Raises
        ------
        ValueError
            If there is no such key, or nothing says how far it may go.

        Examples
        --------
        >>> import jostle
        >>> beta = jostle.load("scenarios/tune.toml").variable("flows.f.controller.beta")
        >>> [level.label for level in beta.ends]
        ['1', '1023']
        """
        if self._origin is None:
            raise ValueError("this scenario was not read from a document")
        return variable(self.document, self._origin.registry, key, given)

    @property
    def points(self) -> Points:
        """Points that were given by `at`; none otherwise."""
        return (self._origin and self._origin.points) or ()

    @property
    def text(self) -> str:
        """The TOML document that it was read from; empty if it was none."""
        return (self._origin and self._origin.text) or ""

    @property
    def document(self) -> Mapping[str, Any]:
        """What its file holds, with the values that were set since; empty if it was none."""
        if self._origin is None:
            return {}
        document: Mapping[str, Any] = self._origin.document
        for key, given in self._origin.overrides.items():
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
        """Every combination of the grid's values, the last key varying fastest, at every point."""
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
            If the two have different grids or samples.
        """
        if (self.grid, self.sample) != (other.grid, other.sample):
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
            Instead of the scenario's own; with a number of repeats there are so many, whatever the
            scenario's `until`.

        Returns
        -------
        Plan
            Condition by condition, each with the seeds `seed`, `seed + 1`, …

        Raises
        ------
        ValueError
            If `repeats` is not positive or a seed is outside 0 … 2⁶³ - 1.

        Examples
        --------
        >>> import jostle
        >>> plan = jostle.load("scenarios/first.toml").plan(repeats=3)
        >>> [planned.seed for planned in plan.runs]
        [1, 2, 3]
        """
        first = self.seed if seed is None else seed
        until = self.file.until
        if until is None or repeats is not None:
            wanted = self.repeats if repeats is None else repeats
            planned = Plan.of(self.title, self._templates, wanted, first)
            return replace(planned, source=self.source)
        most = self.file.most_repeats
        begin = min(max(self.repeats, LEAST_REPEATS), most)
        planned = replace(Plan.of(self.title, self._templates, begin, first), source=self.source)
        until = replace(until, place=f"{self.location_of('until')}: until")
        return replace(planned, until=until, most_repeats=most)

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
        The file. Link traces that it names are looked for in its folder.
    overrides
        Values by key (``{"flows.newcomer.controller": "bbr"}``), each written as in TOML; what is
        no TOML value is a text, so words need no quotes. A key of the grid no longer varies.
    registry
        What can be named; the installed engine's if None.
    allow_code
        Whether it may name foreign code, which runs with the rights of the user who runs the
        scenario; see `jostle.foreign_code`.
    modules
        Folder of their modules, where it is not the scenario's.

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
        read_text(path),
        name=str(path),
        overrides=overrides,
        registry=registry,
        allow_code=allow_code,
        modules=modules,
    )


def loads(
    text: str,
    *,
    name: str = "scenario",
    overrides: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
    allow_code: bool = False,
    modules: Path | None = None,
) -> Scenario:
    """Read a scenario from a text.

    Parameters
    ----------
    text
        The TOML document.
    name
        What problems call it. Link traces are looked for in its folder.
    overrides, registry, allow_code, modules
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
    named = registry or Registry.of_engine()
    return _made(
        Origin(name, text, document, named, allow_code, dict(overrides or {}), modules=modules)
    )


def _made(origin: Origin) -> Scenario:
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
