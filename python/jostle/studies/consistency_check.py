"""Checks of a study that find mistakes before anything runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from jostle.errors import unknown
from jostle.results.measures import measure as find
from jostle.results.measures import measures
from jostle.safe_io.untrusted_files import TEXT_BYTES, read_text
from jostle.scenario import Scenario
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.parsing.quantities import QuantityError, parse_size, parse_span
from jostle.scenario.parsing.toml_file import TomlFile
from jostle.scenario.resolve.links import topology
from jostle.studies.models import (
    ALL_FLOWS,
    EACH_ACK,
    Claim,
    ClaimPart,
    CoverageItem,
    Curve,
    Experiment,
    FigureSpec,
    ModelCurve,
    Number,
    Reference,
    ScenarioChange,
    Setup,
    SetupEvidence,
    StudyFile,
    Value,
    Window,
)
from jostle.studies.published_models import MODELS, quantity
from jostle.studies.time_windows import AT_ACKS

Mistakes = Iterator[tuple[KeyPath, str]]

PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""Pattern of ids: they are used in file names of the page, and before a dot in references."""
_LONGEST_PATH: Final = 4096


def format_model_errors(error: ValidationError, keys: Sequence[str] = ()) -> Mistakes:
    """Yield the validation errors of the models; `keys` are accepted keys of other models."""
    details = error.errors(include_url=False)
    places = [tuple(detail["loc"]) for detail in details]
    for at, detail in zip(places, details, strict=True):
        match detail["type"]:
            case "extra_forbidden":
                yield at, _unknown_key(at, keys or _keys_of_models())
            case "missing":
                yield at, "missing"
            case "literal_error":
                yield at, f"cannot be {detail['input']!r}; accepted: {detail['ctx']['expected']}"
            case "too_short" if any(len(one) > len(at) and one[: len(at)] == at for one in places):
                # The entries exist but are wrong; each has its own error.
                pass
            case _:
                yield at, detail["msg"].removeprefix("Value error, ")


def _unknown_key(at: KeyPath, keys: Sequence[str]) -> str:
    """Return a message for a key that a table does not have, with the table to which it belongs."""
    key = str(at[-1])
    if key not in keys:
        return unknown("key", key, keys)
    tables: dict[str, type[BaseModel]] = {
        "numbers": Number, "claims": Claim, "figures": FigureSpec, "setups": Setup,
    }  # fmt: skip
    owners = [table for table, model in tables.items() if key in model.model_fields]
    if at[0] not in owners:
        return f"no key `{key}` here: it belongs to {' or '.join(owners) or 'another table'}"
    # A line below [[claims.parts]] belongs to that part.
    here = ".".join(step for step in at[:-1] if isinstance(step, str))
    return f"no key `{key}` here: it belongs to {at[0]}.{at[1]}, so write it above [[{here}]]"


def _keys_of_models() -> list[str]:
    models = (
        StudyFile, Experiment, Window, Number, Claim, ClaimPart, Curve, FigureSpec, Setup,
        ScenarioChange,
        SetupEvidence, CoverageItem, ModelCurve, Reference,
    )  # fmt: skip
    return sorted({key for model in models for key in model.model_fields})


def file_mistakes(file: StudyFile) -> Mistakes:
    """Yield mistakes in quantities and ids, which do not depend on the scenarios."""
    for name, experiment in file.experiments.items():
        for key, window in experiment.windows.items():
            path: KeyPath = ("experiments", name, "windows", key)
            if window.time is not None:
                yield from _ends((*path, "time"), window.time, parse_span)
            if window.bytes is not None:
                yield from _ends((*path, "bytes"), window.bytes, _percentage)
    for table in ("numbers", "claims", "figures"):
        counts = Counter(one.id for one in getattr(file, table))
        for at, one in enumerate(getattr(file, table)):
            if counts[one.id] > 1:
                yield (table, at, "id"), f'"{one.id}" is there {counts[one.id]} times'
            if not PLAIN.fullmatch(one.id):
                text = "letters, digits, - and _, with a letter or digit first"
                yield (table, at, "id"), f'"{one.id}" is no plain name; accepted: {text}'
    for at, figure in enumerate(file.figures):
        for key, text in _figure_mistakes(figure):
            yield ("figures", at, *((key,) if key else ())), text


