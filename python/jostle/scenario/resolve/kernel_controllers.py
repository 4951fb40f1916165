"""Controllers ``kernel:NAME``: converts them to the form of the run specification."""

from __future__ import annotations

from jostle.errors import InputError
from jostle.kernel_images.controller_modules import NAME, PREFIX, kernel_controller
from jostle.run_spec import Algorithm
from jostle.safe_io.code_consent import ConsentError, admit, require_consent
from jostle.scenario.models import Flow
from jostle.scenario.parsing.key_lines import KeyPath
from jostle.scenario.parsing.problems import Report
from jostle.scenario.resolve.python_controllers import check_arguments
from jostle.scenario.resolve.transports import is_quic

__all__ = ["kernel_controller_spec"]


def kernel_controller_spec(
    flow: Flow, path: KeyPath, report: Report, *, allow_code: bool
) -> Algorithm | None:
    """Return the controller of a flow that only a kernel has, as in the run specification.

    Whether the kernel has it is checked by the kernel backend, because a scenario names no kernel.

    Parameters
    ----------
    flow, path
        Flow, and its key path.
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
    full = flow.controller.name
    name = full.removeprefix(PREFIX)
    if not NAME.fullmatch(name):
        hint = "write kernel: and up to 15 letters, digits, `-` and `_`"
        report.add(where, f'"{full}" names no controller of a kernel — {hint}')
        return None
    if is_quic(flow):
        message = f'"{full}" is a part of Linux\'s TCP — remove transport = "quic"'
        report.add(where, message, (*path, "transport"))
    given = check_arguments(flow, path, report)
    try:
        code = kernel_controller(name)
        listed = ", ".join(sorted({str(one.facts["source"]["file"]) for one in code.modules}))
        origin = f" (compiled from {listed})" if listed else ""
        require_consent(f"the controller {name}{origin} inside a kernel", allow_code=allow_code)
    except (ConsentError, InputError) as refusal:
        report.add(where, f'"{full}" {refusal}')
        return None
    admit(code)
    return {"name": full, "parameters": given}
