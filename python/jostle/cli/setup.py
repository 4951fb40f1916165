"""`jostle setup status`: the kernels, modules and QUIC implementations that are usable here."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from jostle.cli.options import json_option
from jostle.safe_io.terminal_text import echo

SCHEMA = "jostle.setup/1"
"""Name and version of the document. The version changes if a key is removed or redefined."""


@click.command(short_help="Show what works on this machine.")
@json_option
def status(*, as_json: bool) -> None:
    """Show which kernels, modules and QUIC implementations are usable, and what to do.

    Example: jostle setup status
    """
    from jostle.cli.setup_kernel import print_kernels
    from jostle.cli.setup_module import print_modules
    from jostle.cli.setup_quic import print_implementations
    from jostle.kernel_images import controller_modules
    from jostle.kernel_images import status as kernels
    from jostle.quic import status as implementations

    states, found = kernels.states(), implementations.states()
    modules = controller_modules.built_modules()
    if as_json:
        document = {
            "schema": SCHEMA,
            "kernels": [each.to_dict() for each in states],
            "modules": [{**facts, "folder": str(folder)} for folder, facts in modules],
            "implementations": [each.to_dict() for each in found],
        }
        echo(json.dumps(document, ensure_ascii=False))
        return
    print_kernels(states)
    print_modules(modules)
    print_implementations(found)


def version_lines() -> Iterator[str]:
    """Yield the versions of engine, kernels and QUIC implementations that runs use here."""
    from jostle.backends import load_engine
    from jostle.errors import JostleError
    from jostle.kernel_images import status as kernels
    from jostle.quic import status as implementations

    try:
        engine = load_engine()
        yield f"engine   {engine.ENGINE_VERSION} (measures {engine.METRICS_VERSION})"
    except JostleError as error:
        yield f"engine   {error}"
    images = [each.image for each in kernels.states() if each.image is not None]
    yield f"kernels  {', '.join(f'{one.version} ({one.kind})' for one in images) or 'none'}"
    usable = [one.title for one in implementations.states() if not one.advice]
    yield f"QUIC     {'; '.join(['noq, in the engine', *usable])}"
