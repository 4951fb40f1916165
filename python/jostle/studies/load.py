"""Reading and validation of studies: `study.toml` and its scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from jostle.errors import unknown
from jostle.results.measures import measures, unknown_measure
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.studies.consistency_check import (
    file_mistakes,
    key_mistakes,
    path_mistakes,
    value_mistakes,
    window_labels,
)
from jostle.studies.findings import references
from jostle.studies.library import STUDIES
from jostle.studies.models import Claim, FigureSpec, Number, StudyFile, Value
from jostle.studies.setups import read_scenarios, setup_mistakes
from jostle.studies.study import LINUX, Study


def load(name: str, folder: Path = STUDIES.installed, *, allow_code: bool = False) -> Study:
    """Read a study.

    Parameters
    ----------
    name
        Name of its folder.
    folder
        Folder of studies; by default, of those distributed with jostle.
    allow_code
        Whether its scenarios may name foreign code; see `jostle.safe_io.code_consent`.

    Raises
    ------
    InputError
        When there is no such study.
    ScenarioError
        When the study or one of its scenarios is wrong; the text names file, line and key.
    """
    toml, file = STUDIES.read(name, folder, StudyFile)
    path = toml.path
    toml.check(
        [
            *file_mistakes(file),
            *setup_mistakes(file),
            *path_mistakes(file, path.parent),
        ]
    )
    scenarios, changed = read_scenarios(file, toml, allow_code=allow_code)
    study = Study(name, path.parent, file, scenarios, changed=changed)
    # Values use keys of experiments, and references use values: check them in this order.
    toml.check(key_mistakes(file.experiments, scenarios))
    toml.check(mismatches(study))
    toml.check(_pool_mistakes(study))
    toml.check(_reference_mismatches(study))
    return study


def values(file: StudyFile) -> Iterator[tuple[KeyPath, Value]]:
    """Yield every value of a study and its position."""
    for at, number in enumerate(file.numbers):
        yield ("numbers", at), number
    for at, claim in enumerate(file.claims):
        for index, part in enumerate(claim.parts):
            path: KeyPath = ("claims", at, "parts", index)
            if part.left is not None:
                yield (*path, "left"), part.left
            if isinstance(part.right, Value):
                yield (*path, "right"), part.right
            for place, value in enumerate(part.order):
                yield (*path, "order", place), value
    for at, figure in enumerate(file.figures):
        for index, curve in enumerate(figure.curves):
            # Envelopes always use the same two measures.
            shown = {"measure": "throughput"} if figure.kind == "envelopes" else {}
            yield ("figures", at, "curves", index), curve.model_copy(update=shown)


def mismatches(study: Study) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for names in values that do not exist."""
    for path, value in values(study.file):
        yield from _value_mismatches(study, path, value)
    yield from _figure_mismatches(study)


def _value_mismatches(study: Study, path: KeyPath, value: Value) -> Iterator[tuple[KeyPath, str]]:
    if value.experiment and value.experiment not in study.file.experiments:
        text = unknown("experiment", value.experiment, study.file.experiments)
        yield (*path, "experiment"), text
        return
    if value.measure not in measures():
        yield (*path, "measure"), unknown_measure(value.measure)
        return
    name, experiment = study.experiment_of(value)
    keys = [
        *value.where,
        *value.relative_to,
        *value.pool,
        *(
            [value.measured_by]
            if isinstance(value, Number) and value.measured_by is not None
            else []
        ),
    ]
    wrong = [key for key in keys if key not in experiment.keys]
    if wrong:
        yield path, unknown("key", wrong[0], experiment.keys)
        return
    scenario = study.scenarios[name]
    if not study.conditions(value):
        labels = {key: study.labels_of(name, key) for key in experiment.keys}
        yield (
            (*path, "where"),
            f"no condition has {_listed(value.where)}; there is {_listed(labels)}",
        )
        return
    for key, label in value.relative_to.items():
        if label not in study.labels(value, key):
            yield (*path, "relative_to"), unknown(key, label, study.labels(value, key))
    if isinstance(value, Number) and value.measured_by and isinstance(value.published, dict):
        there = study.labels_of(name, value.measured_by)
        for label in (*value.published, *value.against.values()):
            if label not in there:
                yield (*path, "published"), unknown(value.measured_by, label, there)
    known = window_labels(scenario, experiment.windows)
    if value.window not in known:
        yield (*path, "window"), unknown("window", value.window, known)
    yield from value_mistakes(path, value, scenario, experiment.windows)
    yield from _backend_mismatches(study, path, value)
    yield from _reference_of_mismatches(study, path, value)


