"""Columns of a study's results: runs of a backend with one setup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jostle.backends import BACKENDS
from jostle.backends.registry import DEFAULT
from jostle.studies.evaluate import Evaluation
from jostle.studies.findings import EvaluationsBySetup
from jostle.studies.study import DESCRIBED, LINUX, Study


@dataclass(frozen=True)
class Column:
    """A column next to the published numbers: runs of a backend with one setup.

    Attributes
    ----------
    backend, setup
        Names of backend and setup.
    title
        Title of the column.
    setup_title
        Title of the setup.
    kept
        For recorded results: version of the backend, date and file. Empty for runs.
    is_fitted
        Whether a search over the study's claims chose the values of the setup.
    """

    backend: str
    setup: str
    title: str
    setup_title: str = "as described"
    kept: str = ""
    is_fitted: bool = False


Evaluations = Mapping[Column, Evaluation]
"""In the order of the columns."""

TITLES: Final = {name: row.title for name, row in BACKENDS.items()}
"""Titles of the backends."""


def column(study: Study, backend: str, setup: str, title: str = "", kept: str = "") -> Column:
    """Return the column of a backend's runs with a setup.

    `title` replaces the title of the backend, for recorded results that `kept` describes.
    """
    file = study.file
    titles = {DESCRIBED: file.described} | {one.id: one.title for one in file.setups}
    title, setup_title = title or TITLES[backend], titles[setup]
    if file.setups and backend == DEFAULT:
        title = setup_title
    elif setup != DESCRIBED:
        title = f"{setup_title}, {title}"
    is_fitted = any(one.id == setup and one.is_fitted for one in file.setups)
    return Column(backend, setup, title, setup_title, kept, is_fitted)


def by_setup(evaluations: Evaluations, backend: str) -> EvaluationsBySetup:
    """Return the evaluations of a backend by setup, and Linux's evaluation as described."""
    found = {one.setup: each for one, each in evaluations.items() if one.backend == backend}
    for one, each in evaluations.items():
        if (one.backend, one.setup) == ("kernel", DESCRIBED):
            found[LINUX] = each
    return found
