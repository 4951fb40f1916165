"""Names that commands accept: kinds, profiles, scenarios, studies and suites."""

from __future__ import annotations

import filecmp
from collections.abc import Mapping
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
    """Return the kinds that can be listed."""
    kinds = [name.replace("_", "-") for name in environment.registry()]
    return sorted([*kinds, *NOT_OF_THE_ENGINE])


def profiles_of() -> Mapping[str, Mapping[str, Any]]:
    """Return link profiles by name."""
    from jostle.scenario.resolve.profiles import profiles

    return profiles()


def scenarios_of() -> list[tuple[Path, str]]:
    """Return scenario files in the working directory, else the examples, with their titles."""
    here = Path(SCENARIOS)
    examples = Path(__file__).parents[3] / SCENARIOS
    folder = here if here.is_dir() else examples
    found = [(path, _title(path)) for path in sorted(folder.glob("**/*.toml"))]
    if not found:
        raise InputError("no scenarios here: there is no folder `scenarios` with TOML files")
    return found


def studies_of() -> list[tuple[str, str]]:
    """Return installed studies, and paths of studies in `./studies`, with their titles."""
    from jostle.studies.load import FILE, INSTALLED

    return _ids(STUDIES, INSTALLED, FILE)


def suites_of() -> list[tuple[str, str]]:
    """Return installed suites, and paths of suites in `./suites`, with their titles."""
    from jostle.suites.load import FILE, INSTALLED

    return _ids(SUITES, INSTALLED, FILE)


def _ids(kind: str, installed: Path, file: str) -> list[tuple[str, str]]:
    def titles(folder: Path, before: str) -> list[tuple[str, str]]:
        return [
            (f"{before}{path.parent.name}", _title(path))
            for path in sorted(folder.glob(f"*/{file}"))
        ]

    found = titles(installed, "")
    here = Path(kind)
    if here.resolve() != installed:
        # A clone has the same files as an installed package.
        found += [
            (name, title)
            for name, title in titles(here, f"./{here}/")
            if not _is_same(Path(name) / file, installed / Path(name).name / file)
        ]
    if not found:
        raise InputError(f"jostle was installed without {kind}")
    return found


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _title(path: Path) -> str:
    """Return the title of a TOML file, of which nothing else is checked."""
    from jostle.scenario.parsing.problems import ScenarioError
    from jostle.scenario.parsing.toml_document import parse, read_text

    try:
        return str(parse(read_text(path), str(path))[1].get("title", ""))
    except ScenarioError:
        return "(not readable)"