def _pool_mistakes(study: Study) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for values whose conditions differ without being pooled explicitly."""
    for path, value in values(study.file):
        axes: list[str | None] = [getattr(value, "measured_by", None)]
        if path[0] == "figures":
            figure = study.file.figures[int(path[1])]
            axes = [figure.x, figure.rows, figure.columns]
        yield from pool_mistakes(study, path, value, [axis for axis in axes if axis])


def pool_mistakes(
    study: Study, path: KeyPath, value: Value, axes: Sequence[str] = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Yield a mistake if a value would be one sample of different conditions.

    Keys of `axes` are chosen elsewhere.
    """
    name, experiment = study.experiment_of(value)
    if not (differing := study.pooled_keys(value, axes)):
        return
    short = {key: word for word, key in experiment.keys.items()}
    if unnamed := [key for key in differing if key not in short]:
        text = f'give it a short name in `keys` of "{name}", and choose one by `where`'
        yield path, f'conditions differ in "{unnamed[0]}": {text}'
        return
    words = [short[key] for key in differing]
    pool = ", ".join(f'"{word}"' for word in (*value.pool, *words))
    text = f"choose one by `where`, or make them one sample: pool = [{pool}]"
    yield path, f"conditions differ in {', '.join(words)}: {text}"


def _backend_mismatches(study: Study, path: KeyPath, value: Value) -> Iterator[tuple[KeyPath, str]]:
    name, experiment = study.experiment_of(value)
    if value.backend and value.backend not in experiment.backends:
        known = ", ".join(experiment.backends)
        yield (*path, "backend"), f"`{name}` is not run by {value.backend}; accepted: {known}"


def _reference_of_mismatches(
    study: Study, path: KeyPath, value: Value
) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for names in a value's reference that do not exist."""
    if value.reference is None:
        return
    path = (*path, "reference")
    experiments = study.file.experiments
    name = value.reference.experiment or study.experiment_of(value)[0]
    if name not in experiments:
        yield (*path, "experiment"), unknown("experiment", name, experiments)
        return
    wrong = [key for key in value.reference.where if key not in experiments[name].keys]
    if wrong:
        yield (*path, "where"), unknown("key", wrong[0], experiments[name].keys)
        return
    for condition in study.conditions(value):
        against = study.reference_of(value, condition)
        there = len(study.conditions(against))
        if there != 1:
            what = "no condition" if not there else f"{there} conditions"
            yield path, f"{what} of {name} for {_listed(against.where)}: there must be one"
            return
    against = study.reference_of(value, study.conditions(value)[0])
    yield from value_mistakes(
        path,
        against.model_copy(update={"measure": "throughput"}),
        study.scenarios[name],
        experiments[name].windows,
    )
    yield from _backend_mismatches(study, path, against)


def _listed(keys: Mapping[str, str | Iterable[str]]) -> str:
    """Format keys and their labels: `controller = reno, bbr; rtt = 40 ms`."""
    return "; ".join(
        f"{key} = {labels if isinstance(labels, str) else ', '.join(labels)}"
        for key, labels in keys.items()
    )


