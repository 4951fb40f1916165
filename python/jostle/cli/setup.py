"""`jostle setup status`: the kernels and QUIC implementations that are usable here."""

from __future__ import annotations

import json

import click

from jostle.cli.options import json_option
from jostle.safe_io.terminal_text import echo

SCHEMA = "jostle.setup/1"
"""Name and version of the document. The version changes if a key is removed or redefined."""


@click.command(short_help="Show what works on this machine.")
@json_option
def status(*, as_json: bool) -> None:
    """Show which kernels and QUIC implementations are usable, and how to enable the others.

    Example: jostle setup status
    """
    from jostle.cli.setup_kernel import print_kernels
    from jostle.cli.setup_quic import print_implementations
    from jostle.kernel_images import status as kernels
    from jostle.quic import status as implementations

    states, found = kernels.states(), implementations.states()
    if as_json:
        document = {
            "schema": SCHEMA,
            "kernels": [each.to_dict() for each in states],
            "implementations": [each.to_dict() for each in found],
        }
        echo(json.dumps(document, ensure_ascii=False))
        return
    print_kernels(states)
    print_implementations(found)