def path_mistakes(file: StudyFile, folder: Path) -> Mistakes:
    """Yield mistakes for files of a study that are outside its folder."""
    if not _is_inside(folder / file.setup, folder):
        yield ("setup",), _outside(file.setup)
    else:
        try:
            read_text(folder / file.setup, TEXT_BYTES)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            yield ("setup",), f'"{file.setup}" cannot be read: {why}'
    for name, experiment in file.experiments.items():
        yield from outside(("experiments", name, "scenario"), folder, experiment.scenario)


def outside(path: KeyPath, folder: Path, name: str) -> Mistakes:
    """Yield a mistake if the file named at `path` is outside the folder."""
    if not _is_inside(folder / name, folder):
        yield path, _outside(name)


def scenario_path_mistakes(
    document: Any, beside: Path, folder: Path, path: KeyPath = ()
) -> Mistakes:
    """Yield mistakes for texts of a scenario that name a file outside the study's folder."""
    match document:
        case dict():
            for key, value in document.items():
                yield from scenario_path_mistakes(value, beside, folder, (*path, key))
        case list():
            for index, value in enumerate(document):
                yield from scenario_path_mistakes(value, beside, folder, (*path, index))
        # Only texts with a separator, or links in the folder, can lead outside.
        case str() if len(document) <= _LONGEST_PATH and "\0" not in document:
            if _leaves(beside / document, folder, is_path="/" in document):
                yield path, _outside(document)


def _leaves(named: Path, folder: Path, *, is_path: bool) -> bool:
    """Return whether a text names a file outside a folder: a path, or a link to another file."""
    try:
        return (is_path or named.is_symlink()) and named.exists() and not _is_inside(named, folder)
    except OSError:  # The system takes no name of 256 characters.
        return False


def check_paths(path: Path, folder: Path) -> None:
    """Check that all files that a scenario names are in the folder of its study or suite.

    Raises
    ------
    ScenarioError
        When a file is outside the folder.
    """
    toml = TomlFile.read(path)
    toml.check(scenario_path_mistakes(toml.document, path.parent, folder))


def _is_inside(file: Path, folder: Path) -> bool:
    try:
        return file.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # A loop of links, a null character.
        return False


def _outside(name: str) -> str:
    return f'"{name}" lies outside of the study\'s folder — put the file next to study.toml'


def value_mistakes(
    path: KeyPath, value: Value, scenario: Scenario, windows: Mapping[str, Window]
) -> Mistakes:
    """Yield mistakes in a value whose measure is known."""
    measure = find(value.measure)
    if measure.scope != "run":
        known = _named(scenario, measure.scope)
        if not value.flow:
            what = f"name of a {measure.scope}"
            yield path, f"`{value.measure}` needs `flow`, the {what}: {', '.join(known)}"
        elif value.flow not in known:
            yield (*path, "flow"), unknown(measure.scope, value.flow, known)
    if value.measure == "harm" and not value.relative_to:
        yield path, "`harm` needs `relative_to`, the condition without the newcomer"
    if value.measure == "echo_rtt" and value.percentile is None:
        yield path, "`echo_rtt` needs `percentile`; the mean over the echoes is `rtt`"
    if value.measure == "download_time" and value.size is None and path[0] != "figures":
        yield (
            path,
            "`download_time` needs `size`; the time of a whole transfer is `completion_time`",
        )
    if value.percentile is not None and not measure.any_window and value.measure != "echo_rtt":
        with_bins = [name for name, one in measures().items() if one.any_window]
        text = f"`{value.measure}` has no bins to take it of; these have: {', '.join(with_bins)}"
        yield (*path, "percentile"), text
    if measure.place == "phases" and not measure.any_window and value.window in windows:
        phases = [name for name in window_labels(scenario, {}) if name not in windows]
        text = f"`{value.measure}` is known of phases of the scenario only: {', '.join(phases)}"
        yield (*path, "window"), text
    if measure.place == "pairs":
        yield from _pair_mistakes(path, value, windows)
    elif value.reference is not None:
        with_it = [
            name
            for name, one in measures().items()
            if one.place == "pairs" and name != "repeatability"
        ]
        text = f"`reference` goes with measures of pairs: {', '.join(with_it)}"
        yield (*path, "reference"), text
    yield from _state_mistakes(path, value)
    yield from _bin_mistakes(path, value, scenario)
    if value.size is not None:
        yield from _quantity((*path, "size"), value.size, parse_size)


