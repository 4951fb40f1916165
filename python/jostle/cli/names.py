"""What commands name: kinds of things, profiles, scenarios, studies, suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError

if TYPE_CHECKING:
    from jostle.cli.environment import Environment

MEASURES = "measures"
PROFILES = "profiles"
SCENARIOS = "scenarios"
STUDIES = "studies"
SUITES = "suites"
NOT_OF_THE_ENGINE = (PROFILES, SCENARIOS, STUDIES, SUITES)


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
    from jostle.scenario.text.document import parse, read_text
    from jostle.scenario.text.problems import ScenarioError

    here = Path(SCENARIOS)
    examples = Path(__file__).parents[3] / SCENARIOS
    folder = here if here.is_dir() else examples
    found = []
    for path in sorted(folder.glob("**/*.toml")):
        try:
            title = parse(read_text(path), str(path))[1].get("title", "")
        except ScenarioError:
            title = "(not readable)"
        found.append((path, str(title)))
    if not found:
        raise InputError("no scenarios here: there is no folder `scenarios` with TOML files")
    return found


def studies_of() -> list[tuple[str, str]]:
    """Studies that come with jostle, and those in `studies` here as paths; with their titles."""
    from jostle.studies import INSTALLED, load, names

    return _ids(STUDIES, INSTALLED, names, lambda name, folder: load(name, folder).file.title)


def suites_of() -> list[tuple[str, str]]:
    """Suites that come with jostle, and those in `suites` here as paths; with their titles."""
    from jostle.suites import INSTALLED, load, names

    return _ids(SUITES, INSTALLED, names, lambda name, folder: load(name, folder).file.title)


def _ids(
    kind: str,
    installed: Path,
    names: Callable[[Path], list[str]],
    title: Callable[[str, Path], str],
) -> list[tuple[str, str]]:
    found = [(name, title(name, installed)) for name in names(installed)]
    here = Path(kind)
    if here.resolve() != installed:
        found += [(f"./{here}/{name}", title(name, here)) for name in names(here)]
    if not found:
        raise InputError(f"jostle was installed without {kind}")
    return found