def _figure_mismatches(study: Study) -> Iterator[tuple[KeyPath, str]]:
    for at, figure in enumerate(study.file.figures):
        value = Value(experiment=figure.experiment, where=figure.where)
        if figure.experiment and figure.experiment not in study.file.experiments:
            yield ("figures", at), unknown("experiment", figure.experiment, study.file.experiments)
            continue
        keys = study.experiment_of(value)[1].keys
        for key in figure.where:
            if key not in keys:
                yield ("figures", at, "where"), unknown("key", key, keys)
        for curve in figure.curves or (value,):
            # An unknown experiment is reported for the curve.
            if not curve.experiment or curve.experiment in study.file.experiments:
                yield from _axis_mismatches(study, ("figures", at), figure, curve)
        for curve in figure.curves if figure.windows else ():
            said = {text for _, text in _value_mismatches(study, ("figures", at), curve)}
            for place, window in enumerate(figure.windows):
                path: KeyPath = ("figures", at, "windows", place)
                other = curve.model_copy(update={"window": window})
                texts = (text for _, text in _value_mismatches(study, path, other))
                yield from ((path, text) for text in texts if text not in said)
        if figure.kind == "envelopes":
            for index, curve in enumerate(figure.curves):
                if not _is_unknown(study, curve) and len(study.conditions(curve)) > 1:
                    path = ("figures", at, "curves", index, "where")
                    yield path, "`where` must choose one condition of the experiment"
        is_series = figure.kind == "series" and not _is_unknown(study, value)
        if is_series and len(study.conditions(value)) != 1:
            yield ("figures", at), "`where` must choose one condition of the experiment"


def _axis_mismatches(
    study: Study, path: KeyPath, figure: FigureSpec, curve: Value
) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for axes of a figure that are not keys of a curve's experiment."""
    keys = study.experiment_of(curve)[1].keys
    for axis, others in (("rows", ()), ("columns", ("window",)), ("x", ("size",))):
        key = getattr(figure, axis)
        if key and key not in (*keys, *others):
            yield (*path, axis), unknown("key", key, [*keys, *others])


def _is_unknown(study: Study, value: Value) -> bool:
    """Return whether a value's experiment or key does not exist; this is reported for the value."""
    if value.experiment and value.experiment not in study.file.experiments:
        return True
    return any(key not in study.experiment_of(value)[1].keys for key in value.where)


def _reference_mismatches(study: Study) -> Iterator[tuple[KeyPath, str]]:
    """Yield mistakes for numbers and setups in paragraphs that the study does not have."""
    numbers = [
        f"{number.id}.{label}" if label else number.id
        for number in study.file.numbers
        for label in _labels_of(study, number)
    ]
    claims = [
        name
        for claim in study.file.claims
        for name in (claim.id, *(f"{claim.id}.{at}" for at in range(1, _comparisons(claim) + 1)))
    ]
    known = [*numbers, *claims]
    for path, text in paragraphs(study.file):
        for name, setup in references(text):
            if name not in known:
                yield path, unknown("number", name, known)
            if setup not in ("", LINUX, *study.setups):
                yield path, unknown("setup", setup, [*study.setups, LINUX])


def _comparisons(claim: Claim) -> int:
    return sum(max(1, len(part.order) - 1) for part in claim.parts)


def paragraphs(file: StudyFile) -> Iterator[tuple[KeyPath, str]]:
    """Yield every text of a study that may refer to numbers, and its position."""
    for at, text in enumerate(file.findings):
        yield ("findings", at), text
    for table in ("numbers", "claims", "figures"):
        for at, one in enumerate(getattr(file, table)):
            yield (table, at, "finding"), one.finding


def _labels_of(study: Study, number: Number) -> list[str]:
    """Return the labels of a number's rows: a single empty one without `measured_by`."""
    if isinstance(number.published, dict):
        return list(number.published)
    return [""] if number.measured_by is None else study.labels(number, number.measured_by)
