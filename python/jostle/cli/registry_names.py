"""Names that commands accept: kinds, profiles, scenarios, studies and suites."""

from __future__ import annotations

import filecmp
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import InputError

if TYPE_CHECKING:
    from jostle.cli.environment import Environment
    from jostle.studies.library import Library

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
    found = [(path, _text(path, "title")) for path in sorted(folder.glob("**/*.toml"))]
    if not found:
        raise InputError("no scenarios here: there is no folder `scenarios` with TOML files")
    return found


def studies_of() -> list[tuple[str, str]]:
    """Return installed studies, and paths of studies in `./studies`, with their titles."""
    from jostle.studies import library

    return _ids(library.STUDIES)


def suites_of() -> list[tuple[str, str]]:
    """Return installed suites, and paths of suites in `./suites`, with their titles."""
    from jostle.studies import library

    return _ids(library.SUITES)


def papers_of() -> dict[str, str]:
    """Return the papers of installed studies."""
    from jostle.studies import library

    files = library.STUDIES.installed.glob(f"*/{library.STUDIES.file}")
    return {path.parent.name: _text(path, "paper") for path in sorted(files)}


def _ids(library: Library) -> list[tuple[str, str]]:
    def titles(folder: Path, before: str) -> list[tuple[str, str]]:
        return [
            (f"{before}{path.parent.name}", _text(path, "title"))
            for path in sorted(folder.glob(f"*/{library.file}"))
        ]

    found = titles(library.installed, "")
    here = Path(library.folder)
    if here.resolve() != library.installed:
        # A clone has the same files as an installed package.
        found += [
            (name, title)
            for name, title in titles(here, f"./{here}/")
            if not _is_same(
                Path(name) / library.file, library.installed / Path(name).name / library.file
            )
        ]
    if not found:
        raise InputError(f"jostle was installed without {library.folder}")
    return found


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _text(path: Path, key: str) -> str:
    """Return a text of a TOML file, of which nothing else is checked."""
    from jostle.scenario.parsing.problems import ScenarioError
    from jostle.scenario.parsing.toml_document import parse, read_text

    try:
        return str(parse(read_text(path), str(path))[1].get(key, ""))
    except ScenarioError:
        return "(not readable)"
