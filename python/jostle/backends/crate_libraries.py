"""Libraries of the controllers ``crate:NAME`` of a run, for the engine."""

from __future__ import annotations

from pathlib import Path

from jostle.controller_crates.build import ControllerCrate, library_file
from jostle.run_spec import FlowSpec, RunSpec
from jostle.safe_io.code_consent import admitted, require_consent
from jostle.scenario.python_controllers.source_files import DIGEST, is_crate_controller

__all__ = ["crate_of", "libraries"]


def libraries(spec: RunSpec) -> dict[str, Path]:
    """Return the files of the libraries that the engine needs, by the digest of the crate.

    Raises
    ------
    ConsentError
        If the user has not allowed a crate. Scenarios with such crates are rejected earlier, but
        specifications that were written by hand or read from a store are checked here.
    CrateError
        If a library is for another kind of machine.
    """
    crates = [crate_of(flow) for flow in spec["flows"] if _has_crate(flow)]
    return {crate.digest(): library_file(crate) for crate in crates}


def crate_of(flow: FlowSpec) -> ControllerCrate:
    """Return the crate of a flow with a controller of a crate.

    Raises
    ------
    ConsentError
        If the user has not allowed it.
    """
    digest = flow["controller"]["parameters"].get(DIGEST)
    code = admitted(str(digest))
    if not isinstance(code, ControllerCrate):
        name = flow["controller"]["name"]
        require_consent(f"the crate of {name}, which no scenario has named", allow_code=False)
    assert isinstance(code, ControllerCrate)
    return code


def _has_crate(flow: FlowSpec) -> bool:
    return is_crate_controller(flow["controller"]["name"])
