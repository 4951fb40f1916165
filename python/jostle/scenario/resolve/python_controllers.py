"""Python controllers: converts ``my_module:MyController`` to the form of the run specification."""

from __future__ import annotations

import math
from pathlib import Path

from jostle.run_spec import Algorithm, ParameterValue
from jostle.safe_io.code_consent import ConsentError, admit, require_consent
from jostle.scenario.models import Flow
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report, did_you_mean
from jostle.scenario.parsing.quantities import LARGEST
from jostle.scenario.python_controllers.source_files import DIGEST, ControllerSource, locate, read

__all__ = ["check_arguments", "controller_spec"]


def controller_spec(
    flow: Flow, path: KeyPath, folder: Path, report: Report, *, allow_code: bool
) -> Algorithm | None:
    """Return the controller of a flow that names a class, in the form of the run specification.

    Parameters
    ----------
    flow, path
        Flow, and its key path.
    folder
        Folder of the scenario.
    report
        Collects problems.
    allow_code
        Whether the scenario may run foreign code.

    Returns
    -------
    dict or None
        None if a problem was reported.
    """
    where: KeyPath = (*path, "controller")
    name = flow.controller.name
    module, _, class_name = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), class_name)):
        report.add(where, f'"{name}" names no class — write it as in "my_module:MyController"')
        return None
    given = check_arguments(flow, path, report)
    source = _source(name, where, folder, report, allow_code=allow_code)
    if source is None:
        return None
    _check_parameters(source, class_name, given, where, report)
    return {"name": name, "parameters": {**given, DIGEST: admit(source)}}


def check_arguments(flow: Flow, path: KeyPath, report: Report) -> dict[str, ParameterValue]:
    """Return the parameters of a flow's controller, which is foreign code, and report problems."""
    where: KeyPath = (*path, "controller")
    given = flow.controller.parameters
    for table, method in ((where, given.pop("slow_start", None)), (path, flow.slow_start)):
        if method is not None:
            text = f'"{flow.controller.name}" has its own slow start — remove this key'
            report.add((*table, "slow_start"), text)
    for key, value in given.items():
        if key == DIGEST or not _is_argument(value):
            report.add((*where, key), "cannot be this — accepted: a number, a text, true or false")
    return given


def _check_parameters(
    source: ControllerSource,
    class_name: str,
    given: dict[str, ParameterValue],
    where: KeyPath,
    report: Report,
) -> None:
    """Report parameters that a class does not have, and those that it needs."""
    # Few scenarios name a class.
    from jostle.scenario.python_controllers.class_parameters import (
        SEED,
        class_parameters,
        missing_callbacks,
    )

    if SEED in given:
        report.add((*where, SEED), "jostle sets it from the seed of the run — remove this key")
    for method in missing_callbacks(source, class_name):
        file = source.file(source.name)
        report.add(where, f"{file}: the class {class_name} has no method `{method}`")
    parameters = class_parameters(source, class_name)
    if parameters is None:
        return
    for key in given:
        if key not in parameters.names and key != SEED:
            hint = did_you_mean(key, parameters.names, listed="its parameters")
            report.add((*where, key), f'the class {class_name} has no parameter "{key}" — {hint}')
    for key in parameters.required:
        if key not in given:
            report.add((*where, key), f"missing — the class {class_name} has no default for it")


def _is_argument(value: object) -> bool:
    """Return whether a run specification can store a value without changing it."""
    match value:
        case bool() | str():
            return True
        case int():
            return -LARGEST <= value <= LARGEST
        case float():
            return math.isfinite(value)
    return False


def _source(
    name: str, where: KeyPath, folder: Path, report: Report, *, allow_code: bool
) -> ControllerSource | None:
    """Return the module of a class that may be used; None if a problem was reported."""
    module, _, class_name = name.partition(":")
    try:
        file = locate(module, folder)
        if file is None:
            message = f'there is no module "{module}" in the scenario\'s folder'
            report.add(where, f"{message} — looked for {module.replace('.', '/')}.py")
            return None
        require_consent(f"the class {class_name} of {file}", allow_code=allow_code)
        source = read(module, file, folder)
    except ConsentError as refusal:
        report.add(where, f'"{name}" {refusal}')
        return None
    except SyntaxError as error:
        report.add(where, f"{error.filename}, line {error.lineno}: {error.msg}")
        return None
    except (OSError, ValueError) as error:
        report.add(where, f'the module "{module}" cannot be used: {error}')
        return None
    if class_name not in source.classes:
        hint = did_you_mean(class_name, source.classes)
        report.add(where, f'{file.name} has no class "{class_name}" — {hint}')
        return None
    return source