def _state_mistakes(path: KeyPath, value: Value) -> Mistakes:
    """Yield mistakes in the modes and internal quantities of a value."""
    name, of_states = value.measure, find(value.measure).place == "states"
    needs = {
        "mode": of_states and name != "internal",
        "then": name == "mode_followed",
        "quantity": name == "internal",
    }
    for key, needed in needs.items():
        if needed and not getattr(value, key):
            yield path, f"`{name}` needs `{key}`"
    may = needs | {"mode": of_states, "display": of_states, "unset": needs["quantity"]}
    for key, allowed in may.items():
        if getattr(value, key) not in ("", None) and not allowed:
            yield (*path, key), f"`{key}` is of no matter for `{name}`"


def _bin_mistakes(path: KeyPath, value: Value, scenario: Scenario) -> Mistakes:
    """Yield mistakes in the bins of a value."""
    if value.bins_above is not None and value.percentile is not None:
        yield (*path, "bins_above"), "give either `percentile` or `bins_above`"
    if value.bins_above is not None and not find(value.measure).any_window:
        yield (*path, "bins_above"), f"`{value.measure}` has no bins"
    if value.bin == EACH_ACK:
        if value.measure not in AT_ACKS:
            yield (*path, "measure"), unknown("measure of an ACK", value.measure, AT_ACKS)
        if scenario.file.record != "acks":
            text = f'`{value.experiment}` records no ACKs — its scenario needs record = "acks"'
            yield (*path, "bin"), text
    elif value.bin is not None:
        yield from _quantity((*path, "bin"), value.bin, parse_span)


def _pair_mistakes(path: KeyPath, value: Value, windows: Mapping[str, object]) -> Mistakes:
    if value.measure != "repeatability" and value.reference is None:
        yield path, f"`{value.measure}` needs `reference`: the flow to compare with"
    if value.measure == "repeatability" and value.reference is not None:
        yield (*path, "reference"), "`repeatability` is of the flow's own runs, without `reference`"
    if value.window in windows:
        text = f"`{value.measure}` is of phases of the scenario, or of the whole run"
        yield (*path, "window"), text


def _figure_mistakes(figure: FigureSpec) -> Iterator[tuple[str, str]]:
    """Yield key and text of settings that do not suit the figure's kind."""
    if figure.kind == "series":
        yield from _series_mistakes(figure)
        return
    if figure.kind == "representative":
        yield from _panel_mistakes(figure)
    if not figure.curves:
        yield "", f"`{figure.kind}` needs `curves`"
        return
    if figure.kind == "lines" and not figure.x:
        yield "", "`lines` needs `x`, a key of the grid or `size`"
    if figure.kind == "heat_map":
        if len({curve.measure for curve in figure.curves}) > 1:
            yield "curves", "a `heat_map` shows one measure, which all its curves have"
        for key in ("rows", "columns"):
            if not getattr(figure, key):
                yield "", f"`heat_map` needs `{key}`"
        if (figure.columns == "window") != bool(figure.windows):
            yield "", '`windows` goes with columns = "window"'
    yield from _model_mistakes(figure)
    if figure.groups and len(figure.curves) % len(figure.groups):
        text = f"{len(figure.curves)} curves cannot be {len(figure.groups)} groups of equal size"
        yield "groups", text


