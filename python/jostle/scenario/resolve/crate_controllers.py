"""Controllers ``crate:FOLDER``: compiles the crate, and reads its row."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from jostle.controller_crates.build import ControllerCrate, compile_crate
from jostle.controller_crates.source import CompilerError, CrateError, locate, read
from jostle.run_spec import Algorithm
from jostle.safe_io.code_consent import ConsentError, admit, require_consent
from jostle.scenario.models import Flow
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.python_controllers.source_files import CRATE, DIGEST
from jostle.scenario.registry import Registry, row_of
from jostle.scenario.resolve.algorithms import controller_and_slow_start

__all__ = ["crate_controller_spec"]


def crate_controller_spec(
    flow: Flow,
    path: KeyPath,
    registry: Registry,
    report: Report,
    folder: Path,
    *,
    allow_code: bool,
) -> tuple[Algorithm | None, Algorithm | None, bool]:
    """Return the controller and the slow start of a flow, and whether it needs ECN.

    Parameters
    ----------
    flow, path
        Flow, and its key path.
    registry, report
        Entries of the engine, and collector of problems.
    folder
        Folder of the scenario.
    allow_code
        Whether the scenario may run foreign code.

    Returns
    -------
    controller, slow_start, needs_ecn
        Form of the run specification; None if there is none, or a problem was reported.
    """
    given = flow.controller.name
    crate = _crate(given, (*path, "controller"), folder, report, allow_code=allow_code)
    if crate is None:
        return None, None, False
    row = row_of(crate.row)
    # Its name in the run does not depend on where the crate is.
    own = dataclasses.replace(row, name=f"{CRATE}{row.name}")
    known = dataclasses.replace(registry, controllers={given: own})
    controller, slow_start = controller_and_slow_start(flow, path, known, report, folder)
    if controller is not None:
        controller["parameters"][DIGEST] = admit(crate)
    return controller, slow_start, row.needs_ecn


def _crate(
    name: str, where: KeyPath, folder: Path, report: Report, *, allow_code: bool
) -> ControllerCrate | None:
    try:
        place = locate(name.removeprefix(CRATE), folder)
        require_consent(f"the crate {place}, and what compiles it", allow_code=allow_code)
        return compile_crate(read(place))
    except ConsentError as refusal:
        report.add(where, f'"{name}" {refusal}')
    except CompilerError:
        # Its lines do not fit among the problems of keys.
        raise
    except CrateError as error:
        report.add(where, str(error))
    return None
