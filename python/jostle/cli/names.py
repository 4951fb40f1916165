"""What commands name: kinds of things, profiles, scenarios, studies."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError
from jostle.foreign_files import SCENARIO_BYTES, read_text

if TYPE_CHECKING:
    from jostle.cli.environment import Environment

MEASURES = "measures"
PROFILES = "profiles"
SCENARIOS = "scenarios"
STUDIES = "studies"
NOT_OF_THE_ENGINE = (PROFILES, SCENARIOS, STUDIES)


def kinds_of(environment: Environment) -> list[str]:
    """Return what can be listed."""
    kinds = [name.replace("_", "-") for name in environment.registry()]
    return sorted([*kinds, *NOT_OF_THE_ENGINE])


def profiles_of() -> Mapping[str, Mapping[str, Any]]:
    """Profiles of links by name."""
    from jostle.scenario.resolving.profiles import profiles

    return profiles()


def scenarios_of() -> list[tuple[Path, str]]:
    """Scenario files here, or else the examples of the source tree; with their titles."""
    here = Path(SCENARIOS)
    examples = Path(__file__).parents[3] / SCENARIOS
    folder = here if here.is_dir() else examples
    found = []
    for path in sorted(folder.glob("**/*.toml")):
        try:
            title = tomllib.loads(read_text(path, SCENARIO_BYTES)).get("title", "")
        except (OSError, ValueError):
            title = "(not readable)"
        found.append((path, str(title)))
    if not found:
        raise InputError("no scenarios here: there is no folder `scenarios` with TOML files")
    return found


def studies_of() -> list[tuple[str, str]]:
    """Studies that come with jostle, and those in `studies` here as paths; with their titles."""
    from jostle.studies import INSTALLED, load, names

    found = [(name, load(name).file.title) for name in names()]
    here = Path("studies")
    if here.resolve() != INSTALLED:
        found += [(f"./{here}/{name}", load(name, here).file.title) for name in names(here)]
    if not found:
        raise InputError("jostle was installed without studies")
    return found