def _model_mistakes(figure: FigureSpec) -> Iterator[tuple[str, str]]:
    if figure.models and (figure.kind != "lines" or figure.x == "size" or figure.x_scale == "even"):
        yield "models", "formulas go with `lines` over a key whose labels are numbers"
    for one in figure.models:
        model = MODELS.get(one.model)
        if model is None:
            yield "models", unknown("model", one.model, MODELS)
            continue
        drawn = figure.curves[0].measure
        if drawn != model.measure:
            yield "models", f"`{one.model}` is of `{model.measure}`, and the curves of `{drawn}`"
        given = {one.x, *one.parameters}
        for name in given.difference(model.parameters):
            yield "models", unknown(f"parameter of {one.model}", name, model.parameters)
        for name in sorted(set(model.parameters) - given):
            yield "models", f"`{one.model}` needs `{name}`"
        for name, value in one.parameters.items():
            try:
                quantity(one.model, name, value)
            except QuantityError as error:
                yield "models", str(error)


def _series_mistakes(figure: FigureSpec) -> Iterator[tuple[str, str]]:
    shown = [name for name, one in measures().items() if one.scope == "flow" and one.column]
    for panel in figure.panels:
        if panel not in (*shown, *ALL_FLOWS):
            yield "panels", unknown("panel", panel, [*shown, *ALL_FLOWS])
    if figure.curves:
        yield "curves", "a `series` has panels and flows, no curves"


def _panel_mistakes(figure: FigureSpec) -> Iterator[tuple[str, str]]:
    binned = [name for name, one in measures().items() if one.any_window]
    for panel in figure.panels:
        if panel not in binned:
            yield "panels", unknown("panel", panel, binned)
    if not figure.panels:
        yield "", "`representative` needs `panels`"


def _ends(path: KeyPath, ends: Sequence[str], parse: Callable[[object], float]) -> Mistakes:
    wrong = [mistake for end in ends for mistake in _quantity(path, end, parse)]
    yield from wrong
    if not wrong and parse(ends[0]) >= parse(ends[1]):
        yield path, f"{ends[1]} is not after {ends[0]}"


def _quantity(path: KeyPath, text: str, parse: Callable[[object], float]) -> Mistakes:
    try:
        parse(text)
    except QuantityError as error:
        yield path, str(error)


def _percentage(given: object) -> float:
    text = str(given)
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = -1.0
    if not text.endswith("%") or not 0 <= share <= 100:
        raise QuantityError(f'"{text}" is no share of the bytes — write for example "50 %"')
    return share


def _flows(scenario: Scenario) -> list[str]:
    """Return the names of flows: `flow`, and with `count` also `flow-1` and so on."""
    found = []
    for flow in scenario.file.flows:
        varied = scenario.grid.get(f"flows.{flow.name}.count", [str(flow.count)])
        counts = [int(count) if count.isdigit() else flow.count for count in varied]
        # The name without number selects the mean over the flows.
        found.append(flow.name)
        found += [
            f"{flow.name}-{number}" for number in range(1, max(counts) + 1) if max(counts) > 1
        ]
    return found


def _links(scenario: Scenario) -> list[str]:
    return [name for name, _, _ in topology(scenario.file, Report())]


def _named(scenario: Scenario, scope: str) -> list[str]:
    """Return the names of entities that have a value of a measure."""
    match scope:
        case "link":
            return _links(scenario)
        case "group":
            return [flow.name for flow in scenario.file.flows]
    return _flows(scenario)


def key_mistakes(
    experiments: Mapping[str, Experiment], scenarios: Mapping[str, Scenario]
) -> Mistakes:
    """Yield mistakes for keys of experiments that do not vary in their scenarios."""
    for name, experiment in experiments.items():
        varied = [*scenarios[name].grid, *scenarios[name].sample]
        for key, full in experiment.keys.items():
            if full not in varied:
                yield ("experiments", name, "keys", key), unknown("key", full, varied)


def window_labels(scenario: Scenario, windows: Mapping[str, object]) -> list[str]:
    """Return the names of all windows that values of an experiment may use."""
    return sorted({"overall", *(scenario.file.phases or {}), *windows})
