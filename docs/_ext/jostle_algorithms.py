"""Directives of the algorithms' pages: facts from the registry, and figures of runs made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from doc_blocks import algorithms, tables
from jostle_reference import Markdown
from sphinx.application import Sphinx


class Algorithm(Markdown):
    """A controller, slow start or memory: what the registry and a run of it say."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        name = self.arguments[0]
        results = algorithms.algorithm_run(name)
        yield from algorithms.algorithm_facts(name, results)
        for source in (algorithms.scenario_file(name), algorithms.recorded_file(name)):
            self.env.note_dependency(str(source))
        stem = Path(self.env.srcdir) / "_build" / "figures" / algorithms.file_stem(name)
        algorithms.draw_algorithm(name, results, stem)
        yield (
            f"```{{image}} /_build/figures/{stem.name}.svg\n:width: 440px\n:align: center\n"
            f":alt: {algorithms.alt_text(name)}\n```\n"
        )
        yield algorithms.caption(name)


class AlgorithmTable(Markdown):
    """All controllers, slow starts or peer caches, with links to their pages."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        yield from tables.registry_table(self.arguments[0], "algorithms")


class FamilyTree(Markdown):
    """The controllers by group, with an arrow from each to those that build on it."""

    def _markdown(self) -> Iterator[str]:
        stem = Path(self.env.srcdir) / "_build" / "figures" / "family-tree"
        algorithms.draw_family_tree(stem)
        yield "```{image} /_build/figures/family-tree.svg\n:width: 100%\n:alt: Family tree\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("algorithm", Algorithm)
    app.add_directive("algorithm-table", AlgorithmTable)
    app.add_directive("family-tree", FamilyTree)
    return {"parallel_read_safe": True}
