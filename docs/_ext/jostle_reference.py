"""Directives for tables of the reference that `tools/doc_blocks` writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

from doc_blocks import tables
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Markdown(SphinxDirective):
    """A directive that is replaced by Markdown."""

    has_content = False

    @abstractmethod
    def _markdown(self) -> Iterator[str]:
        """Yield the lines that replace the directive."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the lines."""
        try:
            lines = "\n".join(self._markdown())
        except ValueError as error:
            raise self.error(str(error)) from None
        return self.parse_text_to_nodes(lines, allow_section_headings=True)


class Rows(Markdown):
    """Every entry of a registry, which is one of the registries of `jostle list`."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        yield from tables.registry_table(self.arguments[0], "algorithms")


class Measures(Markdown):
    """The measures of one scope and one position in the summary."""

    required_arguments = 2

    def _markdown(self) -> Iterator[str]:
        yield from tables.measure_table(*self.arguments)


class Keys(Markdown):
    """Every key of a table of the scenario file; the body has a line for each."""

    required_arguments = 1
    has_content = True

    def _markdown(self) -> Iterator[str]:
        yield from tables.key_table(self.arguments[0], "\n".join(self.content))


class Profiles(Markdown):
    """Named links."""

    def _markdown(self) -> Iterator[str]:
        yield from tables.profile_table()


class Help(Markdown):
    """Output of `jostle COMMAND --help`."""

    optional_arguments = 2

    def _markdown(self) -> Iterator[str]:
        yield f"```text\n{tables.help_text(self.arguments)}\n```"


class Scenario(Markdown):
    """An example from `scenarios/`."""

    required_arguments = 1

    def _markdown(self) -> Iterator[str]:
        path = Path(self.env.srcdir).parent / "scenarios" / self.arguments[0]
        self.env.note_dependency(str(path))
        yield f"```toml\n{path.read_text('utf-8').strip()}\n```"


class Features(Markdown):
    """Features that learners can observe."""

    def _markdown(self) -> Iterator[str]:
        yield from tables.feature_table()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives."""
    app.add_directive("registry-rows", Rows)
    app.add_directive("measures", Measures)
    app.add_directive("scenario-keys", Keys)
    app.add_directive("profiles", Profiles)
    app.add_directive("features", Features)
    app.add_directive("cli-help", Help)
    app.add_directive("scenario", Scenario)
    return {"parallel_read_safe": True}
